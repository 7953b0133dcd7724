"""What is wrong with input or learning is said, and the agent stays as it was."""

import functools

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from sfr_fa.agents import (
    AGENT_SPECS,
    DivergedError,
    FeatureSubnetworks,
    LearnedFeatures,
    LinearRewardModel,
    MlpRewardModel,
    Transition,
    make_agent,
)
from sfr_fa.agents.readouts import AtFeatures, LearnedOnline
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.reward_fitting import least_squares_weights
from sfr_fa.streams import Streams
from sfr_fa.tasks import FunctionTask, LinearTask, TableTask
from tests.fa.agent_checks import (
    BOX,
    DISCRETE,
    GOOD,
    NUM_ACTIONS,
    STATE_DIM,
    VECTORS,
    Network,
    continue_for,
    everything,
    set_weights,
    small_agent,
    some_task,
    started,
)
from tests.refusals import refused

COMMON = {"gamma": 0.9, "epsilon": 0.1, "learning_rate": 0.1}


def keeps(agent):
    return {"unchanged": lambda: everything(agent)}


# --- Steps ------------------------------------------------------------------------------------------

WITH_NAN = np.array([0.0, np.nan, 0, 0, 0])
HUGE = np.array([0.0, 1e39, 0, 0, 0])
"""Infinite in float32."""

BAD_STEPS = {
    "NaN state": ({"state": WITH_NAN}, ("state", "position 1", "finite")),
    "infinite next state": ({"next_state": np.full(STATE_DIM, np.inf)}, ("next state", "finite")),
    "short state": ({"state": np.ones(3)}, ("state", "(5,)")),
    "state of words": ({"state": ["a"] * 5}, ("state", "5 numbers")),
    "huge state": ({"state": HUGE}, ("state", "position 1", "at most 3.4")),
    "huge next state": ({"next_state": -HUGE}, ("next state", "at most")),
    "action out of range": ({"action": 3}, ("action is 3", "0 to 2")),
    "negative action": ({"action": -1}, ("action is -1", "0 to 2")),
    "fractional action": ({"action": 0.5}, ("action is 0.5", "integer")),
    "NaN reward": ({"reward": np.nan}, ("reward", "finite")),
    "huge reward": ({"reward": 1e39}, ("reward", "at most")),
    "vector reward": ({"reward": [1.0, 2.0]}, ("reward", "a number")),
    "unknown features": ({"features": [9, 9, 9]}, ("features", "including")),
    "short features": ({"features": [0.0]}, ("features", "3 feature dimensions")),
    "two feature vectors": ({"features": VECTORS[:2]}, ("features", "one feature vector")),
    "no features": ({"features": None}, ("features", "environment")),
    "terminal is a number": ({"terminal": 2}, ("terminal is 2", "True or False")),
}


@pytest.mark.parametrize("case", BAD_STEPS)
@pytest.mark.parametrize("name", ["SFR-R", "MB SFR"])
def test_a_bad_step_is_refused_and_the_agent_goes_on(case, name):
    change, words = BAD_STEPS[case]
    agent = started(name, dtype=torch.float32)
    with refused(*words, **keeps(agent)):
        agent.learn(Transition(**(GOOD | change)))
    agent.learn(Transition(**GOOD))


@pytest.mark.parametrize(
    ("high", "value", "words"), [(2.0, 2.5, ("feature 1", "0.0 and 2.0")), (1e40, 1e39, ("1e+39", "at most"))]
)
def test_features_outside_the_box_or_beyond_its_numbers_are_refused(high, value, words):
    agent = make_agent("SF", STATE_DIM, NUM_ACTIONS, BoxFeatures(np.zeros(3), np.full(3, high)), **COMMON)
    agent.start_task(LinearTask(np.ones(3)))
    with refused(*words, **keeps(agent)):
        agent.learn(Transition(**(GOOD | {"features": [0, value, 0]})))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (WITH_NAN, ("state has nan",)),
        (HUGE, ("state", "at most")),
        *((observation, ("FlattenObservation",)) for observation in (3, np.zeros((2, 5)), {"position": 1})),
    ],
)
def test_a_bad_state_to_act_on_draws_nothing(state, words):
    agent = started("Q", dtype=torch.float32)
    for ask in (agent.act, agent.values):
        with refused(*words, **keeps(agent)):
            ask(state)


def test_values_that_overflow_are_said_and_do_no_harm():
    agent = started("SFR", dtype=torch.float32)
    set_weights(agent, 0, np.full((NUM_ACTIONS, 5, STATE_DIM), 2.0))
    with pytest.raises(DivergedError):
        agent.values(np.full(STATE_DIM, 3e38))
    agent.learn(Transition(**GOOD))


class MyFeatures:
    """A feature map of one's own."""

    state_dim, space = STATE_DIM, BOX

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, transition):
        return self.answer


def test_a_feature_map_of_ones_own_must_stay_in_its_space():
    def agent_of(answer):
        settings = COMMON | {"reward_learning_rate": 0.1, "feature_map": MyFeatures(answer)}
        agent = make_agent("SF-h", STATE_DIM, NUM_ACTIONS, None, **settings)
        agent.start_task()
        return agent

    for answer, word in (
        (np.full(3, 9.0), "between"),
        (np.zeros((2, 3)), "one feature vector"),
        (np.zeros(2), "3 feature dimensions"),
    ):
        agent = agent_of(answer)
        with refused(word, **keeps(agent)):
            agent.learn(Transition(**GOOD))
    agent_of(np.zeros(3)).learn(Transition(**GOOD))


# --- Tasks ------------------------------------------------------------------------------------------


class Duck:
    """A task by its methods alone, with whatever they return."""

    dimensions = 3

    def __init__(self, answer):
        self.answer = answer

    def reward(self, features):
        return self.answer(features[..., 0])

    def component(self, k, x):
        return self.answer(x)


FOUR = DiscreteFeatures(np.eye(4))
BAD_TASKS = [
    ("SF", None, ("start_task needs the task",)),
    ("SF", LinearTask(np.ones(4)), ("4 feature dimensions", "have 3")),
    ("SFR", "orange", ("'orange'", "reward(features)")),
    ("SFR", TableTask(DISCRETE, np.full(5, 1e39)), ("too large", "float32")),
    ("SF", lambda phi: phi, ("vectorised",)),
    ("CSFR", FunctionTask(lambda phi: phi[..., 0]), ("parts", "AdditiveTask")),
    ("CSFR", LinearTask(np.ones(2)), ("2 feature dimensions", "have 3")),
    *((name, Duck(lambda x: x[:2]), ("is needed",)) for name in ("SF", "SFR", "CSFR")),
    *((name, Duck(lambda x: x + np.nan), ("nan", "finite")) for name in ("SF", "SFR", "CSFR")),
    *((name, Duck(lambda x: "much"), ("'much'", "numbers")) for name in ("SF", "SFR", "CSFR")),
    *(
        (name, task, ("4 feature dimensions", "have 3"))
        for name in ("SF-R", "SFR-R", "MB SFR-R", "CSFR-R")
        for task in (LinearTask(np.ones(4)), TableTask(FOUR, np.ones(4)))
    ),
]


@pytest.mark.parametrize(("name", "task", "words"), BAD_TASKS)
def test_a_task_that_does_not_fit_is_refused(name, task, words):
    agent = small_agent(name, dtype=torch.float32)
    with refused(*words, **keeps(agent)):
        agent.start_task(task)
    agent.start_task(Duck(lambda x: 2 * x))


def test_features_of_the_agents_own_need_not_be_the_tasks():
    small_agent("SF-h").start_task(LinearTask(np.ones(7)))


def test_a_task_must_have_started():
    agent = small_agent("SFR")
    for ask in (lambda: agent.act(np.ones(STATE_DIM)), lambda: agent.learn(Transition(**GOOD)),
                lambda: agent.values(np.ones(STATE_DIM)), lambda: agent.gpi_counts):  # fmt: skip
        with refused("call start_task"):
            ask()


def test_what_cannot_be_valued_under_another_task_says_so():
    with refused("Q", "another task"):
        started("Q").values(np.ones(STATE_DIM), LinearTask(np.ones(3)))
    with refused("too large", "float32"):
        started("SFR", dtype=torch.float32).values(np.ones(STATE_DIM), TableTask(DISCRETE, np.full(5, 1e39)))


def test_sf_in_a_box_needs_points_to_fit_general_rewards():
    space, task = (
        BoxFeatures(np.zeros(2), np.ones(2)),
        FunctionTask(lambda phi: 2 * phi[..., 0] - phi[..., 1]),
    )
    with refused("fit_points"):
        make_agent("SF", 3, 2, space, **COMMON).start_task(task)
    points = np.random.default_rng(1).random((30, 2))
    agent = make_agent("SF", 3, 2, space, fit_points=points, **COMMON)
    agent.start_task(task)
    np.testing.assert_allclose(agent.readouts[0].vector, [2, -1], atol=1e-6)


# --- Settings ---------------------------------------------------------------------------------------

REWARD_RATE = {"reward_learning_rate": 0.1}
LEARNED = LearnedFeatures(np.zeros((2 * STATE_DIM, 4)))
MLP = REWARD_RATE | {"reward_model": MlpRewardModel}

BAD_SETTINGS = [
    ("SFRQL", DISCRETE, {}, ("'SFRQL'", "Q, SF")),
    (3, DISCRETE, {}, ("agent is 3", "a name")),
    # Features that the agent cannot have, or lacks.
    ("SFR", BOX, {}, ("SFR", "discrete", "CSFR")),
    ("MB SFR", BOX, {"model_learning_rate": 0.2}, ("SFR", "discrete", "CSFR")),
    ("SF", None, {}, ("needs feature_space",)),
    ("SFR", np.eye(2), {}, ("feature_space", "DiscreteFeatures(vectors)")),
    ("SF", gymnasium.spaces.Box(0, 1, (2,)), {}, ("feature_space", "BoxFeatures(box.low, box.high)")),
    ("SF-h", None, REWARD_RATE, ("needs feature_map",)),
    ("SF-h", None, REWARD_RATE | {"feature_map": np.eye(2)}, ("feature_map", "LearnedFeatures(matrix)")),
    ("SF-h", None, REWARD_RATE | {"feature_map": LearnedFeatures(np.zeros((4, 3)))}, ("2 dimensions", "5")),
    ("SF", BOX, {"fit_points": np.full((2, 3), 7.0)}, ("between",)),
    # Settings that it needs, or has no use for.
    ("SF-R", DISCRETE, {}, ("SF-R", "needs reward_learning_rate")),
    ("MB SFR", DISCRETE, {}, ("needs model_learning_rate",)),
    ("SF", DISCRETE, REWARD_RATE, ("SF", "leave it out", "reward_learning_rate")),
    ("SFR", DISCRETE, {"feature_map": LEARNED}, ("feature_map", "leave it out")),
    ("Q", None, {"bins": 5}, ("bins", "leave it out")),
    ("SFR", DISCRETE, {"weight_fit": least_squares_weights}, ("weight_fit", "leave it out")),
    ("SF-R", DISCRETE, MLP, ("linear reward models", "SFR-R")),
    ("CSFR-R", BOX, MLP, ("linear reward models", "SFR-R")),
    # Values that are none.
    *(("Q", None, {"gamma": value}, ("gamma is",)) for value in (1.0, "x")),
    *(("Q", None, {"epsilon": value}, ("epsilon is",)) for value in (2.0, None)),
    *(("Q", None, {"learning_rate": value}, ("learning_rate is",)) for value in (0.0, np.inf, 1e39, "fast")),
    *(("MB SFR", DISCRETE, {"model_learning_rate": v}, ("model_learning_rate is",)) for v in (0.0, np.inf)),
    ("SF-R", DISCRETE, {"reward_learning_rate": np.nan}, ("reward_learning_rate is nan",)),
    *(("CSFR", BOX, {"bins": value}, ("bins is",)) for value in (1, 5.5)),
    ("CSFR", BOX, {"bins": (3, 4)}, ("bins", "there are 3")),
    ("CSFR", BOX, {"bins": (3, 4, 1)}, ("bins", "at least 2")),
    ("CSFR", BOX, {"bins": (3, 4, 2.5)}, ("bins[2]",)),
    ("Q", None, {"seed": -1}, ("seed is -1", "at least 0")),
    ("Q", None, {"seed": np.random.RandomState(0)}, ("seed is", "Streams")),
    ("Q", None, {"dtype": torch.int64}, ("dtype", "torch.float32")),
    *(("SFR", DISCRETE, {s: "no"}, (f"{s} is 'no'", "function")) for s in ("clip", "loss", "optimiser")),
    ("SF", DISCRETE, {"weight_fit": "l1"}, ("weight_fit is 'l1'", "function")),
    ("SFR-R", DISCRETE, REWARD_RATE | {"reward_model": "mlp"}, ("reward_model is 'mlp'", "function")),
    ("Q", None, {"optimiser": torch.optim.LBFGS}, ("optimiser", "step()")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "space", "settings", "words"), BAD_SETTINGS)
def test_settings_that_do_not_fit_are_refused(name, space, settings, words):
    with refused(*words):
        make_agent(name, STATE_DIM, NUM_ACTIONS, space, **(COMMON | settings))


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_sizes_are_positive_integers(size):
    with refused("positive integer"):
        make_agent("Q", size, 2, None, **COMMON)


def test_a_seed_stands_for_its_streams():
    agents = [make_agent("Q", STATE_DIM, NUM_ACTIONS, seed=s) for s in (3, np.int64(3), Streams.spawn(3))]
    for agent in agents:
        agent.start_task()
    assert everything(agents[0]) == everything(agents[1]) == everything(agents[2])


# --- Modules of others ------------------------------------------------------------------------------


class Pair(Network):
    def forward(self, states):
        return (super().forward(states),) * 2


class Noisy(Network):
    """Stacks itself, with noise."""

    def apply_stacked(self, parameters, states):
        size = (*parameters["layers.0.bias"].shape[:1], len(states))
        return torch.rand(*size, self.shape.num_actions, self.shape.dimensions)


class Constant(Network):
    def forward(self, states):
        return torch.zeros(len(states), self.shape.num_actions, self.shape.dimensions, dtype=states.dtype)


def flat(shape):
    return nn.Linear(shape.state_dim, shape.num_actions * shape.dimensions)


@pytest.mark.parametrize(
    ("approximator", "words"),
    [
        (lambda shape: Pair(shape, flat(shape)), ("tuple",)),
        (lambda shape: Noisy(shape, flat(shape)), ("two answers", "random")),
        (Constant, ("no parameters",)),
        (lambda shape: Network(shape, flat(shape), nn.Dropout(0.5)), ("fails on a batch",)),
        (lambda shape: Network(shape, nn.BatchNorm1d(shape.state_dim), flat(shape)), ("fails on a batch",)),
        (lambda shape: nn.Linear(shape.state_dim, 7), ("(1, 7)", "(1, 3, 5)")),
        (lambda shape: 3, ("torch.nn.Module",)),
    ],
)
def test_a_network_that_cannot_be_used_is_refused_when_it_is_made(approximator, words):
    agent = small_agent("SFR", approximator=lambda shape, rng: approximator(shape))
    with refused("approximator", *words, **keeps(agent)):
        agent.start_task(some_task("SFR", np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda n: nn.Linear(n, 1), ("(5, 1)", "(5,)")),
        (lambda n: nn.Linear(n + 1, 1), ("fails on features",)),
        (lambda n: lambda phi: phi[:, 0], ("torch.nn.Module",)),
        (lambda n: nn.Identity(), ("no parameters",)),
    ],
)
def test_a_reward_model_that_cannot_be_used_is_refused(build, words):
    agent = small_agent("SFR-R", reward_model=lambda dimensions, rng: build(dimensions))
    with refused("reward_model", *words, **keeps(agent)):
        agent.start_task()


def test_a_saved_reward_model_of_another_size_is_refused():
    small, large = (
        LearnedOnline(AtFeatures(DiscreteFeatures(np.eye(n))), LinearRewardModel, 0.1) for n in (2, 3)
    )
    saved = small.start(None, np.random.default_rng(0), torch.float64).state_dict()
    with refused("reward model"):
        large.restore(saved, torch.float64)


class ShortWeights(LinearRewardModel):
    """A linear model that starts at weights of a chosen size."""

    def __init__(self, dimensions, rng, size=0.5):
        super().__init__(dimensions, rng)
        self.weight.data *= size


@pytest.mark.parametrize("model", [ShortWeights, functools.partial(ShortWeights, size=0.1)])
@pytest.mark.parametrize("name", ["SF-R", "CSFR-R"])
def test_linear_reward_models_may_be_derived_from_ours(name, model):
    assert started(name, reward_model=model).steps_learned == 4


@pytest.mark.parametrize(("name", "works"), [("Q", 0), ("Q", 1), ("SFR-R", 0)])
def test_a_task_whose_network_cannot_be_made_changes_nothing(name, works):
    """Nor the policy that Q has, if it is a later one that fails."""
    calls = []

    def fails(shape, rng):
        calls.append(rng.normal(size=10))
        if len(calls) > works:
            raise KeyError("no such network")
        return FeatureSubnetworks(shape, rng)

    agent = small_agent(name, approximator=fails)
    for _ in range(works):
        agent.start_task()
    before = everything(agent)
    with pytest.raises(KeyError):
        agent.start_task(some_task(name, np.random.default_rng(0)))
    assert everything(agent) == before
    if works:
        agent.act(np.ones(STATE_DIM))


# --- Divergence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENT_SPECS)
def test_divergence_is_raised_and_not_carried_on(name, tmp_path):
    agent, other = (small_agent(name, learning_rate=1e3, dtype=torch.float32) for _ in range(2))
    rng = np.random.default_rng(1)
    agent.start_task(some_task(name, rng))
    with pytest.raises(DivergedError, match="learning_rate"):
        continue_for(agent, name, rng, 500)
    agent.save(tmp_path / "diverged")
    other.load(tmp_path / "diverged")
    for each in (agent, other):
        for ask in (lambda a: a.act(np.ones(STATE_DIM)), lambda a: a.learn(Transition(**GOOD)),
                    lambda a: a.start_task(some_task(name, rng))):  # fmt: skip
            with pytest.raises(DivergedError):
                ask(each)


def test_a_diverging_reward_model_is_named():
    agent = small_agent("SF-R", reward_learning_rate=1e3, dtype=torch.float32)
    agent.start_task()
    with pytest.raises(DivergedError, match=r"reward model.*reward_learning_rate"):
        continue_for(agent, "SF-R", np.random.default_rng(1), 500)

"""Copies, numbers that do not fit, modules and tasks of others: an agent keeps learning or says why not."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sfr_fa.agents import (
    AGENT_SPECS,
    DivergedError,
    FeatureSubnetworks,
    GpiAgent,
    LearnedFeatures,
    LinearRewardModel,
    Transition,
    ValueShape,
    make_agent,
)
from sfr_fa.agents.checkpoint import describe
from sfr_fa.agents.readouts import AtFeatures, LearnedOnline
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_fa.streams import Streams
from sfr_fa.tasks import LinearTask, TableTask
from sfr_theory.errors import InputError
from tests.fa.agent_checks import (
    BOX,
    DISCRETE,
    NUM_ACTIONS,
    STATE_DIM,
    set_weights,
    small_agent,
    some_task,
)
from tests.fa.test_agents_bad_input import GOOD, continue_for, everything

COMMON: dict[str, Any] = {"gamma": 0.9, "epsilon": 0.1, "learning_rate": 0.1}


def started(name: str, tasks: int = 1, **settings: Any) -> GpiAgent:
    agent = small_agent(name, **settings)
    rng = np.random.default_rng(4)
    for _ in range(tasks):
        agent.start_task(some_task(name, rng))
        continue_for(agent, name, rng, 4)
    return agent


def pickled(agent: GpiAgent) -> GpiAgent:
    copied: GpiAgent = pickle.loads(pickle.dumps(agent))
    return copied


# --- Copies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make_copy", [copy.deepcopy, pickled])
@pytest.mark.parametrize("name", AGENT_SPECS)
def test_a_copy_learns_as_the_original_and_apart_from_it(
    name: str, make_copy: Callable[[GpiAgent], GpiAgent]
) -> None:
    settings = {"approximator": FeatureSubnetworks, "optimiser": torch.optim.Adam} if name == "CSFR" else {}
    agent = started(name, tasks=3, **settings)
    other = make_copy(agent)
    before = everything(agent)
    assert everything(other) == before
    task = some_task(name, np.random.default_rng(6))

    def goes_on(runner: GpiAgent) -> tuple[Any, ...]:
        rng = np.random.default_rng(5)
        actions = continue_for(runner, name, rng, 10)
        runner.start_task(task)
        return (
            actions,
            continue_for(runner, name, rng, 10),
            everything(runner),
            runner.values(np.ones(5)).tolist(),
        )

    result = goes_on(other)
    assert everything(agent) == before
    assert goes_on(agent) == result


def test_a_pickle_does_not_hold_the_stack_once_for_each_policy() -> None:
    def size(policies: int) -> int:
        return len(pickle.dumps(started("SFR", tasks=policies).policies))

    assert size(32) < 3 * size(16)


def test_converted_modules_are_still_the_ones_that_are_read() -> None:
    agent, twin = started("SFR", tasks=2, dtype=torch.float32), started("SFR", tasks=2, dtype=torch.float32)
    for module in agent.policies.modules:
        module.double().float()
    for runner in (agent, twin):
        continue_for(runner, "SFR", np.random.default_rng(5), 10)
    assert everything(agent) == everything(twin)
    for k, module in enumerate(agent.policies.modules):
        assert torch.equal(module.weight, agent.policies.parameters["weight"][k])


# --- Files ------------------------------------------------------------------------------------------


class RandomProjection(nn.Module):
    """Linear in random features of the state, which are a buffer."""

    def __init__(self, shape: ValueShape, rng: np.random.Generator) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("projection", torch.from_numpy(rng.normal(size=(shape.state_dim, 7))))
        self.linear = nn.Linear(7, shape.num_actions * shape.dimensions)

    def forward(self, states: Tensor) -> Tensor:
        values: Tensor = self.linear((states @ self.projection).tanh())
        return values.unflatten(-1, (self.shape.num_actions, self.shape.dimensions))


def test_buffers_are_saved(tmp_path: Path) -> None:
    agent = started("SFR", tasks=2, approximator=RandomProjection)
    agent.save(tmp_path / "agent.safetensors")
    other = small_agent("SFR", approximator=RandomProjection)
    other.load(tmp_path / "agent.safetensors")
    np.testing.assert_array_equal(other.values(np.ones(STATE_DIM)), agent.values(np.ones(STATE_DIM)))


def test_a_saved_agent_may_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        started("Q").save(tmp_path / "agent.safetensors")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "agent.safetensors").stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["agent.safetensors"]


def test_numbers_of_numpy_and_plain_ones_describe_the_same_agent() -> None:
    plain = small_agent("CSFR", gamma=0.5, epsilon=0.25, bins=5)
    numpy = make_agent(
        "CSFR", np.int64(STATE_DIM), np.int32(NUM_ACTIONS), BOX, gamma=np.float32(0.5),
        epsilon=np.float64(0.25), learning_rate=np.float64(0.03), seed=0, bins=np.int64(5),
        dtype=torch.float64,
    )  # fmt: skip
    assert numpy.description == plain.description


def test_descriptions_tell_apart_what_learns_differently() -> None:
    def scaled(factor: float) -> Callable[[float], float]:
        return lambda x: factor * x

    assert describe(np.float64(0.5)) == 0.5
    assert describe([1, (2, 3)]) == [1, [2, 3]]
    assert describe(functools.partial(max, 1)) != describe(functools.partial(max, 2))
    assert describe(functools.partial(max, 1)) == describe(functools.partial(max, 1))
    assert describe(scaled(1.0)) == describe(scaled(1.0))
    assert describe(scaled(1.0)) != describe(scaled(2.0))
    assert describe(lambda x: x) != describe(lambda x: -x)


def test_a_reward_model_of_another_size_is_refused() -> None:
    small = LearnedOnline(AtFeatures(DiscreteFeatures(np.eye(2))), LinearRewardModel, 0.1)
    large = LearnedOnline(AtFeatures(DiscreteFeatures(np.eye(3))), LinearRewardModel, 0.1)
    saved = small.start(None, np.random.default_rng(0), torch.float64).state_dict()
    with pytest.raises(InputError, match="not one of this agent"):
        large.restore(saved, torch.float64)


# --- Numbers that do not fit ------------------------------------------------------------------------

HUGE = np.array([0.0, 1e39, 0, 0, 0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"state": HUGE}, "the state has 1e.39 at position 1; .* of at most 3.4e.38"),
        ({"next_state": -HUGE}, "the next state has -1e.39"),
        ({"reward": 1e39}, "the reward is 1e.39; .* of at most 3.4e.38"),
    ],
)
def test_what_is_infinite_in_float32_is_refused_and_the_agent_goes_on(
    change: dict[str, Any], sentence: str
) -> None:
    agent = started("SFR-R", dtype=torch.float32)
    before = everything(agent)
    with pytest.raises(InputError, match=sentence):
        agent.learn(Transition(**(GOOD | change)))
    assert everything(agent) == before
    agent.learn(Transition(**GOOD))


def test_huge_states_and_rewards_can_be_asked_about_without_harm() -> None:
    agent = started("SFR", dtype=torch.float32)
    before = everything(agent)
    for state, reward in ((HUGE, None), (np.ones(STATE_DIM), TableTask(DISCRETE, np.full(5, 1e39)))):
        with pytest.raises(InputError, match=r"of at most|too large for"):
            agent.values(state, reward)
    with pytest.raises(InputError, match="of at most"):
        agent.act(HUGE)
    with pytest.raises(InputError, match="too large for"):
        agent.start_task(TableTask(DISCRETE, np.full(5, 1e39)))
    assert everything(agent) == before
    set_weights(agent, 0, np.full((NUM_ACTIONS, 5, STATE_DIM), 2.0))
    with pytest.raises(DivergedError):
        agent.values(np.full(STATE_DIM, 3e38))
    agent.learn(Transition(**GOOD))


def test_huge_features_are_refused() -> None:
    space = BoxFeatures(np.zeros(3), np.full(3, 1e40))
    agent = make_agent("SF", STATE_DIM, NUM_ACTIONS, space, **COMMON)
    agent.start_task(LinearTask(np.ones(3)))
    before = everything(agent)
    with pytest.raises(InputError, match=r"the feature vector has 1e.39"):
        agent.learn(Transition(**(GOOD | {"features": [0, 1e39, 0]})))
    assert everything(agent) == before


@pytest.mark.parametrize("observation", [3, np.zeros((2, 5)), {"position": 1}])
def test_observations_that_are_no_vectors_get_advice(observation: Any) -> None:
    with pytest.raises(InputError, match="FlattenObservation"):
        started("Q").act(observation)


# --- Settings ---------------------------------------------------------------------------------------

WRONG_SETTINGS: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "vectors as space": ("SFR", np.eye(2), {}, r"DiscreteFeatures\(vectors\)"),
    "Gymnasium's box": ("SF", gymnasium.spaces.Box(0, 1, (2,)), {}, r"BoxFeatures\(box.low, box.high\)"),
    "matrix as map": (
        "SF-h", None, {"reward_learning_rate": 0.1, "feature_map": np.eye(2)}, r"LearnedFeatures\(matrix\)",
    ),
    "no spec": (3, DISCRETE, {}, "agent is 3; it must be a name"),
    "clip": ("SFR", DISCRETE, {"clip": "no"}, "clip is 'no'; it must be a function"),
    "loss": ("SFR", DISCRETE, {"loss": 2}, "loss is 2; it must be a function"),
    "optimiser": ("SFR", DISCRETE, {"optimiser": "SGD"}, "optimiser is 'SGD'"),
    "weight fit": ("SF", DISCRETE, {"weight_fit": "l1"}, "weight_fit is 'l1'"),
    "reward model": (
        "SFR-R", DISCRETE, {"reward_learning_rate": 0.1, "reward_model": "mlp"}, "reward_model is 'mlp'",
    ),
    "infinite rate": ("Q", None, {"learning_rate": np.inf}, "learning_rate is inf"),
    "rate of words": ("Q", None, {"learning_rate": "fast"}, "learning_rate is 'fast'"),
    "infinite model rate": ("MB SFR", DISCRETE, {"model_learning_rate": np.inf}, "model_.*rate is inf"),
    "reward rate": ("SF-R", DISCRETE, {"reward_learning_rate": np.nan}, "reward_learning_rate is nan"),
    "gamma": ("Q", None, {"gamma": "x"}, "gamma is 'x'"),
    "epsilon": ("Q", None, {"epsilon": None}, "epsilon is None"),
    "bins": ("CSFR", BOX, {"bins": 5.5}, "bins is 5.5"),
    "seed": ("Q", None, {"seed": -1}, "seed is -1"),
    "state": ("Q", None, {"seed": np.random.RandomState(0)}, "an integer of at least 0, or Streams"),
    "LBFGS": ("Q", None, {"optimiser": torch.optim.LBFGS}, r"cannot make a plain step\(\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_SETTINGS)
def test_a_wrong_setting_gets_a_sentence(case: str) -> None:
    agent, space, settings, sentence = WRONG_SETTINGS[case]
    with pytest.raises(InputError, match=sentence):
        make_agent(agent, STATE_DIM, NUM_ACTIONS, space, **(COMMON | settings))


def test_a_seed_stands_for_its_streams() -> None:
    agents = [make_agent("Q", STATE_DIM, NUM_ACTIONS, seed=s) for s in (3, np.int64(3), Streams.spawn(3))]
    for agent in agents:
        agent.start_task()
    assert everything(agents[0]) == everything(agents[1]) == everything(agents[2])


# --- Modules of others ------------------------------------------------------------------------------


class Network(nn.Module):
    """Flat layers whose output is cut into actions and values."""

    def __init__(self, shape: ValueShape, *layers: nn.Module) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.Sequential(*layers)

    def forward(self, states: Tensor) -> Any:
        return self.layers(states).unflatten(-1, (self.shape.num_actions, self.shape.dimensions))


class Pair(Network):
    def forward(self, states: Tensor) -> Any:
        values = super().forward(states)
        return values, values


class Noisy(Network):
    """Stacks itself, with noise."""

    def apply_stacked(self, parameters: Any, states: Tensor) -> Tensor:
        size = (*parameters["layers.0.bias"].shape[:1], len(states))
        return torch.rand(*size, self.shape.num_actions, self.shape.dimensions)


class Constant(Network):
    def forward(self, states: Tensor) -> Any:
        return torch.zeros(len(states), self.shape.num_actions, self.shape.dimensions, dtype=states.dtype)


def flat(shape: ValueShape) -> nn.Linear:
    return nn.Linear(shape.state_dim, shape.num_actions * shape.dimensions)


@pytest.mark.parametrize(
    ("approximator", "sentence"),
    [
        (lambda shape, rng: Pair(shape, flat(shape)), "returns tuple|fails on a batch"),
        (lambda shape, rng: Noisy(shape, flat(shape)), "two answers to one state"),
        (lambda shape, rng: Constant(shape), "has no parameters"),
        (lambda shape, rng: Network(shape, flat(shape), nn.Dropout(0.5)), "fails on a batch"),
        (lambda shape, rng: Network(shape, nn.BatchNorm1d(shape.state_dim), flat(shape)), "fails on a batch"),
        (lambda shape, rng: 3, "must be a torch.nn.Module"),
    ],
)
def test_a_network_that_cannot_be_used_is_refused_when_it_is_made(
    approximator: Callable[..., Any], sentence: str
) -> None:
    agent = small_agent("SFR", approximator=approximator)
    before = everything(agent)
    with pytest.raises(InputError, match=sentence):
        agent.start_task(some_task("SFR", np.random.default_rng(0)))
    assert everything(agent) == before


def reward_model(build: Callable[[int], Any]) -> Callable[[int, np.random.Generator], Any]:
    return lambda dimensions, rng: build(dimensions)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (reward_model(lambda n: nn.Linear(n, 1)), r"to \(5, 1\); it must give one number for each: \(5,\)"),
        (reward_model(lambda n: nn.Linear(n + 1, 1)), "reward_model fails on features"),
        (reward_model(lambda n: lambda phi: phi[:, 0]), "must be a torch.nn.Module"),
        (reward_model(lambda n: nn.Identity()), "has no parameters"),
    ],
)
def test_a_reward_model_that_cannot_be_used_is_refused(model: Any, sentence: str) -> None:
    agent = small_agent("SFR-R", reward_model=model)
    before = everything(agent)
    with pytest.raises(InputError, match=sentence):
        agent.start_task()
    assert everything(agent) == before


class ShortWeights(LinearRewardModel):
    """A linear model that starts at weights of a chosen size."""

    def __init__(self, dimensions: int, rng: np.random.Generator, size: float = 0.5) -> None:
        super().__init__(dimensions, rng)
        self.weight.data *= size


@pytest.mark.parametrize("model", [ShortWeights, functools.partial(ShortWeights, size=0.1)])
@pytest.mark.parametrize("name", ["SF-R", "CSFR-R"])
def test_linear_reward_models_may_be_derived_from_ours(name: str, model: Any) -> None:
    assert started(name, reward_model=model).steps_learned == 4


# --- Tasks of others --------------------------------------------------------------------------------


def test_a_task_that_fails_leaves_the_streams_as_they_were() -> None:
    def fails(shape: ValueShape, rng: np.random.Generator) -> nn.Module:
        rng.normal(size=10)
        raise KeyError("no such network")

    for name in ("Q", "SFR-R"):
        agent = small_agent(name, approximator=fails)
        before = everything(agent)
        with pytest.raises(KeyError):
            agent.start_task(some_task(name, np.random.default_rng(0)))
        assert everything(agent) == before


def test_q_keeps_its_policy_if_a_new_one_cannot_be_made() -> None:
    calls = []

    def fails_later(shape: ValueShape, rng: np.random.Generator) -> nn.Module:
        calls.append(shape)
        if len(calls) > 1:
            raise KeyError("no such network")
        return FeatureSubnetworks(shape, rng)

    agent = small_agent("Q", approximator=fails_later)
    agent.start_task()
    before = everything(agent)
    with pytest.raises(KeyError):
        agent.start_task()
    assert everything(agent) == before
    agent.act(np.ones(STATE_DIM))


class Duck:
    """A task by its methods alone, with whatever they return."""

    dimensions = 3

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer

    def reward(self, features: Any) -> Any:
        return self.answer(features[..., 0])

    def component(self, k: int, x: Any) -> Any:
        return self.answer(x)


@pytest.mark.parametrize("name", ["SF", "SFR", "CSFR"])
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda x: x[:2], "where .* is needed"),
        (lambda x: x + np.nan, "returned nan; rewards must be finite"),
        (lambda x: "much", "returned 'much'"),
    ],
)
def test_readings_of_a_task_are_checked(name: str, answer: Callable[[Any], Any], sentence: str) -> None:
    agent = small_agent(name)
    with pytest.raises(InputError, match=sentence):
        agent.start_task(Duck(answer))
    agent.start_task(Duck(lambda x: 2 * x))


@pytest.mark.parametrize("name", ["SF-R", "SFR-R", "MB SFR-R", "CSFR-R"])
def test_agents_that_learn_rewards_refuse_tasks_of_other_features(name: str) -> None:
    agent = small_agent(name)
    other = DiscreteFeatures(np.eye(4))
    for task in (LinearTask(np.ones(4)), TableTask(other, np.ones(4))):
        with pytest.raises(InputError, match="rewards 4 feature dimensions; this agent's features have 3"):
            agent.start_task(task)
    assert small_agent("SF-h").start_task(LinearTask(np.ones(7))) is None  # its features are its own


class MyFeatures:
    """A feature map of one's own."""

    state_dim = STATE_DIM
    space: FeatureSpace = BOX

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, transition: Transition) -> Any:
        return self.answer


def test_a_feature_map_of_ones_own_must_stay_in_its_space() -> None:
    settings = COMMON | {"reward_learning_rate": 0.1}
    for answer, sentence in ((np.full(3, 9.0), "must lie between"), (np.zeros((2, 3)), "one feature vector"),
                             (np.zeros(2), "3 feature dimensions")):  # fmt: skip
        agent = make_agent("SF-h", STATE_DIM, NUM_ACTIONS, None, feature_map=MyFeatures(answer), **settings)
        agent.start_task()
        before = everything(agent)
        with pytest.raises(InputError, match=sentence):
            agent.learn(Transition(**GOOD))
        assert everything(agent) == before
    agent = make_agent("SF-h", STATE_DIM, NUM_ACTIONS, None, feature_map=MyFeatures(np.zeros(3)), **settings)
    agent.start_task()
    agent.learn(Transition(**GOOD))


def test_the_matrix_of_copied_features_stays_read_only() -> None:
    features = copy.deepcopy(LearnedFeatures(np.zeros((2 * STATE_DIM, 2))))
    assert not features.matrix.flags.writeable

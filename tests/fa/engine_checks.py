"""What the engine tests share: engines of every agent, and the comparison of two of them."""

import functools

import gymnasium
import numpy as np
import pytest
import torch
from numba import njit

from sfr_fa.agents import AGENT_SPECS, FeatureSubnetworks, LearnedFeatures, MlpRewardModel, squares
from sfr_fa.engines import ENGINES, make_engine
from sfr_fa.environments.layouts import RacerLayout
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer
from sfr_fa.feature_codes import KernelCode
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.interactions import distances_of_random_places, sample_mixed_task, sample_parity_task
from sfr_fa.tasks import GaussianTask, sample_general_task, sample_linear_task, sample_racer_task

AGENTS = (
    "Q", "SF", "SF-R", "SF-h", "SFR", "SFR-R", "SFR-R (MLP)", "MB SFR",
    "MB SFR (squares)", "MB SFR-R", "CSFR", "CSFR-R", "CSFR-h",
)  # fmt: skip
PLACES = distances_of_random_places(np.random.default_rng(13), 600)
BUMPS = KernelCode.observed(PLACES, 20, np.random.default_rng(14))
RATES = {"learning_rate": 0.01, "reward_learning_rate": 0.05, "model_learning_rate": 0.4}
# Both engines round differently, by some 1e-16 per step, and SGD at these rates does not amplify it. 1e-10 is
# generous for rounding and far below the effect of a changed formula.
TOLERANCE = 1e-10


def short_racer(**changes):
    """Short episodes, so that a short run sees many ends."""
    return Racer(layout=RacerLayout(**{"episode_steps": 25, **changes}))


class Corridor(gymnasium.Env):
    """A row of cells: from the one in the middle until either end. Its feature is the right end.

    `slip` is how often a step goes the other way.
    """

    action_space = gymnasium.spaces.Discrete(2)
    feature_space = DiscreteFeatures([[0.0], [1.0]])

    def __init__(self, size, slip=0.0):
        self.size, self.slip, self.resets = size, slip, 0
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (size,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.resets = self.size // 2, self.resets + 1
        return np.eye(self.size)[self.place], {}

    def step(self, action):
        self.place += 1 if (action == 1) != (self.np_random.random() < self.slip) else -1
        phi = float(self.place == self.size - 1)
        return (
            np.eye(self.size)[self.place],
            phi,
            self.place in (0, self.size - 1),
            False,
            {"features": [phi]},
        )


class WritesOver(Corridor):
    """Returns every observation in the same array."""

    def __init__(self):
        super().__init__(size=5)
        self.array = np.zeros(self.observation_space.shape)

    def reset(self, **options):
        self.array[:], info = super().reset(**options)
        return self.array, info

    def step(self, action):
        self.array[:], *others = super().step(action)
        return (self.array, *others)


@functools.cache
def compiled(part):
    """A part of a kernel, compiled by itself; called from Python it would be interpreted."""

    @njit
    def call(*arguments):
        return part(*arguments)

    return call


def engine_of(kind, agent, where=ObjectCollection, seed=5, **settings):
    """An engine in float64 whose rates move the weights within a few steps; networks on the racer."""
    name = agent.removesuffix(" (MLP)").removesuffix(" (squares)")
    spec, environment = AGENT_SPECS[name], where()
    space = environment.feature_space
    common = {"gamma": 0.9, "epsilon": 0.2, "dtype": torch.float64}
    common |= {rate: RATES[rate] for rate in spec.rates}
    if isinstance(environment, Racer):
        common["approximator"] = FeatureSubnetworks
    if spec.learns_features:
        (state_dim,) = environment.observation_space.shape
        common["feature_map"] = LearnedFeatures(np.random.default_rng(3).normal(0, 0.3, (2 * state_dim, 4)))
    if name.startswith("SFR-K"):
        common["feature_code"] = BUMPS
    if name in ("CSFR-F", "SFR-K"):
        common["fit_points"] = PLACES
    elif spec.fits_rewards and isinstance(space, BoxFeatures):
        common["fit_points"] = np.random.default_rng(12).uniform(
            space.low, space.high, (40, space.dimensions)
        )
    if agent.endswith("(squares)"):
        common["model_rule"] = squares
    if agent.endswith("(MLP)"):
        common["reward_model"] = MlpRewardModel
    return make_engine(kind, environment, name, seed=seed, **(common | settings))


def next_task(engine, agent):
    """A task of the most general kind that the agent can be given."""
    rng, space = engine.streams.tasks, engine.environment.unwrapped.feature_space
    if agent in ("SFR-K", "SFR-K-R", "CSFR-F"):
        return (sample_parity_task if agent == "SFR-K-R" else sample_mixed_task)(rng)
    if isinstance(space, BoxFeatures):
        return GaussianTask(sample_racer_task(rng).components[: space.dimensions])
    return (sample_linear_task if agent == "CSFR" else sample_general_task)(rng, space)


def walk_both(agent, where=ObjectCollection, steps=(40, 40, *([12] * 15)), tolerance=TOLERANCE, **options):
    """Both engines through the same tasks, compared; the last has K = len(steps) stored policies."""
    pair = [engine_of(kind, agent, where, **options) for kind in ENGINES]
    assert [engine.name for engine in pair] == list(ENGINES)
    results = []
    for count in steps:
        ours, theirs = (engine.run_task(next_task(engine, agent), count) for engine in pair)
        np.testing.assert_array_equal(ours.actions, theirs.actions)
        np.testing.assert_array_equal(ours.gpi_counts, theirs.gpi_counts)
        assert ours.total_reward == pytest.approx(theirs.total_reward, rel=1e-12, abs=1e-12)
        assert (ours.episodes, ours.steps) == (theirs.episodes, theirs.steps) == (ours.episodes, count)
        results.append(ours)
    assert_same_agents(*pair, tolerance)
    return results, pair


def weights_of(engine):
    """theta of all stored policies, (K, A, D, state)."""
    return engine.agent.policies.parameters["weight"].numpy().copy()


def set_policies(engine, weights):
    """Replace the stored policies; their own readouts are copies of the present one."""
    agent = engine.agent
    state = agent.state_dict()
    tensor = torch.tensor(weights, dtype=agent.dtype)
    state["library"] = {
        "parameters": {"weight": tensor},
        "buffers": [{}] * len(weights),
        "optimisers": {},
    }
    state["readouts"] = [state["readouts"][0]] * len(weights)
    state["participants"] = list(range(len(weights)))
    agent.load_state_dict(state)


def assert_same_agents(one, other, tolerance):
    """All that was learned agrees."""
    weights = other.agent.policies.parameters
    assert weights.keys() == one.agent.policies.parameters.keys()
    for name, mine in one.agent.policies.parameters.items():
        np.testing.assert_allclose(mine.numpy(), weights[name].numpy(), rtol=0, atol=tolerance, err_msg=name)
    for mine, yours in zip(one.agent.readouts, other.agent.readouts, strict=True):
        np.testing.assert_allclose(mine.vector.numpy(), yours.vector.numpy(), rtol=0, atol=tolerance)
    learned, expected = one.agent.cumulant.state_dict(), other.agent.cumulant.state_dict()
    for name, value in learned.get("model", {}).items():
        np.testing.assert_allclose(value.numpy(), expected["model"][name].numpy(), rtol=0, atol=tolerance)


def retrace_both(agent, steps, limit, *where):
    """Both engines retrace what they have shown: the rewards that were counted, the noise that was drawn."""
    paths = []
    for name in ENGINES:
        engine = engine_of(name, agent, *where, limit=limit)
        task, before = next_task(engine, agent), engine.streams.environment.bit_generator.state
        result = engine.run_task(task, steps)
        assert result.episodes >= steps // limit.steps > 1
        noise = np.random.default_rng(0)
        noise.bit_generator.state = before
        paths.append(engine.retrace(task, result.actions, noise))
        assert paths[-1].rewards.sum() == pytest.approx(result.total_reward)
        assert noise.bit_generator.state == engine.streams.environment.bit_generator.state
    for one, other in zip(*paths, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)  # states are float32

"""What the engine tests share: engines of every agent, and the comparison of two of them."""

import functools

import numpy as np
import torch
from numba import njit

from sfr_fa.agents import AGENT_SPECS, LearnedFeatures, MlpRewardModel, squares
from sfr_fa.engines import make_engine
from sfr_fa.environments.object_collection import ObjectCollection, ObjectCollectionBarreto
from sfr_fa.tasks import sample_general_task, sample_linear_task

torch.set_num_threads(1)

ENVIRONMENTS = {"object collection": ObjectCollection, "Barreto": ObjectCollectionBarreto}
AGENTS = (
    "Q", "SF", "SF-R", "SF-h", "SFR", "SFR-R", "SFR-R (MLP)", "MB SFR",
    "MB SFR (squares)", "MB SFR-R", "CSFR", "CSFR-R", "CSFR-h",
)  # fmt: skip
RATES = {"learning_rate": 0.01, "reward_learning_rate": 0.05, "model_learning_rate": 0.4}
STATE_DIM = 113


@functools.cache
def compiled(part):
    """A part of a kernel, compiled by itself; called from Python it would be interpreted."""

    @njit
    def call(*arguments):
        return part(*arguments)

    return call


def engine_of(kind, agent, environment="object collection", seed=5, **settings):
    """An engine in float64 with rates at which a few steps already move the weights."""
    name = agent.removesuffix(" (MLP)").removesuffix(" (squares)")
    spec = AGENT_SPECS[name]
    common = {"gamma": 0.9, "epsilon": 0.2, "dtype": torch.float64}
    common |= {rate: RATES[rate] for rate in spec.rates}
    if spec.learns_features:
        common["feature_map"] = LearnedFeatures(np.random.default_rng(3).normal(0, 0.3, (2 * STATE_DIM, 4)))
    if agent.endswith("(squares)"):
        common["model_rule"] = squares
    if agent.endswith("(MLP)"):
        common["reward_model"] = MlpRewardModel
    return make_engine(kind, ENVIRONMENTS[environment](), name, seed=seed, **(common | settings))


def next_task(engine, agent):
    """A task of the most general kind that the agent can be given."""
    space = engine.environment.unwrapped.feature_space
    sample = sample_linear_task if agent == "CSFR" else sample_general_task
    return sample(engine.streams.tasks, space)


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
        "optimisers": [state["library"]["optimisers"][0]] * len(weights),
    }
    state["readouts"] = [state["readouts"][0]] * len(weights)
    agent.load_state_dict(state)


def assert_same_agents(one, other, tolerance):
    """All that was learned agrees."""
    np.testing.assert_allclose(weights_of(one), weights_of(other), rtol=0, atol=tolerance)
    for mine, yours in zip(one.agent.readouts, other.agent.readouts, strict=True):
        np.testing.assert_allclose(mine.vector.numpy(), yours.vector.numpy(), rtol=0, atol=tolerance)
    learned, expected = one.agent.cumulant.state_dict(), other.agent.cumulant.state_dict()
    for name, value in learned.get("model", {}).items():
        np.testing.assert_allclose(value.numpy(), expected["model"][name].numpy(), rtol=0, atol=tolerance)

"""What an agent does when something is wrong: files, bad input, illegal combinations, divergence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import torch

from sfr_fa.agents import (
    AGENT_SPECS,
    DivergedError,
    FeatureSubnetworks,
    GpiAgent,
    LearnedFeatures,
    MlpRewardModel,
    Transition,
    make_agent,
    no_clip,
)
from sfr_fa.agents import checkpoint as checkpoint_module
from sfr_fa.feature_spaces import BoxFeatures
from sfr_fa.reward_fitting import least_squares_weights
from sfr_fa.tasks import FunctionTask, LinearTask
from sfr_theory.errors import InputError
from tests.fa.agent_checks import (
    BOX,
    DISCRETE,
    NUM_ACTIONS,
    STATE_DIM,
    VECTORS,
    small_agent,
    some_features,
    some_state,
    some_task,
)


def continue_for(agent: GpiAgent, name: str, rng: np.random.Generator, steps: int) -> list[int]:
    actions = []
    for _ in range(steps):
        state = some_state(rng)
        action = agent.act(state)
        actions.append(action)
        features, terminal = some_features(name, rng), bool(rng.random() < 0.2)
        agent.learn(Transition(state, action, float(rng.normal()), features, some_state(rng), terminal))
    return actions


def everything(agent: GpiAgent) -> Any:
    """All that the next steps depend on, as comparable bytes."""
    arrays: dict[str, Any] = {}
    state = {
        "library": agent.policies.state_dict(),
        "readouts": [readout.state_dict() for readout in agent.readouts],
        "cumulant": agent.cumulant.state_dict(),
        "streams": (
            agent.streams.weights.bit_generator.state,
            agent.streams.exploration.bit_generator.state,
        ),
        "counts": [counts.tolist() for counts in agent.gpi_counts_by_task],
        "steps": agent.steps_learned,
    }
    tree = checkpoint_module.pack(state, arrays)
    return str(tree), {name: array.tobytes() for name, array in arrays.items()}


# --- Files ------------------------------------------------------------------------------------------

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in AGENT_SPECS},
    "SFR-R with MLP": ("SFR-R", {"reward_model": MlpRewardModel}),
    "CSFR with networks and Adam": (
        "CSFR",
        {"approximator": FeatureSubnetworks, "optimiser": torch.optim.Adam, "dtype": torch.float32},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_loaded_agent_continues_bit_for_bit(variant: str, tmp_path: Path) -> None:
    """Saved in the second task; the rest of it and a third task come out the same, all state included."""
    name, settings = VARIANTS[variant]
    agent = small_agent(name, seed=1, **settings)
    rng = np.random.default_rng(8)
    for _ in range(2):
        agent.start_task(some_task(name, rng))
        continue_for(agent, name, rng, 8)
    agent.save(tmp_path / "agent.safetensors")

    other = small_agent(name, seed=1, **settings)
    other.streams.exploration.random(5)  # its own streams are somewhere else
    other.start_task(some_task(name, rng))
    other.load(tmp_path / "agent.safetensors")
    assert everything(other) == everything(agent)

    task, results = some_task(name, rng), []
    for runner in (agent, other):
        again = np.random.default_rng(9)
        actions = continue_for(runner, name, again, 8)
        runner.start_task(task)
        results.append((actions + continue_for(runner, name, again, 8), everything(runner)))
    assert results[0] == results[1]


def saved(path: Path, name: str = "SFR", **settings: Any) -> GpiAgent:
    agent = small_agent(name, **settings)
    rng = np.random.default_rng(0)
    agent.start_task(some_task(name, rng))
    continue_for(agent, name, rng, 3)
    agent.save(path)
    return agent


def damage_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def change_a_number(path: Path) -> None:
    """A valid archive whose numbers are not those that were saved."""
    with safetensors.safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) + 1 for name in file.keys()}  # noqa: SIM118
        safetensors.numpy.save_file(tensors, path.with_suffix(".new"), file.metadata())
    path.with_suffix(".new").replace(path)


def other_archive(path: Path) -> None:
    safetensors.numpy.save_file({"weights": np.ones(3)}, path)


def text(path: Path) -> None:
    path.write_text("weights: 1, 2, 3\n")


def pickled(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize("damage", [damage_middle, cut, change_a_number, other_archive, text, pickled])
def test_a_damaged_or_foreign_file_is_refused(damage: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "agent.safetensors"
    agent = saved(path)
    damage(path)
    before = everything(agent)
    with pytest.raises(InputError, match=r"agent\.safetensors .*(damaged|not a saved state)"):
        agent.load(path)
    assert everything(agent) == before


@pytest.mark.parametrize(
    ("name", "settings", "what"),
    [
        ("SF", {}, "cumulant"),
        ("SFR", {"gamma": 0.5}, "gamma"),
        ("SFR", {"clip": no_clip}, "clip"),
        ("SFR", {"learning_rate": 0.5}, "optimiser"),
        ("SFR", {"dtype": torch.float32}, "dtype"),
        ("SFR", {"approximator": FeatureSubnetworks}, "approximator"),
    ],
)
def test_a_file_of_an_agent_built_otherwise_is_refused(
    name: str, settings: dict[str, Any], what: str, tmp_path: Path
) -> None:
    saved(tmp_path / "agent.safetensors")
    other = small_agent(name, **settings)
    with pytest.raises(InputError, match=f"was saved with another {what}"):
        other.load(tmp_path / "agent.safetensors")
    assert other.num_policies == 0


def test_missing_and_unwritable_paths(tmp_path: Path) -> None:
    agent = small_agent("SFR")
    with pytest.raises(InputError, match="cannot read"):
        agent.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        agent.save(tmp_path / "file" / "agent.safetensors")


# --- Bad input --------------------------------------------------------------------------------------

GOOD = {
    "state": np.ones(STATE_DIM), "action": 0, "reward": 0.5, "features": VECTORS[1],
    "next_state": np.zeros(STATE_DIM), "terminal": False,
}  # fmt: skip
WITH_NAN = np.array([0.0, np.nan, 0, 0, 0])

BAD_STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN state": ({"state": WITH_NAN}, "the state has nan at position 1"),
    "infinite next state": ({"next_state": np.full(STATE_DIM, np.inf)}, "the next state has inf"),
    "short state": ({"state": np.ones(3)}, r"the state has shape \(3,\); this agent needs \(5,\)"),
    "state of words": ({"state": ["a"] * 5}, "must be a vector of 5 numbers"),
    "action out of range": ({"action": 3}, "the action is 3; it must be an integer from 0 to 2"),
    "negative action": ({"action": -1}, "the action is -1"),
    "fractional action": ({"action": 0.5}, "the action is 0.5"),
    "NaN reward": ({"reward": np.nan}, "the reward is nan"),
    "vector reward": ({"reward": [1.0, 2.0]}, "it must be a number"),
    "unknown features": ({"features": [9, 9, 9]}, "none of the 5 declared feature vectors"),
    "short features": ({"features": [0.0]}, "the last axis must have the 3 feature dimensions"),
    "two feature vectors": ({"features": VECTORS[:2]}, "one feature vector"),
    "no features": ({"features": None}, "the transition has no features"),
    "terminal is a number": ({"terminal": 2}, "terminal is 2"),
}


@pytest.mark.parametrize("case", BAD_STEPS)
@pytest.mark.parametrize("name", ["SFR-R", "MB SFR"])
def test_a_bad_step_is_refused_and_changes_nothing(case: str, name: str) -> None:
    change, sentence = BAD_STEPS[case]
    agent = small_agent(name)
    agent.start_task(some_task(name, np.random.default_rng(0)))
    agent.learn(Transition(**GOOD))
    before = everything(agent)
    with pytest.raises(InputError, match=sentence):
        agent.learn(Transition(**(GOOD | change)))
    assert everything(agent) == before
    agent.learn(Transition(**GOOD))


def test_features_outside_the_box_are_refused() -> None:
    agent = small_agent("CSFR")
    agent.start_task(some_task("CSFR", np.random.default_rng(0)))
    with pytest.raises(InputError, match=r"feature 2 is 2.5; it must lie between 0.0 and 2.0"):
        agent.learn(Transition(**(GOOD | {"features": [0.5, 0.5, 2.5]})))


def test_a_bad_state_to_act_on_draws_nothing() -> None:
    agent = small_agent("Q")
    agent.start_task()
    before = everything(agent)
    with pytest.raises(InputError, match="the state has nan"):
        agent.act(WITH_NAN)
    assert everything(agent) == before


@pytest.mark.parametrize(
    ("name", "task", "sentence"),
    [
        ("SF", None, "start_task needs the task"),
        ("SF", LinearTask(np.ones(4)), "rewards 4 feature dimensions"),
        ("SFR", "orange", "'orange' is neither"),
        ("SF", lambda phi: phi, "must be vectorised"),
        ("CSFR", FunctionTask(lambda phi: phi[..., 0]), "by its parts"),
        ("CSFR", LinearTask(np.ones(2)), "rewards 2 feature dimensions"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(name: str, task: Any, sentence: str) -> None:
    agent = small_agent(name)
    before = everything(agent)
    with pytest.raises(InputError, match=sentence):
        agent.start_task(task)
    assert everything(agent) == before


def test_a_task_must_have_started() -> None:
    agent = small_agent("SFR")
    for ask in (lambda: agent.act(np.ones(STATE_DIM)), lambda: agent.learn(Transition(**GOOD)),
                lambda: agent.values(np.ones(STATE_DIM)), lambda: agent.gpi_counts):  # fmt: skip
        with pytest.raises(InputError, match="call start_task first"):
            ask()


def test_q_cannot_value_another_task() -> None:
    agent = small_agent("Q")
    agent.start_task()
    with pytest.raises(InputError, match="cannot value its policies under another task"):
        agent.values(np.ones(STATE_DIM), LinearTask(np.ones(3)))


# --- Illegal combinations -----------------------------------------------------------------------------

LEARNED = LearnedFeatures(np.zeros((2 * STATE_DIM, 4)))
MLP = {"reward_learning_rate": 0.1, "reward_model": MlpRewardModel}

ILLEGAL: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "unknown name": ("SFRQL", DISCRETE, {}, "there is no agent 'SFRQL'; the agents are Q, SF"),
    "SFR in a box": ("SFR", BOX, {}, "SFR counts a discrete set of features"),
    "MB in a box": ("MB SFR", BOX, {"model_learning_rate": 0.2}, "SFR counts a discrete set of features"),
    "SF without features": ("SF", None, {}, "it needs feature_space"),
    "SF-R without its rate": ("SF-R", DISCRETE, {}, "SF-R learns .*: it needs reward_learning_rate"),
    "MB without its rate": ("MB SFR", DISCRETE, {}, "it needs model_learning_rate"),
    "SF-h without features": ("SF-h", None, {"reward_learning_rate": 0.1}, "it needs feature_map"),
    "SF with a reward rate": ("SF", DISCRETE, {"reward_learning_rate": 0.1}, "has no use for reward_l"),
    "SFR with learned features": ("SFR", DISCRETE, {"feature_map": LEARNED}, "has no use for feature_map"),
    "Q with bins": ("Q", None, {"bins": 5}, "Q has no use for bins"),
    "SFR with a fit": ("SFR", DISCRETE, {"weight_fit": least_squares_weights}, "has no use for weight_fit"),
    "SF-R with an MLP": ("SF-R", DISCRETE, MLP, "linear reward models only"),
    "CSFR-R with an MLP": ("CSFR-R", BOX, MLP, "linear reward models only"),
    "features of other states": (
        "SF-h", None, {"reward_learning_rate": 0.1, "feature_map": LearnedFeatures(np.zeros((4, 3)))},
        "learned on states of 2 dimensions; this agent's have 5",
    ),
    "gamma of 1": ("Q", None, {"gamma": 1.0}, "gamma is 1.0"),
    "epsilon of 2": ("Q", None, {"epsilon": 2.0}, "epsilon is 2.0"),
    "no learning rate": ("Q", None, {"learning_rate": 0.0}, "learning_rate is 0.0"),
    "beta of 0": ("MB SFR", DISCRETE, {"model_learning_rate": 0.0}, "must be positive"),
    "one bin": ("CSFR", BOX, {"bins": 1}, "at least 2 bins"),
    "integers": ("Q", None, {"dtype": torch.int64}, "torch.float32 or torch.float64"),
    "fit points outside": ("SF", BOX, {"fit_points": np.full((2, 3), 7.0)}, "must lie between"),
}  # fmt: skip


@pytest.mark.parametrize("case", ILLEGAL)
def test_an_illegal_combination_is_refused_with_a_sentence(case: str) -> None:
    name, space, settings, sentence = ILLEGAL[case]
    common = {"gamma": 0.9, "epsilon": 0.1, "learning_rate": 0.1}
    with pytest.raises(InputError, match=sentence):
        make_agent(name, STATE_DIM, NUM_ACTIONS, space, **(common | settings))


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_sizes_are_positive_integers(size: Any) -> None:
    with pytest.raises(InputError, match="must be a positive integer"):
        make_agent("Q", size, 2, None, gamma=0.9, epsilon=0.1, learning_rate=0.1, seed=0)


def test_a_network_of_the_wrong_shape_is_refused() -> None:
    def flat(shape: Any, rng: Any) -> torch.nn.Module:
        return torch.nn.Linear(shape.state_dim, 7)

    agent = small_agent("SFR", approximator=flat)
    with pytest.raises(InputError, match=r"shape \(1, 7\); this agent needs \(1, 3, 5\)"):
        agent.start_task(some_task("SFR", np.random.default_rng(0)))


def test_sf_in_a_box_needs_points_to_fit_general_rewards() -> None:
    space = BoxFeatures(np.zeros(2), np.ones(2))
    common = {"gamma": 0.9, "epsilon": 0.1, "learning_rate": 0.1}
    task = FunctionTask(lambda phi: 2 * phi[..., 0] - phi[..., 1])
    with pytest.raises(InputError, match="pass fit_points"):
        make_agent("SF", 3, 2, space, **common).start_task(task)
    points = np.random.default_rng(1).random((30, 2))
    agent = make_agent("SF", 3, 2, space, fit_points=points, **common)
    agent.start_task(task)
    np.testing.assert_allclose(agent.readouts[0].vector, [2, -1], atol=1e-6)


# --- Divergence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENT_SPECS)
def test_divergence_is_raised_and_not_carried_on(name: str, tmp_path: Path) -> None:
    agent = small_agent(name, learning_rate=1e3, dtype=torch.float32)
    rng = np.random.default_rng(1)
    agent.start_task(some_task(name, rng))
    with pytest.raises(DivergedError, match="diverged after"):
        continue_for(agent, name, rng, 500)
    for ask in (lambda: agent.act(np.ones(STATE_DIM)), lambda: agent.learn(Transition(**GOOD)),
                lambda: agent.start_task(some_task(name, rng))):  # fmt: skip
        with pytest.raises(DivergedError, match="diverged"):
            ask()
    agent.save(tmp_path / "diverged")
    other = small_agent(name, learning_rate=1e3, dtype=torch.float32)
    other.load(tmp_path / "diverged")
    with pytest.raises(DivergedError):
        other.act(np.ones(STATE_DIM))


def test_a_diverging_reward_model_is_named() -> None:
    agent = small_agent("SF-R", reward_learning_rate=1e3, dtype=torch.float32)
    rng = np.random.default_rng(1)
    agent.start_task()
    with pytest.raises(DivergedError, match="the reward model has diverged; reward_learning_rate 1000"):
        continue_for(agent, "SF-R", rng, 500)

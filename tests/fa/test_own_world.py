"""Worlds of users: what is wrong with one gets a sentence. `test_engines` compares their paths."""

import os
from typing import NamedTuple

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from examples.own_world import environment
from sfr_fa.engines import ENGINES, make_engine
from sfr_fa.environments.world_env import PROBE_STEPS, WorldEnv
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.tasks import LinearTask
from sfr_theory.errors import InputError
from tests.commands import ROOT, printed_by
from tests.refusals import refused


def test_the_environment_keeps_gymnasiums_contract():
    check_env(environment(), skip_render_check=True)


# --- A world with features in a box ----------------------------------------------------------------


class Drift(NamedTuple):
    """A point on a line; its features are where it is and how far from 0.7."""

    x: np.ndarray
    late: np.ndarray
    wrong: int
    """What it does wrong once it is past the steps that it is tried for."""

    def reset(self, rng):
        self.x[0] = rng.random()

    def step(self, action, rng):
        self.late[0] += 1
        self.x[0] = min(max(self.x[0] + 0.2 * (action - 1) + 0.05 * rng.standard_normal(), 0.0), 1.0)
        return self.x[0] == 0.0

    def encode(self, state):
        for j in range(4):
            state[j] = np.exp(-((self.x[0] - j / 3) ** 2) / 0.1)
        if self.wrong == 1 and self.late[0] > 150:
            state[4 + self.wrong] = 1
        if self.wrong == 3 and self.late[0] > 150:
            state[4] = np.nan

    def features(self, phi):
        phi[0] = 2 * self.x[0] if self.wrong == 2 and self.late[0] > 150 else self.x[0]
        phi[1] = abs(self.x[0] - 0.7)


def drift(wrong=0):
    world = Drift(np.zeros(1), np.zeros(1, np.int64), wrong)
    box = BoxFeatures(np.zeros(2), np.ones(2))
    return WorldEnv(world, state_dim=5, num_actions=3, feature_space=box, episode_steps=30)


def drift_engine(wrong):
    """What is wrong does not show in its first task."""
    engine = make_engine(
        "compiled", drift(wrong), "SF", gamma=0.9, epsilon=1.0, learning_rate=0.01, dtype=torch.float64
    )
    engine.run_task(LinearTask([1.0, 0.0]), 100)
    return engine


GONE_WRONG = [(1, "index outside"), (2, "must lie between 0.0 and 1.0"), (3, "Drift has encoded has nan")]


@pytest.mark.parametrize(("wrong", "sentence"), GONE_WRONG)
def test_what_goes_wrong_late_is_refused_by_compiled_code(wrong, sentence):
    """As in Python: no index beyond an array, no feature outside the box, no state but numbers."""
    assert PROBE_STEPS <= 150
    engine = drift_engine(wrong)
    before = engine.agent.policies.parameters["weight"].numpy().copy()
    with refused(sentence):
        engine.run_task(LinearTask([0.0, 1.0]), 100)
    np.testing.assert_array_equal(engine.agent.policies.parameters["weight"].numpy()[:1], before)


class Sparse(NamedTuple):
    """Writes what is not zero, and adds to what it finds: features, as states, come as zeros."""

    x: np.ndarray

    def reset(self, rng):
        self.x[0] = 0.5

    def step(self, action, rng):
        self.x[0] = rng.random()
        return False

    def encode(self, state):
        state[0] = self.x[0]

    def features(self, phi):
        if self.x[0] > 0.5:
            phi[0] += self.x[0]
        phi[1] = 1.0 + 3e-8  # an edge, rounded


def test_features_are_written_into_zeros_and_edges_may_be_rounded():
    totals = []
    for kind in ENGINES:
        world = Sparse(np.zeros(1))
        env = WorldEnv(world, state_dim=1, num_actions=2, feature_space=BoxFeatures(np.zeros(2), np.ones(2)))
        engine = make_engine(kind, env, "SF", gamma=0.9, epsilon=0.2, learning_rate=0.01, dtype=torch.float64)
        result = engine.run_task(LinearTask([1.0, 1.0]), 200)
        totals.append((result.total_reward, result.episodes))
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)
    assert 250 < totals[0][0] < 300  # 1 per step, and .375 on average


# --- What is refused when an environment is made ---------------------------------------------------


class Still(NamedTuple):
    """The least of worlds."""

    place: np.ndarray

    def reset(self, rng):
        self.place[0] = 0

    def step(self, action, rng):
        return False

    def encode(self, state):
        state[self.place[0]] = 1

    def feature(self):
        return 0


class NoEncode(NamedTuple):
    place: np.ndarray
    reset, step, feature = Still.reset, Still.step, Still.feature


class StepWithoutRng(Still):
    def step(self, action):
        return False


class FarEncode(Still):
    def encode(self, state):
        state[len(state)] = 1


class UnknownFeature(Still):
    def feature(self):
        return 2


class SaysNothing(Still):
    def step(self, action, rng):
        pass


class Alternating(Still):
    def reset(self, rng):
        self.place[0] = 1 - self.place[0]


PLACE, TWO = np.zeros(1, np.int64), DiscreteFeatures([[0.0], [1.0]])


def small_env(world, space=TWO):
    return WorldEnv(world, state_dim=3, num_actions=2, feature_space=space)


@pytest.mark.parametrize(
    ("world", "place_and_fix"),
    [
        (NoEncode(PLACE), r"NoEncode .*encode\(state\)"),
        (StepWithoutRng(PLACE), r"StepWithoutRng\.step takes \(action\).*\(action, rng\)"),
        (FarEncode(PLACE), r"FarEncode\.encode.*out of bounds"),
        (UnknownFeature(PLACE), r"UnknownFeature\.feature\(\) is 2.* 2, from 0"),
        (SaysNothing(PLACE), r"SaysNothing\.step returns None.*episode has ended"),
        (Alternating(PLACE), r"Alternating\.reset .*earlier episodes"),
        (Still("here"), r"Still\.place is 'here'.*array or a number"),
        (Still(np.array(["here"])), r"Still\.place.*numbers"),
        ((1, 2), "NamedTuple"),
    ],
)
def test_what_is_no_world_is_refused(world, place_and_fix):
    with pytest.raises(InputError, match=place_and_fix):
        small_env(world)


def test_a_world_for_a_box_needs_features():
    with refused("Still", "features(phi)"):
        small_env(Still(PLACE), BoxFeatures(np.zeros(1), np.ones(1)))


class NotCompiled(Still):
    def step(self, action, rng):
        return bool({"a": [1], "b": 2}.get("c"))


class Chooses(Still):
    def step(self, action, rng):
        return rng.choice(4) == 9


class Divides(Still):
    def step(self, action, rng):
        self.place[0] += 1
        return False

    def encode(self, state):
        state[0] = 1 // (150 - self.place[0])


@pytest.mark.parametrize(
    ("world", "place", "reason"),
    [
        (NotCompiled, "test_own_world.py", ""),
        (Chooses, "test_own_world.py", "Unknown attribute 'choice'"),
        (Divides, "Divides", "divided by zero"),
    ],
)
def test_what_numba_cannot_compile_or_run_names_line_and_reason(world, place, reason):
    engine = make_engine("compiled", small_env(world(PLACE.copy())), "SFR", learning_rate=0.1)
    with refused(world.__name__, place, reason) as caught:
        engine.run_task(LinearTask([1.0]), 200)
    assert str(caught.value).isprintable()  # no colours of a terminal


RECURSIVE = """
from typing import NamedTuple
import numpy as np
from numba import njit
from sfr_fa.engines import make_engine
from sfr_fa.environments.world_env import WorldEnv
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask

@njit
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

class Circle(NamedTuple):
    position: np.ndarray
    def reset(self, rng):
        self.position[0] = 0
    def step(self, action, rng):
        self.position[0] = (self.position[0] + (2 + action if fibonacci(10) == 55 else 0)) % 7
        return False
    def encode(self, state):
        state[self.position[0]] = 1
    def feature(self):
        return int(self.position[0] == 3)

def returns():
    for name in ("compiled", "reference"):
        world, features = Circle(np.zeros(1, np.int64)), DiscreteFeatures([[0.0], [1.0]])
        env = WorldEnv(world, state_dim=7, num_actions=2, feature_space=features)
        engine = make_engine(name, env, "SFR", gamma=0.9, epsilon=0.3, learning_rate=0.1, seed=0)
        yield engine.run_task(LinearTask([1.0]), 50).total_reward
"""


def test_a_function_that_calls_itself_may_be_compiled_in_every_process(tmp_path):
    """Numba sets the pointers of such calls when it compiles, but not when it loads what it has stored."""
    (tmp_path / "circle.py").write_text(RECURSIVE)
    paths = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    runs = [printed_by("-c", "import circle; print(*circle.returns())", env=os.environ | paths) for _ in "ab"]
    assert runs[0] == runs[1]
    compiled, reference = map(float, runs[0].split())
    assert compiled == reference > 0

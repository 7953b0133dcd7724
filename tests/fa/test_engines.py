"""Both engines walk the same path: same actions, same weights; and what else an engine promises."""

import functools
import os
import warnings
from dataclasses import dataclass

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.own_world import environment as keys_and_doors
from sfr_fa.agents import (
    DivergedError,
    FeatureSubnetworks,
    Hysteresis,
    LinearPerAction,
    Replay,
    SharedNetwork,
    make_agent,
    no_clip,
    squares_averaged_over_dimensions,
)
from sfr_fa.agents.gpi_policies import Nearest, Random, Recent
from sfr_fa.engines import ENGINES, EpisodeLimit, Streams, make_engine
from sfr_fa.engines.packing import FILTER_FROM
from sfr_fa.engines.reference import retraced
from sfr_fa.environments.layouts import OBJECT_COLLECTION_LAYOUT, ObjectLayout
from sfr_fa.environments.object_collection import ObjectCollection, ObjectCollectionBarreto
from sfr_fa.feature_codes import CellCode, FourierCode
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.tasks import FunctionTask, LinearTask, sample_general_task
from sfr_theory.errors import InputError
from tests.commands import ROOT, printed_by
from tests.fa.engine_checks import (
    AGENTS,
    BUMPS,
    TOLERANCE,
    WritesOver,
    assert_same_agents,
    engine_of,
    next_task,
    retrace_both,
    set_policies,
    short_racer,
    walk_both,
    weights_of,
)
from tests.fa.test_environments_table import lake
from tests.fa.test_own_world import drift
from tests.refusals import refused

ON_THE_RACER = ("Q", "SF", "SF-R", "SF-h", "CSFR", "CSFR-R", "CSFR-h", "CSFR-F", "SFR-K", "SFR-K-R")
PATHS = (
    # where, which agents, steps of each task: at least as many policies as the filter starts with, if it can
    (ObjectCollection, AGENTS, (40, 40, *([12] * 15))),
    (ObjectCollectionBarreto, AGENTS, (40, 40, *([12] * 15))),
    (short_racer, ON_THE_RACER, (160,) * 4),
    (keys_and_doors, ("Q", "SF", "SFR", "SFR-R", "MB SFR", "CSFR"), (100,) * 6),
    (drift, ("Q", "SF", "CSFR"), (100,) * 2),
    (lake, ("SFR",), (200,) * 3),
)


@pytest.mark.filterwarnings("ignore::sfr_fa.agents.FitWarning")  # of twenty bumps
@pytest.mark.parametrize(
    ("agent", "where", "steps"), [(agent, where, steps) for where, agents, steps in PATHS for agent in agents]
)
def test_both_engines_walk_the_same_path(agent, where, steps):
    results, (compiled, _) = walk_both(agent, where, steps)
    assert compiled.agent.num_policies == (1 if agent == "Q" else len(steps))
    # The comparison says something about source policies only if GPI has used them.
    assert agent == "Q" or any(result.gpi_counts[:-1].any() for result in results)


def test_the_paths_are_long_enough_for_the_filter():
    assert len(PATHS[0][2]) >= max(16, FILTER_FROM)


def another_layout():
    """Compiled code holds no layout of its own."""
    standard = OBJECT_COLLECTION_LAYOUT
    return ObjectCollection(
        layout=ObjectLayout(
            walls=np.zeros((0, 4)), objects=standard.objects[:5] * 0.5 + 0.2, kind_of_object=(0, 1, 2, 3, 0),
            kinds=standard.kinds, start=(0.5, 0.5), goal=(0.7, 0.6), goal_radius=0.12, object_radius=0.02,
            step_length=0.08,
        )
    )  # fmt: skip


def two_markers():
    return short_racer(markers=[[0.1, 0.2], [0.6, 0.7]], episode_steps=30)


SHARED = functools.partial(SharedNetwork, hidden=(9, 14), head_rate=5)
ENDS, BOOTSTRAPS = EpisodeLimit(9), EpisodeLimit(9, is_terminal=False)
OPTIONS = [
    # agent, where, options, episodes of all tasks at least
    ("SFR", ObjectCollection, {"limit": ENDS}, 18),
    ("SFR", ObjectCollection, {"limit": BOOTSTRAPS}, 18),
    ("SFR", ObjectCollection, {"clip": no_clip}, 2),
    ("CSFR", ObjectCollection, {"loss": squares_averaged_over_dimensions, "bins": 5}, 2),
    ("SFR", another_layout, {"epsilon": 0.9}, 3),
    ("SFR", keys_and_doors, {"limit": EpisodeLimit(30)}, 5),
    ("SFR", keys_and_doors, {"approximator": FeatureSubnetworks}, 2),
    ("CSFR", short_racer, {"limit": EpisodeLimit(is_terminal=False)}, 6),
    ("CSFR", short_racer, {"limit": EpisodeLimit(steps=7)}, 22),
    ("CSFR", short_racer, {"clip": no_clip}, 6),
    ("CSFR", short_racer, {"approximator": functools.partial(FeatureSubnetworks, hidden=(7, 13))}, 6),
    ("CSFR", short_racer, {"bins": 5}, 6),
    ("CSFR", short_racer, {"gamma": 0.0}, 6),
    ("CSFR", short_racer, {"epsilon": 1.0}, 6),
    ("CSFR", short_racer, {"gpi_policies": Recent(1)}, 6),
    ("CSFR", two_markers, {}, 6),
    ("SFR-K", short_racer, {"approximator": SHARED}, 6),
    ("SFR-K-R", short_racer, {"approximator": SHARED}, 6),
    ("CSFR-F", short_racer, {"approximator": SHARED}, 6),
    ("SFR-K", short_racer, {"feature_code": CellCode(BUMPS.centres)}, 6),
    ("SFR-K", short_racer, {"feature_code": FourierCode.random(3, 15, 0.3, np.random.default_rng(15))}, 6),
    ("SFR-K", short_racer, {"approximator": LinearPerAction}, 6),
    # One short task in float32: rounding at 6e-8 per step stays far below 1e-4.
    ("SFR", ObjectCollection, {"dtype": torch.float32, "tolerance": 1e-4, "steps": (40,), "epsilon": 1.0}, 1),
    ("CSFR", short_racer, {"dtype": torch.float32, "tolerance": 1e-4, "steps": (40,)}, 2),
]


@pytest.mark.filterwarnings("ignore::sfr_fa.agents.FitWarning")
@pytest.mark.parametrize(("agent", "where", "options", "episodes"), OPTIONS)
def test_both_engines_agree_on_options(agent, where, options, episodes):
    results, _ = walk_both(agent, where, **{"steps": (80, 80), **options})
    assert sum(result.episodes for result in results) >= episodes


@pytest.mark.parametrize("agent", ["SF", "CSFR", "Q"])
def test_both_engines_agree_on_linear_tasks_in_a_box(agent):
    pair = [engine_of(kind, agent, short_racer) for kind in ENGINES]
    for weights in ([1.0, -0.5, 0.2], [-1.0, 0.0, -0.7]):
        ours, theirs = (engine.run_task(LinearTask(weights), 90) for engine in pair)
        np.testing.assert_array_equal(ours.actions, theirs.actions)
        assert ours.total_reward == pytest.approx(theirs.total_reward, rel=1e-12)
    assert_same_agents(*pair, TOLERANCE)


@settings(max_examples=25, deadline=None)
@given(
    agent=st.sampled_from(["SF", "SF-R", "SFR", "SFR-R (MLP)", "MB SFR", "CSFR-h"]),
    seed=st.integers(0, 2**20),
    scale=st.sampled_from([0.0, 1e-6, 0.1, 3.0]),
    shift=st.sampled_from([-1.0, 0.0, 0.5]),
    copy_of=st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_single_steps_from_any_weights(agent, seed, scale, shift, copy_of):
    """One step from given weights: policies of any size and sign, all zero, or copies of each other."""
    pair = [engine_of(kind, agent, seed=seed) for kind in ENGINES]
    for engine in pair:
        engine.run_task(next_task(engine, agent), 1)
        shape = weights_of(engine).shape[1:]
        distinct = scale * (np.random.default_rng(seed).normal(size=(6, *shape)) / 10 + shift / 30)
        set_policies(engine, distinct[copy_of])
    both = [engine.run_task(next_task(engine, agent), 1) for engine in pair]
    np.testing.assert_array_equal(both[0].gpi_counts, both[1].gpi_counts)
    np.testing.assert_array_equal(both[0].actions, both[1].actions)
    assert_same_agents(*pair, TOLERANCE * max(1.0, scale))


STORED = [(agent, ObjectCollection) for agent in ("Q", "SF", "SFR-R (MLP)", "MB SFR", "CSFR-h")]


@pytest.mark.parametrize(("agent", "where"), [*STORED, ("CSFR-R", short_racer)])
@pytest.mark.parametrize("second", ENGINES)
def test_a_stored_engine_continues_bit_for_bit(agent, where, second, tmp_path):
    engine = engine_of("compiled", agent, where)
    for _ in range(2):
        engine.run_task(next_task(engine, agent), 30)
    engine.save(tmp_path / "engine.safetensors")
    copy = engine_of(second, agent, where, seed=99)
    copy.load(tmp_path / "engine.safetensors")
    task, the_same = next_task(engine, agent), next_task(copy, agent)
    assert task.to_json() == the_same.to_json()
    before, after = engine.run_task(task, 30), copy.run_task(the_same, 30)
    np.testing.assert_array_equal(before.actions, after.actions)
    assert before.total_reward == pytest.approx(after.total_reward, abs=1e-12)
    assert_same_agents(engine, copy, 0.0 if second == "compiled" else TOLERANCE)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    ("agent", "where", "rates"),
    [
        ("SFR", ObjectCollection, {"learning_rate": 5.0}),
        ("SFR-R", ObjectCollection, {"reward_learning_rate": 1e200}),
        ("CSFR", short_racer, {"learning_rate": 50.0}),
    ],
)
def test_divergence_is_reported(agent, where, rates, kind):
    engine = engine_of(kind, agent, where, **rates)
    result = engine.run_task(next_task(engine, agent), 3000)
    assert result.diverged
    assert result.steps == len(result.actions) < 3000
    for go_on in (lambda: engine.run_task(next_task(engine, agent), 10), lambda: engine.continue_task(5)):
        with pytest.raises(DivergedError, match="learning_rate"):
            go_on()


@pytest.mark.parametrize("rate", [1e3, 1e9])
@pytest.mark.parametrize("agent", ["Q", "SF", "SFR"])
def test_both_diverge_at_the_same_step(agent, rate):
    engines = [engine_of(kind, agent, learning_rate=rate) for kind in ENGINES]
    first, second = (engine.run_task(next_task(engine, agent), 600) for engine in engines)
    assert first.diverged
    assert second.diverged
    np.testing.assert_array_equal(first.actions, second.actions)


@pytest.mark.parametrize("agent", ["SF", "SFR"])
def test_both_diverge_at_the_same_step_among_stored_policies(agent):
    """Where the filter passes over most of them."""
    learned = engine_of("compiled", agent)
    for _ in range(FILTER_FROM + 2):
        learned.run_task(next_task(learned, agent), 50)
    engines = [engine_of(kind, agent, learning_rate=1e3) for kind in ENGINES]
    for engine in engines:
        engine.load_state_dict(learned.state_dict())
    first, second = (engine.run_task(next_task(engine, agent), 600) for engine in engines)
    assert first.diverged
    assert second.diverged
    np.testing.assert_array_equal(first.actions, second.actions)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_stored_policy_that_is_not_finite_is_refused_before_a_step(kind, value):
    """Also where it does not take part, and where the filter would pass it over."""
    engine = engine_of(kind, "SFR", gpi_policies=Recent(1))
    for _ in range(3):
        engine.run_task(next_task(engine, "SFR"), 5)
    with torch.no_grad():
        next(iter(engine.agent.policies.modules[0].parameters())).view(-1)[7] = value
    with pytest.raises(DivergedError, match="policy 0"):
        engine.run_task(next_task(engine, "SFR"), 5)
    assert len(engine.agent.policies) == 3


# --- Fallback and bad input -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, FILTER_FROM])
@pytest.mark.parametrize("rule", [Nearest, Recent, Random])
@pytest.mark.parametrize("agent", ["SF", "SFR"])
def test_gpi_over_few_policies_is_compiled_too(agent, rule, count):
    """The others are neither chosen nor changed, with the filter and without; the path is the reference's."""
    tasks = count + 3
    results, (compiled, _) = walk_both(agent, steps=(40, *([30] * (tasks - 1))), gpi_policies=rule(count))
    assert len(compiled.agent.participants) == count + 1
    left_out = np.setdiff1d(np.arange(tasks), compiled.agent.participants)
    assert len(left_out) == 2
    assert results[-1].gpi_counts[left_out].sum() == 0
    assert results[-1].gpi_counts.sum() == 30


@pytest.mark.parametrize("kind", ENGINES)
def test_a_task_may_be_a_function_of_features(kind):
    def reward(features):
        return features @ np.array([1.0, -1.0, 0.5, 0.0, 1.0])

    ends = []
    for task in (reward, LinearTask([1.0, -1.0, 0.5, 0.0, 1.0])):
        engine = engine_of(kind, "SFR")
        engine.run_task(task, 60)
        ends.append(weights_of(engine))
    np.testing.assert_array_equal(*ends)


class OwnModule(LinearPerAction):
    """A network of a user's own."""


VECTORS = OBJECT_COLLECTION_LAYOUT.feature_space.vectors


@pytest.mark.parametrize(
    ("agent", "settings", "reason"),
    [
        ("SFR", {"approximator": OwnModule}, "approximator"),
        ("SFR", {"approximator": functools.partial(FeatureSubnetworks, hidden=(8, 8, 8))}, "approximator"),
        ("SFR", {"optimiser": torch.optim.Adam}, "optimiser"),
        ("SFR", {"optimiser": functools.partial(torch.optim.SGD, momentum=0.5)}, "optimiser"),
        ("SFR", {"clip": lambda values: values.clamp(min=-1)}, "clip"),
        ("SFR", {"replay": Replay(capacity=1, batch=1)}, "replay"),
        ("SFR", {"hysteresis": Hysteresis(scale=0.5)}, "hysteresis"),
        ("SFR", {"feature_space": DiscreteFeatures(VECTORS, grow=True)}, "may grow"),
        ("CSFR", {"bins": (3, 3, 4, 3, 3)}, "numbers of bins"),
    ],
)
def test_what_is_not_compiled_falls_back_with_a_message(agent, settings, reason):
    with pytest.warns(UserWarning, match=f"reference engine runs this agent: .*{reason}"):
        engine = engine_of("compiled", agent, **settings)
    assert engine.name == "reference"
    assert engine.run_task(next_task(engine, agent), 5).steps == 5


def test_compiled_code_makes_no_optimiser():
    """The first optimiser of torch imports its compiler, which takes longer than many runs."""
    program = """
import sys
from tests.fa.engine_checks import engine_of, next_task
for agent in ("Q", "SF-R", "SFR", "MB SFR-R", "CSFR"):
    engine = engine_of("compiled", agent)
    engine.run_task(next_task(engine, agent), 5)
    engine.load_state_dict(engine.state_dict())
print("torch._dynamo" in sys.modules)
"""
    assert printed_by("-c", program, cwd=ROOT) == "False\n"


def test_equal_numbers_of_bins_are_compiled():
    assert engine_of("compiled", "CSFR", bins=(4,) * 5).name == "compiled"


def test_wrapped_and_foreign_environments_fall_back():
    common = {"gamma": 0.9, "epsilon": 0.2, "learning_rate": 0.01, "seed": 0}
    checked = gymnasium.make("sfr/ObjectCollection-v0")
    assert make_engine("compiled", checked, "SFR", **common).name == "compiled"
    with pytest.warns(UserWarning, match="TimeLimit"):
        engine = make_engine("compiled", gymnasium.wrappers.TimeLimit(checked, 7), "SFR", **common)
    assert engine.run_task(sample_general_task(engine.streams.tasks), 20).episodes == 3
    with pytest.warns(UserWarning, match="CartPoleEnv is not made of a world"):
        make_engine("compiled", gymnasium.make("CartPole-v1"), "Q", **common)


@pytest.mark.parametrize("agent", ["SFR", "MB SFR"])
@pytest.mark.parametrize("vectors", [VECTORS[[0, 4, 3, 2, 1, 5]], np.vstack([VECTORS, VECTORS.sum(axis=0)])])
def test_features_that_are_numbered_in_another_way_fall_back(agent, vectors):
    """Compiled code knows a feature by its number in the environment."""
    with pytest.warns(UserWarning, match="its feature space is not that of the environment"):
        engine = engine_of("compiled", agent, feature_space=DiscreteFeatures(vectors))
    assert engine.name == "reference"
    other = engine_of("compiled", "SF", feature_space=DiscreteFeatures(vectors))
    assert other.name == "compiled", "vectors need no numbers"


@pytest.mark.filterwarnings("ignore:the reference engine runs this agent")
@pytest.mark.parametrize("kind", ENGINES)
def test_an_agent_that_was_built_for_another_environment_is_refused(kind):
    streams, common = Streams.spawn(0), {"gamma": 0.9, "epsilon": 0.1, "learning_rate": 0.01}
    space = OBJECT_COLLECTION_LAYOUT.feature_space
    for state_dim, actions, reason in ((50, 4, "states of 50 numbers"), (113, 3, "actions 0 to 2")):
        agent = make_agent("SFR", state_dim, actions, space, seed=streams, **common)
        with pytest.raises(InputError, match=reason):
            make_engine(kind, ObjectCollection(), agent, seed=streams)


def test_features_outside_the_agents_space_fall_back():
    """To the engine that looks at every feature."""
    small = BoxFeatures(np.zeros(5), np.full(5, 0.5))
    with pytest.warns(UserWarning, match="does not hold all features"):
        assert engine_of("compiled", "SF", feature_space=small).name == "reference"


class Deaf(gymnasium.Wrapper):
    """An environment that does not listen to what its task is."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed)


def test_an_environment_that_rewards_in_another_way_is_noticed():
    common = {"gamma": 0.9, "epsilon": 0.2, "learning_rate": 0.01, "seed": 0}
    one, other = LinearTask(np.ones(5)), FunctionTask(lambda phi: phi.sum(axis=-1) + 7)
    engine = make_engine("reference", Deaf(ObjectCollection(task=one)), "SFR", **common)
    with pytest.warns(UserWarning, match="the task says 7; if it does not follow"):
        engine.run_task(other, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.run_task(one, 5)


@dataclass(frozen=True)
class ShortRewards(LinearTask):
    """Rewards three features, however many there are."""

    def reward(self, features):
        return np.zeros(3)


@dataclass(frozen=True)
class Doubled(LinearTask):
    """Rewards in another way than its weights say."""

    def reward(self, features):
        return 2 * super().reward(features)


@pytest.mark.parametrize(
    ("kind", "where", "task", "words"),
    [
        ("compiled", ObjectCollection, ShortRewards(np.ones(5)), ("shape",)),
        ("reference", ObjectCollection, ShortRewards(np.ones(5)), ("shape",)),
        ("compiled", short_racer, FunctionTask(lambda phi: phi.prod(axis=-1)), ("make_engine", "reference")),
        ("compiled", short_racer, Doubled(np.ones(3)), ("make_engine", "reference")),
    ],
)
def test_a_task_that_is_refused_changes_nothing(kind, where, task, words):
    engine = engine_of(kind, "Q", where)
    with refused(*words, unchanged=lambda: engine.agent.num_policies):
        engine.run_task(task, 5)


def test_bad_input():
    engine = engine_of("compiled", "SFR")
    task = next_task(engine, "SFR")
    for make, words in (
        (lambda: engine_of("fast", "SFR"), ("'fast'", "compiled")),
        (lambda: engine_of("compiled", "SFR", seed=-1), ("seed is -1", "at least 0")),
        (lambda: EpisodeLimit(0), ("limit", "positive")),
        (lambda: EpisodeLimit(9, is_terminal="no"), ("is_terminal", "True, False")),
        (
            lambda: engine_of("reference", "SFR").run_task(LinearTask(np.ones(5)), 5, 5),
            ("callback", "function"),
        ),
        (lambda: engine_of("reference", "SFR").evaluate(LinearTask(np.ones(5)), environment=5), ("one",)),
        (lambda: engine.run_task(task, 0), ("steps is 0", "positive integer")),
        (lambda: engine.run_task(task, 1e3), ("steps is 1000.0", "integer")),
        (lambda: engine_of("compiled", "SFR", limit=500), ("limit", "EpisodeLimit(500)")),
        (lambda: engine_of("compiled", "SFR", gpi_policies=5), ("gpi_policies is 5", "function")),
        (lambda: make_engine("compiled", "CartPole-v1", "SFR"), ("CartPole", "Gymnasium environment")),
        (lambda: make_engine("compiled", ObjectCollection(), ["SFR"]), ("SFR", "a name, an AgentSpec")),
        (
            lambda: make_engine("compiled", ObjectCollection(), engine.agent, seed=engine.streams, gamma=0.5),
            ("gamma", "make_agent"),
        ),
        (lambda: make_engine("compiled", ObjectCollection(), engine.agent, seed=1), ("streams", "seed=")),
    ):
        with refused(*words):
            make()


# --- Without compilation ----------------------------------------------------------------------------

UNCOMPILED = """
import numba
assert numba.config.DISABLE_JIT
from tests.fa.engine_checks import walk_both
for agent in ("Q", "SF", "SFR-R (MLP)", "MB SFR-R", "CSFR-h"):
    walk_both(agent, steps=(3, 2))
from sfr_fa.engines import packing
packing.FILTER_FROM = 3  # the filter, in reasonable time
results, _ = walk_both("SFR", steps=[2] * 6)
print("walked", len(results))
"""


@pytest.mark.slow
def test_the_kernels_run_as_plain_python():
    assert "walked 6" in printed_by("-c", UNCOMPILED, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})


# --- Retracing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "places"), [(None, [2, 3, 2, 1, 2, 3, 2, 2]), (1, [2] * 8)])
def test_the_path_of_given_actions_begins_episodes_where_the_agent_did(limit, places):
    """After an end, and after three steps; by a limit of the engine, after each step."""
    actions, environment = np.array([1, 1, 0, 0, 1, 0, 1, 0]), gymnasium.wrappers.TimeLimit(WritesOver(), 3)
    path = retraced(environment, None, actions, np.random.default_rng(0), EpisodeLimit(limit))
    now, after = path[0].argmax(axis=1), path[1].argmax(axis=1)
    assert now.tolist() == places
    assert after.tolist() == (now + 2 * actions - 1).tolist()
    assert path[2].tolist() == (after == 4).tolist()


@pytest.mark.parametrize(
    ("agent", "where"),
    [
        ("SFR", ObjectCollection),
        ("CSFR", ObjectCollection),
        ("SFR", ObjectCollectionBarreto),
        ("SF", short_racer),
    ],
)
def test_both_engines_retrace_what_the_agent_has_seen(agent, where):
    retrace_both(agent, 1000, EpisodeLimit(200), where)


@pytest.mark.parametrize(
    ("actions", "noise", "names"),
    [
        ([0, 4], np.random.default_rng(0), "actions"),
        ([-1], np.random.default_rng(0), "actions"),
        ([0.5], np.random.default_rng(0), "actions"),
        ([[0]], np.random.default_rng(0), "actions"),
        ([0], 7, "noise"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_path_of_actions_that_are_none_is_refused(engine, actions, noise, names):
    """Before they reach compiled code, which does not check indices."""
    engine = engine_of(engine, "SFR")
    with refused(names):
        engine.retrace(next_task(engine, "SFR"), actions, noise)

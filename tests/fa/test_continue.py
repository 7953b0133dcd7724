"""Tasks in pieces are the whole to the bit, in both engines; callbacks, schedules, other rates on loading."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from examples.own_world import environment as keys_and_doors
from sfr_fa.agents import FeatureSubnetworks, make_agent, no_clip
from sfr_fa.agents.checkpoint import write_checkpoint
from sfr_fa.agents.gpi_policies import Recent
from sfr_fa.engines import ENGINES, EpisodeLimit, make_engine
from sfr_fa.engines.packing import FILTER_FROM
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask, sample_linear_task
from sfr_theory.errors import InputError
from tests.fa.agent_checks import small_agent
from tests.fa.engine_checks import (
    AGENTS,
    RATES,
    Corridor,
    assert_same_agents,
    engine_of,
    next_task,
    short_racer,
    weights_of,
)
from tests.fa.test_checkpoint import exactly
from tests.refusals import refused

ONES = LinearTask(np.ones(5))


def same_ending(one, other):
    """All that the next steps depend on is equal, to the bit."""
    assert exactly(one.state_dict()) == exactly(other.state_dict())


# --- Pieces -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    ("agent", "where", "tasks"),
    [
        *((agent, ObjectCollection, 3) for agent in AGENTS),
        ("SF", ObjectCollection, FILTER_FROM + 1),
        ("CSFR-R", short_racer, 2),
        ("SFR", keys_and_doors, 2),
    ],
)
def test_pieces_of_a_task_are_the_whole_task_to_the_bit(agent, where, tasks, kind):
    pieces = (1, 13, 26) if kind == "compiled" else (7, 13)
    whole, parts = (engine_of(kind, agent, where, limit=EpisodeLimit(9)) for _ in range(2))
    for _ in range(tasks):
        task, same = next_task(whole, agent), next_task(parts, agent)
        at_once = whole.run_task(task, sum(pieces))
        results = [parts.run_task(same, pieces[0]), *(parts.continue_task(n) for n in pieces[1:])]
        np.testing.assert_array_equal(at_once.actions, np.concatenate([r.actions for r in results]))
        np.testing.assert_array_equal(at_once.gpi_counts, sum(r.gpi_counts for r in results))
        assert at_once.episodes == sum(r.episodes for r in results) > 1
        assert at_once.total_reward == pytest.approx(sum(r.total_reward for r in results), abs=1e-12)
        assert [r.steps for r in results] == list(pieces)
        same_ending(whole, parts)


def test_any_gymnasium_environment_goes_on_where_it_was():
    whole, parts = (make_engine("reference", Corridor(9, slip=0.3), "SFR", seed=1) for _ in range(2))
    task = LinearTask([1.0])
    actions = whole.run_task(task, 50).actions
    results = [parts.run_task(task, 1), *(parts.continue_task(1) for _ in range(49))]
    np.testing.assert_array_equal(actions, np.concatenate([r.actions for r in results]))
    assert whole.environment.resets == parts.environment.resets > 1
    same_ending(whole, parts)


def test_an_environment_that_someone_else_has_used_is_not_continued_in():
    environment = Corridor(9, slip=0.3)
    one, other = (make_engine("reference", environment, "SFR", seed=seed) for seed in (1, 2))
    one.run_task(LinearTask([1.0]), 1)
    other.run_task(LinearTask([1.0]), 1)
    with refused("give each engine its own"):
        one.continue_task(1)


@pytest.mark.parametrize("use", ["retrace", "evaluate", "engine"])
def test_an_environment_that_was_used_between_episodes_is_told_its_task_again(use):
    """Otherwise the rewards of the other task would be learned from, without a word."""
    one, another = LinearTask([1.0]), LinearTask([-5.0])
    environment = Corridor(9, slip=0.3)
    engine = make_engine("reference", environment, "Q", seed=1)
    result = engine.run_task(one, 1000)
    while engine._episode is not None:
        result = engine.continue_task(1)
    if use == "retrace":
        engine.retrace(another, result.actions, np.random.default_rng(0))
    elif use == "evaluate":
        engine.evaluate(another, 1, policy=0, environment=environment)
    else:
        make_engine("reference", environment, "Q", seed=2).run_task(another, 5)
    assert engine.continue_task(500).total_reward > 0


@pytest.mark.parametrize("kind", ENGINES)
def test_there_must_be_a_task_to_continue(kind, tmp_path):
    engine = engine_of(kind, "SFR")
    with refused("run_task"):
        engine.continue_task(5)
    engine.run_task(ONES, 5)
    for steps in (0, 2.5, True):
        with refused("steps"):
            engine.continue_task(steps)
    engine.save(tmp_path / "engine")
    engine.load(tmp_path / "engine")
    with refused("run_task"):
        engine.continue_task(5)
    engine.run_task(ONES, 5)
    engine.agent.start_task(ONES)
    with refused("by itself"):
        engine.continue_task(5)


@pytest.mark.parametrize("agent", ["SFR", "SF", "SFR-R", "Q"])
@pytest.mark.parametrize("kind", ENGINES)
def test_a_loaded_agent_goes_on_with_its_task(kind, agent, tmp_path):
    """It learns on with the last policy, at the step of its schedules, in a new episode."""
    engine, again = (engine_of(kind, agent, epsilon=lambda t: 1 / (1 + t)) for _ in range(2))
    for task in (sample_linear_task(np.random.default_rng(seed)) for seed in (1, 2)):
        engine.run_task(task, 40)
    engine.save(tmp_path / "engine")
    again.load(tmp_path / "engine")
    result = again.continue_task(30, task=task)
    assert (again.agent.num_policies, again.agent.steps_of_task) == (engine.agent.num_policies, 70)
    assert (result.steps, result.episodes >= 1) == (30, True)
    # As the engine that was saved does, once its episode is over and its environment is told anew.
    engine._begin(task)
    np.testing.assert_array_equal(engine.continue_task(30).actions, result.actions)
    with refused("leave task out"):
        again.continue_task(5, task=task)


@pytest.mark.parametrize("agent", ["SFR", "SF"])
def test_another_task_than_that_of_the_file_is_refused(agent, tmp_path):
    engine = engine_of("reference", agent)
    engine.run_task(ONES, 5)
    engine.save(tmp_path / "engine")
    engine.load(tmp_path / "engine")
    with refused("task", "run_task"):
        engine.continue_task(5, task=LinearTask([0.5, -1.0, 1.0, 1.0, 0.0]))
    engine.continue_task(5, task=ONES)


# --- Callbacks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("agent", ["SFR-R", "MB SFR"])
def test_a_callback_sees_the_curve_and_changes_nothing(agent, kind, tmp_path):
    plain, watched = (engine_of(kind, agent) for _ in range(2))
    seen, earned = [], []

    def look(result):
        seen.append((result.steps, len(result.actions), result.gpi_counts.sum()))
        earned.append(watched.evaluate(ONES, episodes=1, episode_steps=5).lengths[0])
        watched.save(tmp_path / "on the way")
        weights_of(watched)

    for _ in range(2):
        seen.clear()
        task, same = next_task(plain, agent), next_task(watched, agent)
        one, other = plain.run_task(task, 50), watched.run_task(same, 50, look, every=20)
        assert seen == [(20, 20, 20), (40, 40, 40), (50, 50, 50)]
        np.testing.assert_array_equal(one.actions, other.actions)
        assert (one.total_reward, one.episodes) == (other.total_reward, other.episodes)
        np.testing.assert_array_equal(one.gpi_counts, other.gpi_counts)
        same_ending(plain, watched)
    assert earned == [5] * 6


@pytest.mark.parametrize("kind", ENGINES)
def test_a_callback_may_stop_the_task_which_can_be_continued(kind):
    stopped, whole = (engine_of(kind, "SFR") for _ in range(2))
    result = stopped.run_task(ONES, 100, lambda result: result.steps >= 30, every=10)
    assert result.steps == len(result.actions) == 30
    rest = stopped.continue_task(20, lambda result: None, every=7)
    assert rest.steps == 20
    whole.run_task(ONES, 50)
    same_ending(stopped, whole)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_callback_that_fails_or_wants_to_learn(kind):
    engine, whole = (engine_of(kind, "SFR") for _ in range(2))

    def learn(result):
        engine.continue_task(5)

    def fail(result):
        raise RuntimeError("no more")

    with refused("callback may evaluate"):
        engine.run_task(ONES, 20, learn, every=10)
    for forbidden in ("load_state_dict", "start_task"):
        other = engine_of(kind, "SFR")
        call = getattr(other, forbidden)
        with refused("callback may evaluate"):
            other.run_task(ONES, 5, lambda result, call=call: call({}))
    with pytest.raises(RuntimeError, match="no more"):
        engine.continue_task(20, fail, every=10)
    engine.continue_task(10)
    whole.run_task(ONES, 30)
    same_ending(engine, whole)
    with refused("every"):
        engine.run_task(ONES, 20, fail, every=0)


def test_without_a_callback_there_is_one_piece():
    engine = engine_of("compiled", "SFR")
    calls, walk = [], engine._walk
    engine._walk = lambda *arguments: calls.append(arguments) or walk(*arguments)
    engine.run_task(ONES, 5000)
    assert calls == [(5000, 0.0)]


# --- Schedules --------------------------------------------------------------------------------------


def decaying(value):
    return lambda t: value / (1 + t / 7)


@pytest.mark.parametrize("agent", ["Q", "SF-R", "SFR", "MB SFR-R", "CSFR"])
def test_schedules_in_both_engines(agent):
    scheduled = {rate: decaying(value) for rate, value in RATES.items()}
    spec = engine_of("reference", agent).agent.schedules
    used = {name: scheduled[name] for name in RATES if getattr(spec, name) is not None}
    used["epsilon"] = lambda t: 0.9 / (1 + t)
    pair = [engine_of(kind, agent, **used) for kind in ENGINES]
    assert [engine.name for engine in pair] == list(ENGINES)
    constant = engine_of("compiled", agent)
    for _ in range(3):
        results = [engine.run_task(next_task(engine, agent), 20) for engine in pair]
        more = [engine.continue_task(20) for engine in pair]
        np.testing.assert_array_equal(results[0].actions, results[1].actions)
        np.testing.assert_array_equal(more[0].actions, more[1].actions)
        constant.run_task(next_task(constant, agent), 40)
    assert_same_agents(*pair, 1e-10)
    assert not np.array_equal(weights_of(pair[0]), weights_of(constant))


def test_one_engine_goes_on_at_the_rate_of_the_other():
    """The reference engine makes its optimisers when it first learns, which may be late in a task."""
    compiled, reference = (engine_of(kind, "SFR", learning_rate=decaying(0.05)) for kind in ENGINES)
    compiled.run_task(ONES, 40)
    reference.load_state_dict(compiled.state_dict())
    for engine in (compiled, reference):
        engine._begin(ONES)
        engine.continue_task(20)
    assert_same_agents(compiled, reference, 1e-10)


@pytest.mark.parametrize("kind", ENGINES)
def test_the_step_is_that_of_the_task(kind):
    """Counted on where the task is continued, and from 0 in the next one."""
    asked = []

    def epsilon(t):
        asked.append(t)
        return 0.5

    engine = engine_of(kind, "SFR", epsilon=epsilon)
    for run, steps in ((engine.run_task, range(4)), (None, range(4, 7)), (engine.run_task, range(5))):
        asked.clear()
        run(ONES, len(steps)) if run else engine.continue_task(len(steps))
        assert sorted(set(asked)) == list(steps)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_rate_of_zero_learns_nothing_from_there_on(kind):
    engine = engine_of(kind, "SFR", learning_rate=lambda t: 0.01 if t < 10 else 0.0)
    engine.run_task(ONES, 10)
    before = weights_of(engine)
    engine.continue_task(10)
    np.testing.assert_array_equal(weights_of(engine), before)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"epsilon": lambda t: 1.5}, r"epsilon\(0\)"),
        ({"learning_rate": lambda t: -1.0}, r"learning_rate\(0\)"),
        ({"learning_rate": lambda t: None}, r"learning_rate\(0\)"),
        ({"epsilon": lambda t: 0.1 if t < 5 else 7}, r"epsilon\(5\)"),
        ({"learning_rate": lambda t: 0.1 if t < 5 else np.nan}, r"learning_rate\(5\)"),
    ],
)
@pytest.mark.parametrize("kind", ENGINES)
def test_a_schedule_that_is_none_is_named_with_the_step(kind, settings, place):
    with pytest.raises(InputError, match=place):
        engine_of(kind, "SFR", **settings).run_task(ONES, 20)


def test_epsilon_can_be_set_on_an_agent():
    agent = small_agent("SFR")
    agent.epsilon = lambda t: 0.25
    assert agent.schedules.at(3).epsilon == 0.25
    with refused("epsilon"):
        agent.epsilon = -1


# --- What is saved is what was learned --------------------------------------------------------------


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("agent", ["SFR", "SF-R", "MB SFR"])
def test_a_saved_agent_goes_on_with_other_rates(agent, kind, tmp_path):
    """As if the rates had been changed in the agent itself."""
    saved, loaded = engine_of(kind, agent), None
    saved.run_task(next_task(saved, agent), 30)
    saved.save(tmp_path / "agent")
    spec = saved.agent.schedules
    other = {name: 0.5 * value for name, value in RATES.items() if getattr(spec, name) is not None}
    loaded = engine_of(kind, agent, epsilon=0.7, gpi_policies=Recent(1), **other)
    loaded.load(tmp_path / "agent")
    assert loaded.agent.epsilon == 0.7
    np.testing.assert_array_equal(weights_of(loaded), weights_of(saved))
    # The one that was saved, with every rate changed by a schedule.
    for name, value in other.items():
        setattr(saved.agent.schedules, name, lambda t, value=value: value)
    saved.agent.epsilon = 0.7
    saved.agent.gpi_policies = Recent(1)
    results = [engine.run_task(next_task(engine, agent), 30) for engine in (saved, loaded)]
    np.testing.assert_array_equal(results[0].actions, results[1].actions)
    assert_same_agents(saved, loaded, 0.0)


@pytest.mark.parametrize("kind", ENGINES)
def test_after_a_file_of_something_else_the_task_goes_on(kind, tmp_path):
    engine, twin = (engine_of(kind, "SFR") for _ in range(2))
    for one in (engine, twin):
        one.run_task(next_task(one, "SFR"), 30)
    engine.save(tmp_path / "engine")
    engine.agent.save(tmp_path / "agent")
    state = engine.state_dict()
    state["streams"] = state["streams"] | {"environment": {}}
    write_checkpoint(tmp_path / "spoiled", engine.agent.description, state)
    engine.continue_task(5)
    for load, name, fix in (
        (engine.load, "agent", "engine.agent.load"),
        (engine.agent.load, "engine", "engine.load"),
        (engine.load, "spoiled", "is not what this program writes"),
    ):
        with refused(str(tmp_path / name), fix):
            load(tmp_path / name)
    actions = twin.continue_task(25).actions
    np.testing.assert_array_equal(engine.continue_task(20).actions, actions[5:])


def test_within_a_task_too_a_loaded_reward_model_learns_by_its_own_rate(tmp_path):
    saved, loaded = small_agent("SF-R"), small_agent("SF-R", reward_learning_rate=0.5)
    saved.start_task()
    saved.save(tmp_path / "agent")
    loaded.load(tmp_path / "agent")
    loaded.readouts[-1].model.weight.data.zero_()
    loaded.readouts[-1].learn(np.array([1.0, 0.0, 0.0]), 3.0)
    assert loaded.readouts[-1].vector.tolist() == [0.5 * 2 * 3.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        ({"gamma": 0.5}, ["gamma"]),
        ({"clip": no_clip}, ["clip"]),
        ({"dtype": torch.float32, "gamma": 0.5}, ["dtype", "gamma"]),
        ({"feature_space": DiscreteFeatures(np.eye(5)[:4])}, ["feature_map", "cumulant", "readout"]),
        ({"approximator": FeatureSubnetworks}, ["approximator"]),
        ({"optimiser": torch.optim.Adam}, ["optimiser"]),
    ],
)
def test_settings_that_make_the_weights_meaningless_are_named_one_by_one(settings, places, tmp_path):
    agent = make_agent("SFR", 6, 2, DiscreteFeatures(np.eye(5)), dtype=torch.float64)
    agent.save(tmp_path / "agent")
    space = settings.pop("feature_space", DiscreteFeatures(np.eye(5)))
    other = make_agent("SFR", 6, 2, space, **({"dtype": torch.float64} | settings))
    with refused(*(f"another {place}" for place in places)) as caught:
        other.load(tmp_path / "agent")
    assert str(caught.value).count("another ") == len(places)


def test_shapes_that_differ_are_named(tmp_path):
    space = DiscreteFeatures(np.eye(5))
    make_agent("SFR", 6, 2, space).save(tmp_path / "agent")
    with refused("state_dim", "6", "7", "num_actions"):
        make_agent("SFR", 7, 3, space).load(tmp_path / "agent")


# --- The page -----------------------------------------------------------------------------------------


def test_the_code_of_the_page_runs(capsys):
    """Its blocks on evaluating and continuing, with fewer steps."""
    page = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()
    engine = engine_of("reference", "SFR", limit=EpisodeLimit(20))
    engine.run_task(ONES, 50)
    names = {"engine": engine, "task": ONES, "state": engine.environment.reset()[0]}
    for heading in ("## Evaluate, and act", "## Continue, watch, schedule"):
        code = page.split(heading)[1].split("```python")[1].split("```")[0]
        exec(re.sub(r"\b(\d+)_000\b|\b1000\b", "40", code), names)
    assert len(capsys.readouterr().out.splitlines()) == 1  # one line for each time it was called
    assert engine.agent.num_policies == 2
    assert engine.agent.gpi_counts.sum() == 80

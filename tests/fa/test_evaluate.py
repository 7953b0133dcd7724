"""`engine.evaluate` and `agent.act`: the same in both engines, true to the values, and without a trace."""

import copy

import gymnasium
import numpy as np
import pytest
import torch

from examples.own_world import environment as keys_and_doors
from sfr_fa.agents.gpi_policies import Recent
from sfr_fa.engines import ENGINES, EpisodeLimit, make_engine
from sfr_fa.engines.packing import FILTER_FROM
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.environments.object_collection import ObjectCollection, ObjectCollectionBarreto
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import FunctionTask, LinearTask, sample_linear_task
from sfr_theory.errors import InputError
from tests.fa.engine_checks import Corridor, engine_of, next_task, short_racer
from tests.fa.test_checkpoint import exactly
from tests.refusals import refused


def trained(kind, agent, tasks=3, steps=60, **settings):
    engine = engine_of(kind, agent, **settings)
    for _ in range(tasks):
        engine.run_task(next_task(engine, agent), steps)
    return engine


def assert_same(one, other):
    np.testing.assert_array_equal(one.lengths, other.lengths)
    np.testing.assert_array_equal(one.ended, other.ended)
    np.testing.assert_array_equal(one.gpi_shares, other.gpi_shares)
    np.testing.assert_allclose(one.returns, other.returns, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.discounted_returns, other.discounted_returns, rtol=0, atol=1e-10)


# --- The same in both engines -----------------------------------------------------------------------


IN_ROOMS = ("Q", "SF", "SFR", "SFR-R", "MB SFR", "CSFR", "CSFR-h")
WORLDS = {
    ObjectCollection: IN_ROOMS, ObjectCollectionBarreto: IN_ROOMS, short_racer: ("SF", "CSFR"),
    keys_and_doors: ("SFR",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("agent", "where"), [(agent, where) for where, agents in WORLDS.items() for agent in agents]
)
def test_both_engines_report_the_same(agent, where):
    pair = [trained(kind, agent, where=where) for kind in ENGINES]
    new = [next_task(engine, "CSFR") for engine in pair]
    asked = [{}, {"policy": 0, "epsilon": 0.3}]
    if agent not in ("Q", "CSFR-h"):
        asked += [{"task": new[0], "epsilon": 0.3}]
    for options in asked:
        one, other = (engine.evaluate(episodes=3, episode_steps=80, seed=4, **options) for engine in pair)
        assert_same(one, other)
        assert one.lengths.shape == (3,)
        assert one.gpi_shares.shape == (pair[0].agent.num_policies,)
        assert one.gpi_shares.sum() == pytest.approx(1)
        if where is short_racer:  # its own limit
            assert one.lengths.tolist() == [25, 25, 25]
            assert not one.ended.any()


def test_both_engines_report_the_same_of_many_policies():
    """The filter is on, and GPI chooses several of them."""
    pair = [trained(kind, "SFR", tasks=FILTER_FROM + 2, steps=40) for kind in ENGINES]
    one, other = (
        engine.evaluate(LinearTask([1, -1, 0.5, 0, 1]), episodes=2, epsilon=0.2, episode_steps=100)
        for engine in pair
    )
    assert_same(one, other)
    assert (one.gpi_shares > 0).sum() > 1


def corridor_engine():
    space = DiscreteFeatures([[0, 0], [1, 0], [0, 1]])
    ends = WithFeatures(
        Corridor(5), lambda s, a, t, info: [float(t[0]), float(t[4])], space, LinearTask([0, 1])
    )
    return make_engine(
        "reference", ends, "SFR", gamma=0.5, epsilon=0.9, learning_rate=0.2, dtype=torch.float64
    )


def test_numbers_that_can_be_worked_out_by_hand():
    """In any Gymnasium environment: the right end is two steps away, the left end, too."""
    engine = corridor_engine()
    for task in (LinearTask([0, 1]), LinearTask([1, 0])):
        engine.run_task(task, 300)
    right = engine.evaluate(LinearTask([0, 1]), episodes=4)
    assert right.returns.tolist() == [1, 1, 1, 1]
    assert right.discounted_returns.tolist() == [0.5, 0.5, 0.5, 0.5]
    assert right.lengths.tolist() == [2, 2, 2, 2]
    assert right.ended.all()
    # A reward that no policy was trained on; policy 0 goes right, policy 1 left.
    both = FunctionTask(lambda phi: 3 * phi[..., 0] + 2 * phi[..., 1])
    assert engine.evaluate(both, episodes=1).returns == [3]
    assert engine.evaluate(both, episodes=1, policy=0).returns == [2]
    assert engine.evaluate(both, episodes=1, policy=1).returns == [3]
    assert engine.evaluate(both, episodes=1, policy=0).gpi_shares.tolist() == [1, 0]
    # Two steps away, the reward is discounted once: what was earned is what the values say.
    state, _ = engine.environment.reset()
    np.testing.assert_allclose(engine.agent.values(state, both).max(axis=1), [1.0, 1.5], atol=1e-6)
    earned = [engine.evaluate(both, episodes=1, policy=k).discounted_returns[0] for k in (0, 1)]
    assert earned == [1.0, 1.5]
    # Without a task it is the current one.
    assert engine.evaluate(episodes=1).returns == [1]
    assert engine.evaluate(episodes=1, policy=0).returns == [0]


# --- Without a trace --------------------------------------------------------------------------------


def snapshot(engine):
    return copy.deepcopy(engine.state_dict())


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("agent", ["Q", "SF", "SFR-R", "MB SFR", "SF-h"])
def test_learning_goes_on_as_if_nothing_had_been_evaluated(agent, kind):
    disturbed, undisturbed = (trained(kind, agent) for _ in range(2))
    before = snapshot(disturbed)
    disturbed.evaluate(episodes=2, episode_steps=30, epsilon=0.5)
    disturbed.evaluate(LinearTask(np.ones(5)), policy=0, episodes=2, episode_steps=30)
    state, _ = ObjectCollection().reset()
    disturbed.agent.act(state, epsilon=0.5, rng=np.random.default_rng(0))
    assert exactly(before) == exactly(snapshot(disturbed))
    results = [engine.run_task(next_task(engine, agent), 60) for engine in (disturbed, undisturbed)]
    np.testing.assert_array_equal(results[0].actions, results[1].actions)
    assert results[0].total_reward == results[1].total_reward
    assert exactly(snapshot(disturbed)) == exactly(snapshot(undisturbed))


def test_the_environment_keeps_its_task_and_its_episode():
    engine = corridor_engine()
    engine.run_task(LinearTask([0, 1]), 301)
    before = engine.environment.unwrapped.place
    engine.evaluate(LinearTask([5, 5]), episodes=2)
    assert engine.environment.unwrapped.place == before
    assert engine.environment.task == LinearTask([0, 1])


@pytest.mark.parametrize("kind", ENGINES)
def test_the_seed_decides_all_that_is_random(kind):
    engine = trained(kind, "SFR")
    one, again, other = (
        engine.evaluate(episodes=3, epsilon=0.5, episode_steps=50, seed=seed) for seed in (1, 1, 2)
    )
    assert_same(one, again)
    assert not np.array_equal(one.returns, other.returns) or not np.array_equal(
        one.gpi_shares, other.gpi_shares
    )


class NotToBeCopied(gymnasium.Wrapper):
    def __deepcopy__(self, memo):
        raise TypeError("a window is open")


def test_an_environment_that_cannot_be_copied_needs_a_second_one():
    engine = make_engine("reference", NotToBeCopied(ObjectCollection()), "SFR", seed=0)
    engine.run_task(LinearTask(np.ones(5)), 20)
    with refused("a window is open", "environment="):
        engine.evaluate()
    assert engine.evaluate(episodes=1, episode_steps=7, environment=ObjectCollection()).lengths == [7]


def test_another_environment_may_be_evaluated_in_if_it_fits():
    engine = trained("compiled", "SFR")
    task, other = LinearTask(np.ones(5)), ObjectCollection(kinds=[0] * 12)
    assert engine.evaluate(task, episodes=1, episode_steps=9, environment=other).lengths == [9]
    with refused("states of 113 numbers"):
        engine.evaluate(task, environment=Corridor(5))
    with refused("one environment"):
        engine.evaluate(task, environment=gymnasium.vector.SyncVectorEnv([ObjectCollection] * 2))
    with refused("feature"):
        engine.evaluate(task, environment=ObjectCollectionBarreto())


# --- Which reward, which policies -------------------------------------------------------------------


def test_an_agent_that_learns_rewards_uses_its_model_or_what_it_is_told():
    engine = trained("compiled", "SFR-R")
    task = LinearTask([1.0, -1.0, 0.5, 0.0, 1.0])
    told = engine.agent.contest(task)
    np.testing.assert_allclose(told.readout, task.reward(engine.space.vectors))
    np.testing.assert_array_equal(engine.agent.contest().readout, engine.agent.readouts[-1].vector)


def test_few_policies_take_part_in_the_current_task_all_under_another_reward():
    engine = trained("compiled", "SFR", tasks=4, gpi_policies=Recent(1))
    assert engine.agent.contest().policies.tolist() == [2, 3]
    assert engine.agent.contest(LinearTask(np.ones(5))).policies.tolist() == [0, 1, 2, 3]
    assert engine.agent.contest(policy=1).policies.tolist() == [1]


@pytest.mark.parametrize(
    ("agent", "arguments", "place"),
    [
        ("Q", {"task": LinearTask(np.ones(5))}, "Q"),
        ("SF-h", {"task": LinearTask(np.ones(5))}, "policy=k"),
        ("SFR", {"policy": 3}, "0 to 2"),
        ("SFR", {"policy": True}, "0 to 2"),
        ("SFR", {"episodes": 0}, "episodes"),
        ("SFR", {"epsilon": 1.5}, "epsilon"),
        ("SFR", {"episode_steps": 0}, "episode_steps"),
        ("SFR", {"seed": -1}, "seed"),
        ("SFR", {"task": LinearTask(np.ones(3))}, "features"),
    ],
)
@pytest.mark.parametrize("kind", ENGINES)
def test_what_cannot_be_evaluated_gets_a_sentence(kind, agent, arguments, place):
    engine = trained(kind, agent, steps=5)
    with pytest.raises(InputError, match=place):
        engine.evaluate(**arguments)


@pytest.mark.parametrize("kind", ENGINES)
def test_there_must_be_a_task(kind, tmp_path):
    engine = engine_of(kind, "SFR")
    with refused("task"):
        engine.evaluate()
    with refused("task"):
        engine.evaluate(LinearTask(np.ones(5)))  # there is no policy
    engine.run_task(LinearTask(np.ones(5)), 10)
    engine.save(tmp_path / "engine")
    engine.load(tmp_path / "engine")
    with refused("evaluate(task)"):
        engine.evaluate()  # the file does not say which it was
    assert engine.evaluate(LinearTask(np.ones(5)), episodes=1, episode_steps=3).lengths == [3]


def test_limits_of_the_engine_hold():
    for kind in ENGINES:
        engine = trained(kind, "SFR", limit=EpisodeLimit(11))
        assert engine.evaluate(episodes=2).lengths.max() <= 11


# --- agent.act --------------------------------------------------------------------------------------


def test_act_is_greedy_for_any_reward():
    agent = trained("compiled", "SFR", tasks=4).agent
    rng, environment = np.random.default_rng(0), ObjectCollection()
    state, _ = environment.reset(seed=0)
    for _ in range(20):
        reward = sample_linear_task(rng)
        values = agent.values(state, reward)
        assert agent.act(state, reward) == values[values.max(axis=1).argmax()].argmax()
        assert agent.act(state, lambda phi, w=reward.weights: phi @ w) == agent.act(state, reward)
        values = agent.values(state)
        assert agent.act(state, epsilon=0) == values[values.max(axis=1).argmax()].argmax()
        state, *_ = environment.step(int(rng.integers(4)))


def test_act_explores_only_from_a_generator_that_it_is_given():
    agent = trained("compiled", "SFR").agent
    state, _ = ObjectCollection().reset()
    with refused("rng="):
        agent.act(state, epsilon=0.1)
    drawn = {agent.act(state, epsilon=1.0, rng=np.random.default_rng(seed)) for seed in range(40)}
    assert drawn == {0, 1, 2, 3}
    with refused("epsilon"):
        agent.act(state, epsilon=2)


@pytest.mark.filterwarnings("ignore::sfr_fa.agents.readouts.FitWarning")  # by a sum over dimensions
def test_a_reward_that_compiled_code_cannot_compute_is_counted_step_by_step():
    """Features in a box: both engines report the same for any function of them."""

    def nearer(phi):
        return 1.0 * (phi[..., 0] < phi[..., 1])

    points = np.random.default_rng(0).uniform(size=(200, 3))
    found = [
        trained(kind, "CSFR", where=short_racer, fit_points=points).evaluate(nearer, episode_steps=40)
        for kind in ENGINES
    ]
    assert_same(*found)
    assert 0 < found[0].returns.sum() < 400

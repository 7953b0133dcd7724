"""Tabular Gymnasium environments as finite MDPs, against answers by hand and against walks."""

import gymnasium
import numpy as np
import pytest

from sfr_theory.from_gymnasium import mdp_from_gymnasium
from sfr_theory.mdp import FiniteMDP
from sfr_theory.solve import optimal, policy_xi
from tests.refusals import refused


def lake_features(env):
    cells = env.unwrapped.desc.ravel()
    return lambda s, a, next_state, reward: [cells[next_state] == b"H", cells[next_state] == b"G"]


def reward_of(mdp, function):
    return np.array([*(function(vector) for vector in mdp.feature_vectors[:-1]), 0.0])


def test_the_dry_frozen_lake_is_six_steps_long():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    mdp = mdp_from_gymnasium(env, lake_features(env), gamma=0.9)
    assert FiniteMDP.from_gymnasium(env, lake_features(env), gamma=0.9) == mdp
    assert (mdp.num_states, mdp.num_actions, mdp.num_features) == (17, 4, 4)
    solution = optimal(mdp, reward_of(mdp, lambda phi: phi[1]))
    assert solution.q[0].max() == pytest.approx(0.9**5)
    # Nothing is collected once the episode is over, whatever the goal is worth.
    assert not solution.q[16].any()
    xi = policy_xi(mdp, solution.policy)
    np.testing.assert_allclose(xi.sum(axis=-1), 10)


def test_cliff_walking_and_taxi_by_their_own_rewards():
    """The shortest way along the cliff has 13 steps; a taxi that is about to drop its passenger gets 20."""
    cliff = gymnasium.make("CliffWalking-v1")
    mdp = mdp_from_gymnasium(cliff, lambda s, a, n, reward: [reward], gamma=0.99)
    q = optimal(mdp, reward_of(mdp, lambda phi: phi[0])).q
    assert q[36].max() == pytest.approx(-(1 - 0.99**13) / 0.01)
    taxi = gymnasium.make("Taxi-v4")
    mdp = mdp_from_gymnasium(taxi, lambda s, a, n, reward: [reward], gamma=0.9)
    q = optimal(mdp, reward_of(mdp, lambda phi: phi[0])).q
    assert q.max() == pytest.approx(20)


def test_xi_is_what_a_walk_collects():
    """Discounted counts of features over episodes of a fixed policy in the environment itself."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    features, gamma = lake_features(env), 0.8
    mdp = mdp_from_gymnasium(env, features, gamma)
    policy = np.full(mdp.num_states, 2)
    xi = policy_xi(mdp, policy)
    row = {tuple(vector): index for index, vector in enumerate(mdp.feature_vectors[:-1])}
    counts, episodes = np.zeros(mdp.num_features - 1), 3000
    env.reset(seed=7)
    for _ in range(episodes):
        state, _ = env.reset()
        discount, over = 1.0, False
        while not over:
            following, reward, terminated, truncated, _ = env.step(2)
            counts[row[tuple(map(float, features(state, 2, following, reward)))]] += discount
            discount, state, over = discount * gamma, following, terminated or truncated
    np.testing.assert_allclose(counts / episodes, xi[0, 2, :-1], atol=0.06)


@pytest.mark.parametrize(
    ("env", "features", "place", "fix"),
    [
        ("CartPole-v1", lambda *t: [1.0], "unwrapped.P", "FrozenLake"),
        ("FrozenLake-v1", [1.0], "features", "function"),
        ("FrozenLake-v1", lambda *t: 1.0, "features(0, 0, 0)", "sequence"),
        ("FrozenLake-v1", lambda *t: [np.nan], "features(0, 0, 0)", "finite"),
        ("FrozenLake-v1", lambda s, a, n, r: [1.0] * (1 + s % 2), "features", "same length"),
    ],
)
def test_bad_input_names_the_place_and_the_fix(env, features, place, fix):
    with refused(place, fix):
        mdp_from_gymnasium(gymnasium.make(env), features, 0.9)


@pytest.mark.parametrize("outcome", [(1.0, 16, 0.0, False), (1.0, -1, 0.0, True), (1.0, 0, 0.0), None])
def test_an_outcome_that_is_none_is_refused_with_its_place(outcome):
    env = gymnasium.make("FrozenLake-v1")
    env.unwrapped.P[3][1] = [outcome]
    with refused("P[3][1]", "next state from 0 to 15"):
        mdp_from_gymnasium(env, lambda *t: [1.0], 0.9)

"""GPI picks the largest entry, in one stage or in two."""

import numpy as np
from hypothesis import given

from sfr_theory.gpi import gpi_choice, gpi_policy, gpi_values
from sfr_theory.operators import at_policy
from sfr_theory.solve import optimal, policy_q
from tests.strategies import problems


def test_the_best_of_two_policies():
    q = np.array([[[1.0, 0.0]], [[0.0, 2.0]]])
    assert gpi_policy(q).tolist() == [1]
    assert gpi_values(q).tolist() == [[1.0, 2.0]]
    policy, action = gpi_choice(q[:, 0])
    assert (policy, action) == (1, 1)


def test_a_batch_of_tables():
    """(2 problems, 2 policies, 3 states, 2 actions); the best action of each problem and state."""
    q = np.zeros((2, 2, 3, 2))
    q[0, 1, 2, 1] = q[1, 0, 0, 1] = q[1, 1, 1, 1] = 1
    assert gpi_policy(q).tolist() == [[0, 0, 1], [1, 1, 0]]
    policy, action = gpi_choice(q.swapaxes(1, 2))
    assert policy.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert action.tolist() == gpi_policy(q).tolist()


def test_ties_go_to_the_first_policy_then_the_first_action():
    assert gpi_choice(np.array([[0.0, 1.0], [1.0, 0.0]])) == (0, 1)
    assert gpi_choice(np.zeros((3, 2))) == (0, 0)


@given(problems())
def test_gpi_improves_on_every_policy(problem):
    """Barreto's policy improvement, exactly: Q of the GPI policy is at least each Q it was made from."""
    mdp, target = problem.mdp, problem.target
    policies = optimal(mdp, problem.sources).policy
    q = np.stack([policy_q(mdp, policy, target) for policy in policies])
    improved = policy_q(mdp, gpi_policy(q), target)
    assert (improved >= q.max(axis=0)).all()
    assert (at_policy(improved[..., None], gpi_policy(q))[..., 0] >= q.max(axis=(0, 2))).all()

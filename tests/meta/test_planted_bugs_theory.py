"""Planted bugs: each must turn the suite red.

A copy of the package gets one expression broken, and the tests that guard it run on the copy. A test file
that stays green on its bug does not guard anything.
"""

import subprocess
import sys

import pytest

from tests.meta.planting import PYTEST_OPTIONS, ROOT, Bug, copy_of_the_tree, replaced

SOLVE, BOUNDS = "sfr_theory/solve.py", "sfr_theory/bounds.py"
SOLVE_TEST, BOUNDS_TEST = "tests/theory/test_solve.py", "tests/theory/test_bounds.py"
BUGS = {
    "gamma dropped from the evaluation": Bug(
        SOLVE, "discounted_sum", "total *= mdp.gamma", "total *= 1", SOLVE_TEST),
    "policy iteration stops early": Bug(SOLVE, "optimal", "improves.any()", "improves.all()", SOLVE_TEST),
    "the bootstrap is one step late": Bug(
        SOLVE, "discounted_sum", "solve(matrix, along_policy(cumulant))",
        "solve(matrix, along_policy(cumulant)) - along_policy(cumulant)", SOLVE_TEST),
    "gamma dropped from T_xi": Bug(
        "sfr_theory/operators.py", "bellman_xi", "mdp.gamma", "1", "tests/theory/test_operators.py"),
    "epsilon measured under R_i": Bug(
        BOUNDS, "SolvedProblem.epsilon_under_target",
        "self.target[..., None, :]", "self.sources", BOUNDS_TEST),
    "value norm for the absolute norm": Bug(
        BOUNDS, "thm2_printed", "absolute_norm(e.optimal_xi - e.gpi_xi, e.target)",
        "value_seminorm(e.optimal_xi - e.gpi_xi, e.target)", BOUNDS_TEST),
    "farthest source for the nearest": Bug(
        BOUNDS, "SolvedProblem.reward_distance",
        "np.abs(self.expected_target - self.expected_rewards).max(axis=-1).min",
        "np.abs(self.expected_target - self.expected_rewards).max(axis=-1).max", BOUNDS_TEST),
    "a constant without its gamma": Bug(BOUNDS, "thm2_sharp", "2 * e.gamma", "2", BOUNDS_TEST),
    "the range for half of it": Bug(BOUNDS, "affine_distance", "best / 2", "best", BOUNDS_TEST),
    "GPI takes the worst policy": Bug(
        "sfr_theory/gpi.py", "gpi_values", "q.max(axis=-3)", "q.min(axis=-3)", "tests/theory/test_gpi.py"),
    "adversarial errors that show": Bug(
        "sfr_theory/random_mdp.py", "adversarial", "free * (reward == 0)", "free",
        "tests/theory/test_random_mdp.py"),
}  # fmt: skip


def run_on_a_copy(folder, test_file):
    command = [sys.executable, "-m", "pytest", *PYTEST_OPTIONS, test_file]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path):
    return copy_of_the_tree(tmp_path / "tree")


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_every_bug_still_fits_its_source(bug):
    replaced((ROOT / bug.path).read_text(), bug.function, bug.right, bug.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_planted_bug_turns_the_suite_red(bug, copy):
    bug.plant(copy)
    result = run_on_a_copy(copy, bug.caught_by)
    assert result.returncode == 1, result.stdout
    assert "AssertionError" in result.stdout or "assert" in result.stdout


def test_the_copy_without_a_bug_is_green(copy):
    """Red on a copy means the bug, not the copy."""
    result = run_on_a_copy(copy, "tests/theory/test_gpi.py")
    assert result.returncode == 0, result.stdout

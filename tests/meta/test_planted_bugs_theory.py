"""Planted bugs: each must turn the suite red.

A copy of the package gets one line broken, and the tests that guard it run on the copy. A test file that
stays green on its bug does not guard anything.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

BUGS = {
    "gamma dropped from the evaluation": (
        "sfr_theory/solve.py",
        "total *= mdp.gamma",
        "total *= 1",
        "tests/theory/test_solve.py",
    ),
    "gamma dropped from T_xi": (
        "sfr_theory/operators.py",
        "return features + mdp.gamma * expected_next(mdp, greedy_xi)",
        "return features + expected_next(mdp, greedy_xi)",
        "tests/theory/test_operators.py",
    ),
    "epsilon measured under R_i": (
        "sfr_theory/bounds.py",
        "return value_seminorm(self.error, self.target[..., None, :]).max(axis=-1)",
        "return value_seminorm(self.error, self.sources).max(axis=-1)",
        "tests/theory/test_bounds.py",
    ),
    "value norm for the absolute norm": (
        "sfr_theory/bounds.py",
        "left = absolute_norm(e.optimal_xi - e.gpi_xi, e.target)",
        "left = value_seminorm(e.optimal_xi - e.gpi_xi, e.target)",
        "tests/theory/test_bounds.py",
    ),
    "farthest source for the nearest": (
        "sfr_theory/bounds.py",
        "return np.abs(self.expected_target - self.expected_rewards).max(axis=-1).min(axis=-1)",
        "return np.abs(self.expected_target - self.expected_rewards).max(axis=-1).max(axis=-1)",
        "tests/theory/test_bounds.py",
    ),
    "a constant without its gamma": (
        "sfr_theory/bounds.py",
        "return _sharp(e, _q_loss(e), e.reward_distance, 2 * e.gamma)",
        "return _sharp(e, _q_loss(e), e.reward_distance, 2)",
        "tests/theory/test_bounds.py",
    ),
    "the range for half of it": (
        "sfr_theory/bounds.py",
        "return best / 2",
        "return best",
        "tests/theory/test_bounds.py",
    ),
    "policy iteration stops early": (
        "sfr_theory/solve.py",
        "if not improves.any():",
        "if not improves.all():",
        "tests/theory/test_solve.py",
    ),
    "the bootstrap is one step late": (
        "sfr_theory/solve.py",
        "on_policy = solve(matrix, along_policy(cumulant))",
        "on_policy = solve(matrix, along_policy(cumulant)) - along_policy(cumulant)",
        "tests/theory/test_solve.py",
    ),
    "GPI takes the worst policy": (
        "sfr_theory/gpi.py",
        "return q.max(axis=-3)",
        "return q.min(axis=-3)",
        "tests/theory/test_gpi.py",
    ),
    "adversarial errors that show": (
        "sfr_theory/random_mdp.py",
        "on_zeros = free * (reward == 0)",
        "on_zeros = free",
        "tests/theory/test_random_mdp.py",
    ),
}


def run_on_a_copy(folder, test_file):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        test_file,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__", "meta")
    for name in ("sfr_theory", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_turns_the_suite_red(bug, copy):
    name, right, wrong, test_file = BUGS[bug]
    source = (copy / name).read_text()
    assert source.count(right) == 1, f"{name} has changed; write this bug anew"
    (copy / name).write_text(source.replace(right, wrong))
    result = run_on_a_copy(copy, test_file)
    assert result.returncode == 1, result.stdout
    assert "AssertionError" in result.stdout or "assert" in result.stdout


def test_the_copy_without_a_bug_is_green(copy):
    """Red on a copy means the bug, not the copy."""
    result = run_on_a_copy(copy, "tests/theory/test_gpi.py")
    assert result.returncode == 0, result.stdout

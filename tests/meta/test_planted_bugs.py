"""Planted bugs: each must be caught by a test that the suite runs.

A test that stays green on its bug does not guard anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.fa.agent_checks import check_follows_listing
from tests.fa.test_agents import test_sfr_without_clipping_is_sf_on_linear_tasks as check_sfr_is_sf
from tests.meta.planting import Bug
from tests.theory import test_bounds, test_examples, test_gpi, test_random_mdp, test_solve

# --- Theory ---------------------------------------------------------------------------------------

SOLVE, BOUNDS = "sfr_theory/solve.py", "sfr_theory/bounds.py"
CYCLE, TERMS = (
    test_solve.test_xi_of_a_cycle_in_closed_form,
    test_bounds.test_every_term_of_every_statement_by_hand,
)
# bug -> what is planted, the test that catches it
IN_THEORY = {
    "gamma dropped from the evaluation": (
        Bug(SOLVE, "discounted_sum", "total *= mdp.gamma", "total *= 1"), CYCLE),
    "policy iteration stops early": (
        Bug(SOLVE, "optimal", "improves.any()", "improves.all()"),
        partial(test_solve.test_batches_agree_with_single_solutions_and_with_quantecon, "absorbing")),
    "the bootstrap is one step late": (
        Bug(SOLVE, "discounted_sum", "solve(matrix, along_policy(cumulant))",
            "solve(matrix, along_policy(cumulant)) - along_policy(cumulant)"), CYCLE),
    "gamma dropped from T_xi": (
        Bug("sfr_theory/operators.py", "bellman_xi", "mdp.gamma", "1"),
        test_examples.test_near_tie_jumps),
    "epsilon measured under R_i": (
        Bug(BOUNDS, "SolvedProblem.epsilon_under_target", "self.target[..., None, :]", "self.sources"),
        TERMS),
    "value norm for the absolute norm": (
        Bug(BOUNDS, "thm2_printed", "absolute_norm(e.optimal_xi - e.gpi_xi, e.target)",
            "value_seminorm(e.optimal_xi - e.gpi_xi, e.target)"), TERMS),
    "farthest source for the nearest": (
        Bug(BOUNDS, "SolvedProblem.reward_distance",
            "np.abs(self.expected_target - self.expected_rewards).max(axis=-1).min",
            "np.abs(self.expected_target - self.expected_rewards).max(axis=-1).max"), TERMS),
    "a constant without its gamma": (Bug(BOUNDS, "thm2_sharp", "2 * e.gamma", "2"), TERMS),
    "the range for half of it": (
        Bug(BOUNDS, "affine_distance", "best / 2", "best"),
        test_bounds.test_scale_and_shift_of_a_source_cost_nothing),
    "GPI takes the worst policy": (
        Bug("sfr_theory/gpi.py", "gpi_values", "q.max(axis=-3)", "q.min(axis=-3)"),
        test_gpi.test_the_best_of_two_policies),
    "adversarial errors that show": (
        Bug("sfr_theory/random_mdp.py", "adversarial", "free * (reward == 0)", "free"),
        test_random_mdp.test_adversarial_sources_and_errors),
}  # fmt: skip


@pytest.mark.parametrize(("bug", "test"), IN_THEORY.values(), ids=IN_THEORY)
def test_a_bug_turns_its_test_red(
    bug: Bug, test: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    test()
    bug.plant(monkeypatch)
    with pytest.raises(AssertionError):
        test()


# --- Agents ---------------------------------------------------------------------------------------


def in_agent(method: str, right: str, wrong: str) -> Bug:
    return Bug("sfr_fa/agents/gpi_agent.py", f"GpiAgent.{method}", right, wrong)


def in_new_policies(wrong: str) -> Bug:
    copied = "copy.deepcopy(self.modules[-1])"
    return Bug("sfr_fa/agents/policies.py", "PolicyLibrary.add_copy_of_last", copied, wrong)


CUMULANTS, READOUTS = "sfr_fa/agents/cumulants.py", "sfr_fa/agents/readouts.py"
CLIP_LOST = in_agent("_q", "self.clip(values)", "values")
# bug -> what is planted, the agent that shows it, and the tasks that it needs: bugs in what concerns source
# policies are invisible in the first task, where there are none.
IN_AGENTS = {
    "factor 2 lost": (
        in_agent("_descend", "self.loss(error.reshape(self.shape.groups, self.shape.size))",
                 "self.loss(error.reshape(self.shape.groups, self.shape.size)) / 2"), "Q", 1),
    "clip lost": (CLIP_LOST, "SFR", 1),
    "clip in targets": (
        in_agent("_all_values_at", "return values", "return self.clip(values)"), "SFR", 1),
    "source update lost": (in_agent("_learn", "source_policy != current", "False"), "SF", 2),
    "current state for next": (
        in_agent("_learn", "self._all_values(step.next_state)", "self._all_values(step.state)"), "SFR", 1),
    "gamma at terminal": (
        in_agent("_discount", "0.0 if step.terminal else self.gamma", "self.gamma"), "Q", 1),
    "current readout for policy c": (
        in_agent("_own_greedy_action", "self.readouts[policy]", "self.readouts[-1]"), "SFR", 2),
    "old policies left out of GPI": (
        in_agent("_gpi", "Contest(self.participants, self.readouts[-1].vector)",
                 "Contest(self.participants[-1:], self.readouts[-1].vector)"), "SFR", 2),
    "new policies start fresh": (
        in_new_policies("self._new_module(np.random.default_rng(0))"), "SF", 2),
    "copies share their weights": (in_new_policies("self.modules[-1]"), "SF", 2),
    "model read before it learns": (
        Bug(CUMULANTS, "OneStepModel.observe", "sgd_step(loss, self.model, self._rate)",
            "return (self.model(state[None])[0, action].softmax(-1).detach().numpy(), "
            "sgd_step(loss, self.model, self._rate))[0]"), "MB SFR", 1),
    "reward model read before it learns": (
        Bug(READOUTS, "LearnedReadout.learn", "self.read()", "None"), "SF-R", 1),
    "tent as misprinted": (
        Bug(CUMULANTS, "TentCode.encode", "1.0 - distance", "1.0 / width[:, None] - distance"), "CSFR", 1),
    "rewards with a bias": (
        Bug(READOUTS, "LinearRewardModel.forward", "features @ self.weight", "features @ self.weight + 0.1"),
        "CSFR-R", 1),
}  # fmt: skip


@pytest.mark.parametrize(("bug", "name", "tasks"), IN_AGENTS.values(), ids=IN_AGENTS)
def test_the_listing_check_catches(bug: Bug, name: str, tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"weights differ|action \d, not \d|Not equal"):
        check_follows_listing(name, tasks=tasks)
    if tasks > 1:  # with one task it changes nothing, and the last assertion fails: why there are several
        with pytest.raises(AssertionError, match="GPI never chose an earlier policy"):
            check_follows_listing(name, tasks=1)


def test_the_sf_identity_catches_a_lost_source_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one of the twins only: planted in both, the identity would hold."""
    unless_sfr = "source_policy != current and not self.cumulant.nonnegative"
    in_agent("_learn", "source_policy != current", unless_sfr).plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_sfr_is_sf()

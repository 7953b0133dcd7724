"""Planted bugs in the agents: each must be caught by a check that the suite runs.

A bug is planted by replacing one method or function; then the check that guards it must fail. The list says
which agent shows it and in which task at the latest: bugs in what concerns source policies are invisible in
the first task, where there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from sfr_fa.agents import GpiAgent, LinearRewardModel, gpi_agent
from sfr_fa.agents.cumulants import OneStepModel, TentCode
from sfr_fa.agents.policies import PolicyLibrary
from sfr_fa.agents.readouts import LearnedReadout
from tests.fa.agent_checks import check_follows_listing
from tests.fa.test_agents import test_clipping_is_what_separates_them as check_clipping_separates_sfr_from_sf
from tests.fa.test_agents import test_sfr_without_clipping_is_sf_on_linear_tasks as check_sfr_is_sf

Plant = Callable[[pytest.MonkeyPatch], None]


def factor_2_lost(patch: pytest.MonkeyPatch) -> None:
    descend = GpiAgent._descend

    def halved(self: GpiAgent, *arguments: object) -> float:
        original = self.loss
        self.loss = lambda error: original(error) / 2
        try:
            return descend(self, *arguments)
        finally:
            self.loss = original

    patch.setattr(GpiAgent, "_descend", halved)


def clip_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gpi_agent, "clip_at_zero", gpi_agent.no_clip)


def clip_in_targets(patch: pytest.MonkeyPatch) -> None:
    values = GpiAgent._all_values
    patch.setattr(GpiAgent, "_all_values", lambda self, state: self.clip(values(self, state)))


def source_update_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GpiAgent, "_source_policy", lambda self, state: len(self.policies) - 1)


def current_state_for_next(patch: pytest.MonkeyPatch) -> None:
    check = gpi_agent.check_transition

    def stays(*arguments: object) -> object:
        step = check(*arguments)
        return replace(step, next_state=step.state)

    patch.setattr(gpi_agent, "check_transition", stays)


def gamma_at_terminal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GpiAgent, "_discount", lambda self, step: self.gamma)


def current_readout_for_policy_c(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: GpiAgent, policy: int, values: torch.Tensor) -> int:
        return int(self._q(values, self.readouts[-1].vector).argmax())

    patch.setattr(GpiAgent, "_own_greedy_action", wrong)


def old_policies_left_out_of_gpi(patch: pytest.MonkeyPatch) -> None:
    def current_only(self: GpiAgent, values: torch.Tensor) -> tuple[int, int]:
        q = self._q(values[-1], self.readouts[-1].vector)
        return len(values) - 1, int(q.argmax())

    patch.setattr(GpiAgent, "_gpi", current_only)


def new_policies_start_fresh(patch: pytest.MonkeyPatch) -> None:
    def fresh(self: PolicyLibrary) -> None:
        self.add_fresh(np.random.default_rng(0))

    patch.setattr(PolicyLibrary, "add_copy_of_last", fresh)


def copies_share_their_weights(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PolicyLibrary, "add_copy_of_last", lambda self: self._append(self.modules[-1]))


def model_read_before_it_learns(patch: pytest.MonkeyPatch) -> None:
    observe = OneStepModel.observe

    def late(self: OneStepModel, state: torch.Tensor, action: int, *rest: object) -> object:
        with torch.no_grad():
            before = self.model(state[None])[0, action].softmax(-1).numpy().copy()
        observe(self, state, action, *rest)
        return before

    patch.setattr(OneStepModel, "observe", late)


def reward_model_read_before_it_learns(patch: pytest.MonkeyPatch) -> None:
    learn = LearnedReadout.learn

    def late(self: LearnedReadout, *arguments: object) -> None:
        before = self.vector
        learn(self, *arguments)
        self.vector = before

    patch.setattr(LearnedReadout, "learn", late)


def tent_as_misprinted(patch: pytest.MonkeyPatch) -> None:
    def encode(self: TentCode, features: np.ndarray) -> np.ndarray:
        width = (self.space.high - self.space.low) / (self.bins - 1)
        return np.maximum(0.0, (1.0 - np.abs(self.centres - features[..., None])) / width[:, None])

    patch.setattr(TentCode, "encode", encode)


def rewards_with_a_bias(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LinearRewardModel, "forward", lambda self, features: features @ self.weight + 0.1)


# bug -> (agent that shows it, tasks that it needs)
BUGS: dict[Plant, tuple[str, int]] = {
    factor_2_lost: ("Q", 1),
    clip_lost: ("SFR", 1),
    clip_in_targets: ("SFR", 1),
    source_update_lost: ("SF", 2),
    current_state_for_next: ("SFR", 1),
    gamma_at_terminal: ("Q", 1),
    current_readout_for_policy_c: ("SFR", 2),
    old_policies_left_out_of_gpi: ("SFR", 2),
    new_policies_start_fresh: ("SF", 2),
    copies_share_their_weights: ("SF", 2),
    model_read_before_it_learns: ("MB SFR", 1),
    reward_model_read_before_it_learns: ("SF-R", 1),
    tent_as_misprinted: ("CSFR", 1),
    rewards_with_a_bias: ("CSFR-R", 1),
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_listing_check_catches(bug: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    name, tasks = BUGS[bug]
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"weights differ|action \d, not \d|Not equal"):
        check_follows_listing(name, tasks=tasks)


@pytest.mark.parametrize(
    "bug", [bug for bug, (_, tasks) in BUGS.items() if tasks == 2], ids=lambda bug: bug.__name__
)
def test_bugs_in_transfer_are_invisible_in_the_first_task(
    bug: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why the checks run several tasks: with one, these bugs change nothing; the last assertion fails."""
    bug(monkeypatch)
    with pytest.raises(AssertionError, match="GPI never chose an earlier policy"):
        check_follows_listing(BUGS[bug][0], tasks=1)


def test_the_sf_identity_catches_a_lost_source_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one of the twins only: planted in both, the identity would hold."""
    source_policy = GpiAgent._source_policy

    def lost_for_sfr(self: GpiAgent, state: object) -> int:
        is_sfr = self.cumulant.nonnegative
        return len(self.policies) - 1 if is_sfr else source_policy(self, state)

    monkeypatch.setattr(GpiAgent, "_source_policy", lost_for_sfr)
    with pytest.raises(AssertionError):
        check_sfr_is_sf()


def test_the_clipping_check_catches_a_lost_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    clip_lost(monkeypatch)
    with pytest.raises(AssertionError):
        check_clipping_separates_sfr_from_sf()

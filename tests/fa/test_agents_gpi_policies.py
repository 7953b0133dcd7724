"""GPI over some policies: the right ones take part. `test_engines` sees what becomes of the others."""

import numpy as np
import pytest
import torch

from sfr_fa.agents.gpi_policies import Bound, Nearest, Random, Recent, all_policies, gpi_policies_by_name
from sfr_theory.errors import InputError
from tests.fa.agent_checks import small_agent, some_task, started

READOUTS = [torch.tensor(v) for v in ([0.0, 0.0], [1.0, 0.0], [0.9, 0.2], [5.0, 5.0], [1.0, 0.1])]


def test_which_take_part():
    assert all_policies(READOUTS).tolist() == [0, 1, 2, 3, 4]
    assert Nearest(2)(READOUTS).tolist() == [1, 2, 4]
    assert Recent(np.int64(2))(READOUTS).tolist() == [2, 3, 4]
    assert Random(2)(READOUTS).tolist() == Random(2)(READOUTS).tolist()
    assert len(Random(2)(READOUTS)) == 3


def test_the_bound_sees_through_scale_and_shift_and_nearness_does_not():
    target = [0.0, 1.0, 2.0, -1.0]
    near, scaled, shifted, opposite = (
        [0.0, 1.5, 2.0, -1.0], [0.0, 10.0, 20.0, -10.0], [5.0, 6.0, 7.0, 4.0], [0.0, -1.0, -2.0, 1.0],
    )  # fmt: skip
    readouts = [torch.tensor(v) for v in (opposite, near, scaled, shifted, target)]
    assert Bound(2)(readouts).tolist() == [2, 3, 4]
    assert Bound(3)(readouts).tolist() == [1, 2, 3, 4]
    assert Nearest(2)(readouts).tolist() == [0, 1, 4]


@pytest.mark.parametrize("rule", [Nearest(3), Bound(3), Recent(3), Random(3)])
def test_the_first_task_has_one_policy_and_few_means_at_most(rule):
    assert rule(READOUTS[:1]).tolist() == [0]
    assert rule(READOUTS[:3]).tolist() == [0, 1, 2]


def test_saved_with_the_agent(tmp_path):
    one, two = started("SFR", tasks=4, gpi_policies=Random(1)), small_agent("SFR", gpi_policies=Random(1))
    one.save(tmp_path / "agent")
    two.load(tmp_path / "agent")
    assert two.participants.tolist() == one.participants.tolist()
    # Another rule is asked when the next task starts.
    other = small_agent("SFR", gpi_policies=all_policies)
    other.load(tmp_path / "agent")
    assert other.participants.tolist() == one.participants.tolist()
    other.start_task(some_task("SFR", np.random.default_rng(0)))
    assert other.participants.tolist() == list(range(5))


def test_names():
    assert gpi_policies_by_name("all") is all_policies
    assert gpi_policies_by_name("nearest 5") == Nearest(5)
    assert gpi_policies_by_name("bound 5") == Bound(5) != Nearest(5)
    for text in ("", "nearest", "nearest x", "best 5", "recent 0", "nearest ²"):
        with pytest.raises(InputError):
            gpi_policies_by_name(text)

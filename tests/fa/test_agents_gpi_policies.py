"""GPI over some policies: the right ones take part, the others are neither chosen nor updated."""

import numpy as np
import pytest
import torch

from sfr_fa.agents import Transition, make_agent
from sfr_fa.agents.gpi_policies import Bound, Nearest, Random, Recent, all_policies, gpi_policies_by_name
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask
from sfr_theory.errors import InputError

READOUTS = [torch.tensor(v) for v in ([0.0, 0.0], [1.0, 0.0], [0.9, 0.2], [5.0, 5.0], [1.0, 0.1])]
SPACE = DiscreteFeatures([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def agent(gpi_policies):
    return make_agent(
        "SFR", 3, 2, SPACE, gamma=0.9, epsilon=0.2, learning_rate=0.1, seed=0, gpi_policies=gpi_policies,
        dtype=torch.float64,
    )  # fmt: skip


def learn(learner, tasks, steps=30):
    rng = np.random.default_rng(0)
    for weights in tasks:
        learner.start_task(LinearTask(weights))
        for _ in range(steps):
            state, next_state = np.eye(3)[rng.integers(3, size=2)]
            action = learner.act(state)
            features = SPACE.vectors[rng.integers(3)]
            learner.learn(Transition(state, action, float(features @ weights), features, next_state, False))


TASKS = ([1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.9, 0.1])


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


def test_others_are_neither_chosen_nor_updated():
    learner = agent(Recent(1))
    learn(learner, TASKS[:3])
    before = learner.policies.parameters["weight"].clone()
    learn(learner, TASKS[3:], steps=60)
    assert learner.participants.tolist() == [2, 3]
    assert learner.gpi_counts[:2].sum() == 0
    after = learner.policies.parameters["weight"]
    assert torch.equal(before[:2], after[:2])
    assert not torch.equal(after[2], after[3])


def test_as_many_as_there_are_is_the_paper():
    few, everyone = agent(Nearest(10)), agent(all_policies)
    for learner in (few, everyone):
        learn(learner, TASKS)
    assert torch.equal(few.policies.parameters["weight"], everyone.policies.parameters["weight"])


def test_saved_with_the_agent(tmp_path):
    one, two = agent(Random(1)), agent(Random(1))
    learn(one, TASKS)
    one.save(tmp_path / "agent")
    two.load(tmp_path / "agent")
    assert two.participants.tolist() == one.participants.tolist()
    # Another rule is asked when the next task starts.
    other = agent(all_policies)
    other.load(tmp_path / "agent")
    assert other.participants.tolist() == one.participants.tolist()
    learn(other, TASKS[:1])
    assert other.participants.tolist() == list(range(len(TASKS) + 1))


def test_names():
    assert gpi_policies_by_name("all") is all_policies
    assert gpi_policies_by_name("nearest 5") == Nearest(5)
    assert gpi_policies_by_name("bound 5") == Bound(5) != Nearest(5)
    for text in ("", "nearest", "nearest x", "best 5", "recent 0", "nearest ²"):
        with pytest.raises(InputError):
            gpi_policies_by_name(text)

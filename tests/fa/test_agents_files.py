"""Copies and files of agents: they learn as the original does, to the bit, or are refused."""

import copy
import functools
import json
import os
import pickle
import stat

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import torch
from torch import nn

from sfr_fa.agents import (
    AGENT_SPECS,
    FeatureSubnetworks,
    LearnedFeatures,
    MlpRewardModel,
    make_agent,
)
from sfr_fa.agents.checkpoint import describe
from tests.fa.agent_checks import (
    BOX,
    NUM_ACTIONS,
    STATE_DIM,
    continue_for,
    everything,
    small_agent,
    some_task,
    started,
)
from tests.refusals import refused

FILE = "agent.safetensors"
VARIANTS = {
    **{name: (name, {}) for name in AGENT_SPECS},
    "SFR-R with MLP": ("SFR-R", {"reward_model": MlpRewardModel}),
    "CSFR with networks and Adam": (
        "CSFR",
        {"approximator": FeatureSubnetworks, "optimiser": torch.optim.Adam, "dtype": torch.float32},
    ),
}


def goes_on(agent, name):
    """The rest of a task and another one: what is done, and all state in the end."""
    rng = np.random.default_rng(5)
    actions = continue_for(agent, name, rng, 8)
    agent.start_task(some_task(name, np.random.default_rng(6)))
    actions += continue_for(agent, name, rng, 8)
    return actions, everything(agent), agent.values(np.ones(STATE_DIM)).tolist()


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "file"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_copy_learns_as_the_original_and_apart_from_it(variant, way, tmp_path):
    name, settings = VARIANTS[variant]
    agent = started(name, tasks=3, seed=1, **settings)
    if way == "file":
        other = started(name, seed=2, **settings)  # its own streams and policies are others
        agent.save(tmp_path / FILE)
        other.load(tmp_path / FILE)
    else:
        other = copy.deepcopy(agent) if way == "deepcopy" else pickle.loads(pickle.dumps(agent))
    before = everything(agent)
    assert everything(other) == before
    result = goes_on(other, name)
    assert everything(agent) == before
    assert goes_on(agent, name) == result


def test_a_pickle_does_not_hold_the_stack_once_for_each_policy():
    def size(policies):
        return len(pickle.dumps(started("SFR", tasks=policies).policies))

    assert size(32) < 3 * size(16)


def test_the_stack_holds_every_policy_while_policies_are_added():
    """Also those whose modules were converted meanwhile, and across the points where it gets more room."""
    library = started("SFR", tasks=1, dtype=torch.float32).policies
    for k in range(1, 10):
        library.add_copy_of_last()
        library.modules[k].weight.data.fill_(k)
        if k in (3, 7):
            library.modules[k // 2].double().float()
        stack = library.parameters["weight"]
        assert stack[1:, 0, 0, 0].tolist() == list(range(1, k + 1))
        assert [module.weight.data_ptr() for module in library.modules] == [row.data_ptr() for row in stack]


def test_the_matrix_of_copied_features_stays_read_only():
    features = copy.deepcopy(LearnedFeatures(np.zeros((2 * STATE_DIM, 2))))
    assert not features.matrix.flags.writeable


class RandomProjection(nn.Module):
    """Linear in random features of the state, which are a buffer."""

    def __init__(self, shape, rng):
        super().__init__()
        self.shape = shape
        self.register_buffer("projection", torch.from_numpy(rng.normal(size=(shape.state_dim, 7))))
        self.linear = nn.Linear(7, shape.num_actions * shape.dimensions)

    def forward(self, states):
        values = self.linear((states @ self.projection).tanh())
        return values.unflatten(-1, (self.shape.num_actions, self.shape.dimensions))


def test_buffers_are_saved(tmp_path):
    agent = started("SFR", tasks=2, approximator=RandomProjection)
    agent.save(tmp_path / FILE)
    other = small_agent("SFR", approximator=RandomProjection)
    other.load(tmp_path / FILE)
    np.testing.assert_array_equal(other.values(np.ones(STATE_DIM)), agent.values(np.ones(STATE_DIM)))


def test_a_saved_agent_may_be_read_by_whom_the_umask_allows(tmp_path):
    before = os.umask(0o027)
    try:
        started("Q").save(tmp_path / FILE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == [FILE]


def test_numbers_of_numpy_and_plain_ones_describe_the_same_agent():
    plain = small_agent("CSFR", gamma=0.5, epsilon=0.25, bins=5)
    numpy = make_agent(
        "CSFR", np.int64(STATE_DIM), np.int32(NUM_ACTIONS), BOX, gamma=np.float32(0.5),
        epsilon=np.float64(0.25), learning_rate=np.float64(0.03), seed=0, bins=np.int64(5),
        dtype=torch.float64,
    )  # fmt: skip
    assert numpy.description == plain.description


def test_descriptions_tell_apart_what_learns_differently():
    def scaled(factor):
        return lambda x: factor * x

    assert describe(np.float64(0.5)) == 0.5
    assert describe([1, (2, 3)]) == [1, [2, 3]]
    assert describe(functools.partial(max, 1)) != describe(functools.partial(max, 2))
    assert describe(functools.partial(max, 1)) == describe(functools.partial(max, 1))
    assert describe(scaled(1.0)) == describe(scaled(1.0))
    assert describe(scaled(1.0)) != describe(scaled(2.0))
    assert describe(lambda x: x) != describe(lambda x: -x)


class OwnPart:
    """A part of a user's: what it is made of, a cache, and something that refers back to it."""

    def __init__(self, centres):
        self.centres, self.rule, self._cache, self.other = np.array(centres), np.tanh, {}, None


def test_objects_are_described_by_what_they_hold():
    one, same, another = OwnPart([1, 2]), OwnPart([1, 2]), OwnPart([1, 3])
    same._cache["a"] = 1
    assert describe(one) == describe(same) != describe(another)
    one.other, same.other = same, one  # a circle
    assert describe(one) == describe(same)
    json.dumps(describe(one))


# --- What is refused --------------------------------------------------------------------------------


def changed_numbers(path):
    """A valid archive whose numbers are not those that were saved."""
    with safetensors.safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) + 1 for name in file.keys()}  # noqa: SIM118
        return safetensors.numpy.save(tensors, file.metadata())


DAMAGE = {
    "the end": lambda path: path.read_bytes()[:-100],
    "numbers": changed_numbers,
    "another archive": lambda path: safetensors.numpy.save({"weights": np.ones(3)}),
    "a pickle": lambda path: pickle.dumps({"a": 1}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_is_refused(damage, tmp_path):
    agent, path = started("SFR"), tmp_path / FILE
    agent.save(path)
    path.write_bytes(DAMAGE[damage](path))
    with refused(FILE, unchanged=lambda: everything(agent)):
        agent.load(path)


def test_missing_and_unwritable_paths(tmp_path):
    agent = small_agent("SFR")
    with refused("cannot read", "nowhere"):
        agent.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with refused("cannot write", FILE):
        agent.save(tmp_path / "file" / FILE)

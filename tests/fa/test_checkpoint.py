"""Trees of states in files: whatever is packed comes back as it was, and what is alike is written once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from sfr_fa.agents import checkpoint
from sfr_fa.agents.checkpoint import pack, read_checkpoint, unpack, write_checkpoint
from sfr_theory.errors import InputError

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
    st.sampled_from(["", "a"]),
)  # fmt: skip
SHAPES = st.sampled_from([(), (0,), (2,), (1, 3)])
DTYPES = st.sampled_from([np.float32, np.float64, np.int64])


@st.composite
def some_arrays(draw: st.DrawFn) -> Any:
    array = np.full(draw(SHAPES), draw(st.sampled_from([0, 1, 7])), dtype=draw(DTYPES))
    return torch.from_numpy(array) if draw(st.booleans()) else array


TREES = st.recursive(
    PLAIN | some_arrays(),
    lambda trees: st.one_of(
        st.lists(trees, max_size=4),
        st.lists(trees, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["a", "b", 0, 1]), trees, max_size=3),
        # What agents hold: members that are built alike.
        trees.flatmap(lambda tree: st.integers(0, 4).map(lambda count: [tree] * count)),
        st.fixed_dictionaries({"x": trees, "y": PLAIN}).flatmap(lambda row: st.just([row, {**row, "y": 3}])),
    ),
    max_leaves=12,
)


def exactly(tree: Any) -> Any:
    """A form in which 1, 1.0 and True differ, lists and tuples, arrays and tensors, 0.0 and -0.0."""
    if isinstance(tree, (torch.Tensor, np.ndarray)):
        plain = np.asarray(tree)
        return type(tree).__name__, str(plain.dtype), plain.shape, plain.tobytes()
    if isinstance(tree, dict):
        return "dict", [(repr(key), exactly(value)) for key, value in tree.items()]
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [exactly(entry) for entry in tree]
    return repr(tree)


@given(TREES)
@example([0.0, -0.0])
@example([1, True, 1.0])
@example([[], []])
@example([{}, {}])
@example([torch.zeros(2), torch.ones(3), torch.zeros(())])
def test_a_tree_comes_back_as_it_was(tree: Any) -> None:
    arrays: list[Any] = []
    text = json.dumps(pack(tree, arrays))
    assert exactly(unpack(json.loads(text), arrays)) == exactly(tree)


def test_what_is_alike_is_written_once() -> None:
    def policies(count: int) -> Any:
        optimisers = [torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1) for _ in range(count)]
        return [{"optimiser": o.state_dict(), "vector": torch.ones(5)} for o in optimisers]

    arrays: list[Any] = []
    many = json.dumps(pack(policies(300), arrays))
    assert len(arrays) == 1
    assert arrays[0].shape == (1500,)
    assert len(many) < len(json.dumps(pack(policies(2), []))) + 50


def test_packing_copies() -> None:
    arrays: list[Any] = []
    live = [np.zeros(2), np.zeros(2)]
    pack({"alone": live[0], "list": live}, arrays)
    live[0] += 1
    assert not any(array.any() for array in arrays)


def test_files_of_version_1_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"policies": [{"weight": torch.ones(2), "rate": 0.1}] * 3, "counts": [[1], [2, 3]]}
    with monkeypatch.context() as before:
        before.setattr(checkpoint, "VERSION", 1)
        before.setattr(checkpoint, "_pack_list", lambda values, arrays: [pack(v, arrays) for v in values])
        write_checkpoint(tmp_path / "old.npz", {}, state)
    assert exactly(read_checkpoint(tmp_path / "old.npz", {})) == exactly(state)


def test_files_of_a_later_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr(checkpoint, "VERSION", 9)
        write_checkpoint(tmp_path / "new.npz", {}, {})
    with pytest.raises(InputError, match=r"new\.npz has version 9; this program reads versions up to 2"):
        read_checkpoint(tmp_path / "new.npz", {})

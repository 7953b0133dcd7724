"""Trees of states in files: whatever is written comes back as it was, and what is damaged is refused."""

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given
from hypothesis import strategies as st

from sfr_fa.agents import checkpoint
from sfr_fa.agents.checkpoint import read_checkpoint, write_checkpoint
from sfr_theory.errors import InputError
from tests.refusals import refused

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
    st.sampled_from(["", "a"]),
)  # fmt: skip
SHAPES = st.sampled_from([(), (0,), (2,), (1, 3)])
DTYPES = st.sampled_from([np.float32, np.float64, np.int64])


@st.composite
def some_arrays(draw):
    array = np.full(draw(SHAPES), draw(st.sampled_from([0, 1, 7])), dtype=draw(DTYPES))
    array = array.T if draw(st.booleans()) else array
    return torch.from_numpy(array) if draw(st.booleans()) else array


TREES = st.recursive(
    PLAIN | some_arrays(),
    lambda trees: st.one_of(
        st.lists(trees, max_size=4),
        st.lists(trees, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["a", "b", 0, 1]), trees, max_size=3),
    ),
    max_leaves=12,
)


def exactly(tree):
    """A form in which 1, 1.0 and True differ, lists and tuples, arrays and tensors, 0.0 and -0.0."""
    if isinstance(tree, (torch.Tensor, np.ndarray)):
        plain = np.asarray(tree)
        return type(tree).__name__, str(plain.dtype), plain.shape, plain.tobytes()
    if isinstance(tree, dict):
        return "dict", [(repr(key), exactly(value)) for key, value in tree.items()]
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [exactly(entry) for entry in tree]
    return repr(tree)


@given(tree=TREES)
def test_a_tree_comes_back_as_it_was(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("tree") / "state"
    write_checkpoint(path, {"rate": 0.1}, {"tree": tree})
    assert exactly(read_checkpoint(path, {"rate": 0.1})["tree"]) == exactly(tree)


def test_any_reader_of_safetensors_finds_the_tensors_by_their_places(tmp_path):
    write_checkpoint(tmp_path / "state", {}, {"policies": [{"weight": torch.ones(2)}] * 2})
    tensors = safetensors.numpy.load_file(tmp_path / "state")
    assert set(tensors) == {"/policies/0/weight", "/policies/1/weight"}


def test_every_flipped_byte_is_noticed(tmp_path):
    """No damaged byte is loaded as something else, wherever it is."""
    path = tmp_path / "state"
    write_checkpoint(path, {"rate": 0.1}, {"weight": torch.arange(9.0), "name": "a", "counts": [1, 2]})
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :])
        with pytest.raises(InputError):
            read_checkpoint(path, {"rate": 0.1})


def test_what_belongs_in_no_file_is_refused(tmp_path):
    for value in (object(), np.array([object()])):
        with refused("no place in a file"):
            write_checkpoint(tmp_path / "state", {}, {"a": value})
    assert not list(tmp_path.iterdir())


def test_files_of_another_version_are_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(checkpoint, "VERSION", "9")
        write_checkpoint(tmp_path / "new", {}, {})
    with refused("new has version 9", f"version {checkpoint.VERSION}"):
        read_checkpoint(tmp_path / "new", {})

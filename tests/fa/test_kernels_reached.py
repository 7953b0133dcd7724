"""Compiled code is found again only for the constants that it was compiled for."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from sfr_fa.kernels import loop_for
from sfr_fa.kernels.reached import digest

WORLD = """
from typing import NamedTuple
import numba
import numpy as np
import places
from places import GOAL, bonus

BOARD = np.array([1, 2, 3])
LIMIT = {limit}

class Walk(NamedTuple):
    position: np.ndarray
    def reset(self, rng):
        self.position[0] = rng.integers(0, LIMIT)
    def step(self, action, rng):
        self.position[0] += bonus(action)
        return self.position[0] == GOAL or self.position[0] == BOARD[places.CORNER]
    def encode(self, state):
        state[self.position[0]] = 1
    def feature(self):
        return 0
"""
PLACES = """
import numba
GOAL = {goal}
CORNER = {corner}
STEP = {step}
UNUSED = {unused}

@numba.njit
def bonus(action):
    return action * STEP + {shift}
"""
CONSTANTS = {"limit": 4, "goal": 3, "corner": 1, "step": "(1, 2)[0]", "unused": 0, "shift": 0}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function: constants -> a world that is compiled with them."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(**changes):
        for name, text in (("places", PLACES), ("walking", WORLD)):
            (tmp_path / f"{name}.py").write_text(text.format(**CONSTANTS | changes))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("walking").Walk

    yield make
    for name in ("places", "walking"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["limit", "goal", "corner", "shift"])
def test_a_constant_counts_wherever_it_stands(world, name):
    assert digest(world(**{name: 2})) != digest(world())


def test_so_does_what_a_function_names_that_is_called(world):
    assert digest(world(step=2)) != digest(world())


def test_what_is_not_named_does_not_count(world):
    assert digest(world(unused=7)) == digest(world())


def test_arrays_count_by_their_entries(world):
    before = digest(world())
    changed = world()
    sys.modules["walking"].BOARD = np.array([1, 2, 4])
    assert digest(changed) != before


def test_what_cannot_be_compared_is_not_stored(world):
    opaque = world()
    sys.modules["walking"].BOARD = object()
    assert digest(opaque) is None
    assert not hasattr(loop_for(opaque), "folder")


def test_other_constants_are_compiled_to_another_folder(world, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    folders = {loop_for(world(**changes)).folder for changes in ({}, {"goal": 5}, {})}
    assert len(folders) == 2

"""Compiled code is found again only for the constants that it was compiled for."""

import importlib
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from sfr_fa import kernels
from sfr_fa.engines import compiled, make_engine
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.kernels import has_changed, loop_for
from sfr_fa.kernels.reached import digest
from tests.commands import ROOT, printed_by
from tests.refusals import refused

WORLD = """
from typing import NamedTuple
import numba
import numpy as np
import places
from places import GOAL, Base, Tile, bonus

BOARD = np.array([1, 2, 3])
LIMIT = {limit}

class Walk(Base):
    def reset(self, rng):
        self.position[0] = rng.integers(0, LIMIT)
    def step(self, action, rng):
        self.position[0] += bonus(action)
        return self.position[0] in (GOAL, BOARD[places.CORNER], Tile.END)
    def encode(self, state):
        state[self.position[0]] = 1
"""
PLACES = """
import enum, math, numba, numpy as np
from typing import NamedTuple

GOAL = {goal}
CORNER = {corner}
STEP = {step}
UNUSED = {unused}
LOW, HIGH = [1, 2], [3, 4]
EDGE = {edge}

class Tile(enum.IntEnum):
    END = {end}

@numba.njit({options})
def bonus(action, *, more={more}):
    return math.{rounding}(action * STEP + {shift} + {order} + EDGE[0] + LOW[0] + more)

class Base(NamedTuple):
    position: np.ndarray
    def feature(self):
        return {shown}
"""
CONSTANTS = {
    "limit": 4, "goal": 3, "corner": 1, "step": "(1, 2)[0]", "unused": 0, "shift": 0, "edge": "LOW", "end": 5,
    "options": "", "more": 0, "rounding": "floor", "order": "STEP - GOAL", "shown": "CORNER",
}  # fmt: skip


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


@pytest.mark.parametrize(
    "change",
    [
        {"limit": 2}, {"goal": 2}, {"corner": 2}, {"shift": 2}, {"step": 2}, {"edge": "HIGH"}, {"end": 6},
        {"options": "fastmath=True"}, {"more": 1}, {"rounding": "ceil"}, {"order": "GOAL - STEP"},
        {"shown": "STEP"},
    ],
)  # fmt: skip
def test_all_that_is_named_counts_wherever_it_stands(world, change):
    """Constants, names and aliases, also of functions that are called and in other modules; enumerations,
    options, defaults of keywords, library functions, inherited methods."""
    assert digest(world(**change)) != digest(world())


def test_a_constant_that_changes_after_compilation_is_noticed(world, monkeypatch):
    walk = world()
    assert not has_changed(walk)
    loop_for(walk)
    assert not has_changed(walk)
    sys.modules["walking"].GOAL = 5
    assert has_changed(walk)
    monkeypatch.setattr(compiled, "has_changed", lambda world: True)
    with refused("ObjectCollectionWorld", "start Python again"):
        make_engine("compiled", ObjectCollection(), "SFR")


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


def test_another_process_finds_the_same(world, tmp_path):
    mine = digest(world())
    code = "from walking import Walk; from sfr_fa.kernels.reached import digest; print(digest(Walk))"
    assert printed_by("-c", code, env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}).strip() == mine


def test_other_constants_and_kernels_are_compiled_to_another_folder(world, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    copy = shutil.copytree(kernels._HERE, tmp_path / "kernels")
    folders = [loop_for(world(**changes)).folder for changes in ({}, {"goal": 5}, {})]
    monkeypatch.setattr(kernels, "_HERE", copy)
    folders.append(loop_for(world()).folder)
    with (copy / "linear.py").open("a") as file:
        file.write("\n")
    folders.append(loop_for(world()).folder)
    assert folders[0] == folders[2] == folders[3]
    assert len(set(folders)) == 3

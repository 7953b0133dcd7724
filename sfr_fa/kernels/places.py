"""Places: all states of a small cell with one memory, and what has been found out there in this task.

A place is where the agent has been before. Its states lie in a box of a few coordinates, which is not known
beforehand: it is made of those that were seen in the cell and somewhat larger, and whether a state is in it
is tested at every step. What is outside makes it larger, and what was known of its places is void.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import Integers, Reals, part

MOST_MEMORIES = 64
"""With more of them all is forgotten, and begins anew."""
VISITS_NEEDED = 2
"""A place is worth bounds of its own at this visit."""
WIDER = 0.25
"""A box is made larger by this part of its size, on the side where a state was outside."""
LOW, HIGH = 0, 1
"""Sides of a box."""
VISITS, VERSION, SEEN = 0, 1, 2
"""Of a place: how often it was visited, which version of its box has bounds, and which updates they know."""


class Places(NamedTuple):
    """Of a world of Q cells, with bounds for N groups of policies. Place e Q + q is memory e in cell q."""

    boxes: Reals
    """(2, Q, n): the least and the largest of n coordinates..."""
    versions: Integers
    """(Q,): ... and how often each box has been made, 0 for never."""
    memories: Reals
    """(MOST_MEMORIES, M): those that were seen in this task..."""
    counts: Integers
    """(2,): ... how many they are, and which is the present one, or -1."""
    records: Integers
    """(MOST_MEMORIES Q, 3): of each place, its visits, version and updates..."""
    tops: Reals
    """(MOST_MEMORIES Q, N): ... and its bounds. Pages of places that are never visited take no memory."""


def new_places(cells: int, coordinates: int, memory: int, groups: int, dtype: np.dtype) -> Places:
    """None are known."""
    return Places(
        boxes=np.zeros((2, cells, coordinates), dtype),
        versions=np.zeros(cells, np.int64),
        memories=np.zeros((MOST_MEMORIES, memory), dtype),
        counts=np.zeros(2, np.int64),
        records=np.zeros((MOST_MEMORIES * cells, 3), np.int64),
        tops=np.zeros((MOST_MEMORIES * cells, groups), dtype),
    )


def with_groups(places: Places, groups: int) -> Places:
    """The same boxes for another number of groups; bounds are forgotten when a task begins."""
    return places._replace(tops=np.zeros((len(places.tops), groups), places.tops.dtype))


@part()
def forget_places(places: Places) -> None:
    """A new task; boxes are as they were."""
    for p in range(places.counts[0] * places.versions.shape[0]):
        places.records[p, VISITS] = 0
        places.records[p, VERSION] = 0
    places.counts[0] = 0
    places.counts[1] = -1


@part(inlined=True)
def note_state(places: Places, cell: int, here: Reals) -> None:
    """The box of a cell, with this state in it."""
    boxes, outside = places.boxes, False
    if places.versions[cell] == 0:
        for j in range(here.shape[0]):
            boxes[LOW, cell, j] = here[j]
            boxes[HIGH, cell, j] = here[j]
        places.versions[cell] = 1
        return
    for j in range(np.uintp(here.shape[0])):
        outside |= not (boxes[LOW, cell, j] <= here[j] <= boxes[HIGH, cell, j])
    if outside:
        places.versions[cell] += 1
        for j in range(here.shape[0]):
            low, high = boxes[LOW, cell, j], boxes[HIGH, cell, j]
            if here[j] < low:
                boxes[LOW, cell, j] = here[j] - WIDER * (high - here[j])
            if here[j] > high:
                boxes[HIGH, cell, j] = here[j] + WIDER * (here[j] - low)


@part()
def note_memory(places: Places, memory: Reals) -> None:
    """Which of those that were seen the present memory is."""
    memories, count = places.memories, places.counts[0]
    for e in range(count):
        same = True
        for j in range(memory.shape[0]):
            same = same and memories[e, j] == memory[j]
        if same:
            places.counts[1] = e
            return
    if count == memories.shape[0]:
        forget_places(places)
        count = 0
    for j in range(memory.shape[0]):
        memories[count, j] = memory[j]
    places.counts[0] = count + 1
    places.counts[1] = count


@part(inlined=True)
def place_at(places: Places, cell: int, memory: Reals, changes: bool, here: Reals) -> int:
    """The place of a state, if it has been visited often enough, or -1; changes: whether the memory does."""
    note_state(places, cell, here)
    if changes or places.counts[1] < 0:
        note_memory(places, memory)
    p = places.counts[1] * places.versions.shape[0] + cell
    places.records[p, VISITS] += 1
    return p if places.records[p, VISITS] >= VISITS_NEEDED else -1

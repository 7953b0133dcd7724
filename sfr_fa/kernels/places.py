"""Places: all states of a small cell with one memory, and what has been found out there in this task.

A place is where the agent has been several times. Its states lie in a box of a few coordinates, which is not
known beforehand: it is made of those that were seen in the cell and somewhat larger, and whether a state is
in it is tested at every step. What is outside makes it larger, and what was known of its places is void.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import Integers, Reals, part

MOST_MEMORIES = 64
"""With more of them all is forgotten, and begins anew..."""
MOST_PLACES = 4096
"""... as with more places."""
VISITS = 2
"""A place is worth bounds of its own at this visit."""
WIDER = 0.25
"""A box is made larger by this part of its size, on the side where a state was outside."""


class Places(NamedTuple):
    """Of a world of Q cells, with bounds for N groups of policies."""

    are_kept: Integers
    """(1,): whether there are any in this task."""
    low: Reals
    """(Q, n): the boxes, of n coordinates..."""
    high: Reals
    """(Q, n)..."""
    versions: Integers
    """(Q,): ... and how often each has been made, 0 for never."""
    memories: Reals
    """(MOST_MEMORIES, M): those that were seen in this task..."""
    num_memories: Integers
    """(1,): ... how many they are..."""
    present: Integers
    """(1,): ... and the present one, or -1."""
    numbers: Integers
    """(MOST_MEMORIES Q,): the place of each memory and cell, if that place says the same..."""
    keys: Integers
    """(MOST_PLACES,): ... by this..."""
    num_places: Integers
    """(1,): ... and how many places there are."""
    visits: Integers
    """(MOST_PLACES,)."""
    version: Integers
    """(MOST_PLACES,): of the box for which the bounds of a place were made, 0 if there are none..."""
    seen: Integers
    """(MOST_PLACES,): ... the updates that they know..."""
    tops: Reals
    """(MOST_PLACES, N): ... and the bounds."""


def new_places(cells: int, coordinates: int, memory: int, groups: int, dtype: np.dtype) -> Places:
    """None are known."""
    return Places(
        are_kept=np.zeros(1, np.int64),
        low=np.zeros((cells, coordinates), dtype),
        high=np.zeros((cells, coordinates), dtype),
        versions=np.zeros(cells, np.int64),
        memories=np.zeros((MOST_MEMORIES, memory), dtype),
        num_memories=np.zeros(1, np.int64),
        present=np.zeros(1, np.int64),
        numbers=np.zeros(MOST_MEMORIES * cells, np.int64),
        keys=np.zeros(MOST_PLACES, np.int64),
        num_places=np.zeros(1, np.int64),
        visits=np.zeros(MOST_PLACES, np.int64),
        version=np.zeros(MOST_PLACES, np.int64),
        seen=np.zeros(MOST_PLACES, np.int64),
        tops=np.zeros((MOST_PLACES if cells else 0, groups), dtype),
    )


@part()
def forget_places(places: Places) -> None:
    """A new task; boxes are as they were."""
    places.are_kept[0] = 1
    places.num_memories[0] = 0
    places.num_places[0] = 0
    places.present[0] = -1


@part(inlined=True)
def note_state(places: Places, cell: int, here: Reals) -> None:
    """The box of a cell, with this state in it."""
    low, high, outside = places.low, places.high, False
    if places.versions[cell] == 0:
        for j in range(here.shape[0]):
            low[cell, j] = here[j]
            high[cell, j] = here[j]
        places.versions[cell] = 1
        return
    for j in range(np.uintp(here.shape[0])):
        outside |= not (low[cell, j] <= here[j] <= high[cell, j])
    if outside:
        places.versions[cell] += 1
        for j in range(here.shape[0]):
            if here[j] < low[cell, j]:
                low[cell, j] = here[j] - WIDER * (high[cell, j] - here[j])
            if here[j] > high[cell, j]:
                high[cell, j] = here[j] + WIDER * (here[j] - low[cell, j])


@part()
def note_memory(places: Places, memory: Reals) -> None:
    """Which of those that were seen the present memory is."""
    memories, count = places.memories, places.num_memories[0]
    for e in range(count):
        same = True
        for j in range(memory.shape[0]):
            same = same and memories[e, j] == memory[j]
        if same:
            places.present[0] = e
            return
    if count == memories.shape[0]:
        count = 0
        places.num_places[0] = 0
    for j in range(memory.shape[0]):
        memories[count, j] = memory[j]
    places.num_memories[0] = count + 1
    places.present[0] = count


@part(inlined=True)
def place_at(places: Places, cell: int, memory: Reals, changes: bool, here: Reals) -> int:
    """The place of a state, if it has been visited often enough, or -1; changes: whether the memory does."""
    note_state(places, cell, here)
    if changes or places.present[0] < 0:
        note_memory(places, memory)
    keys, count = places.keys, places.num_places
    key = places.present[0] * places.versions.shape[0] + cell
    p = places.numbers[key]
    if p >= count[0] or keys[p] != key:
        if count[0] == keys.shape[0]:
            count[0] = 0
        p = count[0]
        count[0] += 1
        places.numbers[key], keys[p] = p, key
        places.visits[p] = 0
        places.version[p] = 0
    places.visits[p] += 1
    return p if places.visits[p] >= VISITS else -1

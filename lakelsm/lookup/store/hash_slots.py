"""The slots of a hash store: a table with open addressing for the keys of one length.

A key's home is its hash, as a share of all hashes, of the table's homes: so keys in the order of their hashes are in the
order of their homes, and a table is written in one pass. A key lies in its home or the next free slot after it. A slot
has the words of the key and one that says where the value is; 0 there is a free slot. Behind the last key is a free one,
so that no search leaves the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from lakelsm.format.row.bucket_hash import Hashes
from lakelsm.lookup.store.key_runs import Entries

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: Bits of a slot's last word: the value's place plus one; above them how far the slot is from the key's home.
_PLACE_BITS = 48
_PLACE = np.uint64((1 << _PLACE_BITS) - 1)
_FARTHEST = (1 << 16) - 1


def home_count(keys: int, load_factor: float) -> int:
    """Homes of a table for so many keys, at least one."""
    return max(1, round(keys / load_factor))


def homes_of(hashes: Hashes, homes: int) -> Longs:
    """The home of each hash, as an unsigned number."""
    home: Longs = (hashes.view(np.uint32).astype(np.int64) * homes) >> 32
    return home


def filled_slots(parts: Iterable[Entries], homes: int) -> Iterator[tuple[Hashes, Words]]:
    """The slots of a table, some at a time, from entries in the order of their hashes; with the hashes of those there."""
    written = 0
    for entries in parts:
        if not len(entries):
            continue
        hashes = entries[:, 0].astype(np.uint32).view(np.int32)
        home = homes_of(hashes, homes)
        before = np.arange(len(home), dtype=np.int64)
        steps = home - before
        steps[0] = max(steps[0], written)
        slots = np.maximum.accumulate(steps) + before
        part = np.zeros((int(slots[-1]) + 1 - written, entries.shape[1] - 1), np.uint64)
        rows = slots - written
        part[rows] = entries[:, 1:]
        part[rows, -1] += np.uint64(1) + (np.minimum(slots - home, _FARTHEST).astype(np.uint64) << np.uint64(_PLACE_BITS))
        written = int(slots[-1]) + 1
        yield hashes, part
        width = part.shape[1]
    yield np.empty(0, np.int32), np.zeros((max(homes - written, 0) + 1, width), np.uint64)


def find_places(slots: Words, keys: Words, home: Longs, check: Callable[[Longs], None]) -> Longs:
    """Where the value of each key is, -1 for a key that the table lacks.

    ``slots`` are those of the table, a row each, ``keys`` the words of a key in each row. Before slots are read,
    ``check`` is called with their numbers.
    """
    places = np.full(len(keys), -1, np.int64)
    asked = np.arange(len(keys), dtype=np.int64)
    distance = 0
    while len(asked):
        at = home[asked] + distance
        check(at)
        read = slots.take(at, axis=0)
        last = read[:, -1]
        same = last != 0
        own = (last >> np.uint64(_PLACE_BITS)).astype(np.int64)
        # A key whose home is before the slot's own key's would lie before it.
        going = same & ((own >= distance) | (own == _FARTHEST))
        for word in range(keys.shape[1]):
            same &= read[:, word] == (keys[:, word] if distance == 0 else keys[asked, word])
        places[asked[same]] = (last[same] & _PLACE).astype(np.int64) - 1
        asked = asked[going & ~same]
        distance += 1
    return places

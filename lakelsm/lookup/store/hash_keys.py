"""The keys of a hash store: for each key length, a table of slots with open addressing.

The home of a key is the slot whose number is the hash, as a fraction of the range of hashes, of the number of homes. So
keys in hash order (`KeyRuns`) are in the order of their homes, and a table is written in one pass. A key is in its home
or in the next free slot after it. A slot has the words of the key, and a word with the offset of the value, which is 0
in a free slot. A free slot follows the last key, so that no search leaves the table.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType

import numpy as np
import numpy.typing as npt

from lakelsm.format.row.bucket_hash import Hashes
from lakelsm.storage.refusals import refused_write

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: Rows of 64-bit words: the hash, the key, and the offset of the value.
Entries = npt.NDArray[np.uint64]

#: Bits of the value's offset plus one in a slot's last word. The bits above count the slots from the key's home.
_OFFSET_BITS = 48
_OFFSET_MASK = np.uint64((1 << _OFFSET_BITS) - 1)
_FARTHEST = (1 << 16) - 1
#: Maximum bytes of keys in memory before they are written as a run, and bytes of runs that are merged at a time.
_HELD_BYTES = 32 << 20
_MERGED_BYTES = 16 << 20
#: One more than the greatest hash of an entry.
_HASHES = 1 << 32


class KeyRuns:
    """The entries of the store at ``path``, by key length. Its temporary files are in the same directory, without names.

    Their space is freed at the end of the context.
    """

    def __init__(self, path: Path, held_bytes: int = _HELD_BYTES) -> None:
        self._path = path
        self._files = ExitStack()
        self._max_held_bytes = held_bytes
        self._held: dict[int, list[Entries]] = {}
        self._held_bytes = 0
        self._runs: dict[int, list[Entries]] = {}

    def __enter__(self) -> KeyRuns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # Content that a full disk refused is lost with the file.
            self._files.close()

    def add(self, entries: Entries) -> None:
        """Add entries of keys of one length. Raises StorageError if a temporary file cannot be written."""
        self._held.setdefault(entries.shape[1] - 2, []).append(entries)
        self._held_bytes += entries.nbytes
        if self._held_bytes > self._max_held_bytes:
            try:
                self._spill()
            except OSError as error:
                raise refused_write(str(self._path), error, lost="The lookup store is not built") from error

    def lengths(self) -> list[int]:
        """Return the lengths of keys, in words."""
        return sorted({*self._held, *self._runs})

    def count(self, length: int) -> int:
        """Return the number of keys of a length."""
        return sum(map(len, (*self._held.get(length, ()), *self._runs.get(length, ()))))

    def ordered(self, length: int) -> Iterator[Entries]:
        """Yield the entries of keys of a length, in the order of their hashes, a part at a time."""
        runs = list(self._runs.get(length, ()))
        if length in self._held:
            self._held[length] = [_sorted(self._held[length])]
            runs += self._held[length]
        parts = -(-sum(run.nbytes for run in runs) // _MERGED_BYTES)
        bounds = np.linspace(0, _HASHES, parts + 1).astype(np.uint64)
        cuts = [np.searchsorted(run[:, 0], bounds) for run in runs]
        for part in range(parts):
            pieces = [run[cut[part] : cut[part + 1]] for run, cut in zip(runs, cuts)]
            yield _sorted(pieces) if len(pieces) > 1 else pieces[0]

    def _spill(self) -> None:
        file = TemporaryFile(prefix="lakelsm-keys-", dir=self._path.parent)  # noqa: SIM115 Closed with the others.
        self._files.callback(file.close)
        offsets = {}
        for length, held in self._held.items():
            offsets[length] = (file.tell(), sum(map(len, held)))
            file.write(_sorted(held).data)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for length, (start, count) in offsets.items():
            run = np.frombuffer(mapped, np.uint64, count * (length + 2), start).reshape(count, length + 2)
            self._runs.setdefault(length, []).append(run)
        self._held, self._held_bytes = {}, 0


def _sorted(pieces: list[Entries]) -> Entries:
    entries = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return entries[np.argsort(entries[:, 0], kind="stable")]


def home_count(keys: int, load_factor: float) -> int:
    """Return the number of homes of a table for ``keys`` keys, at least one."""
    return max(1, round(keys / load_factor))


def homes_of(hashes: Hashes, homes: int) -> Longs:
    """Return the home of each hash, taken as an unsigned number."""
    home: Longs = (hashes.view(np.uint32).astype(np.int64) * homes) >> 32
    return home


def filled_slots(parts: Iterable[Entries], homes: int) -> Iterator[tuple[Hashes, Words]]:
    """Yield the slots of a table, a part at a time, from entries in hash order; with the hashes of their keys."""
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
        distance = np.minimum(slots - home, _FARTHEST).astype(np.uint64)
        part[rows, -1] += np.uint64(1) + (distance << np.uint64(_OFFSET_BITS))
        written = int(slots[-1]) + 1
        yield hashes, part
        width = part.shape[1]
    yield np.empty(0, np.int32), np.zeros((max(homes - written, 0) + 1, width), np.uint64)


def value_offsets(slots: Words, keys: Words, home: Longs, check: Callable[[Longs], None]) -> Longs:
    """Return the offset of the value of each key; -1 for a key that is not in the table.

    ``slots`` has the slots of the table as rows, ``keys`` the words of a key in each row. ``check`` is called with the
    numbers of slots before they are read.
    """
    offsets = np.full(len(keys), -1, np.int64)
    left = np.arange(len(keys), dtype=np.int64)
    distance = 0
    while len(left):
        at = home[left] + distance
        check(at)
        read = slots.take(at, axis=0)
        last = read[:, -1]
        same = last != 0
        own = (last >> np.uint64(_OFFSET_BITS)).astype(np.int64)
        # A key with an earlier home than the slot's key would be in an earlier slot.
        may_follow = same & ((own >= distance) | (own == _FARTHEST))
        for word in range(keys.shape[1]):
            same &= read[:, word] == (keys[:, word] if distance == 0 else keys[left, word])
        offsets[left[same]] = (last[same] & _OFFSET_MASK).astype(np.int64) - 1
        left = left[may_follow & ~same]
        distance += 1
    return offsets

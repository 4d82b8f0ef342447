"""Keys of a store that is written, ordered by their hashes in bounded memory: sorted runs in a scratch file."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO

import numpy as np
import numpy.typing as npt

from lakelsm.storage.refused_writes import refused_write

#: Rows of 64-bit words: the hash, the key, where its value is.
Entries = npt.NDArray[np.uint64]

#: Bytes of keys that are held until they are written as a run, and of those that are merged at once.
_HELD_BYTES = 32 << 20
_MERGED_BYTES = 16 << 20
#: One more than the greatest hash that entries have.
_HASHES = 1 << 32


class KeyRuns:
    """Entries by the length of their keys, of the store at ``path``. Scratch files lie beside it, without names.

    Leaving the context gives their space back.
    """

    def __init__(self, path: Path, held_bytes: int = _HELD_BYTES) -> None:
        self._path = path
        self._files = ExitStack()
        self._most = held_bytes
        self._held: dict[int, list[Entries]] = {}
        self._held_bytes = 0
        self._runs: dict[int, list[Entries]] = {}

    def __enter__(self) -> KeyRuns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # What a full disk did not take goes with its file.
            self._files.close()

    def add(self, entries: Entries) -> None:
        """Add entries of keys of one length. Raises StorageError where a scratch file cannot be written."""
        self._held.setdefault(entries.shape[1] - 2, []).append(entries)
        self._held_bytes += entries.nbytes
        if self._held_bytes > self._most:
            try:
                self._spill()
            except OSError as error:
                raise refused_write(str(self._path), error, lost="The lookup store is not made") from error

    def lengths(self) -> list[int]:
        """The lengths of keys, in words."""
        return sorted({*self._held, *self._runs})

    def count(self, length: int) -> int:
        """How many keys have a length."""
        return sum(map(len, (*self._held.get(length, ()), *self._runs.get(length, ()))))

    def ordered(self, length: int) -> Iterator[Entries]:
        """The entries of keys of a length, in the order of their hashes, some at a time."""
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
        file = self._files.enter_context(_nameless_file(self._path.parent))
        places = {}
        for length, held in self._held.items():
            places[length] = (file.tell(), sum(map(len, held)))
            file.write(_sorted(held).data)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for length, (start, count) in places.items():
            run = np.frombuffer(mapped, np.uint64, count * (length + 2), start).reshape(count, length + 2)
            self._runs.setdefault(length, []).append(run)
        self._held, self._held_bytes = {}, 0


def _nameless_file(directory: Path) -> IO[bytes]:
    return TemporaryFile(prefix="lakelsm-keys-", dir=directory)


def _sorted(pieces: list[Entries]) -> Entries:
    entries = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return entries[np.argsort(entries[:, 0], kind="stable")]

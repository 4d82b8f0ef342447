"""Listed files that no state has been found to name yet. They are Arrow columns, from which named files are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.maintain.orphans.listing_task import KINDS

#: The minimum number of names in one search.
_NAMES = 1 << 19


class UnreferencedFiles:
    """Files of some listings. Each directory name is kept once, and ``directory`` has indexes into these."""

    def __init__(self, listed: Iterable[pa.RecordBatch] = ()) -> None:
        self._directories: list[str] = []
        self._parts: list[pa.Table] = []
        for batch in listed:
            self.add(batch)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of `LISTED_SCHEMA`."""
        first = len(self._directories)
        self._directories += batch.column("directory").to_pylist()
        directories = pc.list_parent_indices(batch.column("names")).to_numpy() + first
        columns = {name: batch.column(name).flatten() for name in ("names", "kinds", "sizes", "old")}
        self._parts.append(pa.table({"directory": pa.array(directories.astype(np.int32)), **columns}))

    def drop(self, batches: Iterable[pa.Array]) -> None:
        """Drop the files with these names in any directory: no two files of a table have the same name."""
        for names in _combined(batches):
            if self._parts:
                files = pa.concat_tables(self._parts)  # One table, so that the names are hashed once.
                self._parts = [files.filter(pc.invert(pc.is_in(files.column("names"), value_set=names)))]

    def orphans(self) -> Orphans:
        """Return the old files. The others are too young to be deleted."""
        parts = [part.filter(part.column("old")) for part in self._parts]
        return Orphans(self._directories, parts)


class Orphans:
    """Unreferenced files that are old enough to be deleted."""

    def __init__(self, directories: Sequence[str], parts: Sequence[pa.Table]) -> None:
        self._directories = directories
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def bytes(self) -> int:
        """The total size of the files."""
        return sum(pc.sum(part.column("sizes")).as_py() or 0 for part in self._parts)

    @property
    def kinds(self) -> dict[str, int]:
        """The number of files of each kind."""
        numbers = [part.column("kinds").to_numpy() for part in self._parts]
        counts = np.bincount(np.concatenate([*numbers, np.empty(0, np.int8)]), minlength=len(KINDS)).tolist()
        return {kind.value: count for kind, count in zip(KINDS, counts) if count}

    @property
    def directories(self) -> set[str]:
        """The directories that contain the files."""
        indexes = (np.unique(part.column("directory").to_numpy()).tolist() for part in self._parts)
        return {self._directories[index] for part in indexes for index in part}

    def first(self, count: int) -> Orphans:
        """Return the first ``count`` files, in the order of `paths`."""
        parts = []
        for part in self._parts:
            parts.append(part.slice(0, count))
            count -= len(parts[-1])
        return Orphans(self._directories, parts)

    def paths(self) -> Iterator[str]:
        """Yield the paths of the files."""
        for part in self._parts:
            for batch in part.to_batches():
                for index, name in zip(batch.column("directory").to_pylist(), batch.column("names").to_pylist()):
                    yield f"{self._directories[index]}/{name}"


def _combined(batches: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Yield the same names in longer arrays."""
    waiting: list[pa.Array] = []
    for names in batches:
        waiting.append(names)
        if sum(map(len, waiting)) >= _NAMES:
            yield pa.concat_arrays(waiting)
            waiting = []
    if waiting:
        yield pa.concat_arrays(waiting)

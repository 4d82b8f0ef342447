"""Files that were listed and that nothing has named so far: Arrow columns, from which names are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.maintain.orphans.listing_task import KINDS

#: So many names are looked for at a time.
_NAMES = 1 << 19


class UnreferencedFiles:
    """The files of some listings. ``directories`` are indexes: each name and each directory is kept once."""

    def __init__(self, listed: Iterable[pa.RecordBatch] = ()) -> None:
        self._directories: list[str] = []
        self._parts: list[pa.Table] = []
        for batch in listed:
            self.add(batch)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, batch: pa.RecordBatch) -> None:
        """Add what was listed, as `LISTED_SCHEMA` has it."""
        first = len(self._directories)
        self._directories += batch.column("directory").to_pylist()
        places = pc.list_parent_indices(batch.column("names")).to_numpy() + first
        columns = {name: batch.column(name).flatten() for name in ("names", "kinds", "sizes", "old")}
        self._parts.append(pa.table({"places": pa.array(places.astype(np.int32)), **columns}))

    def drop(self, batches: Iterable[pa.Array]) -> None:
        """Drop the files of these names, wherever they lie: no two files of a table have one."""
        for names in _gathered(batches):
            if self._parts:
                files = pa.concat_tables(self._parts)  # As one, so that the names are hashed once.
                self._parts = [files.filter(pc.invert(pc.is_in(files.column("names"), value_set=names)))]

    def orphans(self) -> Orphans:
        """Those that are old. The others are too young to go."""
        parts = [part.filter(part.column("old")) for part in self._parts]
        return Orphans(self._directories, parts)


class Orphans:
    """Files that may go."""

    def __init__(self, directories: Sequence[str], parts: Sequence[pa.Table]) -> None:
        self._directories = directories
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def bytes(self) -> int:
        """Their sizes, added up."""
        return sum(pc.sum(part.column("sizes")).as_py() or 0 for part in self._parts)

    @property
    def kinds(self) -> dict[str, int]:
        """How many there are of each kind."""
        numbers = [part.column("kinds").to_numpy() for part in self._parts]
        counts = np.bincount(np.concatenate([*numbers, np.empty(0, np.int8)]), minlength=len(KINDS)).tolist()
        return {kind.value: count for kind, count in zip(KINDS, counts) if count}

    @property
    def directories(self) -> set[str]:
        """The directories that they lie in."""
        places = (np.unique(part.column("places").to_numpy()).tolist() for part in self._parts)
        return {self._directories[place] for part in places for place in part}

    def first(self, count: int) -> Orphans:
        """So many of them, in the order of `paths`."""
        parts = []
        for part in self._parts:
            parts.append(part.slice(0, count))
            count -= len(parts[-1])
        return Orphans(self._directories, parts)

    def paths(self) -> Iterator[str]:
        """Where they lie."""
        for part in self._parts:
            for batch in part.to_batches():
                for place, name in zip(batch.column("places").to_pylist(), batch.column("names").to_pylist()):
                    yield f"{self._directories[place]}/{name}"


def _gathered(batches: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Longer arrays of the same names."""
    waiting: list[pa.Array] = []
    for names in batches:
        waiting.append(names)
        if sum(map(len, waiting)) >= _NAMES:
            yield pa.concat_arrays(waiting)
            waiting = []
    if waiting:
        yield pa.concat_arrays(waiting)

"""The task that lists directories: the files that are the table's by their names, with what decides of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.file_kinds import NAME_PATTERNS, DirectoryRole, StoredKind
from lakelsm.maintain.orphans.directories import Searched
from lakelsm.storage import FileIO
from lakelsm.storage.file_io import FileEntry

#: Kinds by the numbers that messages have.
KINDS = tuple(StoredKind)

#: What the tasks yield: a row for each directory, lists with a value for each of its files. ``old``: it may go.
LISTED_SCHEMA = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("names", pa.list_(pa.string())),
        pa.field("kinds", pa.list_(pa.int8())),
        pa.field("sizes", pa.list_(pa.int64())),
        pa.field("old", pa.list_(pa.bool_())),
    ]
)

#: Files of one batch, where directories are small.
_BATCH_FILES = 65_536


@dataclass(frozen=True)
class ListFiles:
    """Lists directories and those of partitions and buckets below them. ``before``: files that were last changed before
    this time of the store, in epoch milliseconds, are old.
    """

    file_io: FileIO
    before: int

    def __call__(self, directories: Sequence[Searched]) -> Iterator[pa.RecordBatch]:
        """Yield their files, as `LISTED_SCHEMA` has them. Files of no kind are left out."""
        waiting, rows = list(directories), _ListedFiles()
        while waiting:
            directory = waiting.pop()
            entries = self.file_io.entries(directory.path)
            waiting += directory.below(entries)
            self._add(rows, directory, [entry for entry in entries if not entry.is_directory])
            if rows.files >= _BATCH_FILES:
                yield rows.batch()
                rows = _ListedFiles()
        if rows.files:
            yield rows.batch()

    def _add(self, rows: _ListedFiles, directory: Searched, files: Sequence[FileEntry]) -> None:
        names = pa.array([file.name for file in files], pa.string())
        kinds = kinds_of(names, directory.role)
        known = np.flatnonzero(kinds >= 0)
        if len(known):
            sizes = np.fromiter((file.size for file in files), np.int64, len(files))
            modified = np.fromiter((file.modified for file in files), np.int64, len(files))
            rows.directories.append(directory.path)
            rows.names.append(names.take(pa.array(known)))
            rows.kinds.append(kinds[known])
            rows.sizes.append(sizes[known])
            rows.old.append(modified[known] < self.before)


@dataclass(kw_only=True)
class _ListedFiles:
    """Listed directories, not yet a batch."""

    directories: list[str] = field(default_factory=list)
    names: list[pa.Array] = field(default_factory=list)
    kinds: list[npt.NDArray[np.int8]] = field(default_factory=list)
    sizes: list[npt.NDArray[np.int64]] = field(default_factory=list)
    old: list[npt.NDArray[np.bool_]] = field(default_factory=list)

    @property
    def files(self) -> int:
        return sum(map(len, self.names))

    def batch(self) -> pa.RecordBatch:
        """The rows as `LISTED_SCHEMA` has them."""
        offsets = pa.array(np.cumsum([0, *map(len, self.names)]), pa.int32())
        values = [
            pa.concat_arrays(self.names),
            *(pa.array(np.concatenate(parts)) for parts in (self.kinds, self.sizes, self.old)),
        ]
        lists = [pa.ListArray.from_arrays(offsets, each) for each in values]
        return pa.RecordBatch.from_arrays([pa.array(self.directories, pa.string()), *lists], schema=LISTED_SCHEMA)


def kinds_of(names: pa.Array, role: DirectoryRole) -> npt.NDArray[np.int8]:
    """What files are by their names: places in `KINDS`, -1 for names that are none of the table's."""
    kinds = np.full(len(names), -1, np.int8)
    for kind, pattern in NAME_PATTERNS[role].items():
        kinds[pc.match_substring_regex(names, f"^(?:{pattern})$").to_numpy(zero_copy_only=False)] = KINDS.index(kind)
    return kinds

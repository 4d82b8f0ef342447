"""The task that lists directories. It yields the files whose names are those of a table's files, with sizes and ages.

Only the table's own directories are listed, not those of services or users, or with names that no partition has (Java:
`OrphanFilesClean#listPaimonFileDirs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.file_kinds import NAME_PATTERNS, DirectoryRole, StoredKind
from lakelsm.format.file_names import is_bucket_name, is_partition_name
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO
from lakelsm.storage.file_io import FileEntry

#: The kinds of files. The column ``kinds`` has indexes into it.
KINDS = tuple(StoredKind)

#: The rows that the tasks yield: one for each directory, with lists of one value for each file. ``old``: may be deleted.
LISTED_SCHEMA = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("names", pa.list_(pa.string())),
        pa.field("kinds", pa.list_(pa.int8())),
        pa.field("sizes", pa.list_(pa.int64())),
        pa.field("old", pa.list_(pa.bool_())),
    ]
)

#: Files of one batch, if directories are small.
_BATCH_FILES = 65_536


@dataclass(frozen=True)
class ListFiles:
    """Lists directories, and the directories of partitions and buckets below them.

    Files that were last changed ``before`` a time of the store, in epoch milliseconds, are old.
    """

    file_io: FileIO
    before: int

    def __call__(self, directories: Sequence[DirectoryToList]) -> Iterator[pa.RecordBatch]:
        """Yield the files as rows of `LISTED_SCHEMA`, without files whose names belong to no kind."""
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

    def _add(self, rows: _ListedFiles, directory: DirectoryToList, files: Sequence[FileEntry]) -> None:
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
    """Listed directories that are not yet yielded as a batch."""

    directories: list[str] = field(default_factory=list)
    names: list[pa.Array] = field(default_factory=list)
    kinds: list[npt.NDArray[np.int8]] = field(default_factory=list)
    sizes: list[npt.NDArray[np.int64]] = field(default_factory=list)
    old: list[npt.NDArray[np.bool_]] = field(default_factory=list)

    @property
    def files(self) -> int:
        return sum(map(len, self.names))

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch of `LISTED_SCHEMA`."""
        offsets = pa.array(np.cumsum([0, *map(len, self.names)]), pa.int32())
        values = [
            pa.concat_arrays(self.names),
            *(pa.array(np.concatenate(parts)) for parts in (self.kinds, self.sizes, self.old)),
        ]
        lists = [pa.ListArray.from_arrays(offsets, each) for each in values]
        return pa.RecordBatch.from_arrays([pa.array(self.directories, pa.string()), *lists], schema=LISTED_SCHEMA)


def kinds_of(names: pa.Array, role: DirectoryRole) -> npt.NDArray[np.int8]:
    """Return the kinds of files by their names: indexes into `KINDS`, -1 for names that do not belong to the table."""
    kinds = np.full(len(names), -1, np.int8)
    for kind, pattern in NAME_PATTERNS[role].items():
        kinds[pc.match_substring_regex(names, f"^(?:{pattern})$").to_numpy(zero_copy_only=False)] = KINDS.index(kind)
    return kinds


#: This many directories of partitions are enough to be shared out among tasks.
_MIN_DIRECTORIES = 256


@dataclass(frozen=True)
class DirectoryToList:
    """A directory to list.

    ``columns``: the partition columns of the directories below it, outermost first; empty if these are buckets; None if
    only the files of the directory itself are listed.
    """

    path: str
    role: DirectoryRole
    columns: tuple[str, ...] | None = None

    def below(self, entries: Sequence[FileEntry]) -> Iterator[DirectoryToList]:
        """Yield the directories of partitions or buckets among its entries."""
        if self.columns is None:
            return
        for entry in entries:
            if not entry.is_directory:
                continue
            if self.columns and is_partition_name(entry.name, self.columns[0]):
                yield DirectoryToList(f"{self.path}/{entry.name}", DirectoryRole.OTHER, self.columns[1:])
            elif not self.columns and is_bucket_name(entry.name):
                yield DirectoryToList(f"{self.path}/{entry.name}", DirectoryRole.BUCKET)


def directories_to_list(store: TableStore) -> list[DirectoryToList]:
    """Return the directories of a table to list: down to buckets if partitions are few, else down to partitions."""
    paths, file_io = store.paths, store.file_io
    found = [
        DirectoryToList(paths.manifest_dir, DirectoryRole.MANIFEST),
        DirectoryToList(paths.index_dir, DirectoryRole.INDEX),
        DirectoryToList(paths.statistics_dir, DirectoryRole.STATISTICS),
    ]
    for branch in store.branches.paths():
        own = (branch.snapshot_dir, branch.changelog_dir, branch.schema_dir, branch.tag_dir, branch.consumer_dir)
        found += [DirectoryToList(path, DirectoryRole.OTHER) for path in (*own, branch.service_dir)]
    inner = [DirectoryToList(paths.root, DirectoryRole.OTHER, tuple(store.schema.partition_keys))]
    while inner and len(inner) < _MIN_DIRECTORIES:
        below = [part for each in inner for part in each.below(file_io.entries(each.path))]
        found += [replace(each, columns=None) for each in inner]
        found += [each for each in below if each.columns is None]
        inner = [each for each in below if each.columns is not None]
    return found + inner

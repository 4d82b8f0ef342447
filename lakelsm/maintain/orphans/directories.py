"""Where a table's files lie: the directories that a search for orphans looks into, and no others.

Services' directories, whatever a user has put beside the table's own, and directories that are no partition's by their
name are not looked into (Java: `OrphanFilesClean#listPaimonFileDirs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakelsm.format.file_kinds import DirectoryRole
from lakelsm.format.file_names import is_bucket_name, is_partition_name
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage.file_io import FileEntry

#: So many directories of partitions are enough to be shared out among tasks.
_ENOUGH = 256


@dataclass(frozen=True)
class Searched:
    """A directory to look into. ``columns``: of a directory of partitions, the columns of those below it, outermost first
    (none: buckets lie in it); None where its files alone are looked at.
    """

    path: str
    role: DirectoryRole
    columns: tuple[str, ...] | None = None

    def below(self, entries: Sequence[FileEntry]) -> Iterator[Searched]:
        """The directories of partitions or buckets among what is in it."""
        if self.columns is None:
            return
        for entry in entries:
            if not entry.is_directory:
                continue
            if self.columns and is_partition_name(entry.name, self.columns[0]):
                yield Searched(f"{self.path}/{entry.name}", DirectoryRole.OTHER, self.columns[1:])
            elif not self.columns and is_bucket_name(entry.name):
                yield Searched(f"{self.path}/{entry.name}", DirectoryRole.BUCKET)


def searched_directories(store: TableStore) -> list[Searched]:
    """The directories of a table, down to those of its buckets where partitions are few, else to those of partitions."""
    paths, file_io = store.paths, store.file_io
    found = [
        Searched(paths.manifest_dir, DirectoryRole.MANIFEST),
        Searched(paths.index_dir, DirectoryRole.INDEX),
        Searched(paths.statistics_dir, DirectoryRole.STATISTICS),
    ]
    for branch in store.branches.paths():
        own = (branch.snapshot_dir, branch.changelog_dir, branch.schema_dir, branch.tag_dir, branch.consumer_dir)
        found += [Searched(path, DirectoryRole.OTHER) for path in (*own, branch.service_dir)]
    inner = [Searched(paths.root, DirectoryRole.OTHER, tuple(store.schema.partition_keys))]
    while inner and len(inner) < _ENOUGH:
        below = [part for each in inner for part in each.below(file_io.entries(each.path))]
        found += [replace(each, columns=None) for each in inner]
        found += [each for each in below if each.columns is None]
        inner = [each for each in below if each.columns is not None]
    return found + inner

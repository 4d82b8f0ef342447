"""The branches of a table, and what they retain (docs/format.md 1).

Branches share data, manifest and index files, so a deletion first reads what every branch retains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelsm.errors import CommitConflictError
from lakelsm.format.file_names import branch_of
from lakelsm.format.paths import MAIN_BRANCH, TablePaths
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.snapshots.changelog_store import ChangelogStore
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.tag_store import TagStore
from lakelsm.storage import FileIO

#: The maximum number of attempts to read what is retained without a concurrent change.
_TRIES = 10


@dataclass(frozen=True, kw_only=True)
class RetainedBranch:
    """The snapshots, tags and changelogs of one branch. Snapshots and changelogs ascend by id."""

    paths: TablePaths
    snapshots: Sequence[Snapshot]
    tags: Mapping[str, Tag]
    changelogs: Sequence[Snapshot]


class BranchStore:
    """Reads all branches of one table. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._paths = paths

    def names(self) -> Sequence[str]:
        """Return the names of all branches except main, sorted."""
        branches = map(branch_of, self._file_io.list(self._paths.branches_dir))
        return sorted(branch for branch in branches if branch is not None)

    def is_whole(self, branch: str) -> bool:
        """Return whether a branch is complete: a creation writes its first schema last, a deletion deletes it first."""
        return self._file_io.exists(self._paths.of_branch(branch).schema_file(0))

    def paths(self) -> Sequence[TablePaths]:
        """Return the paths of all branches, main first."""
        return [self._paths.of_branch(branch) for branch in (MAIN_BRANCH, *self.names())]

    def retained(self) -> Sequence[RetainedBranch]:
        """Return what each branch retains, main first.

        A reference may move while it is read: a branch is created from a tag that is then deleted, a tag is renamed, a
        snapshot is restored from a tag. So everything is read again until nothing new is found. Raises CorruptTableError
        if a snapshot, tag or changelog cannot be read, because the files that it needs are unknown, and
        CommitConflictError if each attempt finds something new.
        """
        for _ in range(_TRIES):
            found = [self._retained_by(paths) for paths in self.paths()]
            if self._is_all(found):
                return found
        raise CommitConflictError(
            f"Table {self._paths.name}: tags or branches were created during each of {_TRIES} attempts to read them. "
            "Run it again."
        )

    def _retained_by(self, paths: TablePaths) -> RetainedBranch:
        return RetainedBranch(
            paths=paths,
            snapshots=SnapshotManager(self._file_io, paths).list(),
            tags=TagStore(self._file_io, paths).all(),
            changelogs=ChangelogStore(self._file_io, paths).list(),
        )

    def _is_all(self, found: Sequence[RetainedBranch]) -> bool:
        """Return whether ``found`` is complete, except for snapshots that were published since."""
        branches = {branch.paths.branch: branch for branch in found}
        for paths in self.paths():
            branch = branches.get(paths.branch)
            if branch is None or not set(TagStore(self._file_io, paths).names()) <= set(branch.tags):
                return False
            ids = {snapshot.id for snapshot in branch.snapshots}
            newest = max(ids, default=0)
            if any(number <= newest and number not in ids for number in SnapshotManager(self._file_io, paths).ids()):
                return False
        return True

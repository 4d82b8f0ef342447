"""Whether a commit was made before: (commit user, identifier) makes a rerun a no-op (format.md 14.4)."""

from __future__ import annotations

from lakelsm.commit.commit_message import CommitOutcome, CommitRequest
from lakelsm.commit.scan import read_delta_entries
from lakelsm.commit.snapshot_manager import SnapshotManager
from lakelsm.errors import CorruptTableError
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.storage import FileIO

#: Compactions carry the identifier of the write that they follow, or any; they say nothing about writes.
_WRITES = (CommitKind.APPEND, CommitKind.OVERWRITE)


class ReplayCheck:
    """Looks for an earlier commit of a write, first in all retained snapshots, then in those that are new.

    Identifiers of a user ascend: an identifier at or below the user's newest one is a replay. A compaction
    is not looked for: a rerun of it finds its input files gone.
    """

    def __init__(self, file_io: FileIO, paths: TablePaths, request: CommitRequest) -> None:
        self._file_io = file_io
        self._paths = paths
        self._snapshots = SnapshotManager(file_io, paths)
        self._request = request
        self._seen_up_to = 0

    def before(self) -> CommitOutcome | None:
        """Return the outcome of an earlier commit with this identifier, or a later one of the user, or None.

        Its snapshot is the one with this very identifier, None when that is not retained.
        """
        if not self._is_filtered():
            return None
        self._seen_up_to = self._snapshots.latest_id() or 0
        newest: Snapshot | None = None
        for snapshot in self._snapshots.of_user(self._request.commit_user):
            if snapshot.commit_kind not in _WRITES or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
                continue
            newest = newest or snapshot
            if newest.commit_identifier < self._request.identifier:
                return None
            if snapshot.commit_identifier == self._request.identifier:
                return self._outcome(snapshot, attempts=0)
        return None if newest is None else self._outcome(None, attempts=0)

    def since(self, latest: Snapshot | None, attempts: int) -> CommitOutcome | None:
        """As before(), for the snapshots that have appeared since the last call."""
        if not self._is_filtered() or latest is None:
            return None
        first, self._seen_up_to = self._seen_up_to + 1, latest.id
        for snapshot_id in range(first, latest.id + 1):
            snapshot = latest if snapshot_id == latest.id else self._snapshots.try_get(snapshot_id)
            if (
                snapshot is not None
                and snapshot.commit_user == self._request.commit_user
                and snapshot.commit_identifier == self._request.identifier
                and snapshot.commit_kind in _WRITES
            ):
                return self._outcome(snapshot, attempts)
        return None

    def _is_filtered(self) -> bool:
        return self._request.identifier != BATCH_COMMIT_IDENTIFIER and self._request.kind in _WRITES

    def _outcome(self, snapshot: Snapshot | None, attempts: int) -> CommitOutcome:
        return CommitOutcome(snapshot, True, attempts, files_published=self._names_our_files(snapshot))

    def _names_our_files(self, snapshot: Snapshot | None) -> bool:
        """Whether the earlier commit may hold the very files of this message (the message was rerun)."""
        ours = self._request.message.new_file_names
        if not ours:
            return False
        if snapshot is None:
            return True
        try:
            delta = read_delta_entries(self._file_io, self._paths, snapshot)
        except CorruptTableError:
            return True
        return any(entry.file.file_name in ours for entry in delta)

"""Long-lived changelogs: snapshots that have expired, kept for their changelog alone (docs/format.md 1)."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import CorruptTableError
from lakelsm.format.file_names import changelog_id_of
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot, newest_at
from lakelsm.snapshots.json_file import checked_bytes
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.storage import FileIO


class ChangelogStore:
    """Reads the ``changelog/`` directory of one branch. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._paths = paths

    def ids(self) -> Sequence[int]:
        """Return the ids of all long-lived changelogs, ascending."""
        numbers = map(changelog_id_of, self._file_io.list(self._paths.changelog_dir))
        return sorted(number for number in numbers if number is not None)

    def try_get(self, snapshot_id: int) -> Snapshot | None:
        """Return the expired snapshot of a long-lived changelog, or None if there is no changelog with this id.

        Of its metadata files, only the changelog manifest list still exists. Raises CorruptTableError if the file is
        damaged.
        """
        path = self._paths.changelog(snapshot_id)
        try:
            data = self._file_io.read(path, MAX_SNAPSHOT_BYTES)
        except FileNotFoundError:
            return None
        snapshot = Snapshot.from_json(data, path)
        if snapshot.id != snapshot_id:
            raise CorruptTableError(f"{path} is damaged: it contains snapshot {snapshot.id}. Restore the file.")
        return snapshot

    def at_or_before(self, millis: int) -> Snapshot | None:
        """Return the newest changelog that was committed at or before a time (epoch milliseconds), or None."""
        return newest_at(millis, self.ids(), self.try_get)

    def keep(self, snapshot: Snapshot) -> None:
        """Write the long-lived changelog of a snapshot that will expire, and its id to LATEST."""
        path = self._paths.changelog(snapshot.id)
        self._file_io.write(path, checked_bytes(snapshot, path, MAX_SNAPSHOT_BYTES))
        self._write_hint("LATEST", snapshot.id)

    def announce_earliest(self, snapshot_id: int) -> None:
        """Record the oldest changelog that is kept."""
        self._write_hint("EARLIEST", snapshot_id)

    def announce_latest(self, snapshot_id: int | None) -> None:
        """Record the newest changelog that is kept; None (no changelog) is stored as -1, as in other engines."""
        self._write_hint("LATEST", -1 if snapshot_id is None else snapshot_id)

    def _write_hint(self, name: str, snapshot_id: int) -> None:
        self._file_io.write(f"{self._paths.changelog_dir}/{name}", str(snapshot_id).encode("ascii"), durable=False)

    def list(self) -> Sequence[Snapshot]:
        """Return all long-lived changelogs, ascending by id, without those that expire during the call."""
        found = map(self.try_get, self.ids())
        return [snapshot for snapshot in found if snapshot is not None]

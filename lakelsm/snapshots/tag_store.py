"""The tags of one branch of a table: named snapshots, which expiry keeps (docs/format.md 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.format.file_names import tag_of
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.moment import is_invalid_time
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.storage import FileIO

#: The prefix of holding tags, which protect a snapshot while another tag of it is created. Its files may be missing
#: already, so nothing else uses these tags. Persisted: do not change
HOLDING_TAG = "lakelsm-holds-"


def created_at(name: str, tag: Tag) -> datetime | None:
    """Return when a tag with a retention time was created, by its writer's wall clock; None for other tags.

    Raises CorruptTableError if the stored time is invalid.
    """
    parts = tag.create_time
    if parts is None:
        return None
    try:
        year, month, day, hour, minute, second, nanosecond = (*parts, *[0] * (7 - len(parts)))
        return datetime(year, month, day, hour, minute, second, nanosecond // 1000)
    except (ValueError, OverflowError) as error:
        raise CorruptTableError(
            f"Tag {name!r}: tagCreateTime {list(parts)} is not a time. Restore its file."
        ) from error


class TagStore:
    """Reads the ``tag/`` directory of one branch. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._paths = paths

    def names(self) -> Sequence[str]:
        """Return the names of all tags, sorted."""
        tags = map(tag_of, self._file_io.list(self._paths.tag_dir))
        return sorted(tag for tag in tags if tag is not None)

    def get(self, name: str) -> Tag:
        """Return a tag. Raises SnapshotNotFoundError, which names the existing tags."""
        tag = self.try_get(name)
        if tag is None:
            known = ", ".join(self.names()) or "none"
            hint = f" {name!r} is not a time either; write 'YYYY-MM-DD HH:MM:SS'." if is_invalid_time(name) else ""
            raise SnapshotNotFoundError(f"Table {self._paths.name}: tag {name!r} does not exist. Tags: {known}.{hint}")
        return tag

    def try_get(self, name: str) -> Tag | None:
        """Return a tag, or None if it does not exist. Raises CorruptTableError if it is damaged."""
        path = self._paths.tag(name)
        try:
            data = self._file_io.read(path, MAX_SNAPSHOT_BYTES)
        except FileNotFoundError:
            return None
        return Tag.from_json(data, path)

    def all(self) -> dict[str, Tag]:
        """Return all tags by name, without tags that are deleted during the call.

        Raises CorruptTableError if one cannot be read: it is not a missing one.
        """
        found = ((name, self.try_get(name)) for name in self.names())
        return {name: tag for name, tag in found if tag is not None}

    def snapshot_of(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot with this id that a tag of a user keeps, or None."""
        return next((tag.snapshot for tag in self._of_users().values() if tag.snapshot.id == snapshot_id), None)

    def name_of(self, snapshot: Snapshot) -> str | None:
        """Return the name of a user's tag of a snapshot, or None."""
        return next((name for name, tag in self._of_users().items() if snapshot.matches(tag.snapshot)), None)

    def _of_users(self) -> dict[str, Tag]:
        return {name: tag for name, tag in self.all().items() if not name.startswith(HOLDING_TAG)}

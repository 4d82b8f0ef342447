"""The tags of one branch of a table: snapshots with names, which expiry keeps (docs/format.md 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.format.file_names import tag_of
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.moment import is_wrong_time
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.storage import FileIO

#: Begins the names of tags that hold a snapshot while another tag of it is created: its files stay, but whether they
#: existed is not known yet, so nothing else relies on it. Persisted: do not change
HOLDING_TAG = "lakelsm-holds-"


def created_at(name: str, tag: Tag) -> datetime | None:
    """When a tag with a retention was made, by its writer's wall clock; None for others.

    Raises CorruptTableError for a time that no calendar has.
    """
    parts = tag.create_time
    if parts is None:
        return None
    try:
        year, month, day, hour, minute, second, nanosecond = (*parts, *[0] * (7 - len(parts)))
        return datetime(year, month, day, hour, minute, second, nanosecond // 1000)
    except (ValueError, OverflowError) as error:
        raise CorruptTableError(
            f"Tag {name!r} has {list(parts)} as tagCreateTime, which is no time: restore its file."
        ) from error


class TagStore:
    """Reads the ``tag/`` directory. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._paths = paths

    def names(self) -> Sequence[str]:
        """Return the names of all tags, sorted."""
        tags = map(tag_of, self._file_io.list(self._paths.tag_dir))
        return sorted(tag for tag in tags if tag is not None)

    def get(self, name: str) -> Tag:
        """Return a tag. Raises SnapshotNotFoundError naming the tags that exist."""
        tag = self.try_get(name)
        if tag is None:
            known = ", ".join(self.names()) or "none"
            hint = f". {name!r} is no time either: write 'YYYY-MM-DD HH:MM:SS'" if is_wrong_time(name) else ""
            raise SnapshotNotFoundError(f"Table {self._paths.name} has no tag {name!r}; its tags: {known}{hint}")
        return tag

    def try_get(self, name: str) -> Tag | None:
        """Return a tag, or None if it does not exist. Raises CorruptTableError when it is damaged."""
        path = self._paths.tag(name)
        try:
            data = self._file_io.read(path, MAX_SNAPSHOT_BYTES)
        except FileNotFoundError:
            return None
        return Tag.from_json(data, path)

    def all(self) -> dict[str, Tag]:
        """Return all tags by name; those that are deleted during the call are left out.

        Raises CorruptTableError for one that cannot be read: it is never taken for 'no tag'.
        """
        found = ((name, self.try_get(name)) for name in self.names())
        return {name: tag for name, tag in found if tag is not None}

    def snapshot_of(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of an id that a tag of a user keeps; None where none does."""
        return next((tag.snapshot for tag in self._of_users().values() if tag.snapshot.id == snapshot_id), None)

    def name_of(self, snapshot: Snapshot) -> str | None:
        """Return the name of a user's tag of a snapshot, or None."""
        return next((name for name, tag in self._of_users().items() if snapshot.matches(tag.snapshot)), None)

    def _of_users(self) -> dict[str, Tag]:
        return {name: tag for name, tag in self.all().items() if not name.startswith(HOLDING_TAG)}

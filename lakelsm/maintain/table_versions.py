"""The face of a table's versions: which snapshots stay, and the tags and branches that name them."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakelsm.arguments import checked_age, checked_flag, checked_snapshot_id, checked_tag, checked_time
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.maintain.tags import create_tag, delete_tags, rename_tag, replace_tag, tag_infos, tagged_snapshot
from lakelsm.maintenance_results import TagDeletionResult, TagInfo
from lakelsm.snapshots.table_store import TableStore


class TableVersions(OpenedTable):
    """Expiry, tags, branches, rollback and consumers of a table."""

    # -- tags ------------------------------------------------------------------------------------------------------

    def tags(self) -> list[TagInfo]:
        """The tags of the table, by snapshot and name."""
        return tag_infos(self._store())

    def create_tag(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        timestamp: str | datetime | None = None,
        time_retained: float | str | timedelta | None = None,
        if_not_exists: bool = False,
    ) -> TagInfo:
        """Name a snapshot, the newest by default, so that it stays and can be read by the name.

        ``timestamp`` chooses the newest snapshot that is not later, as in `read`. ``time_retained`` is how long the tag
        lives ('365 d', a timedelta or seconds), by default as ``tag.default-time-retained`` says, or for ever. A tag of
        that name is never replaced: it raises InvalidInputError, or with ``if_not_exists`` stays and is returned.
        """
        tag, retained = checked_tag("name", name, optional=False), _retained(time_retained)
        checked_flag("if_not_exists", if_not_exists)
        store = self._store()
        snapshot = self._tagged(store, snapshot_id, timestamp)
        return create_tag(store, tag, snapshot, time_retained=retained, if_not_exists=if_not_exists)

    def replace_tag(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        timestamp: str | datetime | None = None,
        time_retained: float | str | timedelta | None = None,
    ) -> TagInfo:
        """Make a tag that exists name another snapshot; arguments are as in `create_tag`, and its time begins anew.

        Files that only the tag's old snapshot kept are deleted, as by `delete_tag`.
        """
        tag, retained = checked_tag("name", name, optional=False), _retained(time_retained)
        store = self._store()
        return replace_tag(store, tag, self._tagged(store, snapshot_id, timestamp), time_retained=retained)

    def rename_tag(self, name: str, new_name: str) -> TagInfo:
        """Give a tag another name, which no other tag may have."""
        old, new = checked_tag("name", name, optional=False), checked_tag("new_name", new_name, optional=False)
        return rename_tag(self._store(), old, new)

    def delete_tag(self, name: str, *, dry_run: bool = False) -> TagDeletionResult:
        """Delete a tag, and the files that nothing else needs: no snapshot, other tag, branch or long-lived changelog.

        With ``dry_run`` nothing is deleted. Raises SnapshotNotFoundError, which lists the tags, where there is none.
        """
        tag = checked_tag("name", name, optional=False)
        return delete_tags(self._store(), [tag], dry_run=checked_flag("dry_run", dry_run))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _tagged(self, store: TableStore, snapshot_id: int | None, timestamp: str | datetime | None) -> Snapshot:
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        timestamp = checked_time("timestamp", timestamp)
        if timestamp is None:
            return tagged_snapshot(store, snapshot_id)
        if snapshot_id is not None:
            raise InvalidInputError("Give one of snapshot_id and timestamp.")
        return store.snapshots.at_or_before(self._engine(None).millis_of(timestamp))


def _retained(value: float | str | timedelta | None) -> float | None:
    age = checked_age("time_retained", value, moments=False)
    return None if age is None else age.seconds

"""`Table.tags`: names of snapshots, which expiry keeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from lakelsm.arguments import checked_age, checked_flag, checked_tag
from lakelsm.environment import SYSTEM
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.history import recorded
from lakelsm.maintain.versions.tags import (
    create_tag,
    delete_tags,
    expire_tags,
    rename_tag,
    replace_tag,
    snapshot_to_tag,
    tag_infos,
    tag_snapshot,
)
from lakelsm.operation_log import logged
from lakelsm.plan.time_travel import snapshot_at
from lakelsm.results import TagDeletionResult, TagInfo
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import OpenedTable


class TableTags(OpenedTable):
    """The tags of a table."""

    def list(self) -> Sequence[TagInfo]:
        """Return the tags of the table, by snapshot and name."""
        return tag_infos(self._store())

    @logged("create_tag")
    def create(
        self,
        name: str,
        snapshot: int | str | datetime | None = None,
        *,
        time_retained: float | str | timedelta | None = None,
        if_not_exists: bool = False,
        dry_run: bool = False,
    ) -> TagInfo:
        """Create a tag of a snapshot. The snapshot stays readable by the name of the tag after it expires.

        ``snapshot`` is a snapshot id, a time (the newest snapshot that is not later) or another tag, as in
        `Table.changelog`; by default the newest snapshot. ``time_retained`` is how long the tag is kept ('365 d', a
        timedelta or seconds), by default ``tag.default-time-retained``, else without limit. Raises InvalidInputError if
        the tag exists; with ``if_not_exists`` it is kept and returned. ``dry_run`` creates nothing.
        """
        tag, retained = checked_tag("name", name, optional=False), _retained(time_retained)
        checked_flag("if_not_exists", if_not_exists)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        tagged = self._tagged(store, snapshot)
        with recorded(store, "create_tag", dry_run=dry) as run:
            run.is_recorded = not (if_not_exists and store.tags.try_get(tag))
            make = partial(create_tag, store, tag, time_retained=retained, if_not_exists=if_not_exists, dry_run=dry)
            return make(tagged) if snapshot is not None else tag_snapshot(store, None, make)

    @logged("replace_tag")
    def replace(
        self,
        name: str,
        snapshot: int | str | datetime | None = None,
        *,
        time_retained: float | str | timedelta | None = None,
        dry_run: bool = False,
    ) -> TagInfo:
        """Move an existing tag to another snapshot. Arguments are as in `create`; the retention time begins again.

        Files that only the old snapshot of the tag needed are deleted, as by `delete`. ``dry_run`` changes nothing.
        """
        tag, retained = checked_tag("name", name, optional=False), _retained(time_retained)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        tagged = self._tagged(store, snapshot)
        with recorded(store, "replace_tag", dry_run=dry):
            make = partial(replace_tag, store, tag, time_retained=retained, dry_run=dry)
            return make(tagged) if snapshot is not None else tag_snapshot(store, None, make)

    @logged("rename_tag")
    def rename(self, name: str, new_name: str, *, dry_run: bool = False) -> TagInfo:
        """Rename a tag. Raises InvalidInputError if the new name exists. ``dry_run`` changes nothing."""
        old, new = checked_tag("name", name, optional=False), checked_tag("new_name", new_name, optional=False)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        with recorded(store, "rename_tag", dry_run=dry):
            return rename_tag(store, old, new, dry_run=dry)

    @logged("delete_tag")
    def delete(self, name: str, *, dry_run: bool = False) -> TagDeletionResult:
        """Delete a tag, and the files that nothing else needs: no snapshot, other tag, branch or long-lived changelog.

        ``dry_run`` deletes nothing. Raises SnapshotNotFoundError, with the existing tags, if the tag does not exist.
        """
        tag = checked_tag("name", name, optional=False)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        with recorded(store, "delete_tag", dry_run=dry) as run:
            result = delete_tags(store, [tag], dry_run=dry)
            run.files, run.bytes = result.files, result.bytes
        return result

    @logged("expire_tags")
    def expire(
        self, older_than: timedelta | datetime | float | str | None = None, *, dry_run: bool = False
    ) -> TagDeletionResult:
        """Delete tags whose retention time has passed, and their files as `delete` does. Each commit does the same.

        ``older_than``, an age ('365 d', a timedelta, seconds) or a time, also deletes tags that were created before it,
        whatever their retention time. ``dry_run`` deletes nothing.
        """
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        store = self._store().for_changes()
        before = None if age is None else age.bound(SYSTEM.clock(), store.text_zone)
        with recorded(store, "expire_tags", dry_run=dry) as run:
            result = expire_tags(store, before, dry_run=dry)
            run.files, run.bytes = result.files, result.bytes
        return result

    def _tagged(self, store: TableStore, snapshot: int | str | datetime | None) -> Snapshot:
        point = self._point(store, "snapshot", snapshot)
        if point is None or isinstance(point, int):
            return snapshot_to_tag(store, point)
        return snapshot_at(store, point)


def _retained(value: float | str | timedelta | None) -> float | None:
    age = checked_age("time_retained", value, moments=False)
    return None if age is None else age.seconds

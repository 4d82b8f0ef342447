"""The face of a table's versions: which snapshots stay, and the tags and branches that name them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from lakelsm.arguments import (
    checked_age,
    checked_branch,
    checked_consumer,
    checked_flag,
    checked_number,
    checked_point,
    checked_seconds,
    checked_snapshot_id,
    checked_tag,
    checked_time,
)
from lakelsm.epoch_time import utc_time
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.expiry.retention import asked_retention
from lakelsm.maintain.expiry.snapshot_expiry import expire_snapshots, expire_until
from lakelsm.maintain.history import recorded
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.maintain.versions.branches import branch_infos, create_branch, delete_branch, rename_branch
from lakelsm.maintain.versions.consumers import (
    consumer_bound,
    consumer_infos,
    delete_consumer,
    expire_consumers,
    record_consumer,
)
from lakelsm.maintain.versions.fast_forward import fast_forward
from lakelsm.maintain.versions.rollback import rollback, rollback_target
from lakelsm.maintain.versions.tags import (
    create_tag,
    delete_tags,
    expire_tags,
    rename_tag,
    replace_tag,
    tag_infos,
    tagged_snapshot,
)
from lakelsm.moment import Moment
from lakelsm.results import (
    BranchInfo,
    ConsumerExpiryResult,
    ConsumerInfo,
    ExpiryResult,
    FastForwardResult,
    RollbackResult,
    TagDeletionResult,
    TagInfo,
)
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM

AnyTable = TypeVar("AnyTable", bound="TableVersions")


class TableVersions(OpenedTable):
    """Expiry, tags, branches, rollback and consumers of a table."""

    # -- expiry ----------------------------------------------------------------------------------------------------

    def expire_snapshots(
        self,
        retain_last: int | None = None,
        older_than: timedelta | datetime | float | str | None = None,
        *,
        retain_max: int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        deadline: float | str | None = None,
    ) -> ExpiryResult:
        """Let the oldest snapshots go, and delete the files that nothing needs then.

        The last ``retain_last`` stay; of the others those go that are ``older_than`` an age ('7 days', a timedelta,
        seconds) or a moment, and whatever their age those beyond the newest ``retain_max``. With ``retain_last`` alone
        all others go. What is left out is as ``snapshot.num-retained.*`` and ``snapshot.time-retained`` say, and
        ``max_deletes``, the most that go in one run, as ``snapshot.expire.limit``. A snapshot goes when the one after it
        is older than asked. What consumers still read stays, and so do the files that tags, branches and long-lived
        changelogs need; changelogs expire by their own options. With ``dry_run`` nothing is changed. With a ``deadline``
        (seconds, or '30 min') some go at a time, and no more after it: another run goes on. A run that is killed harms
        nothing: the next finishes it. Raises CorruptTableError, with nothing deleted, where anything that keeps
        files cannot be read.
        """
        least = None if retain_last is None else checked_number("retain_last", retain_last, least=1)
        most = None if retain_max is None else checked_number("retain_max", retain_max, least=1)
        limit = None if max_deletes is None else checked_number("max_deletes", max_deletes, least=1)
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        within = checked_seconds("deadline", deadline)
        store, now = self._store().to_change(), SYSTEM.clock()
        retention = asked_retention(
            store.options,
            now,
            retain_last=least,
            retain_max=most,
            older_than=None if age is None else age.bound(now, store.text_zone),
            max_deletes=limit,
        )
        with recorded(store, "expire_snapshots", dry_run=dry) as run:
            if within is None or dry:
                result = expire_snapshots(store, retention, dry_run=dry)
            else:
                result = expire_until(store, retention, within)
            run.files, run.bytes = result.data_files + result.changelog_files + result.metadata_files, result.bytes
            run.complete = result.complete
        return result

    # -- branches --------------------------------------------------------------------------------------------------

    def create_branch(
        self, name: str, tag: str | None = None, *, ignore_if_exists: bool = False, dry_run: bool = False
    ) -> None:
        """Make a branch: with the rows and schema of a tag, or without one empty, with the table's schemas.

        It shares no snapshot, tag or schema with the table from then on, and no row is copied. With ``ignore_if_exists``
        a branch that is there stays as it is, with ``dry_run`` nothing is made. Raises InvalidInputError where it
        exists, for a name that Paimon refuses and for a table that is a branch itself, SnapshotNotFoundError without
        the tag.
        """
        checked_branch("name", name, new=True)
        checked_tag("tag", tag)
        checked_flag("ignore_if_exists", ignore_if_exists)
        store, dry = self._store().to_change(), checked_flag("dry_run", dry_run)
        with recorded(store, "create_branch", dry_run=dry) as run:
            run.has_begun = create_branch(store, name, tag, ignore_if_exists=ignore_if_exists, dry_run=dry)

    def branch(self: AnyTable, name: str) -> AnyTable:
        """Open a branch, a table like any other; 'main' is the table itself. Raises TableNotFoundError without it."""
        return type(self)(self._opened.on_branch(checked_branch("name", name)), self._spark)

    def branches(self) -> list[BranchInfo]:
        """The branches beside the main one, by name."""
        return branch_infos(self._store())

    def fast_forward(self, name: str, *, dry_run: bool = False) -> FastForwardResult:
        """Make the table what a branch is, from the branch's oldest snapshot on. The branch stays.

        As in Paimon, snapshots, tags and schema changes that the table has of its own since then are dropped, and its
        older snapshots stay, unless those of the branch do not follow on them. Let nobody write to the table meanwhile:
        who does may lose the commit. A run that stopped half-way is finished by the next; with ``dry_run`` nothing is
        changed. Raises TableNotFoundError
        without the branch, InvalidInputError for one without snapshots, for a table that is a branch itself, and where a
        snapshot or tag that stays needs a schema that the branch has not, CommitConflictError where others committed
        meanwhile.
        """
        store, branch = self._store().to_change(), checked_branch("name", name)
        dry = checked_flag("dry_run", dry_run)
        with recorded(store, "fast_forward", dry_run=dry):
            return fast_forward(store, branch, dry_run=dry)

    def rename_branch(self, name: str, new_name: str, *, dry_run: bool = False) -> None:
        """Give a branch another name. Let nobody write to it meanwhile: its files are copied, then deleted.

        With ``dry_run`` nothing is changed. Raises TableNotFoundError without the branch, InvalidInputError where the new
        name is taken or refused.
        """
        store = self._store().to_change()
        old, new = checked_branch("name", name), checked_branch("new_name", new_name, new=True)
        dry = checked_flag("dry_run", dry_run)
        with recorded(store, "rename_branch", dry_run=dry):
            rename_branch(store, old, new, dry_run=dry)

    def delete_branch(self, name: str, *, dry_run: bool = False) -> None:
        """Delete a branch: its snapshots, tags and schemas. Files that nothing else needs are orphans then.

        Let nobody write to it meanwhile: a commit would leave a part of it, which another call clears away.
        Also clears away what a creation or deletion left that stopped half-way. With ``dry_run`` nothing is. Raises
        TableNotFoundError without the branch, InvalidInputError for the option 'scan.fallback-branch' and for a table
        that is a branch itself.
        """
        store, branch = self._store().to_change(), checked_branch("name", name)
        dry = checked_flag("dry_run", dry_run)
        with recorded(store, "delete_branch", dry_run=dry):
            delete_branch(store, branch, dry_run=dry)

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
        dry_run: bool = False,
    ) -> TagInfo:
        """Name a snapshot, the newest by default, so that it stays and can be read by the name.

        ``timestamp`` chooses the newest snapshot that is not later, as in `read`. ``time_retained`` is how long the tag
        lives ('365 d', a timedelta or seconds), by default as ``tag.default-time-retained`` says, or for ever. A tag of
        that name is never replaced: it raises InvalidInputError, or with ``if_not_exists`` stays and is returned. With
        ``dry_run`` nothing is made.
        """
        tag, retained = checked_tag("name", name, optional=False), _retained(time_retained)
        checked_flag("if_not_exists", if_not_exists)
        store, dry = self._store().to_change(), checked_flag("dry_run", dry_run)
        snapshot = self._tagged(store, snapshot_id, timestamp)
        with recorded(store, "create_tag", dry_run=dry) as run:
            run.has_begun = not (if_not_exists and store.tags.try_get(tag))
            return create_tag(
                store, tag, snapshot, time_retained=retained, if_not_exists=if_not_exists, dry_run=dry
            )

    def replace_tag(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        timestamp: str | datetime | None = None,
        time_retained: float | str | timedelta | None = None,
        dry_run: bool = False,
    ) -> TagInfo:
        """Make a tag that exists name another snapshot; arguments are as in `create_tag`, and its time begins anew.

        Files that only the tag's old snapshot kept are deleted, as by `delete_tag`; with ``dry_run`` nothing is changed.
        """
        tag, retained = checked_tag("name", name, optional=False), _retained(time_retained)
        store, dry = self._store().to_change(), checked_flag("dry_run", dry_run)
        snapshot = self._tagged(store, snapshot_id, timestamp)
        with recorded(store, "replace_tag", dry_run=dry):
            return replace_tag(store, tag, snapshot, time_retained=retained, dry_run=dry)

    def rename_tag(self, name: str, new_name: str, *, dry_run: bool = False) -> TagInfo:
        """Give a tag another name, which no other tag may have. With ``dry_run`` nothing is changed."""
        old, new = checked_tag("name", name, optional=False), checked_tag("new_name", new_name, optional=False)
        store, dry = self._store().to_change(), checked_flag("dry_run", dry_run)
        with recorded(store, "rename_tag", dry_run=dry):
            return rename_tag(store, old, new, dry_run=dry)

    def delete_tag(self, name: str, *, dry_run: bool = False) -> TagDeletionResult:
        """Delete a tag, and the files that nothing else needs: no snapshot, other tag, branch or long-lived changelog.

        With ``dry_run`` nothing is deleted. Raises SnapshotNotFoundError, which lists the tags, where there is none.
        """
        tag = checked_tag("name", name, optional=False)
        store, dry = self._store().to_change(), checked_flag("dry_run", dry_run)
        with recorded(store, "delete_tag", dry_run=dry) as run:
            result = delete_tags(store, [tag], dry_run=dry)
            run.files, run.bytes = result.files, result.bytes
        return result

    def expire_tags(
        self, older_than: timedelta | datetime | float | str | None = None, *, dry_run: bool = False
    ) -> TagDeletionResult:
        """Delete the tags that are past their time, as after each commit, and their files as `delete_tag` does.

        ``older_than``, an age ('365 d', a timedelta, seconds) or a moment, also takes those that were made before it,
        whatever their time. With ``dry_run`` nothing is deleted.
        """
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        store = self._store().to_change()
        before = None if age is None else age.bound(SYSTEM.clock(), store.text_zone)
        with recorded(store, "expire_tags", dry_run=dry) as run:
            result = expire_tags(store, before, dry_run=dry)
            run.files, run.bytes = result.files, result.bytes
        return result

    # -- rollback --------------------------------------------------------------------------------------------------

    def rollback(
        self,
        to: int | str | datetime | None = None,
        *,
        timestamp: str | datetime | None = None,
        dry_run: bool = False,
    ) -> RollbackResult:
        """Go back to a snapshot: its id, the name of a tag, or a time (the newest snapshot that is not later).

        A text is always a tag's name; ``timestamp`` takes the text of a time, as `read` does. One of the two is given.

        Later snapshots, tags and long-lived changelogs go, and the files that nothing else needs; a snapshot that has
        expired comes back from its tag. The schema stays as it is. Commits that are under way on a later snapshot are
        refused, and consumers beyond go on after the snapshot. With ``dry_run`` nothing is changed. A rollback that was
        killed leaves a table that reads; the same call finishes it. Raises SnapshotNotFoundError where there is no such
        snapshot or tag, or where it has expired.
        """
        point, moment = checked_point("to", to, least=1), checked_time("timestamp", timestamp)
        checked_flag("dry_run", dry_run)
        store, asked = self._store().to_change(), None
        if isinstance(point, Moment) and moment is None:
            point, moment = None, point
        if point is not None and moment is None and not isinstance(point, Moment):
            target = rollback_target(store, point)
        elif point is None and moment is not None:
            asked = store.millis_of(moment)
            target = store.snapshots.at_or_before(asked)
        else:
            raise InvalidInputError("Give one of to (a snapshot id, the name of a tag, or a datetime) and timestamp.")
        with recorded(store, "rollback", dry_run=dry_run) as run:
            result = rollback(store, target, dry_run=dry_run)
            run.files, run.bytes = result.files, result.bytes
        return result if asked is None else replace(result, timestamp=utc_time(asked, "timestamp"))

    # -- consumers -------------------------------------------------------------------------------------------------

    def consumers(self) -> list[ConsumerInfo]:
        """The consumers of the table by name: readers whose next snapshot expiry keeps."""
        return consumer_infos(self._store())

    def record_consumer(self, consumer_id: str, next_snapshot: int, *, dry_run: bool = False) -> None:
        """Say which snapshot a consumer reads next: a new one begins there, and one that is known may go back.

        Record what was read only when it was also worked off: then nothing is lost, whatever is killed. With ``dry_run``
        nothing is recorded. Raises InvalidInputError for a snapshot beyond the next commit's, SnapshotNotFoundError for
        one that has expired.
        """
        name = checked_consumer("consumer_id", consumer_id, optional=False)
        number, dry = checked_number("next_snapshot", next_snapshot, least=1), checked_flag("dry_run", dry_run)
        record_consumer(self._store().to_change(), name, number, dry_run=dry)

    def delete_consumer(self, consumer_id: str, *, dry_run: bool = False) -> None:
        """Forget a consumer; expiry keeps nothing for it any more. Raises InvalidInputError where there is none.

        With ``dry_run`` nothing is changed.
        """
        name, dry = checked_consumer("consumer_id", consumer_id, optional=False), checked_flag("dry_run", dry_run)
        delete_consumer(self._store().to_change(), name, dry_run=dry)

    def expire_consumers(
        self, older_than: timedelta | datetime | float | str | None = None, *, dry_run: bool = False
    ) -> ConsumerExpiryResult:
        """Forget consumers whose progress was last recorded before an age ('7 days', a timedelta, seconds) or a moment.

        By default ``consumer.expiration-time`` says it; without either it raises InvalidInputError. With ``dry_run``
        nothing is changed.
        """
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        store = self._store().to_change()
        before = consumer_bound(store, age, SYSTEM.clock())
        with recorded(store, "expire_consumers", dry_run=dry):
            return expire_consumers(store, before, dry_run=dry)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _tagged(self, store: TableStore, snapshot_id: int | None, timestamp: str | datetime | None) -> Snapshot:
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        moment = checked_time("timestamp", timestamp)
        if moment is None:
            return tagged_snapshot(store, snapshot_id)
        if snapshot_id is not None:
            raise InvalidInputError("Give one of snapshot_id and timestamp.")
        return store.snapshots.at_or_before(store.millis_of(moment))


def _retained(value: float | str | timedelta | None) -> float | None:
    age = checked_age("time_retained", value, moments=False)
    return None if age is None else age.seconds

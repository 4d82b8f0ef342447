"""Tags: names of snapshots, which expiry keeps. Created, renamed, replaced, deleted, and expired after their time.

A tag contains a whole snapshot, so its state can be read after the snapshot has expired. When a tag is deleted, the files
that only it kept are deleted too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from lakelsm.environment import SYSTEM, Environment
from lakelsm.epoch_time import bound_time, utc_time, wall_time
from lakelsm.errors import CommitOutcomeUnknownError, CorruptTableError, InvalidInputError, SnapshotNotFoundError
from lakelsm.failures import after_commit_step
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.maintain.deletion.file_deletion import DeletedFiles, delete_unneeded
from lakelsm.maintain.deletion.removed_states import RemovedStates
from lakelsm.results import TagDeletionResult, TagInfo
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.json_file import checked_bytes, publish
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG, created_at

_EPOCH = datetime(1970, 1, 1)
#: Other writers may set retention times that are too long for a timedelta.
_MAX_SECONDS = timedelta.max.days * 86_400
#: The retention time of a holding tag, in case its creator is killed.
_HELD_SECONDS = 3600.0
_ORPHANS = "table.maintenance.remove_orphans() deletes them."
_TAG_STANDS = f"Nothing to do, unless its creation took longer than {_HELD_SECONDS:.0f} s: then create it again."
#: The maximum number of tags that are checked for expiry after a commit.
_MAX_CHECKED = 16


def tag_infos(store: TableStore) -> list[TagInfo]:
    """Return all tags of the branch, sorted by snapshot id and then by name."""
    found = [tag_info(name, tag) for name, tag in store.tags.all().items()]
    return sorted(found, key=lambda info: (info.snapshot_id, info.name))


def tag_info(name: str, tag: Tag) -> TagInfo:
    """Return the public details of a tag."""
    snapshot, retained = tag.snapshot, tag.time_retained_seconds
    return TagInfo(
        name=name,
        snapshot_id=snapshot.id,
        schema_id=snapshot.schema_id,
        rows=snapshot.total_record_count,
        committed_at=utc_time(snapshot.time_millis, f"Tag {name!r}"),
        created_at=created_at(name, tag),
        time_retained=None if retained is None else timedelta(seconds=min(retained, _MAX_SECONDS)),
    )


def snapshot_to_tag(store: TableStore, snapshot_id: int | None) -> Snapshot:
    """Return the snapshot to tag by its id; None means the newest. Another tag may have kept it."""
    if snapshot_id is None:
        latest = store.snapshots.latest()
        if latest is None:
            raise SnapshotNotFoundError(f"Table {store.name} has no snapshot to tag. Write to it first.")
        return latest
    found = store.snapshots.try_get(snapshot_id)
    if found is not None:
        return found
    return store.tags.snapshot_of(snapshot_id) or store.snapshots.get(snapshot_id)


def tag_snapshot(
    store: TableStore, snapshot_id: int | None, make: Callable[[Snapshot], TagInfo], environment: Environment = SYSTEM
) -> TagInfo:
    """Create a tag of the snapshot with an id. None means the newest; if it is removed concurrently, the next newest.

    ``make`` is `create_tag` or `replace_tag` for one name. Raises the errors of these and of `snapshot_to_tag`.
    """
    if snapshot_id is not None:
        return make(snapshot_to_tag(store, snapshot_id))
    return store.run_on_newest(lambda: make(snapshot_to_tag(store, None)), environment.sleep)


def restorable_snapshot(store: TableStore, tagged: Snapshot) -> Snapshot:
    """Return a tag's snapshot as it can be restored: without its changelog if that expired, because no tag keeps it."""
    kept = store.snapshots.try_get(tagged.id), store.changelogs.try_get(tagged.id)
    expiring = store.snapshots.is_expiring(tagged.id)
    if (tagged.matches(kept[0]) and not expiring) or tagged.matches(kept[1]):
        return tagged
    return tagged.without_changelog()


def create_tag(
    store: TableStore,
    name: str,
    snapshot: Snapshot,
    *,
    time_retained: float | None = None,
    if_not_exists: bool = False,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> TagInfo:
    """Create a tag of a snapshot. ``time_retained`` is in seconds, by default ``tag.default-time-retained``.

    An existing tag is never replaced: it raises InvalidInputError, or is returned with ``if_not_exists``. Raises
    SnapshotNotFoundError, and leaves nothing behind, if the snapshot expires or is rolled back concurrently.
    """
    present = store.tags.try_get(name)
    if present is None:
        tag = _new_tag(store, snapshot, time_retained, environment)
        if dry_run:
            return tag_info(name, tag)
        with _holding(store, snapshot, f"the creation of tag {name!r}", environment) as holder:
            if _publish(store, name, tag, environment):
                _check_held(store, name, holder)
                return tag_info(name, tag)
        present = store.tags.get(name)
    if not if_not_exists:
        raise InvalidInputError(
            f"Table {store.name}: tag {name!r} already exists (snapshot {present.snapshot.id}). Choose another name, or "
            "call tags.replace or tags.delete."
        )
    return tag_info(name, present)


def rename_tag(
    store: TableStore, name: str, new_name: str, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> TagInfo:
    """Rename a tag. Both names exist for a moment; there is no moment with neither."""
    tag = store.tags.get(name)
    taken = InvalidInputError(
        f"Table {store.name}: tag {new_name!r} already exists. Choose another name for {name!r}, or delete that tag."
    )
    if store.tags.try_get(new_name) is not None:
        raise taken
    if not dry_run:
        with _holding(store, tag.snapshot, f"the renaming of tag {name!r} to {new_name!r}", environment) as holder:
            if not _publish(store, new_name, tag, environment):
                raise taken
            _check_held(store, new_name, holder)
            step, remedy = f"the deletion of tag {name!r}", f"Call table.tags.delete({name!r})."
            with after_commit_step(store.name, step, remedy, done=f"the creation of tag {new_name!r}"):
                store.file_io.delete(store.paths.tag(name))
    return tag_info(new_name, tag)


def replace_tag(
    store: TableStore,
    name: str,
    snapshot: Snapshot,
    *,
    time_retained: float | None = None,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> TagInfo:
    """Move an existing tag to another snapshot. Its retention time starts again."""
    store.tags.get(name)
    tag = _new_tag(store, snapshot, time_retained, environment)
    if dry_run:
        return tag_info(name, tag)
    with _holding(store, snapshot, f"the replacement of tag {name!r}", environment) as holder:
        before = store.tags.get(name)
        removed = _removed_states(store, [before.snapshot], {**_without(store.tags.all(), (name,)), name: tag})
        if removed is not None:
            removed.keep_retained(remaining=lambda branch: _remaining(store, branch, (name,)))
        store.file_io.write(store.paths.tag(name), _content(store, name, tag))
        _check_held(store, name, holder)
    if removed is not None:
        step = "the deletion of the files that only the replaced tag kept"
        with after_commit_step(store.name, step, _ORPHANS, done=f"the replacement of tag {name!r}"):
            removed.keep_retained()
            removed.delete()
    return tag_info(name, tag)


def delete_tags(store: TableStore, names: Sequence[str], *, dry_run: bool = False) -> TagDeletionResult:
    """Delete tags, and then the files that nothing else needs. Files of a damaged tag are left to orphan removal.

    Raises SnapshotNotFoundError if a tag does not exist, CorruptTableError if another retained state cannot be read, and
    CommitConflictError if other processes keep removing retained states. In these cases nothing is deleted.
    """
    if not names:
        return TagDeletionResult(table=store.name, dry_run=dry_run)
    known = store.tags.names()
    for name in names:
        if name not in known:
            store.tags.get(name)
    tags = {name: tag for name in known if (tag := _readable(store, name, names)) is not None}
    to_delete = {name: tags[name] for name in names if name in tags}
    removed = _removed_states(store, [tag.snapshot for tag in to_delete.values()], _without(tags, to_delete))
    if removed is not None:
        removed.keep_retained(remaining=lambda branch: _remaining(store, branch, to_delete))
    deleted = DeletedFiles()
    if not dry_run:
        for name in names:
            store.file_io.delete(store.paths.tag(name))
        if removed is not None:
            step, done = "the deletion of the files that only deleted tags kept", "the deletion of tags"
            with after_commit_step(store.name, step, _ORPHANS, done=done) as failures:
                # Read again: an operation that needs a tag's files either sees that the tag is deleted, or is seen here.
                removed.keep_retained()
                deleted = removed.delete()
            if failures:
                deleted = DeletedFiles(failures=(failures[0].text,))
    return TagDeletionResult(
        table=store.name,
        dry_run=dry_run,
        tags=tuple(names),
        files=0 if removed is None else removed.files,
        bytes=0 if removed is None else removed.candidates.bytes,
        failures=deleted.failures,
    )


def _removed_states(
    store: TableStore, states: Iterable[Snapshot], remaining: Mapping[str, Tag]
) -> RemovedStates | None:
    """Return the tagged states that are neither a snapshot nor one of the remaining tags; None if there are none."""
    kept = {tag.snapshot.fingerprint for tag in remaining.values()}
    untagged = [state for state in states if state.fingerprint not in kept]
    alone = [state for state in untagged if not state.matches(store.snapshots.try_get(state.id))]
    if not alone:
        return None
    removed = RemovedStates(store)
    for state in {state.fingerprint: state for state in alone}.values():
        try:
            removed.add_state(state)
        except CorruptTableError as error:
            # Its creator crashed before it noticed that the snapshot expired. Orphan removal deletes the other files.
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return removed


def _readable(store: TableStore, name: str, to_delete: Sequence[str]) -> Tag | None:
    """Return a tag; None if it does not exist, or if it is damaged and will be deleted."""
    try:
        return store.tags.try_get(name)
    except CorruptTableError:
        if name not in to_delete:
            raise
        return None


def _without(tags: Mapping[str, Tag], names: Container[str]) -> dict[str, Tag]:
    return {name: tag for name, tag in tags.items() if name not in names}


def _remaining(store: TableStore, branch: RetainedBranch, names: Container[str]) -> RetainedBranch:
    """Return what a branch retains without some tags of the table."""
    return replace(branch, tags=_without(branch.tags, names)) if branch.paths == store.paths else branch


def expired_tags(
    store: TableStore, tags: Mapping[str, Tag], before: int | None, environment: Environment
) -> list[str]:
    """Return the names of the given tags that are past their time, or that were created before ``before`` (epoch millis).

    A tag without a retention time does not record its creation; the time of its file is used instead.
    """
    # Integers, because the years of some bounds and retention times are out of the range of datetimes.
    clock = environment.local_wall_clock(environment.clock())
    bound = -math.inf if before is None else environment.local_wall_clock(before)
    written: dict[str, int] = {}
    if before is not None:
        written = {entry.name: entry.modified for entry in store.file_io.entries(store.paths.tag_dir)}
    expired = []
    for name, tag in tags.items():
        created, retained = created_at(name, tag), tag.time_retained_seconds
        if created is None or retained is None:
            file = store.paths.tag(name).rsplit("/", 1)[1]
            if before is not None and file in written and written[file] < before:
                expired.append(name)
        else:
            millis = (created - _EPOCH) / timedelta(milliseconds=1)
            if clock > millis + retained * 1000 or bound > millis:
                expired.append(name)
    return expired


def expire_tags(
    store: TableStore, before: int | None = None, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> TagDeletionResult:
    """Delete the tags that are past their time, and those that were created before ``before`` (epoch millis)."""
    result = delete_tags(store, expired_tags(store, store.tags.all(), before, environment), dry_run=dry_run)
    return result if before is None else replace(result, older_than=bound_time(before))


def expire_after_commit(store: TableStore, environment: Environment) -> None:
    """Delete expired tags, unless ``tag.time-expire-enabled`` is false.

    Each commit checks a limited, random part of the tags, so the cost of a commit does not grow with their number.
    """
    names = store.tags.names() if store.options.tag_time_expire_enabled else ()
    first = int(environment.chance() * len(names)) if len(names) > _MAX_CHECKED else 0
    checked = [*names[first:], *names[:first]][:_MAX_CHECKED]
    found = ((name, store.tags.try_get(name)) for name in checked)
    expired = expired_tags(store, {name: tag for name, tag in found if tag is not None}, None, environment)
    if expired:
        delete_tags(store, expired)


def _new_tag(store: TableStore, snapshot: Snapshot, time_retained: float | None, environment: Environment) -> Tag:
    """Return a tag as Java creates it. Without a retention time it has the text of its snapshot, as in older versions."""
    default = store.options.tag_default_time_retained
    if time_retained is None and default is not None:
        time_retained = default / 1000
    if time_retained is None:
        return Tag(snapshot)
    clock = wall_time(environment.local_wall_clock(environment.clock()), "The clock")
    parts = (clock.year, clock.month, clock.day, clock.hour, clock.minute, clock.second, clock.microsecond * 1000)
    return Tag(snapshot, parts, float(time_retained))


def _publish(store: TableStore, name: str, tag: Tag, environment: Environment) -> bool:
    """Create a tag's file unless it exists. Return whether the file has this content."""
    try:
        return publish(store.file_io, store.paths.tag(name), _content(store, name, tag), environment.sleep)
    except CommitOutcomeUnknownError as error:
        raise CommitOutcomeUnknownError(
            f"Table {store.name}: it is unknown whether tag {name!r} was created ({error.__cause__}). Check it with "
            "table.tags.list()."
        ) from error


@contextmanager
def _holding(store: TableStore, snapshot: Snapshot, step: str, environment: Environment) -> Iterator[str]:
    """Keep a snapshot with a holding tag during the block. Yields the name of the holding tag.

    So a user's tag is reliable from its first moment, and a replaced tag does not depend on its predecessor. Raises
    SnapshotNotFoundError if no other state keeps the snapshot, because its files may be deleted already. Operations that
    remove a tag or a snapshot, or announce the removal, read the tags afterwards, so at least one of the two sees the
    other. No process deletes a holding tag before its time.
    """
    holder = f"{HOLDING_TAG}{environment.new_uuid()}"
    path = store.paths.tag(holder)
    try:
        _publish(store, holder, _new_tag(store, snapshot, _HELD_SECONDS, environment), environment)
        if not _is_kept(store, snapshot):
            store.snapshots.check_complete()
            raise SnapshotNotFoundError(
                f"Table {store.name}: snapshot {snapshot.id} expired or was rolled back during {step}. Nothing was "
                "changed: choose a snapshot that is retained.",
                was_removed=True,
            )
        yield holder
    finally:
        delete_unneeded(store.file_io, [path])


def _is_kept(store: TableStore, snapshot: Snapshot) -> bool:
    """Return whether a snapshot, or a tag that a user created, keeps the files of a snapshot."""
    now = store.snapshots.try_get(snapshot.id)
    if snapshot.matches(now) and not store.snapshots.is_expiring(snapshot.id) and store.snapshots.is_linked(snapshot):
        return True
    return store.tags.name_of(snapshot) is not None


def _check_held(store: TableStore, name: str, holder: str) -> None:
    """Delete a tag if its holding tag no longer exists: this process was paused for longer than the retention time."""
    is_held = True
    step = "the check that it was created in time"
    with after_commit_step(store.name, step, _TAG_STANDS, done=f"the creation of tag {name!r}"):
        is_held = store.tags.try_get(holder) is not None
    if not is_held:
        store.file_io.delete(store.paths.tag(name))
        raise SnapshotNotFoundError(
            f"Table {store.name}: the creation of tag {name!r} took longer than {_HELD_SECONDS:.0f} s, and its snapshot "
            "may have expired. The tag was not created: choose a snapshot that is retained."
        )


def _content(store: TableStore, name: str, tag: Tag) -> bytes:
    return checked_bytes(tag, store.paths.tag(name), MAX_SNAPSHOT_BYTES)

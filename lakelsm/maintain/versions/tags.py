"""Tags: snapshots with names, which expiry keeps. Created, renamed, replaced, deleted, and expired after their time.

A tag holds a whole snapshot, so its state reads after the snapshot has expired. What only it kept is deleted with it.
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
#: What other writers may retain tags for is longer than a timedelta.
_MAX_SECONDS = timedelta.max.days * 86_400
#: How long a holding tag stays that was left behind.
_HELD_SECONDS = 3600.0
_ORPHANS = "table.maintenance.remove_orphans() deletes them."
_TAG_STANDS = f"Nothing to do, unless making it took longer than {_HELD_SECONDS:.0f} s: then make it again."
#: So many tags are looked at for their time after a commit.
_LOOKED_AT = 16


def tag_infos(store: TableStore) -> list[TagInfo]:
    """All tags of the branch, by the ids of their snapshots and then by name."""
    found = [tag_info(name, tag) for name, tag in store.tags.all().items()]
    return sorted(found, key=lambda info: (info.snapshot_id, info.name))


def tag_info(name: str, tag: Tag) -> TagInfo:
    """What users see of a tag."""
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
    """The snapshot of an id, which another tag may have kept; the newest for None. Raises SnapshotNotFoundError."""
    if snapshot_id is None:
        latest = store.snapshots.latest()
        if latest is None:
            raise SnapshotNotFoundError(f"Table {store.name} has no snapshots yet, so there is nothing to tag.")
        return latest
    found = store.snapshots.try_get(snapshot_id)
    if found is not None:
        return found
    return store.tags.snapshot_of(snapshot_id) or store.snapshots.get(snapshot_id)


def tag_snapshot(
    store: TableStore, snapshot_id: int | None, make: Callable[[Snapshot], TagInfo], environment: Environment = SYSTEM
) -> TagInfo:
    """Create a tag of the snapshot of an id; for None of the newest one, and of the next if that one is removed.

    ``make`` is `create_tag` or `replace_tag` of one name. Errors as theirs and as of `snapshot_to_tag`.
    """
    if snapshot_id is not None:
        return make(snapshot_to_tag(store, snapshot_id))
    return store.run_on_newest(lambda: make(snapshot_to_tag(store, None)), environment.sleep)


def restorable_snapshot(store: TableStore, tagged: Snapshot) -> Snapshot:
    """A tag's snapshot as it can be one again: without its changelog where that expired, which no tag keeps."""
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
    """Name a snapshot; ``time_retained`` is in seconds, by default ``tag.default-time-retained``.

    Never replaces a tag: one of that name raises InvalidInputError, or is kept with ``if_not_exists``. Raises
    SnapshotNotFoundError, with nothing left behind, if the snapshot expires or is rolled back concurrently.
    """
    present = store.tags.try_get(name)
    if present is None:
        tag = _new_tag(store, snapshot, time_retained, environment)
        if dry_run:
            return tag_info(name, tag)
        with _held(store, snapshot, f"tag {name!r} was made of it", environment) as holder:
            if _publish(store, name, tag, environment):
                _check_held(store, name, holder)
                return tag_info(name, tag)
        present = store.tags.get(name)
    if not if_not_exists:
        raise InvalidInputError(
            f"Table {store.name} has a tag {name!r} already, of snapshot {present.snapshot.id}: choose another name, "
            "or call tags.replace or tags.delete."
        )
    return tag_info(name, present)


def rename_tag(
    store: TableStore, name: str, new_name: str, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> TagInfo:
    """Rename a tag; no tag may have the new name. For a moment both names exist, never none."""
    tag = store.tags.get(name)
    taken = InvalidInputError(
        f"Table {store.name} has a tag {new_name!r} already: choose another name for {name!r}, or delete that tag."
    )
    if store.tags.try_get(new_name) is not None:
        raise taken
    if not dry_run:
        with _held(store, tag.snapshot, f"tag {name!r} was renamed to {new_name!r}", environment) as holder:
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
    """Move an existing tag to another snapshot; its retention time starts again."""
    store.tags.get(name)
    tag = _new_tag(store, snapshot, time_retained, environment)
    if dry_run:
        return tag_info(name, tag)
    with _held(store, snapshot, f"tag {name!r} was replaced by it", environment) as holder:
        before = store.tags.get(name)
        released = _released(store, [before.snapshot], {**_without(store.tags.all(), (name,)), name: tag})
        if released is not None:
            released.keep_retained(left=lambda branch: _left_of(store, branch, (name,)))
        store.file_io.write(store.paths.tag(name), _content(store, name, tag))
        _check_held(store, name, holder)
    if released is not None:
        step = "the deletion of the files that only the replaced tag kept"
        with after_commit_step(store.name, step, _ORPHANS, done=f"the replacement of tag {name!r}"):
            released.keep_retained()
            released.delete()
    return tag_info(name, tag)


def delete_tags(store: TableStore, names: Sequence[str], *, dry_run: bool = False) -> TagDeletionResult:
    """Delete tags, and then the files that nothing else needs. What one that is damaged kept is left to orphan removal.

    Raises SnapshotNotFoundError where one of them does not exist, CorruptTableError where something else that is
    retained cannot be read, and CommitConflictError where others remove it again and again: nothing is deleted then.
    """
    if not names:
        return TagDeletionResult(table=store.name, dry_run=dry_run)
    known = store.tags.names()
    for name in names:
        if name not in known:
            store.tags.get(name)
    tags = {name: tag for name in known if (tag := _readable(store, name, names)) is not None}
    going = {name: tags[name] for name in names if name in tags}
    released = _released(store, [tag.snapshot for tag in going.values()], _without(tags, going))
    if released is not None:
        released.keep_retained(left=lambda branch: _left_of(store, branch, going))
    deleted = DeletedFiles()
    if not dry_run:
        for name in names:
            store.file_io.delete(store.paths.tag(name))
        if released is not None:
            step, done = "the deletion of the files that only deleted tags kept", "the deletion of tags"
            with after_commit_step(store.name, step, _ORPHANS, done=done) as failures:
                # Looked at again: an operation that needs a tag's files sees that the tag is deleted, or is seen here.
                released.keep_retained()
                deleted = released.delete()
            if failures:
                deleted = DeletedFiles(failures=(failures[0].text,))
    return TagDeletionResult(
        table=store.name,
        dry_run=dry_run,
        tags=tuple(names),
        files=0 if released is None else released.files,
        bytes=0 if released is None else released.found.bytes,
        failures=deleted.failures,
    )


def _released(store: TableStore, states: Iterable[Snapshot], left: Mapping[str, Tag]) -> RemovedStates | None:
    """The files of tagged states that neither a snapshot of their own nor another tag is of; None where all have one."""
    kept = {tag.snapshot.fingerprint for tag in left.values()}
    untagged = [state for state in states if state.fingerprint not in kept]
    alone = [state for state in untagged if not state.matches(store.snapshots.try_get(state.id))]
    if not alone:
        return None
    released = RemovedStates(store)
    for state in {state.fingerprint: state for state in alone}.values():
        try:
            released.add_state(state)
        except CorruptTableError as error:
            # Its creator crashed before it saw that the snapshot expired: the remaining files are left to orphan removal.
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return released


def _readable(store: TableStore, name: str, going: Sequence[str]) -> Tag | None:
    """A tag; None if it does not exist, or is damaged and about to be deleted."""
    try:
        return store.tags.try_get(name)
    except CorruptTableError:
        if name not in going:
            raise
        return None


def _without(tags: Mapping[str, Tag], names: Container[str]) -> dict[str, Tag]:
    return {name: tag for name, tag in tags.items() if name not in names}


def _left_of(store: TableStore, branch: RetainedBranch, names: Container[str]) -> RetainedBranch:
    """What a branch retains without some tags of the table."""
    return replace(branch, tags=_without(branch.tags, names)) if branch.paths == store.paths else branch


def expired_tags(
    store: TableStore, tags: Mapping[str, Tag], before: int | None, environment: Environment
) -> list[str]:
    """The names of those of some tags that are past their time; with ``before`` (epoch millis), those made before it too.

    Of a tag without a time it is not known when it was made, but for the time of its file.
    """
    # Whole numbers: the years of some bounds and retentions are beyond those of datetimes.
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
            made = (created - _EPOCH) / timedelta(milliseconds=1)
            if clock > made + retained * 1000 or bound > made:
                expired.append(name)
    return expired


def expire_tags(
    store: TableStore, before: int | None = None, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> TagDeletionResult:
    """Delete the tags that are past their time, and with ``before`` (epoch millis) those made before that."""
    result = delete_tags(store, expired_tags(store, store.tags.all(), before, environment), dry_run=dry_run)
    return result if before is None else replace(result, older_than=bound_time(before))


def expire_after_commit(store: TableStore, environment: Environment) -> None:
    """Delete expired tags, unless ``tag.time-expire-enabled`` is false.

    Of many tags some are looked at, others by the next commit, so that a commit costs no more where there are more.
    """
    names = store.tags.names() if store.options.tag_time_expire_enabled else ()
    first = int(environment.chance() * len(names)) if len(names) > _LOOKED_AT else 0
    looked_at = [*names[first:], *names[:first]][:_LOOKED_AT]
    found = ((name, store.tags.try_get(name)) for name in looked_at)
    expired = expired_tags(store, {name: tag for name, tag in found if tag is not None}, None, environment)
    if expired:
        delete_tags(store, expired)


def _new_tag(store: TableStore, snapshot: Snapshot, time_retained: float | None, environment: Environment) -> Tag:
    """A tag as Java makes it: without a retention it is the snapshot's own text, which older readers know."""
    usual = store.options.tag_default_time_retained
    if time_retained is None and usual is not None:
        time_retained = usual / 1000
    if time_retained is None:
        return Tag(snapshot)
    clock = wall_time(environment.local_wall_clock(environment.clock()), "The clock")
    parts = (clock.year, clock.month, clock.day, clock.hour, clock.minute, clock.second, clock.microsecond * 1000)
    return Tag(snapshot, parts, float(time_retained))


def _publish(store: TableStore, name: str, tag: Tag, environment: Environment) -> bool:
    """Create a tag's file if absent; return whether it has this content."""
    try:
        return publish(store.file_io, store.paths.tag(name), _content(store, name, tag), environment.sleep)
    except CommitOutcomeUnknownError as error:
        raise CommitOutcomeUnknownError(
            f"Table {store.name}: whether tag {name!r} was made is not known ({error.__cause__}): look at "
            "table.tags.list()."
        ) from error


@contextmanager
def _held(store: TableStore, snapshot: Snapshot, what: str, environment: Environment) -> Iterator[str]:
    """Within, a holding tag, whose name is passed, keeps a snapshot.

    So a tag of a user is reliable from its first moment, and a replaced one does not
    depend on the one before. Raises SnapshotNotFoundError if nothing keeps the snapshot any more: its
    files may be deleted already. What removes a snapshot (or announces it, as expiry does), or a tag, reads the tags
    after that, so at least one of the two sees the other. No process deletes a holding tag before its time.
    """
    holder = f"{HOLDING_TAG}{environment.new_uuid()}"
    path = store.paths.tag(holder)
    try:
        _publish(store, holder, _new_tag(store, snapshot, _HELD_SECONDS, environment), environment)
        if not _is_kept(store, snapshot):
            store.snapshots.check_complete()
            raise SnapshotNotFoundError(
                f"Table {store.name}: snapshot {snapshot.id} expired, or was rolled back, while {what}. Nothing was "
                "changed: choose a snapshot that is retained.",
                was_removed=True,
            )
        yield holder
    finally:
        delete_unneeded(store.file_io, [path])


def _is_kept(store: TableStore, snapshot: Snapshot) -> bool:
    """Whether a snapshot, or a tag that a user made, keeps the files of a snapshot."""
    now = store.snapshots.try_get(snapshot.id)
    if snapshot.matches(now) and not store.snapshots.is_expiring(snapshot.id) and store.snapshots.is_linked(snapshot):
        return True
    return store.tags.name_of(snapshot) is not None


def _check_held(store: TableStore, name: str, holder: str) -> None:
    """Delete a tag without its holding tag: this process slept until the time of the holding tag was over."""
    held = True
    step = "the check that it was made in time"
    with after_commit_step(store.name, step, _TAG_STANDS, done=f"the creation of tag {name!r}"):
        held = store.tags.try_get(holder) is not None
    if not held:
        store.file_io.delete(store.paths.tag(name))
        raise SnapshotNotFoundError(
            f"Table {store.name}: making tag {name!r} took longer than {_HELD_SECONDS:.0f} s, and its snapshot may have "
            "expired: there is no such tag now. Make it of a snapshot that is retained."
        )


def _content(store: TableStore, name: str, tag: Tag) -> bytes:
    return checked_bytes(tag, store.paths.tag(name), MAX_SNAPSHOT_BYTES)

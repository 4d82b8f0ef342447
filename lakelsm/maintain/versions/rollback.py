"""A table goes back to an earlier snapshot: later snapshots, tags and long-lived changelogs go, and then their files.

A crash anywhere leaves a table that reads, and the same call finishes. Snapshots go from the newest one down, so that the
rest are without gaps, and LATEST names one that stays all the time. A snapshot that a tag kept is put back before any
goes. Files go last: those of removed snapshots that nothing needs which is retained then
(`maintain/deletion/removed_states.py`).

A commit that is published concurrently on a deleted snapshot is above a gap, or records another base than the one that
is before it: it is removed too. Its writer sees it (`commit/concurrent_rollback.py`).
One on the snapshot that stays is a commit after the rollback.

While it runs, a consumer holds the snapshot that stays. It is written before EARLIEST is looked at, and an expiry looks
at consumers after it wrote EARLIEST: so at least one of the two sees the other and stops. A rollback that finds an expiry
announced changes nothing; an expiry that finds the consumer deletes nothing, and the rollback withdraws its announcement.
The consumer of a rollback that was cut off, by an error or a kill, holds its snapshot until that is done again, or the
consumer is deleted: a snapshot that was published on a deleted one may be left above a gap. It exists until the files
are deleted too: a commit whose snapshot landed unseen and was removed is not repeated with deleted files, and another
rollback, which could restore what this one removes, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.maintain.deletion.file_deletion import delete_unneeded
from lakelsm.maintain.deletion.removed_states import RemovedStates
from lakelsm.maintain.versions.consumers import reset_consumers_beyond
from lakelsm.maintain.versions.tags import restorable_snapshot
from lakelsm.results import RollbackResult
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER, consumer_text
from lakelsm.snapshots.json_file import checked_bytes, publish
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG


def rollback_target(store: TableStore, to: int | str) -> Snapshot:
    """The snapshot of an id or of a tag. A tag may have kept a snapshot that has expired.

    Raises SnapshotNotFoundError if there is none, InvalidInputError if another one has its id now.
    """
    if isinstance(to, str):
        return _not_replaced(store, store.tags.get(to).snapshot, f"tag {to!r}")
    kept = store.snapshots.try_get(to)
    if kept is not None:
        if not store.snapshots.is_linked(kept):
            raise InvalidInputError(
                f"Table {store.name}: snapshot {to} was committed on one that was rolled back meanwhile, and its writer "
                f"takes it back: choose {to - 1} or another one."
            )
        return kept
    return store.tags.snapshot_of(to) or store.snapshots.get(to)


def rollback(
    store: TableStore, target: Snapshot, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> RollbackResult:
    """Go back to a snapshot that `rollback_target` found. Raises CorruptTableError, with nothing changed, where something
    that is retained cannot be read: what it needs is then not known.
    """
    started = environment.monotonic()
    retained = store.branches.retained()
    later = _Later.than(store, target)
    released = _released(store, target, later)
    released.keep([_left_of(store, branch, target) for branch in retained], target)
    if dry_run:
        return later.result(store, target, released, dry_run=True)
    with _held(store, target):
        _restore(store, target, environment)
    later = _remove_snapshots(store, target, later)
    _remove_changelogs(store, later)
    later = replace(later, tags=_tags_without_snapshot(store, target))
    for name in later.tags:
        store.file_io.delete(store.paths.tag(name))
    reset_consumers_beyond(store, target.id + 1)
    store.snapshots.withdraw_earliest(target.id)
    # Files of commits that came in between are their writers' to delete, or orphan removal's.
    released.keep_retained(target)
    failures = released.delete().failures
    _let_go(store, target)
    seconds = environment.monotonic() - started
    return later.result(store, target, released, failures=failures, seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class _Later:
    """What is of later snapshots than one: ascending by id, tags by name."""

    snapshots: tuple[Snapshot, ...]
    changelogs: tuple[int, ...]
    tags: tuple[str, ...]
    consumers: tuple[str, ...]
    restores: bool

    @staticmethod
    def than(store: TableStore, target: Snapshot) -> _Later:
        return _Later(
            snapshots=tuple(snapshot for snapshot in store.snapshots.list() if snapshot.id > target.id),
            changelogs=tuple(number for number in store.changelogs.ids() if number > target.id),
            tags=tuple(name for name, tag in store.tags.all().items() if _is_later(name, tag, target)),
            consumers=tuple(name for name, number in store.consumers.all().items() if number > target.id + 1),
            restores=store.snapshots.try_get(target.id) is None,
        )

    def result(
        self,
        store: TableStore,
        target: Snapshot,
        released: RemovedStates,
        *,
        dry_run: bool = False,
        failures: tuple[str, ...] = (),
        seconds: float = 0.0,
    ) -> RollbackResult:
        return RollbackResult(
            table=store.name,
            snapshot_id=target.id,
            dry_run=dry_run,
            restored=self.restores,
            snapshots=tuple(snapshot.id for snapshot in self.snapshots),
            tags=self.tags,
            changelogs=self.changelogs,
            consumers=self.consumers,
            files=released.files,
            bytes=released.found.bytes,
            failures=failures,
            seconds=seconds,
        )


def _released(store: TableStore, target: Snapshot, later: _Later) -> RemovedStates:
    """The files of all later states, read before they are deleted."""
    released = RemovedStates(store)
    for before, snapshot in pairwise([target, *later.snapshots]):
        if _goes_on(snapshot, before):
            released.add_commit(snapshot)
        elif store.snapshots.is_linked(snapshot):  # The deltas in between are deleted.
            released.add_commit(snapshot)
            released.add_state(snapshot)
        # Otherwise its base was rolled back: files may be deleted. Its own are left to orphan removal.
    for number in later.changelogs:
        changelog = store.changelogs.try_get(number)
        if changelog is not None:
            released.add_changelog(changelog)
    known = {snapshot.fingerprint for snapshot in later.snapshots}
    for tag in map(store.tags.try_get, later.tags):
        if tag is not None and tag.snapshot.fingerprint not in known:
            released.add_state(tag.snapshot)
    return released


def _left_of(store: TableStore, branch: RetainedBranch, target: Snapshot) -> RetainedBranch:
    """What a branch retains after the rollback."""
    if branch.paths != store.paths:
        return branch
    return replace(
        branch,
        snapshots=[snapshot for snapshot in branch.snapshots if snapshot.id <= target.id],
        tags={name: tag for name, tag in branch.tags.items() if not _is_later(name, tag, target)},
        changelogs=[changelog for changelog in branch.changelogs if changelog.id <= target.id],
    )


@contextmanager
def _held(store: TableStore, target: Snapshot) -> Iterator[None]:
    """From now until `_let_go` expiry of this branch keeps a snapshot and all later ones, unless it was announced before.

    Not where what is done within fails. Raises CommitConflictError beside another rollback: one could put back what the
    other removes.
    """
    own = f"{ROLLBACK_CONSUMER}{target.id}"
    store.file_io.write(store.paths.consumer(own), consumer_text(target.id))
    try:
        others = (name for name in store.consumers.names() if name.startswith(ROLLBACK_CONSUMER) and name != own)
        for other in others:
            to = other.removeprefix(ROLLBACK_CONSUMER)
            raise CommitConflictError(
                f"Table {store.name}: another rollback, to snapshot {to}, is under way or was cut off. Nothing was "
                f"removed. Where it was cut off, run it again, or call table.consumers.delete({other!r})."
            )
        yield
    except BaseException:
        _let_go(store, target)
        raise


def _let_go(store: TableStore, target: Snapshot) -> None:
    delete_unneeded(store.file_io, [store.paths.consumer(f"{ROLLBACK_CONSUMER}{target.id}")])


def _not_replaced(store: TableStore, snapshot: Snapshot, what: str) -> Snapshot:
    now, before = store.snapshots.try_get(snapshot.id), store.snapshots.try_get(snapshot.id - 1)
    if not snapshot.matches(now) and (now is not None or (before is not None and not snapshot.follows(before))):
        raise InvalidInputError(
            f"Table {store.name}: {what} is of a snapshot {snapshot.id} that was rolled back, and another one has its id "
            "now: overwrite the table with the tag's rows instead."
        )
    return snapshot


def _restore(store: TableStore, target: Snapshot, environment: Environment) -> None:
    """Put a snapshot back that a tag kept, before any other goes; EARLIEST first, so that no expiry takes it again."""
    path = store.paths.snapshot_file(target.id)
    if store.tags.name_of(target) is not None and not target.matches(store.snapshots.try_get(target.id)):
        store.file_io.write(store.paths.earliest_hint, str(target.id).encode("ascii"))
        content = checked_bytes(restorable_snapshot(store, target), path, MAX_SNAPSHOT_BYTES)
        published = publish(store.file_io, path, content, environment.sleep)
        if published and store.tags.name_of(target) is None:  # The deletion of the tag may not have seen the snapshot.
            store.file_io.delete(path)
    if not target.matches(store.snapshots.try_get(target.id)) or store.snapshots.is_expiring(target.id):
        raise CommitConflictError(
            f"Table {store.name}: snapshot {target.id} expires, or was removed, while the table is rolled back to it. "
            "Nothing later was removed. Run it again; if the snapshot is gone then, choose another one."
        )


def _remove_snapshots(store: TableStore, target: Snapshot, later: _Later) -> _Later:
    """Remove later snapshots, the newest first, and those that are published on them concurrently."""
    removed: dict[str, Snapshot] = {}
    # Looked for again: one that is left above a gap keeps others from committing, should this be cut off.
    doomed = [snapshot for snapshot in store.snapshots.list() if snapshot.id > target.id]
    # The lowest snapshot of those without gaps: readers come from it to the newest that is left.
    lowest = target if not doomed or doomed[0].id == target.id + 1 else doomed[0]
    _point_latest(store, lowest)
    while doomed:
        for snapshot in sorted(doomed, key=lambda snapshot: -snapshot.id):
            store.file_io.delete(store.paths.snapshot_file(snapshot.id))
            removed[snapshot.fingerprint] = snapshot
        present = [snapshot for snapshot in store.snapshots.list() if snapshot.id > target.id]
        # Without a gap, and nothing that went: commits after the rollback.
        pairs = enumerate(zip([target, *present], present))
        late = (at for at, (before, each) in pairs if each.fingerprint in removed or not _goes_on(each, before))
        doomed = present[next(late, len(present)) :]
    store.snapshots.record_rollback(target)
    # Not at one that was published meanwhile on a removed snapshot: its writer removes it after this rollback.
    newest = store.snapshots.newest_linked()
    if newest is not None and newest.id >= target.id:
        _point_latest(store, newest)
    return replace(later, snapshots=tuple(sorted(removed.values(), key=lambda snapshot: snapshot.id)))


def _remove_changelogs(store: TableStore, later: _Later) -> None:
    """Remove long-lived changelogs of later snapshots; their LATEST first, as in Java."""
    if not later.changelogs:
        return
    kept = [number for number in store.changelogs.ids() if number < later.changelogs[0]]
    store.changelogs.announce_latest(max(kept, default=None))
    for number in reversed(later.changelogs):
        store.file_io.delete(store.paths.changelog(number))


def _tags_without_snapshot(store: TableStore, target: Snapshot) -> tuple[str, ...]:
    """Tags of deleted later snapshots, including concurrently created ones."""
    present = {snapshot.fingerprint for snapshot in store.snapshots.list()}
    tags = store.tags.all().items()
    return tuple(name for name, tag in tags if _is_later(name, tag, target) and tag.snapshot.fingerprint not in present)


def _is_later(name: str, tag: Tag, target: Snapshot) -> bool:
    """Whether a tag goes. One that holds a snapshot for a moment stays: another is made of it, after this rollback."""
    return tag.snapshot.id > target.id and not name.startswith(HOLDING_TAG)


def _goes_on(snapshot: Snapshot, before: Snapshot) -> bool:
    return snapshot.id == before.id + 1 and snapshot.follows(before)


def _point_latest(store: TableStore, snapshot: Snapshot) -> None:
    """Make LATEST name a snapshot. It must: readers would take a commit above a gap for the newest."""
    store.file_io.write(store.paths.latest_hint, str(snapshot.id).encode("ascii"))

"""Rollback: makes an earlier snapshot the newest one. Later snapshots, tags and long-lived changelogs are deleted, and
then their files.

A crash at any step leaves a readable table, and the same call completes the rollback. Snapshots are deleted from the
newest down, so the rest has no gaps, and LATEST always names one that stays. If a tag kept the snapshot, it is restored
before any other is deleted. Last, the files of removed snapshots that no retained state needs are deleted
(`maintain/deletion/removed_states.py`).

A commit that is concurrently published on a removed snapshot is above a gap, or records another base than its
predecessor. It is removed too, and its writer notices (`commit/concurrent_rollback.py`). A commit on the snapshot that
stays is a commit after the rollback.

During a rollback a consumer protects the snapshot that stays. The rollback writes it before it reads EARLIEST, and an
expiry reads consumers after it wrote EARLIEST. So at least one of the two sees the other and stops: a rollback that finds
an announced expiry changes nothing; an expiry that finds the consumer deletes nothing, and the rollback withdraws its
announcement. The consumer of a failed or killed rollback protects its snapshot until the rollback is repeated or the
consumer deleted, because a snapshot that was published on a removed one may be left above a gap. The consumer exists
until the files are deleted, for two reasons: a commit whose snapshot was published and removed unnoticed is not
repeated with deleted files, and another rollback, which could restore what this one removes, is refused.
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
    """Return the snapshot with an id, or that of a tag. A tag may have kept an expired snapshot.

    Raises SnapshotNotFoundError if it does not exist, InvalidInputError if another snapshot has its id now.
    """
    if isinstance(to, str):
        return _not_replaced(store, store.tags.get(to).snapshot, f"tag {to!r}")
    kept = store.snapshots.try_get(to)
    if kept is not None:
        if not store.snapshots.is_linked(kept):
            raise InvalidInputError(
                f"Table {store.name}: snapshot {to} is based on a snapshot that was rolled back, and its writer removes "
                f"it. Choose {to - 1} or another snapshot."
            )
        return kept
    return store.tags.snapshot_of(to) or store.snapshots.get(to)


def rollback(
    store: TableStore, target: Snapshot, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> RollbackResult:
    """Roll back to a snapshot that `rollback_target` returned.

    Raises CorruptTableError, with nothing changed, if a retained state cannot be read: its needs are then unknown.
    """
    started = environment.monotonic()
    retained = store.branches.retained()
    later = _LaterStates.than(store, target)
    removed = _removed_states(store, target, later)
    removed.keep([_remaining(store, branch, target) for branch in retained], target)
    if dry_run:
        return later.result(store, target, removed, dry_run=True)
    with _holding(store, target):
        _restore(store, target, environment)
    later = _remove_snapshots(store, target, later)
    _remove_changelogs(store, later)
    later = replace(later, tags=_tags_without_snapshot(store, target))
    for name in later.tags:
        store.file_io.delete(store.paths.tag(name))
    reset_consumers_beyond(store, target.id + 1)
    store.snapshots.withdraw_earliest(target.id)
    # Their writers or orphan removal delete the files of commits that were published in between.
    removed.keep_retained(target)
    failures = removed.delete().failures
    _delete_consumer(store, target)
    seconds = environment.monotonic() - started
    return later.result(store, target, removed, failures=failures, seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class _LaterStates:
    """The states after a snapshot. Snapshots and changelogs ascend by id, tags and consumers by name."""

    snapshots: tuple[Snapshot, ...]
    changelogs: tuple[int, ...]
    tags: tuple[str, ...]
    consumers: tuple[str, ...]
    restores: bool

    @staticmethod
    def than(store: TableStore, target: Snapshot) -> _LaterStates:
        return _LaterStates(
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
        removed: RemovedStates,
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
            files=removed.files,
            bytes=removed.candidates.bytes,
            failures=failures,
            seconds=seconds,
        )


def _removed_states(store: TableStore, target: Snapshot, later: _LaterStates) -> RemovedStates:
    """Read the later states, with their files, before they are deleted."""
    removed = RemovedStates(store)
    for before, snapshot in pairwise([target, *later.snapshots]):
        if _follows_directly(snapshot, before):
            removed.add_commit(snapshot)
        elif store.snapshots.is_linked(snapshot):  # The deltas in between are deleted.
            removed.add_commit(snapshot)
            removed.add_state(snapshot)
        # Otherwise its base was rolled back, and files may be deleted. Its own files are left to orphan removal.
    for number in later.changelogs:
        changelog = store.changelogs.try_get(number)
        if changelog is not None:
            removed.add_changelog(changelog)
    known = {snapshot.fingerprint for snapshot in later.snapshots}
    for tag in map(store.tags.try_get, later.tags):
        if tag is not None and tag.snapshot.fingerprint not in known:
            removed.add_state(tag.snapshot)
    return removed


def _remaining(store: TableStore, branch: RetainedBranch, target: Snapshot) -> RetainedBranch:
    """Return what a branch retains after the rollback."""
    if branch.paths != store.paths:
        return branch
    return replace(
        branch,
        snapshots=[snapshot for snapshot in branch.snapshots if snapshot.id <= target.id],
        tags={name: tag for name, tag in branch.tags.items() if not _is_later(name, tag, target)},
        changelogs=[changelog for changelog in branch.changelogs if changelog.id <= target.id],
    )


@contextmanager
def _holding(store: TableStore, target: Snapshot) -> Iterator[None]:
    """Protect a snapshot and all later ones from expiry of this branch, until `_delete_consumer`.

    It has no effect on an expiry that was announced before. If the block fails, the protection ends. Raises
    CommitConflictError if another rollback runs: one could restore what the other removes.
    """
    own = f"{ROLLBACK_CONSUMER}{target.id}"
    store.file_io.write(store.paths.consumer(own), consumer_text(target.id))
    try:
        others = (name for name in store.consumers.names() if name.startswith(ROLLBACK_CONSUMER) and name != own)
        for other in others:
            to = other.removeprefix(ROLLBACK_CONSUMER)
            raise CommitConflictError(
                f"Table {store.name}: another rollback, to snapshot {to}, is running or was interrupted, so nothing "
                f"was removed. If it was interrupted, run it again or call table.consumers.delete({other!r})."
            )
        yield
    except BaseException:
        _delete_consumer(store, target)
        raise


def _delete_consumer(store: TableStore, target: Snapshot) -> None:
    delete_unneeded(store.file_io, [store.paths.consumer(f"{ROLLBACK_CONSUMER}{target.id}")])


def _not_replaced(store: TableStore, snapshot: Snapshot, what: str) -> Snapshot:
    now, before = store.snapshots.try_get(snapshot.id), store.snapshots.try_get(snapshot.id - 1)
    if not snapshot.matches(now) and (now is not None or (before is not None and not snapshot.follows(before))):
        raise InvalidInputError(
            f"Table {store.name}: {what} is of snapshot {snapshot.id}, which was rolled back, and another snapshot has "
            "its id now. Overwrite the table with the tag's rows instead."
        )
    return snapshot


def _restore(store: TableStore, target: Snapshot, environment: Environment) -> None:
    """Restore a snapshot that a tag kept, before others are deleted. EARLIEST first: no expiry then deletes it again."""
    path = store.paths.snapshot_file(target.id)
    if store.tags.name_of(target) is not None and not target.matches(store.snapshots.try_get(target.id)):
        store.file_io.write(store.paths.earliest_hint, str(target.id).encode("ascii"))
        content = checked_bytes(restorable_snapshot(store, target), path, MAX_SNAPSHOT_BYTES)
        published = publish(store.file_io, path, content, environment.sleep)
        if published and store.tags.name_of(target) is None:  # The deletion of the tag may not have seen the snapshot.
            store.file_io.delete(path)
    if not target.matches(store.snapshots.try_get(target.id)) or store.snapshots.is_expiring(target.id):
        raise CommitConflictError(
            f"Table {store.name}: snapshot {target.id} expired or was removed during the rollback to it, so no "
            "later snapshot was removed. Run it again, or choose another snapshot if it no longer exists."
        )


def _remove_snapshots(store: TableStore, target: Snapshot, later: _LaterStates) -> _LaterStates:
    """Delete later snapshots, the newest first, and those that are concurrently published on them."""
    removed: dict[str, Snapshot] = {}
    # Listed again: after an interrupted call, a snapshot above a gap would keep others from committing.
    to_remove = [snapshot for snapshot in store.snapshots.list() if snapshot.id > target.id]
    # The lowest snapshot of those without gaps: from it, readers find the newest one that is left.
    lowest = target if not to_remove or to_remove[0].id == target.id + 1 else to_remove[0]
    _point_latest(store, lowest)
    while to_remove:
        for snapshot in sorted(to_remove, key=lambda snapshot: -snapshot.id):
            store.file_io.delete(store.paths.snapshot_file(snapshot.id))
            removed[snapshot.fingerprint] = snapshot
        present = [snapshot for snapshot in store.snapshots.list() if snapshot.id > target.id]
        # Snapshots that are not removed ones and follow without a gap are commits after the rollback: they stay.
        pairs = enumerate(zip([target, *present], present))
        late = (i for i, (before, each) in pairs if each.fingerprint in removed or not _follows_directly(each, before))
        to_remove = present[next(late, len(present)) :]
    store.snapshots.record_rollback(target)
    # Not to one that was concurrently published on a removed snapshot: its writer removes it after this rollback.
    newest = store.snapshots.newest_linked()
    if newest is not None and newest.id >= target.id:
        _point_latest(store, newest)
    return replace(later, snapshots=tuple(sorted(removed.values(), key=lambda snapshot: snapshot.id)))


def _remove_changelogs(store: TableStore, later: _LaterStates) -> None:
    """Delete long-lived changelogs of later snapshots. Their LATEST hint is deleted first, as in Java."""
    if not later.changelogs:
        return
    kept = [number for number in store.changelogs.ids() if number < later.changelogs[0]]
    store.changelogs.announce_latest(max(kept, default=None))
    for number in reversed(later.changelogs):
        store.file_io.delete(store.paths.changelog(number))


def _tags_without_snapshot(store: TableStore, target: Snapshot) -> tuple[str, ...]:
    """Return the tags of deleted later snapshots, including tags that were concurrently created."""
    present = {snapshot.fingerprint for snapshot in store.snapshots.list()}
    tags = store.tags.all().items()
    return tuple(name for name, tag in tags if _is_later(name, tag, target) and tag.snapshot.fingerprint not in present)


def _is_later(name: str, tag: Tag, target: Snapshot) -> bool:
    """Return whether a tag is removed. A holding tag stays, because another tag of its snapshot is being created."""
    return tag.snapshot.id > target.id and not name.startswith(HOLDING_TAG)


def _follows_directly(snapshot: Snapshot, before: Snapshot) -> bool:
    return snapshot.id == before.id + 1 and snapshot.follows(before)


def _point_latest(store: TableStore, snapshot: Snapshot) -> None:
    """Make LATEST name a snapshot. Without it, readers would take a commit above a gap for the newest snapshot."""
    store.file_io.write(store.paths.latest_hint, str(snapshot.id).encode("ascii"))

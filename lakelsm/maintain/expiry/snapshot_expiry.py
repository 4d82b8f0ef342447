"""Expiry of snapshots and long-lived changelogs: choose, announce, find files, delete. It may be killed at any step.

1. EARLIEST is set to the oldest snapshot that stays. The snapshots below it are expiring: they get no new tags, and if
   the run is killed, the next run completes it, because it expires all snapshots below EARLIEST.
2. If a rollback to an expiring snapshot runs (`maintain/versions/rollback.py`), expiry stops.
3. The retained states are read. States that were created before the announcement are thus seen, and their files kept.
4. Changelogs that outlive their snapshots are written. Then these are deleted, in this order: data and changelog files;
   manifests, index and statistics files; manifest lists; the snapshots, the oldest first.

Only files of expired snapshots alone are deleted, so a reader of a snapshot that stays never misses a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CommitConflictError, CorruptTableError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.maintain.deletion.deletion_candidates import DeletionCandidates
from lakelsm.maintain.deletion.file_deletion import DeletedFiles, delete_empty_directories, delete_unneeded
from lakelsm.maintain.deletion.removed_states import are_retained
from lakelsm.maintain.expiry.expired_files import ExpiredFiles
from lakelsm.maintain.expiry.expiry_range import ExpiryRange, expiry_range, is_due
from lakelsm.maintain.expiry.retention import Retention, limit_text, snapshot_retention
from lakelsm.results import ExpiryResult
from lakelsm.results.result import sums
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER
from lakelsm.snapshots.table_store import TableStore

#: Attempts to determine what expires if another expiry came first, or a tag or branch was deleted.
_TRIES = 3
#: With a deadline, the number of snapshots in the first slice, and its maximum. Each slice is twice the one before.
_SLICE, _MAX_OF_SLICE = 10, 200


def expire_snapshots(
    store: TableStore,
    retention: Retention,
    *,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> ExpiryResult:
    """Expire snapshots of a branch by ``retention``, and its long-lived changelogs by the table's options.

    Raises CorruptTableError, with nothing deleted, if anything that the table retains is missing or cannot be read, and
    CommitConflictError if other processes keep removing the same snapshots.
    """
    started = environment.monotonic()
    store.snapshots.check_complete()
    for attempt in range(_TRIES):
        expiring = expiry_range(store, retention, environment.clock())
        if expiring is None or expiring.is_empty:
            break
        if not dry_run:
            store.snapshots.announce_earliest(expiring.first.id)
            _check_not_rolled_back(store, expiring)
        files = ExpiredFiles(store, expiring)
        retained: Sequence[RetainedBranch] = ()
        try:
            retained = store.branches.retained()
            candidates = files.find(retained)
        except CorruptTableError:
            if not _was_overtaken(store, expiring) and are_retained(store, retained):
                raise
            if attempt + 1 < _TRIES:
                continue  # Another process expired the same snapshots, or deleted a tag or branch that was read.
            raise CommitConflictError(
                f"Table {store.name}: other processes expire or delete states while this expiry reads them. Nothing was "
                "deleted: run it again."
            ) from None
        deleted = DeletedFiles() if dry_run else _Deletion(store, expiring, candidates).run()
        done = _result(store, expiring, files, deleted, dry_run, environment.monotonic() - started)
        return replace(done, older_than=retention.age_bound)
    earliest = None if expiring is None else expiring.first.id
    held = () if expiring is None else expiring.held_by
    seconds = environment.monotonic() - started
    return ExpiryResult(
        table=store.name,
        dry_run=dry_run,
        older_than=retention.age_bound,
        earliest_snapshot_id=earliest,
        held_by=held,
        seconds=seconds,
    )


def expire_until(
    store: TableStore, retention: Retention, deadline: float, *, environment: Environment = SYSTEM
) -> ExpiryResult:
    """Expire like `expire_snapshots`, in slices. Start no slice later than ``deadline`` seconds after the start.

    The first slice always runs, so that repeated calls complete the work.
    """
    started, left, size = environment.monotonic(), retention.limit, _SLICE
    total: ExpiryResult | None = None
    while True:
        limit, size = min(left, size), min(2 * size, _MAX_OF_SLICE)
        result = expire_snapshots(store, replace(retention, limit=limit), environment=environment)
        left -= result.snapshots
        was_limited = limit_text(limit) in result.held_by
        held = tuple(holder for holder in result.held_by if holder != limit_text(limit))
        total = _added(total, replace(result, held_by=held))
        seconds = environment.monotonic() - started
        if not was_limited or not result.snapshots:
            return replace(total, seconds=seconds)
        if left <= 0:
            return replace(total, seconds=seconds, held_by=(limit_text(retention.limit), *total.held_by))
        if seconds > deadline:
            return replace(total, seconds=seconds, held_by=("the deadline", *total.held_by), complete=False)


def expire_after_commit(store: TableStore, environment: Environment) -> None:
    """Expire by the table's options after a commit. A few reads if nothing is due."""
    retention = snapshot_retention(store.options, environment.clock())
    if is_due(store, retention):
        expire_snapshots(store, retention, environment=environment)


def _added(total: ExpiryResult | None, result: ExpiryResult) -> ExpiryResult:
    """Add up the results of several runs. ``result`` is that of the last run."""
    if total is None:
        return result
    held = tuple(dict.fromkeys(total.held_by + result.held_by))
    oldest = result.earliest_snapshot_id
    return replace(result, **{**sums(total, result), "held_by": held, "earliest_snapshot_id": oldest})


def _check_not_rolled_back(store: TableStore, expiring: ExpiryRange) -> None:
    """Raise if a rollback to an expiring snapshot has begun since, or removed the oldest snapshot to keep."""
    names = (name for name in store.consumers.names() if name.startswith(ROLLBACK_CONSUMER))
    held = {name: store.consumers.try_get(name) for name in names if name not in expiring.rollbacks}
    is_held = any(number is not None and number < expiring.first.id for number in held.values())
    now = store.snapshots.try_get(expiring.first.id)
    is_deleted = not expiring.first.matches(now) and (
        now is not None or (store.snapshots.latest_id() or 0) < expiring.first.id
    )
    if is_deleted:
        store.snapshots.withdraw_earliest(expiring.first.id - 1)
    if is_held or is_deleted:
        raise CommitConflictError(
            f"Table {store.name}: a rollback stopped the expiry of the snapshots before {expiring.first.id}. Nothing was "
            "deleted: run the expiry again."
        )


def _was_overtaken(store: TableStore, expiring: ExpiryRange) -> bool:
    """Return whether another expiry expires the oldest snapshot that this one keeps."""
    first = expiring.first.id
    return store.snapshots.is_expiring(first) or store.snapshots.try_get(first) is None


@dataclass
class _Deletion:
    """Deletes the files of an expiry, in the order of the module's docstring."""

    store: TableStore
    expiring: ExpiryRange
    candidates: DeletionCandidates

    def run(self) -> DeletedFiles:
        self._check_first()
        for snapshot in self.expiring.new_changelogs:
            self.store.changelogs.keep(snapshot)
        data, named, lists = self.candidates.paths(self.store)
        deleted = self._delete(data)
        if self.store.options.snapshot_clean_empty_directories:
            delete_empty_directories(self.store.file_io, _directories(self.store, self.candidates.entries))
        self._check_first()
        deleted += self._delete(named) + self._delete(lists)
        self._check_first()
        for changelog in self.expiring.changelogs:
            deleted += self._delete([self.store.paths.changelog(changelog.id)])
        for snapshot in self.expiring.snapshots:
            deleted += self._delete([self.store.paths.snapshot_file(snapshot.id)])
        if self.expiring.changelogs:
            self.store.changelogs.announce_earliest(self.expiring.first_changelog)
        return deleted

    def _delete(self, paths: Iterable[str]) -> DeletedFiles:
        return delete_unneeded(self.store.file_io, paths)

    def _check_first(self) -> None:
        """Raise if the oldest snapshot to keep was rolled back since: other files may then be needed."""
        first = self.expiring.first
        if not first.matches(self.store.snapshots.try_get(first.id)) and not self.store.snapshots.is_expiring(first.id):
            raise CommitConflictError(
                f"Table {self.store.name}: a rollback removed snapshot {first.id}, the oldest one to keep, "
                "during the expiry of older ones. Run the expiry again."
            )


def _directories(store: TableStore, entries: Iterable[ManifestEntry]) -> Iterator[str]:
    """Yield the directories of buckets that lost files, then those of their partitions, the innermost first."""
    buckets = {(entry.partition, entry.bucket): None for entry in entries}
    parents: dict[str, int] = {}
    for partition, bucket in buckets:
        text = store.partition_text(partition)
        yield store.paths.bucket_dir(text, bucket)
        for depth in range(len(text), 0, -1):
            parents[store.paths.partition_dir(text[:depth])] = depth
    yield from sorted(parents, key=lambda path: -parents[path])


def _result(
    store: TableStore, expiring: ExpiryRange, files: ExpiredFiles, deleted: DeletedFiles, dry_run: bool, seconds: float
) -> ExpiryResult:
    candidates = files.candidates
    return ExpiryResult(
        table=store.name,
        dry_run=dry_run,
        snapshots=len(expiring.snapshots),
        earliest_snapshot_id=expiring.first.id,
        changelogs_kept=len(expiring.new_changelogs),
        changelogs_expired=len(expiring.changelogs),
        data_files=len(candidates.data),
        changelog_files=len(candidates.changelog),
        metadata_files=candidates.metadata,
        bytes=candidates.bytes,
        failures=deleted.failures,
        held_by=(*expiring.held_by, *files.kept_by),
        protected_files=sum(files.kept_by.values()),
        seconds=seconds,
    )

"""Expiry of snapshots and long-lived changelogs: announced, worked out, and deleted in an order that may stop anywhere.

1. EARLIEST names the oldest snapshot that stays. From then on those below are expiring: no tag of them is created,
   and a run that is killed is finished by the next one, which takes all that is below EARLIEST.
2. No rollback to one of the expiring snapshots may run (`maintain/versions/rollback.py`): expiry stops then.
3. What the table retains is read, so that what was made before the announcement is seen, and what it needs is kept.
4. Changelogs that outlive their snapshots are written; then data and changelog files go, then manifests, index and
   statistics files, then what names these, and at last the snapshots themselves, the oldest first.

A file that goes is one of an expired snapshot alone, so a reader of a snapshot that stays never misses one.
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

#: Attempts to determine what expires if another expiry was first, or a tag or branch was deleted.
_TRIES = 3
#: So many snapshots go at first where a deadline may stop an expiry, then twice as many each time, and so many at most.
_SLICE, _MAX_OF_SLICE = 10, 200


def expire_snapshots(
    store: TableStore,
    retention: Retention,
    *,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> ExpiryResult:
    """Expire snapshots of a branch by ``retention``, and its long-lived changelogs by the table's options.

    Raises CorruptTableError, with nothing deleted, where anything that the table retains is missing or cannot be read,
    and CommitConflictError where others remove the same snapshots again and again.
    """
    started = environment.monotonic()
    store.snapshots.check_complete()
    for attempt in range(_TRIES):
        going = expiry_range(store, retention, environment.clock())
        if going is None or going.is_empty:
            break
        if not dry_run:
            store.snapshots.announce_earliest(going.first.id)
            _check_not_rolled_back(store, going)
        files = ExpiredFiles(store, going)
        retained: Sequence[RetainedBranch] = ()
        try:
            retained = store.branches.retained()
            found = files.find(retained)
        except CorruptTableError:
            if not _came_second(store, going) and are_retained(store, retained):
                raise
            if attempt + 1 < _TRIES:
                continue  # Another process expired the same, or deleted a tag or branch that was read.
            raise CommitConflictError(
                f"Table {store.name}: others expire or remove what it retains again and again. Nothing was deleted here: "
                "run the expiry again."
            ) from None
        deleted = DeletedFiles() if dry_run else _Deletion(store, going, found).run()
        done = _result(store, going, files, deleted, dry_run, environment.monotonic() - started)
        return replace(done, older_than=retention.age_bound)
    earliest = None if going is None else going.first.id
    held = () if going is None else going.held_by
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
    """Expire as `expire_snapshots`, some snapshots at a time, and begin with no more after ``deadline`` seconds.

    The first are always taken, so that repeated runs complete the work.
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
    """Expire by the table's options, after a commit. If no snapshot is old enough, it costs a few reads."""
    retention = snapshot_retention(store.options, environment.clock())
    if is_due(store, retention):
        expire_snapshots(store, retention, environment=environment)


def _added(total: ExpiryResult | None, result: ExpiryResult) -> ExpiryResult:
    """What several runs did, the last of which is ``result``."""
    if total is None:
        return result
    held = tuple(dict.fromkeys(total.held_by + result.held_by))
    oldest = result.earliest_snapshot_id
    return replace(result, **{**sums(total, result), "held_by": held, "earliest_snapshot_id": oldest})


def _check_not_rolled_back(store: TableStore, going: ExpiryRange) -> None:
    """Stop if a rollback to an expiring snapshot began since, or is complete: the first that was to stay is deleted."""
    names = (name for name in store.consumers.names() if name.startswith(ROLLBACK_CONSUMER))
    held = {name: store.consumers.try_get(name) for name in names if name not in going.rollbacks}
    is_held = any(number is not None and number < going.first.id for number in held.values())
    now = store.snapshots.try_get(going.first.id)
    is_deleted = not going.first.matches(now) and (now is not None or (store.snapshots.latest_id() or 0) < going.first.id)
    if is_deleted:
        store.snapshots.withdraw_earliest(going.first.id - 1)
    if is_held or is_deleted:
        raise CommitConflictError(
            f"Table {store.name}: it is rolled back while its snapshots before {going.first.id} were to expire. Nothing "
            "was deleted: run the expiry again."
        )


def _came_second(store: TableStore, going: ExpiryRange) -> bool:
    """Whether another run expires the snapshot that was to be the first to stay."""
    first = going.first.id
    return store.snapshots.is_expiring(first) or store.snapshots.try_get(first) is None


@dataclass
class _Deletion:
    """Deletes what an expiry found, in the order of the module's docstring."""

    store: TableStore
    going: ExpiryRange
    found: DeletionCandidates

    def run(self) -> DeletedFiles:
        self._check_first()
        for snapshot in self.going.turned:
            self.store.changelogs.keep(snapshot)
        data, named, lists = self.found.paths(self.store)
        deleted = self._delete(data)
        if self.store.options.snapshot_clean_empty_directories:
            delete_empty_directories(self.store.file_io, _directories(self.store, self.found.entries))
        self._check_first()
        deleted += self._delete(named) + self._delete(lists)
        self._check_first()
        for changelog in self.going.changelogs:
            deleted += self._delete([self.store.paths.changelog(changelog.id)])
        for snapshot in self.going.snapshots:
            deleted += self._delete([self.store.paths.snapshot_file(snapshot.id)])
        if self.going.changelogs:
            self.store.changelogs.announce_earliest(self.going.first_changelog)
        return deleted

    def _delete(self, paths: Iterable[str]) -> DeletedFiles:
        return delete_unneeded(self.store.file_io, paths)

    def _check_first(self) -> None:
        """Stop if the snapshot that is to be the oldest was rolled back since: others may then be needed."""
        first = self.going.first
        if not first.matches(self.store.snapshots.try_get(first.id)) and not self.store.snapshots.is_expiring(first.id):
            raise CommitConflictError(
                f"Table {self.store.name}: snapshot {first.id}, which was to be its oldest, was removed while older ones "
                "expired: others rolled back. Run the expiry again."
            )


def _directories(store: TableStore, entries: Iterable[ManifestEntry]) -> Iterator[str]:
    """The directories of buckets that lost files, then those of their partitions from the innermost on."""
    places = {(entry.partition, entry.bucket): None for entry in entries}
    parents: dict[str, int] = {}
    for partition, bucket in places:
        text = store.partition_text(partition)
        yield store.paths.bucket_dir(text, bucket)
        for depth in range(len(text), 0, -1):
            parents[store.paths.partition_dir(text[:depth])] = depth
    yield from sorted(parents, key=lambda path: -parents[path])


def _result(
    store: TableStore, going: ExpiryRange, files: ExpiredFiles, deleted: DeletedFiles, dry_run: bool, seconds: float
) -> ExpiryResult:
    found = files.found
    return ExpiryResult(
        table=store.name,
        dry_run=dry_run,
        snapshots=len(going.snapshots),
        earliest_snapshot_id=going.first.id,
        changelogs_kept=len(going.turned),
        changelogs_expired=len(going.changelogs),
        data_files=len(found.data),
        changelog_files=len(found.changelog),
        metadata_files=found.metadata,
        bytes=found.bytes,
        failures=deleted.failures,
        held_by=(*going.held_by, *files.kept_by),
        protected_files=sum(files.kept_by.values()),
        seconds=seconds,
    )

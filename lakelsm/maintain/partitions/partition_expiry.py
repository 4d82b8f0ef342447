"""Drops partitions that are too old, like Paimon's `PartitionExpire`: by their values or by their newest file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakelsm.commit.commit_identity import commit_identity
from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.environment import SYSTEM, Environment
from lakelsm.epoch_time import bound_time
from lakelsm.errors import InvalidInputError, RowsChangedError, UnsupportedFeatureError
from lakelsm.failures import after_commit_step, note_if_interrupted
from lakelsm.maintain.history import maintenance_record
from lakelsm.maintain.partitions.partition_drop import commit_drop
from lakelsm.maintain.partitions.partition_time import PartitionTimes, on_partitions_clock, partition_texts
from lakelsm.options.partition_options import EXPIRATION_STRATEGIES
from lakelsm.plan.partition_files import PartitionFiles, chosen_partitions
from lakelsm.results import Failure, PartitionExpiryResult
from lakelsm.snapshots.table_store import TableStore

_VALUES_TIME = EXPIRATION_STRATEGIES[0]
#: Attempts to choose partitions again, if others commit between the choice and the commit.
_TRIES = 20
_STEP = "the expiry of further partitions"
_REMEDY = "The dropped partitions stay dropped; run it again for the others."
#: The snapshots of a write: its own and that of the compaction that follows it.
_SNAPSHOTS_OF_A_WRITE = 2


@dataclass(frozen=True)
class _Choice:
    """The partitions that have expired, sorted by their values, and the partitions without a known time."""

    expired: Sequence[PartitionFiles]
    without_time: Sequence[PartitionFiles]


def expire_partitions(
    store: TableStore,
    bound: int,
    *,
    strategy: str | None = None,
    dry_run: bool = False,
    deadline: float | None = None,
    environment: Environment = SYSTEM,
) -> PartitionExpiryResult:
    """Drop the partitions whose time is before ``bound``, in epoch millis.

    'partition.expiration-max-num' limits the number of partitions, 'partition.expiration-batch-size' those of a commit.
    With 'update-time', a commit requires that no other commit happened since the partitions were read; otherwise they are
    read again. No commit starts later than ``deadline`` seconds after the start. An error after the first commit is in
    ``error`` of the result. Raises InvalidInputError for a table without partitions, UnsupportedFeatureError for a
    strategy that is not supported.
    """
    chosen_strategy = _checked_strategy(store, strategy)
    result = PartitionExpiryResult(table=store.name, dry_run=dry_run, older_than=bound_time(bound))
    commits = _commits(store, bound, chosen_strategy, deadline, environment, result)
    for first in commits:  # A failure before the first commit is raised.
        result = first
        break
    with note_if_interrupted(store.name, result.snapshot_ids), after_commit_step(store.name, _STEP, _REMEDY) as failures:
        for later in commits:
            result = later
    return replace(result, complete=False, error=failures[0]) if failures else result


def _commits(
    store: TableStore,
    bound: int,
    strategy: str,
    deadline: float | None,
    environment: Environment,
    result: PartitionExpiryResult,
) -> Iterator[PartitionExpiryResult]:
    """Yield the result so far, after each commit and at the end."""
    # Times of files are local times.
    values = strategy == _VALUES_TIME
    before = on_partitions_clock(store, bound, environment) if values else environment.local_wall_clock(bound)
    limit, size = store.options.partition_expiration_max_num, _batch_size(store)
    tries, started, began = 0, environment.clock(), environment.monotonic()
    while True:
        snapshot = store.snapshots.latest()
        with store.while_changed(snapshot):
            choice = _chosen(store, chosen_partitions(store, snapshot, None), strategy, before)
        room = limit - len(result.partitions)
        batch = choice.expired[: room if result.dry_run else min(room, size)]
        done = replace(result, waiting=len(choice.expired), unread=_labels(choice.without_time))
        if not batch or snapshot is None:
            yield done
            return
        outcome = None
        if not result.dry_run:
            as_of = None if strategy == _VALUES_TIME else snapshot.id
            try:
                outcome = _dropped(store, batch, started, environment, as_of)
            except RowsChangedError:
                tries += 1
                if tries >= _TRIES:
                    raise
                continue
        result = _with_batch(done, batch, outcome)
        ended = result.dry_run or not result.waiting or len(result.partitions) >= limit
        late = not ended and deadline is not None and environment.monotonic() - began > deadline
        result = replace(result, complete=not late)
        yield result
        if ended or late:
            return


def _dropped(
    store: TableStore, batch: Sequence[PartitionFiles], started: int, environment: Environment, as_of: int | None
) -> CommitOutcome:
    user, _ = commit_identity(store.options, None, None, environment.new_uuid)
    files, size = sum(each.files for each in batch), sum(each.bytes for each in batch)
    record = maintenance_record("expire_partitions", user, started, environment, files=files, bytes=size)
    return commit_drop(store, [files.partition for files in batch], record, environment, as_of)


def expire_partitions_after_commit(store: TableStore, environment: Environment = SYSTEM) -> tuple[Failure, ...]:
    """Drop partitions by 'partition.expiration-time', if a check is due after this commit. Return its failures."""
    age = store.options.partition_expiration_time
    if age is None or not store.schema.partition_keys:
        return ()
    now = environment.clock()
    if not _is_due(store, now):
        return ()
    result = expire_partitions(store, now - age, environment=environment)
    return result.after_commit_failures + (() if result.error is None else (result.error,))


def _is_due(store: TableStore, now: int) -> bool:
    """Return whether a commit checks for expired partitions: each batch by the option, else the first of an interval."""
    interval = store.options.partition_expiration_check_interval
    if not interval or store.options.end_input_check_partition_expire:
        return True
    newest = store.snapshots.latest_id()
    before = None if newest is None else store.snapshots.try_get(newest - _SNAPSHOTS_OF_A_WRITE)
    return before is None or now // interval > before.time_millis // interval


def _checked_strategy(store: TableStore, strategy: str | None) -> str:
    chosen = strategy or store.options.partition_expiration_strategy
    if chosen not in EXPIRATION_STRATEGIES:
        raise UnsupportedFeatureError(
            f"Table {store.name}: option 'partition.expiration-strategy' = {chosen!r} is not supported. Use strategy="
            f"{' or '.join(map(repr, EXPIRATION_STRATEGIES))}, or use Apache Paimon."
        )
    if not store.schema.partition_keys:
        raise InvalidInputError(f"Table {store.name} has no partition columns, so no partition can expire.")
    return chosen


def _chosen(store: TableStore, found: Sequence[PartitionFiles], strategy: str, before: int) -> _Choice:
    if not found:
        return _Choice((), ())
    texts = list(partition_texts(store, [files.partition for files in found]))
    if strategy == _VALUES_TIME:
        options = store.options
        times = PartitionTimes(
            store.schema.partition_keys, options.partition_timestamp_pattern, options.partition_timestamp_formatter
        )
        known = [times.millis(values) for values in texts]
    else:
        known = [files.updated for files in found]
    default = store.options.partition_default_name
    by_values = sorted(
        (",".join(default if value is None else value for value in values), index)
        for index, (values, time) in enumerate(zip(texts, known))
        if time is not None and time < before
    )
    expired = [found[index] for _, index in by_values]
    return _Choice(expired, [files for files, time in zip(found, known) if time is None])


def _batch_size(store: TableStore) -> int:
    return store.options.partition_expiration_batch_size or store.options.partition_expiration_max_num


def _labels(found: Sequence[PartitionFiles]) -> tuple[str, ...]:
    return tuple(files.label for files in found)


def _with_batch(
    result: PartitionExpiryResult, batch: Sequence[PartitionFiles], outcome: CommitOutcome | None
) -> PartitionExpiryResult:
    snapshot = None if outcome is None else outcome.snapshot
    return replace(
        result,
        partitions=(*result.partitions, *_labels(batch)),
        waiting=result.waiting - len(batch),
        files=result.files + sum(files.files for files in batch),
        bytes=result.bytes + sum(files.bytes for files in batch),
        snapshot_ids=result.snapshot_ids if snapshot is None else (*result.snapshot_ids, snapshot.id),
        after_commit_failures=result.after_commit_failures + (() if outcome is None else outcome.failures),
    )

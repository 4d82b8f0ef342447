"""Partitions that are done because their time has passed and nobody writes to them any more.

By the rule of Paimon's `PartitionMarkDoneTrigger`, a partition is done when more than ``partition.idle-time-to-done``
has passed since its end (the time in its values plus ``partition.time-interval``) and since the last commit that wrote
to it. ``partition.mark-done-action.mode`` selects the clock: the time of commits, or watermarks. A later write makes the
partition pending again, and it is marked again.

Flink keeps the pending partitions in the state of the job. Here they are found in the table, so that they outlive a
query and do not depend on the writer: partitions with files that are newer than their success file. This costs a read
of all manifests and success files, so a process keeps the pending partitions of its tables and reads only the deltas of
later snapshots. What it keeps is a cache: it is compared with the table's history, and may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptTableError, InvalidInputError, LakelsmError, SnapshotNotFoundError
from lakelsm.failures import warn_after_commit
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.maintain.partitions.partition_done import check_action, done_times, mark_done
from lakelsm.maintain.partitions.partition_time import PartitionTimes, on_partitions_clock, partition_texts
from lakelsm.options.option_enums import MarkDoneMode
from lakelsm.plan.bucket_files import is_shown
from lakelsm.plan.partition_files import chosen_partitions
from lakelsm.snapshots.manifest_scan import read_delta_partitions, read_live_counts
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.watermarks import watermark_of

#: Success files that are read in parallel.
_THREADS = 16
#: Tables whose pending partitions a process keeps.
_MAX_TABLES = 100
#: Commits that write rows. Compactions leave the rows of a partition as they are.
_WRITES = (CommitKind.APPEND, CommitKind.OVERWRITE)


@dataclass(frozen=True, kw_only=True)
class IdleRule:
    """The options, in milliseconds."""

    interval: int
    idle: int
    by_watermark: bool

    @staticmethod
    def of(store: TableStore) -> IdleRule | None:
        """Return the rule of a table; None if it does not set both durations, or has no partitions."""
        options = store.options
        interval, idle = options.partition_time_interval, options.partition_idle_time_to_done
        if interval is None or idle is None or not store.schema.partition_keys:
            return None
        by_watermark = options.partition_mark_done_action_mode is MarkDoneMode.WATERMARK
        return IdleRule(interval=interval, idle=idle, by_watermark=by_watermark)

    def now(self, newest: Snapshot, clock: int) -> int | None:
        """Return the current time: the ``clock``, or the watermark of the newest snapshot (None: it has none)."""
        return watermark_of(newest) if self.by_watermark else clock


@dataclass(frozen=True)
class _LastWrite:
    """Time and watermark of the last commit that wrote to a partition.

    If it ``has_expired``, they are those of a later moment, and may stay too close to the newest ones for ever.
    """

    time: int
    watermark: int | None
    has_expired: bool = False

    @staticmethod
    def of(snapshot: Snapshot) -> _LastWrite:
        return _LastWrite(snapshot.time_millis, watermark_of(snapshot))

    def is_idle(self, rule: IdleRule, now: int, clock: int) -> bool:
        """Return whether more than the idle time has passed. Commits before the first watermark do not count.

        If the watermark is not that of the commit itself, the clock is enough.
        """
        by_clock = clock - self.time > rule.idle
        if not rule.by_watermark:
            return by_clock
        return self.watermark is None or now - self.watermark > rule.idle or (self.has_expired and by_clock)


@dataclass(frozen=True)
class _Pending:
    """The partitions that are not marked as done since their last write, as of a snapshot.

    ``starts`` are the times in their values by the options ``formats``, as far as they have been read; None: no time.
    """

    snapshot: Snapshot
    writes: Mapping[bytes, _LastWrite]
    starts: Mapping[bytes, int | None] = field(default_factory=dict)
    formats: tuple[str | None, str | None] = (None, None)

    def without(self, partitions: Collection[bytes]) -> _Pending:
        """Return the state after some partitions were marked or dropped."""
        return replace(self, writes={key: each for key, each in self.writes.items() if key not in partitions})

    def with_starts(self, store: TableStore) -> tuple[_Pending, list[bytes]]:
        """Return the state with the times of all partitions, and the partitions that are new and have no time."""
        formats = store.options.partition_timestamp_pattern, store.options.partition_timestamp_formatter
        known = self.starts if formats == self.formats else {}
        new = sorted(partition for partition in self.writes if partition not in known)
        times = PartitionTimes(store.schema.partition_keys, *formats)
        read = dict(zip(new, map(times.millis, partition_texts(store, new))))
        starts = {partition: known[partition] if partition in known else read[partition] for partition in self.writes}
        return replace(self, starts=starts, formats=formats), [each for each in new if read[each] is None]


#: The state of the process, by branch of a table. An entry is replaced as a whole, so threads need no lock.
_KNOWN: dict[TablePaths, _Pending] = {}


def mark_idle_after_commit(store: TableStore, environment: Environment) -> None:
    """Mark the partitions that are done as of the newest snapshot, if the options say so."""
    rule = IdleRule.of(store)
    if rule is not None:
        store.run_on_newest(partial(_mark_idle, store, rule, environment), environment.sleep)


def idle_partitions(store: TableStore, environment: Environment = SYSTEM) -> list[bytes]:
    """Return the partitions that `mark_idle_after_commit` would mark now; reads everything from the table.

    Raises InvalidInputError for a table without the options.
    """
    rule = IdleRule.of(store)
    if rule is None:
        raise InvalidInputError(
            f"Table {store.name}: no partition is done by its time, because options 'partition.idle-time-to-done' and "
            "'partition.time-interval' are not both set. Set them, or leave idle_only out."
        )

    def find() -> list[bytes]:
        now, newest = environment.clock(), store.snapshots.latest()
        if newest is None:
            return []
        with store.while_read(newest):
            pending, _ = _found(store, rule, newest, now, environment).with_starts(store)
            return _due(store, rule, pending, now, environment)[0]

    return store.run_on_newest(find, environment.sleep)


def _mark_idle(store: TableStore, rule: IdleRule, environment: Environment) -> None:
    # The time is taken before the snapshot is read: a commit that is not seen has a later time than the success file.
    now, newest = environment.clock(), store.snapshots.latest()
    if newest is None:
        return
    check_action(store)
    with store.while_read(newest):
        known = _KNOWN.get(store.paths)
        pending = None if known is None else _advanced(store, known, newest)
        if pending is None:
            pending = _found(store, rule, newest, now, environment)
        pending, unread = pending.with_starts(store)
        due, dropped = _due(store, rule, pending, now, environment)
    pending = pending.without(dropped)
    _report(store, unread)
    _remember(store, pending)
    failure: Exception | None = None
    marked: set[bytes] = set()
    for partition in due:
        try:
            mark_done(store, [partition], replace(environment, clock=lambda: now))
            marked.add(partition)
        except (OSError, LakelsmError) as error:  # A damaged success file must not keep others from being written.
            failure = failure or error
    _remember(store, pending.without(marked))
    if failure is not None:
        raise failure


def _remember(store: TableStore, pending: _Pending) -> None:
    _KNOWN.pop(store.paths, None)
    _KNOWN[store.paths] = pending
    while len(_KNOWN) > _MAX_TABLES:
        with suppress(StopIteration, KeyError, RuntimeError):  # Another thread may change it.
            del _KNOWN[next(iter(_KNOWN))]


def _advanced(store: TableStore, known: _Pending, newest: Snapshot) -> _Pending | None:
    """Return the state with the writes since; None if the history between has expired or was rolled back."""
    if newest.matches(known.snapshot):
        return known
    if newest.id <= known.snapshot.id or not known.snapshot.matches(store.snapshots.try_get(known.snapshot.id)):
        return None
    writes = dict(known.writes)
    for number in range(known.snapshot.id + 1, newest.id + 1):
        snapshot = newest if number == newest.id else store.snapshots.try_get(number)
        written = None if snapshot is None else _written(store, snapshot)
        if snapshot is None or written is None:
            return None
        writes.update(dict.fromkeys(written, _LastWrite.of(snapshot)))
    return replace(known, snapshot=newest, writes=writes)


def _written(store: TableStore, snapshot: Snapshot) -> set[bytes] | None:
    """Return the partitions that a commit wrote to; None if it has expired."""
    if snapshot.commit_kind not in _WRITES:
        return set()
    try:
        with store.while_read(snapshot):
            return read_delta_partitions(store.file_io, store.paths, snapshot)
    except SnapshotNotFoundError:
        return None


def _found(store: TableStore, rule: IdleRule, newest: Snapshot, now: int, environment: Environment) -> _Pending:
    """Return the state as the table has it.

    The success file of a partition is compared with its files first: one that is later by the idle time or more is of
    all of them. Of the others the last write is looked for in the history, because their files may be those of a
    compaction, or of a commit that the process with the mark did not see.
    """
    live = chosen_partitions(store, newest, None)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lakelsm-done") as pool:
        marked = list(pool.map(lambda files: _marked(store, files.partition), live))
    marks: dict[bytes, int | None] = {}
    after_files = set()
    created: dict[bytes, int] = {}
    ahead = environment.local_wall_clock(now) - now
    for files, time in zip(live, marked):
        later = -1
        if files.updated is not None:
            created[files.partition] = files.updated - ahead
            later = -1 if time is None else time - created[files.partition]
        if later < rule.idle:
            marks[files.partition] = time
        if later >= 0:
            after_files.add(files.partition)
    writes, oldest = _last_writes(store, rule, newest, now, marks)
    pending = {}
    for partition, time in marks.items():
        # Without a write since the mark in a complete history, or with files that are all older, it is still done.
        write = writes.get(partition)
        is_done = time is not None and time > (oldest if write is None else write).time_millis
        if is_done or (write is None and partition in after_files):
            continue
        if write is None:
            known = min(created.get(partition, oldest.time_millis), oldest.time_millis)
            pending[partition] = _LastWrite(known, watermark_of(oldest), has_expired=True)
        else:
            pending[partition] = _LastWrite.of(write)
    return _Pending(newest, pending)


def _last_writes(
    store: TableStore, rule: IdleRule, newest: Snapshot, now: int, marks: Mapping[bytes, int | None]
) -> tuple[dict[bytes, Snapshot], Snapshot]:
    """Return the last snapshots that wrote to partitions, and the oldest snapshot that was read.

    The search ends when all are found; or at a snapshot before the idle time, and before ``marks``: partitions that no
    commit since then wrote to are idle, or still done.
    """
    time = rule.now(newest, now)
    writes: dict[bytes, Snapshot] = {}
    oldest, snapshot = newest, store.snapshots.try_get(newest.id)
    while snapshot is not None and len(writes) < len(marks):
        written = _written(store, snapshot)
        if written is None:
            break
        oldest = snapshot
        writes.update({each: snapshot for each in written if each in marks and each not in writes})
        if time is None or _LastWrite.of(snapshot).is_idle(rule, time, now):
            open_marks = [mark for each, mark in marks.items() if mark is not None and each not in writes]
            if not open_marks or snapshot.time_millis < min(open_marks):
                break
        snapshot = store.snapshots.try_get(snapshot.id - 1) if snapshot.id > 1 else None
    return writes, oldest


def _marked(store: TableStore, partition: bytes) -> int | None:
    """Return when a partition was last marked as done. A damaged file counts as none: marking it raises the error."""
    try:
        times = done_times(store, partition)
    except CorruptTableError:
        return None
    return None if times is None else times.modified


def _due(
    store: TableStore, rule: IdleRule, pending: _Pending, clock: int, environment: Environment
) -> tuple[list[bytes], set[bytes]]:
    """Return the pending partitions that are done, and those that were dropped since.

    REQUIRES: ``pending`` has the times of all of them.
    """
    now = rule.now(pending.snapshot, clock)
    if now is None:
        return [], set()
    # Watermarks are in UTC, so without a time zone of the table the values are too, as in Paimon.
    before = now - rule.idle - rule.interval
    if store.time_zone is not None or not rule.by_watermark:
        before = on_partitions_clock(store, before, environment)
    due = [
        partition
        for partition, start in sorted(pending.starts.items())
        if start is not None and start < before and pending.writes[partition].is_idle(rule, now, clock)
    ]
    live, hidden = _states(store, pending.snapshot, due)
    return [each for each in due if each in live and each not in hidden], set(due) - live


def _states(store: TableStore, newest: Snapshot, due: Sequence[bytes]) -> tuple[set[bytes], set[bytes]]:
    """Return which partitions have files, and which have rows on level 0 that reads show only after a compaction."""
    if not due:
        return set(), set()
    wanted, shown = set(due), is_shown(store.options, level=0)
    live: set[bytes] = set()
    hidden: set[bytes] = set()

    def keep(partitions: Sequence[bytes]) -> list[bool]:
        return [partition in wanted for partition in partitions]

    for batch, rows in read_live_counts(store.file_io, store.paths, newest, keep):
        partitions = [batch.partitions[code] for code in batch.partition_codes[rows].tolist()]
        live.update(partitions)
        if not shown:
            hidden.update(each for each, level in zip(partitions, batch.counts(rows).levels.tolist()) if level == 0)
    return live, hidden


def _report(store: TableStore, unread: Sequence[bytes]) -> None:
    if unread:
        warn_after_commit(
            f"Table {store.name}: partition {store.partition_label(unread[0])} is never done by its time ({len(unread)} "
            "in total), because its values are not a time. Check options 'partition.timestamp-pattern' and "
            "'partition.timestamp-formatter'."
        )

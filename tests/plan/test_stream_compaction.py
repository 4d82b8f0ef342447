"""When a stream compacts, and which buckets. No JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelsm.commit.commit_message import CommitMessage, CommitOutcome
from lakelsm.compact.after_write import finish_write
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.plan.stream_compaction import scope_after_batch
from lakelsm.write.batch_write import BatchResult
from tests.commit.commit_table import CommitTable, add, file
from tests.compact.local_table import LocalTable
from tests.compact.test_after_write import batch_of


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path / "t")


APPEND, OVERWRITE = CommitKind.APPEND, CommitKind.OVERWRITE


def batch(
    table: CommitTable, number: int, bucket: int = 0, user: str = "s", kind: CommitKind = APPEND, dt: str = "a"
) -> Snapshot:
    """Commit a batch of a stream that writes one bucket."""
    base = table.snapshots.latest_id()
    first = 100 * (base or 0)
    entry = add(file(seq=(first, first + 9)), bucket=bucket, dt=dt, total=4)
    message = CommitMessage([entry], base_snapshot_id=None if kind is OVERWRITE else base)
    snapshot = table.committer().commit(kind, message, user, number, query_id=user).snapshot
    assert snapshot is not None
    return snapshot


def scope_of(table: CommitTable, snapshot: Snapshot, every: int) -> CompactionScope:
    entries = table.live(snapshot)
    newest = max(entries, key=lambda entry: entry.file.max_sequence_number)
    return scope_after_batch(table.store, snapshot, [(newest.partition, newest.bucket)], every)


def buckets(scope: CompactionScope) -> set[int] | None:
    """Return the buckets that are compacted in any case; an empty set if only back-pressure compacts."""
    if scope.min_runs:
        assert scope.min_runs == 8 and scope.only is not None and len(scope.only) == 1
        return set()
    return None if scope.only is None else {bucket for _, bucket in scope.only}


def test_each_batch_is_compacted_by_default_and_the_nth_one_with_all_buckets_since_the_last(table: CommitTable) -> None:
    found = []
    for number, bucket in enumerate((0, 1, 1, 2, 3, 0)):
        snapshot = batch(table, number, bucket)
        assert buckets(scope_of(table, snapshot, 1)) == {bucket}
        found.append(buckets(scope_of(table, snapshot, 3)))
        batch(table, number, bucket=3, user="other")
    assert found == [set(), set(), {0, 1}, set(), set(), {0, 1, 2, 3}]


def test_a_batch_without_rows_delays_the_compaction_to_the_next_one(table: CommitTable) -> None:
    found = {}
    for number in (0, 1, 3, 4, 9):
        found[number] = buckets(scope_of(table, batch(table, number, number % 4), 3))
    assert found == {0: set(), 1: set(), 3: {0, 1, 3}, 4: set(), 9: {0, 1, 3}}


def test_if_earlier_batches_have_expired_all_buckets_are_compacted(table: CommitTable) -> None:
    for number in range(3):
        snapshot = batch(table, number)
    assert buckets(scope_of(table, snapshot, 3)) == {0}
    table.expire(1)
    assert buckets(scope_of(table, snapshot, 3)) is None
    snapshot = batch(table, 8, 2)
    table.expire(2, 3)
    assert buckets(scope_of(table, snapshot, 3)) is None, "no other batch is left"
    for number in range(9, 12):
        snapshot = batch(table, number)
    assert buckets(scope_of(table, snapshot, 3)) == {0, 2}


def test_an_overwrite_replaces_what_earlier_batches_wrote(table: CommitTable) -> None:
    for number in range(4):
        snapshot = batch(table, number, number, kind=OVERWRITE)
    assert buckets(scope_of(table, snapshot, 2)) == {3}


def written(table: LocalTable, number: int) -> BatchResult:
    """Write a batch of a stream, and return its result."""
    committed = batch_of(table, table.write((number, f"v{number}")))
    snapshot = committed.outcome.snapshot
    assert snapshot is not None
    return replace(committed, outcome=CommitOutcome(replace(snapshot, commit_identifier=number)))


@pytest.mark.parametrize(("every", "levels"), [(0, [0] * 6), (1, [2]), (100, [0, 0, 2])])
def test_runs_up_to_the_stop_trigger_wait_for_the_nth_batch(tmp_path: Path, every: int, levels: list[int]) -> None:
    table = LocalTable(tmp_path, num_sorted_run__compaction_trigger="2", num_sorted_run__stop_trigger="4")
    results: list[Any] = []
    for number in range(6):
        results.append(finish_write(table.runner, table.store, written(table, number), "s", number, compact_every=every))
    assert table.levels() == levels
    assert [each.compaction is None for each in results] == [every == 0] * 6


def test_a_repeated_batch_of_a_stream_is_compacted(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, changelog_producer="lookup")
    result = written(table, 0)
    repeated = replace(result, outcome=replace(result.outcome, already_committed=True), entries=())
    assert finish_write(table.runner, table.store, repeated, "s", 0).compaction is None
    assert table.levels() == [0]
    done = finish_write(table.runner, table.store, repeated, "s", 0, compact_every=1)
    assert done.already_committed and done.compaction is not None and done.compaction.changelog_rows == 1
    assert table.levels() == [5]
    again = finish_write(table.runner, table.store, repeated, "s", 0, compact_every=1)
    assert again.compaction is not None and not again.compaction.snapshot_ids, "the changelog has each change once"

"""The status of a table: rows on level 0, by bucket and in total, and the compaction that includes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError
from lakelsm.plan.table_status import table_status
from lakelsm.results import TableStatus
from tests.compact.local_table import LocalTable

HOUR = 3_600_000


def status(table: LocalTable, later: int = 0, max_buckets: int = 10) -> TableStatus:
    store, now = table.store, SYSTEM.clock() + later
    wall = SYSTEM.local_wall_clock(now)
    return table_status(store, store.snapshots.latest(), wall, now, max_buckets=max_buckets)


def test_a_table_without_a_snapshot_has_an_empty_status(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    found = status(table)
    assert found == TableStatus(table=table.store.name, snapshot_id=None)
    assert json.loads(json.dumps(found.as_dict()))["worst_buckets"] == []


def test_rows_on_level_0_are_reported_by_bucket_and_in_total(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "p INT, id INT, v STRING", primary_key=["p", "id"], partition_by=["p"])
    table.write(*((1, number, "a") for number in range(100)), *((2, number, "a") for number in range(50)))
    table.compact(full=True)
    table.write((1, 5, "b"), (1, 6, "b"))
    table.write((1, 5, "c"), (2, 1, "c"))
    live = table.live()
    waiting = [entry.file for entry in live if entry.file.level == 0]
    found = status(table, later=HOUR)
    assert (found.snapshot_id, found.buckets, found.level0_hidden) == (4, 2, False)
    assert (found.files, found.rows, found.bytes) == (5, 154, sum(entry.file.file_size for entry in live))
    assert (found.level0_files, found.level0_rows, found.sorted_runs) == (3, 4, 3)
    assert found.level0_bytes == sum(file.file_size for file in waiting)
    assert found.level0_age_seconds is not None and HOUR / 1000 <= found.level0_age_seconds < HOUR / 1000 + 600
    assert [(each.partition, each.bucket, each.sorted_runs, each.level0_rows) for each in found.worst_buckets] == [
        ("p=1", 0, 3, 3),
        ("p=2", 0, 2, 1),
    ]
    assert (found.worst_buckets[0].files, found.worst_buckets[0].rows) == (3, 103)
    assert [each.partition for each in status(table, max_buckets=1).worst_buckets] == ["p=1"]
    assert found.next_compaction is None, "two runs more are below the trigger"
    json.dumps(found.as_dict())
    for number in range(2):
        table.write((1, 7, str(number)))
    planned = status(table).next_compaction
    assert planned is not None and planned.reasons == ("size-amplification",)
    assert (planned.buckets, planned.files, planned.rows, planned.level0_files, planned.level0_rows) == (1, 5, 105, 4, 5)
    done = table.compact(full=False)
    assert (done.buckets, done.files_rewritten + done.files_upgraded) == (planned.buckets, planned.files)
    after = status(table)
    assert (after.level0_rows, after.sorted_runs, after.next_compaction) == (1, 2, None)
    table.compact(full=True)
    clean = status(table)
    assert (clean.level0_files, clean.level0_age_seconds, clean.worst_buckets) == (0, None, ())
    assert (clean.sorted_runs, clean.next_compaction) == (1, None)


def test_with_vectors_the_status_reports_masked_rows_and_rows_that_reads_do_not_show_yet(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(*((number, "a") for number in range(100)))
    table.compact(full=True)
    table.write(*((number, "b") for number in range(90, 110)))
    waiting = status(table)
    assert (waiting.level0_hidden, waiting.level0_rows, waiting.files_masked, waiting.rows_masked) == (True, 20, 0, 0)
    assert waiting.next_compaction is not None and waiting.next_compaction.level0_rows == 20
    assert waiting.next_compaction.reasons == ("force-up-level-0",)
    table.compact(full=False)
    found = status(table)
    assert (found.level0_rows, found.files_masked, found.rows_masked, found.rows) == (0, 1, 10, 120)
    assert [(each.files_masked, each.rows_masked) for each in found.worst_buckets] == [(1, 10)]


def test_a_status_needs_no_spark_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = LocalTable(tmp_path / "t")
    made.write((1, "a"))
    made.write((1, "b"))
    resolver = "lakelsm.frames.spark_engine.resolve_session"
    monkeypatch.setattr(resolver, lambda *_: pytest.fail("a session was requested"))
    table = Table.for_path(str(tmp_path / "t"))
    assert (table.inspect.status().level0_rows, len(table.inspect.status(max_buckets=0).worst_buckets)) == (2, 0)
    with pytest.raises(InvalidInputError, match="max_buckets: -1 is less than 0"):
        table.inspect.status(max_buckets=-1)

"""Consumers record what a stream has read, and keep what it has not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, StreamOffsetError
from lakelsm.stream.stream_limits import StreamLimits
from tests.stream.stream_reader import StreamReader, feed_of, put, rows_of, table_of, table_rows

ONE_FILE = StreamLimits(max_files=1)


def recorded(table: Table) -> dict[str, int]:
    return {each.name: each.next_snapshot_id for each in table.consumers.list()}


def two_buckets(folder: Path, **options: str) -> Table:
    table = table_of(folder, bucket="3", **options)
    put(table, *(("+I", key, "a") for key in range(9)))
    return table


def test_a_load_is_protected_and_begins_again_until_it_is_complete(tmp_path: Path) -> None:
    table = two_buckets(tmp_path)
    reader = StreamReader(table, ONE_FILE, consumer_id="c")
    assert recorded(table) == {"c.lakelsm-load": 1}
    assert len(reader.read(most=1)) < 9
    for number in range(5):
        put(table, ("+I", number, "b"))
    table.maintenance.expire_snapshots(retain_last=1)
    assert recorded(table) == {"c.lakelsm-load": 1} and table._store().snapshots.earliest_id() == 1
    fresh = StreamReader(table, consumer_id="c")
    assert fresh.offset.snapshot_id == 1, "rows that were deleted since are among the changes"
    ignoring = feed_of(table, consumer_id="c", consumer_ignore_progress=True).first()
    assert ignoring.snapshot_id == 6 and recorded(table) == {"c.lakelsm-load": 1}, "the older load still runs"
    reader.read()
    assert reader.rows() == table_rows(table)
    assert recorded(table) == {"c": 7}
    put(table, ("+I", 1, "z"))
    again = StreamReader(table, consumer_id="c")
    assert again.read() == [("+I", 1, "z")]
    assert recorded(table) == {"c": 8}


def test_a_temporary_consumer_that_a_kill_left_is_deleted(tmp_path: Path) -> None:
    table = two_buckets(tmp_path)
    StreamReader(table, consumer_id="c").read()
    table.consumers.record("c.lakelsm-load", 1)
    put(table, ("+I", 1, "z"))
    StreamReader(table, consumer_id="c").read()
    assert recorded(table) == {"c": 3}


def test_exactly_once_divides_no_snapshot_and_at_least_once_keeps_a_divided_one(tmp_path: Path) -> None:
    table = two_buckets(tmp_path)
    whole = StreamReader(table, ONE_FILE, consumer_id="w", scan_mode="latest")
    divided = StreamReader(table, ONE_FILE, consumer_id="d", consumer_mode="at-least-once", scan_mode="latest")
    put(table, *(("+I", key, "b") for key in range(9)))
    put(table, *(("+I", key, "c") for key in range(9)))
    assert [len(whole.read(most=1)), recorded(table)["w"]] == [9, 3]
    assert 0 < len(divided.read(most=1)) < 9 and recorded(table)["d"] == 2
    restarted = StreamReader(table, consumer_id="d")
    assert len(restarted.read()) == 18, "a new stream reads the divided snapshot again"
    divided.read()
    assert len(divided.batches) == 6 and divided.rows() == table_rows(table)


def test_progress_is_ignored_or_followed(tmp_path: Path) -> None:
    table = two_buckets(tmp_path)
    put(table, ("+I", 1, "b"))
    table.consumers.record("c", 2)
    assert StreamReader(table, consumer_id="c").read() == [("+I", 1, "b")]
    assert len(StreamReader(table, consumer_id="c", consumer_ignore_progress=True).read()) == 9
    assert recorded(table) == {"c": 3}
    (Path(table._store().paths.consumer("c"))).write_text('{"nextSnapshot": 9}')
    with pytest.raises(InvalidInputError, match=r"consumer 'c' reads snapshot 9 next, but after a rollback"):
        feed_of(table, consumer_id="c").first()


def test_a_rollback_between_the_batch_and_its_record_is_refused(tmp_path: Path) -> None:
    table = two_buckets(tmp_path)
    feed = feed_of(table, consumer_id="c", scan_mode="latest")
    start = feed.first()
    put(table, ("+I", 1, "b"))
    end = feed.next(start)
    assert rows_of(feed, feed.plan(start, end)) == [("+I", 1, "b")]
    table.rollback(1)
    for _ in range(2):
        with pytest.raises(StreamOffsetError, match="a rollback removed snapshot 2, up to which consumer 'c' has read"):
            feed.record(end)
        put(table, ("+I", 1, "x"))
    assert recorded(table) == {"c": 2}

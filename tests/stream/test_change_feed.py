"""The feed: applying its batches to a dict gives the table, for all producers, limits and restarts."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import Environment
from lakelsm.errors import StreamOffsetError, UnsupportedFeatureError
from lakelsm.predicate.parser import parse_where
from lakelsm.schema_changes import SetOption
from lakelsm.stream.change_feed import ChangeFeed
from lakelsm.stream.feed_settings import FeedSettings
from lakelsm.stream.stream_limits import StreamLimits
from lakelsm.stream.stream_offset import StreamPhase
from tests.stream.stream_reader import StreamReader, feed_of, put, rows_of, table_of, table_rows

PRODUCERS = ("none", "input", "lookup", "full-compaction")
ONE_FILE = StreamLimits(max_files=1)


def history(folder: Path, producer: str, **options: str) -> Table:
    """Return a table with rows on several levels and two buckets."""
    table = table_of(folder, producer, bucket="2", write_only="false", **options)
    put(table, *(("+I", key, "a") for key in range(20)))
    put(table, *(("+I", key, "b") for key in range(5, 15)))
    put(table, ("-D", 3, None), ("+U", 4, "c"))
    return table


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("limits", [StreamLimits(), ONE_FILE, StreamLimits(max_rows=7)], ids=["all", "file", "rows"])
def test_the_rows_and_then_the_changes_give_the_table(tmp_path: Path, producer: str, limits: StreamLimits) -> None:
    table = history(tmp_path, producer)
    reader = StreamReader(table, limits)
    assert {change[0] for change in reader.read()} == {"+I"}
    assert reader.rows() == table_rows(table)
    assert len(reader.batches) > 1 or limits == StreamLimits()
    reader.restart()
    put(table, *(("+I", key, "d") for key in range(18, 25)))
    put(table, ("-D", 0, "a"), ("+I", 1, "e"))
    found = reader.read()
    assert reader.rows() == table_rows(table)
    has_before = producer in ("lookup", "full-compaction")
    assert ("-U", 18, "a") in found if has_before else not any(change[0] == "-U" for change in found)
    table.compact(True)
    assert reader.read() == []


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_batch_that_spans_rows_and_changes_has_the_changes_of_a_bucket_in_one_part(
    tmp_path: Path, producer: str
) -> None:
    table = history(tmp_path, producer)
    feed = feed_of(table)
    start = feed.first()
    middle = feed.next(start, ONE_FILE)
    put(table, *(("+I", key, "d") for key in range(18, 25)))
    put(table, ("-D", 0, "a"), ("+I", 1, "e"))
    for first in (start, middle):
        parts = feed.plan(first, feed.newest())
        reader = StreamReader(table)
        reader.apply(rows_of(feed, feed.plan(start, first)))
        reader.apply(rows_of(feed, parts))
        assert reader.rows() == table_rows(table)


def test_modes_start_at_their_snapshot(tmp_path: Path) -> None:
    table = table_of(tmp_path, "input")
    for number in range(1, 5):
        put(table, ("+I", number, "a"))

    def keys(**options: object) -> list[int]:
        return sorted(change[1] for change in StreamReader(table, **options).read())

    assert keys() == keys(scan_mode="from-snapshot", scan_snapshot_id=1) == [1, 2, 3, 4]
    assert keys(scan_mode="latest") == keys(scan_snapshot_id=5) == []
    assert keys(scan_snapshot_id=3) == [3, 4]
    full = StreamReader(table, scan_mode="from-snapshot-full", scan_snapshot_id=3)
    assert [len(full.read()), len(full.batches)] == [4, 2]
    since = table._store().snapshots.get(3).time_millis
    first = min(number for number in range(1, 5) if table._store().snapshots.get(number).time_millis >= since)
    assert keys(scan_timestamp_millis=since) == list(range(first, 5))
    assert keys(scan_timestamp_millis=0) == [1, 2, 3, 4] and keys(scan_timestamp="2999-01-01") == []
    table.tags.create("t", snapshot=2)
    assert keys(scan_tag_name="t") == [2, 3, 4]
    assert keys(incremental_between="1,3") == keys(incremental_between="1,3", scan_mode="incremental") == [2, 3]
    assert keys(incremental_between="tag:t,4") == [3, 4] and keys(incremental_between="4,4") == []
    bounded = feed_of(table, incremental_between="0,2")
    put(table, ("+I", 5, "a"))
    assert bounded.end is not None and bounded.newest() == bounded.end == bounded.next(bounded.first())


def test_compacted_full_starts_at_the_newest_compaction(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    put(table, ("+I", 1, "a"))
    assert StreamReader(table, scan_mode="compacted-full").offset.snapshot_id == 1
    table.compact(True)
    put(table, ("+I", 2, "a"))
    reader = StreamReader(table, scan_mode="compacted-full")
    assert (reader.offset.snapshot_id, reader.read(), reader.rows()) == (
        2, [("+I", 1, "a"), ("+I", 2, "a")], table_rows(table),
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["latest-full", "latest", "compacted-full"])
def test_a_table_without_snapshots_is_read_from_its_first_one(tmp_path: Path, mode: str) -> None:
    table = table_of(tmp_path)
    reader = StreamReader(table, scan_mode=mode)
    assert reader.read() == [] and reader.feed.newest().snapshot_id == 0
    put(table, ("+I", 1, "a"))
    assert reader.read() == [("+I", 1, "a")]
    assert reader.offset.phase is (StreamPhase.CHANGES if mode == "latest" else StreamPhase.FULL)
    put(table, ("+I", 2, "b"))
    assert reader.read() == [("+I", 2, "b")]


def test_a_table_that_begins_with_an_overwrite_is_loaded(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    reader = StreamReader(table)
    assert reader.read() == []
    start = reader.offset
    table.overwrite(pa.table({"k": pa.array([1], pa.int32()), "v": ["x"]}))
    put(table, ("+I", 2, "y"))
    reader.read()
    assert reader.rows() == table_rows(table) == [(1, "x"), (2, "y")]
    assert sorted(rows_of(reader.feed, reader.feed.plan(start, reader.feed.newest()))) == [
        ("+I", 1, "x"), ("+I", 2, "y"),
    ]  # fmt: skip


@pytest.mark.parametrize("producer", ["none", "input"])
def test_overwrites_are_read_if_the_stream_wants_them(tmp_path: Path, producer: str) -> None:
    table = history(tmp_path, producer)
    skips, reads = StreamReader(table), StreamReader(table, ONE_FILE, streaming_read_overwrite=True)
    assert len(skips.read()) == len(reads.read())
    table.overwrite(pa.table({"k": pa.array([1, 99], pa.int32()), "v": ["x", "y"]}))
    assert skips.read() == []
    found = reads.read()
    assert {("-U", 1, "a"), ("+U", 1, "x"), ("+I", 99, "y"), ("-D", 0, "a")} <= set(found)
    put(table, ("+I", 1, "z"))
    reads.restart()
    reads.read()
    assert reads.rows() == table_rows(table)


@pytest.mark.parametrize(
    "options",
    [
        {"deletion_vectors__enabled": "true"},
        {"deletion_vectors__enabled": "true", "changelog_producer": "lookup"},
        {"merge_engine": "first-row", "changelog_producer": "lookup"},
        {"merge_engine": "partial-update", "changelog_producer": "lookup"},
        {"merge_engine": "aggregation", "fields__v__aggregate_function": "max", "changelog_producer": "lookup"},
        {"bucket": "-1"},
    ],
)
def test_every_kind_of_table_is_followed(tmp_path: Path, options: dict[str, str]) -> None:
    table = table_of(tmp_path, **{"write_only": "false", **options})
    put(table, *(("+I", key, "a") for key in range(9)))
    reader = StreamReader(table, ONE_FILE)
    reader.read()
    put(table, *(("+I", key, "b") for key in range(5, 15)))
    reader.read()
    put(table, ("+I", 3, None), ("+I", 7, "0"))
    table.compact(True)
    reader.read()
    assert reader.rows() == table_rows(table, fresh=True)
    again = StreamReader(table)
    again.read()
    assert again.rows() == reader.rows()


def test_a_batch_waits_for_enough_rows_until_the_delay(tmp_path: Path) -> None:
    table, now = table_of(tmp_path), [100.0]
    store = table._store()
    feed = ChangeFeed(store, FeedSettings(), environment=Environment(monotonic=lambda: now[0]))
    limits = StreamLimits(min_rows=3, max_delay=60)
    put(table, ("+I", 1, "a"))
    start = feed.next(feed.first(), limits)
    assert start.is_complete, "the first batch does not wait"
    put(table, ("+I", 2, "a"))
    assert feed.next(start, limits) == start
    assert feed.next(start, limits, until=feed.newest()) != start, "a bounded run does not wait"
    now[0] += 30
    put(table, ("+I", 3, "a"))
    assert feed.next(start, limits) == start
    now[0] += 31
    end = feed.next(start, limits)
    assert end.snapshot_id == 3
    put(table, ("+I", 4, "a"), ("+I", 5, "a"), ("+I", 6, "a"))
    assert feed.next(end, limits).snapshot_id == 4


def set_watermark(table: Table, snapshot: int, millis: int) -> None:
    path = Path(table._store().paths.snapshot_file(snapshot))
    path.write_text(json.dumps({**json.loads(path.read_text()), "watermark": millis}))


def test_snapshots_are_read_at_an_age_and_up_to_a_watermark(tmp_path: Path) -> None:
    table, now = table_of(tmp_path), [0]
    feed = ChangeFeed(
        table._store(), FeedSettings(delay=5_000, max_watermark=100), environment=Environment(clock=lambda: now[0])
    )
    start = feed.first()
    put(table, ("+I", 1, "a"))
    start = feed.next(start)
    put(table, ("+I", 2, "b"))
    set_watermark(table, 2, 100)
    now[0] = table._store().snapshots.get(2).time_millis + 4_999
    assert feed.next(start) == start
    now[0] += 1
    end = feed.next(start)
    assert end.snapshot_id == 2
    put(table, ("+I", 3, "c"))
    set_watermark(table, 3, 101)
    put(table, ("+I", 4, "d"))
    now[0] += 10**9
    assert feed.next(end) == end


def test_a_batch_ends_at_the_given_offset(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    put(table, ("+I", 1, "a"))
    feed = feed_of(table)
    start, until = feed.first(), feed.newest()
    put(table, ("+I", 2, "a"))
    loaded = feed.next(start, until=until)
    assert (loaded.snapshot_id, loaded.is_complete) == (1, True)
    assert feed.next(loaded, until=until) == loaded
    assert feed.next(loaded).snapshot_id == 2


def test_a_row_condition_leaves_out_partitions_and_rows_and_keeps_positions(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table(
        "db.p", "k INT, p INT, v STRING", primary_key=["k", "p"], partition_by=["p"], options={"bucket": "1"}
    )
    table.write(pa.table({"k": pa.array(range(9), pa.int32()), "p": pa.array([n % 3 for n in range(9)], pa.int32()),
                          "v": ["a", "b", "c"] * 3}))  # fmt: skip
    store = table._store()
    feeds = [
        ChangeFeed(store, FeedSettings(), None if text is None else parse_where(text, store.schema.fields))
        for text in (None, "p = 2 AND k > 2")
    ]
    start = feeds[0].first()
    ends = [feed.next(start) for feed in feeds]
    assert ends[0] == ends[1]
    assert [len(rows_of(feed, feed.plan(start, ends[0]))) for feed in feeds] == [9, 2]
    assert [sum(part.files for part in feed.plan(start, ends[0])) for feed in feeds] == [3, 1]
    table.write(pa.table({"k": pa.array([0, 8], pa.int32()), "p": pa.array([0, 2], pa.int32()), "v": ["x", "y"]}))
    end = feeds[0].next(ends[0])
    assert rows_of(feeds[1], feeds[1].plan(ends[0], end)) == [("+I", 8, 2, "y")]


def test_only_rows_that_are_added_are_read_without_a_kind(tmp_path: Path) -> None:
    table = table_of(tmp_path, "lookup", write_only="false")
    put(table, ("+I", 1, "a"), ("+I", 2, "b"))
    feed = feed_of(table)
    start = feed.newest()
    put(table, ("+U", 1, "c"), ("-D", 2, None))
    end = feed.next(start)
    parts = feed.plan(start, end)
    schema = pa.schema([("v", pa.large_string())])
    task = feed.task(parts, schema)
    assert [batch.to_pylist() for part in parts for batch in task(part)] == [[{"v": "c"}]]
    assert {change[0] for change in rows_of(feed, parts)} == {"-U", "+U", "-D"}
    assert rows_of(feed, parts, positions=True)[0][-2] == end.snapshot_id


def test_an_interval_that_ends_before_it_starts_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    put(table, ("+I", 1, "a"))
    feed = feed_of(table)
    before = feed.newest()
    put(table, ("+I", 1, "b"))
    with pytest.raises(StreamOffsetError, match="is after its end"):
        feed.plan(feed.newest(), before)


def test_a_table_with_a_fallback_branch_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.branches.create("b")
    Catalog(str(tmp_path)).alter_table("db.t", SetOption("scan.fallback-branch", "b"))
    with pytest.raises(UnsupportedFeatureError, match=r"a stream cannot be combined with option 'scan\.fallback-branch'"):
        feed_of(table)

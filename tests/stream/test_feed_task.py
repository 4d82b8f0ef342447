"""Tasks of a stream: positions, kinds, bounded batches, and snapshots that are deleted while they are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from tests.stream.stream_reader import feed_of, put, rows_of, table_of


def test_rows_have_their_snapshot_and_changes_their_sequence_number(tmp_path: Path) -> None:
    table = table_of(tmp_path, "input")
    put(table, ("+I", 1, "a"), ("+I", 2, "b"))
    feed = feed_of(table, streaming_read_overwrite=True)
    start, end = feed.first(), feed.newest()
    assert rows_of(feed, feed.plan(start, end), positions=True) == [
        ("+I", 1, "a", 1, None), ("+I", 2, "b", 1, None),
    ]  # fmt: skip
    put(table, ("-U", 1, "a"), ("+U", 1, "c"))
    table.overwrite([{"k": 1, "v": "d"}])
    found = rows_of(feed, feed.plan(end, feed.newest()), positions=True)
    assert [row[:4] for row in found] == [
        ("-U", 1, "a", 2), ("+U", 1, "c", 2), ("-U", 1, "c", 3), ("+U", 1, "d", 3), ("-D", 2, "b", 3),
    ]  # fmt: skip
    assert [row[4] for row in found[:2]] == [2, 3]


def test_batches_have_bounded_size(tmp_path: Path) -> None:
    table = table_of(tmp_path, "input")
    many = 300_000
    rows = pa.table({"k": pa.array(range(many), pa.int32()), "v": ["x" * 60] * many})
    table.write(rows)
    feed = feed_of(table)
    before = feed_of(table, scan_snapshot_id=1).first()
    schema = pa.schema([("rowkind", pa.string()), ("k", pa.int32()), ("v", pa.string())])
    for start in (feed.first(), before):
        parts = feed.plan(start, feed.newest())
        sizes = [batch.nbytes for part in parts for batch in feed.task(parts, schema, "rowkind")(part)]
        assert len(sizes) > 1 and max(sizes) < 33 << 20


@pytest.mark.parametrize("start", ["latest-full", "from-snapshot"])
def test_an_expiry_during_a_read_is_no_damage_and_a_missing_file_is(tmp_path: Path, start: str) -> None:
    table = table_of(tmp_path, "input")
    put(table, ("+I", 1, "a"))
    options = {"scan_snapshot_id": 1} if start == "from-snapshot" else {}
    feed = feed_of(table, **options)
    parts = feed.plan(feed.first(), feed.newest())
    put(table, ("+I", 1, "b"))
    table.compact(True)
    for _ in range(2):
        put(table, ("+I", 1, "c"))
    table.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 1 was deleted while it was read"):
        rows_of(feed, parts)
    feed = feed_of(table)
    parts = feed.plan(feed.first(), feed.newest())
    for file in (tmp_path / "db.db" / "t" / "bucket-0").iterdir():
        file.unlink()
    with pytest.raises(CorruptTableError, match=r"missing|not exist|No such file"):
        rows_of(feed, parts)

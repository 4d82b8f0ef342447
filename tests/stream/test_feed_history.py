"""A stream reads one history of one table: anything else is a typed error before any row."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import (
    InvalidInputError,
    SnapshotNotFoundError,
    StreamOffsetError,
    StreamSchemaChangedError,
    TableNotFoundError,
)
from lakelsm.schema_changes import AddColumn, SetOption, UpdateColumnComment
from lakelsm.stream.feed_history import table_digest
from lakelsm.types import parse_type
from tests.stream.stream_reader import StreamReader, feed_of, put, table_of, table_rows


def filled(folder: Path, snapshots: int, producer: str = "none", **options: str) -> Table:
    table = table_of(folder, producer, **options)
    for number in range(1, snapshots + 1):
        put(table, ("+I", number, "a"))
    return table


def expire(table: Table, retain: int) -> None:
    table.maintenance.expire_snapshots(retain_last=retain)


def test_another_and_a_recreated_table_and_another_branch_are_refused(tmp_path: Path) -> None:
    table = filled(tmp_path / "a", 2)
    start = feed_of(table).first()
    for other in (filled(tmp_path / "b", 2), _with_branch(table)):
        with pytest.raises(StreamOffsetError, match="snapshot 2 is of another table, or the table was dropped"):
            feed_of(other).next(start)
    feed = feed_of(table)
    Catalog(str(tmp_path / "a")).drop_table("db.t")
    with pytest.raises(TableNotFoundError):
        feed.next(start)
    again = filled(tmp_path / "a", 2)
    for refused in (feed, feed_of(again)):
        with pytest.raises(StreamOffsetError, match=r"created again|is of another table.*Start a new stream"):
            refused.next(start)
    assert table_digest(again._store()) != start.table


def _with_branch(table: Table) -> Table:
    table.branches.create("b")
    return table.branches.open("b")


@pytest.mark.parametrize("again", [0, 1, 3], ids=["no commit", "the same id", "later ids"])
def test_a_rollback_below_the_offset_is_refused(tmp_path: Path, again: int) -> None:
    table = filled(tmp_path, 3)
    reader, slower = StreamReader(table), StreamReader(table, scan_snapshot_id=2)
    slower.offset = slower.feed.next(slower.offset, until=slower.offset.at(1, 1))
    reader.read()
    table.rollback(2)
    for number in range(again):
        put(table, ("+I", 10 + number, "b"))
    for _ in range(2):
        with pytest.raises(StreamOffsetError, match="snapshot 3, up to which the stream read, was rolled back"):
            reader.feed.next(reader.offset)
        reader.restart()
    slower.read()
    assert sorted(key for key in slower.state) == [*range(10, 10 + again)], "an offset that is kept continues"


def test_a_reused_id_is_noticed_if_the_snapshot_of_the_offset_has_expired(tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    reader = StreamReader(table)
    reader.read()
    table.rollback(2)
    for number in range(3):
        put(table, ("+I", 10 + number, "b"))
    expire(table, 3)
    assert table._store().snapshots.earliest_id() == 3
    Path(table._store().paths.snapshot_file(3)).unlink()
    with pytest.raises(StreamOffsetError, match="rolled back"):
        reader.feed.next(reader.offset)


@pytest.mark.parametrize("producer", ["none", "input"])
def test_an_expired_snapshot_is_an_error_with_the_choice(
    tmp_path: Path, producer: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = filled(tmp_path, 2, producer)
    strict, loose = StreamReader(table, scan_mode="latest"), StreamReader(table, scan_mode="latest", failOnDataLoss=False)
    for number in range(3, 8):
        put(table, ("+I", number, "a"))
    ends = [loose.feed.newest(), loose.feed.newest()]
    expire(table, 2)
    for call in (lambda: strict.feed.next(strict.offset), lambda: strict.feed.plan(strict.offset, ends[0])):
        with pytest.raises(SnapshotNotFoundError, match=r"snapshot 3 has expired.*6 is the oldest.*failOnDataLoss=false"):
            call()
    with caplog.at_level(logging.WARNING):
        assert loose.read() == [("+I", 6, "a"), ("+I", 7, "a")]
        assert loose.feed.plan(loose.offset, ends[1]) == []
    assert [record.message.count("snapshot 3 has expired") for record in caplog.records] == [1]
    put(table, ("+I", 8, "a"))
    assert loose.read() == [("+I", 8, "a")]


@pytest.mark.parametrize("loses", [False, True])
def test_an_expired_load_is_an_error_or_is_repeated(
    tmp_path: Path, loses: bool, caplog: pytest.LogCaptureFixture
) -> None:
    table = filled(tmp_path, 2)
    reader = StreamReader(table, failOnDataLoss=not loses)
    planned = feed_of(table).next(reader.offset)
    for number in range(3, 6):
        put(table, ("+I", number, "b"))
    expire(table, 1)
    if not loses:
        with pytest.raises(SnapshotNotFoundError, match="snapshot 2 has expired, whose rows"):
            reader.read()
        return
    with caplog.at_level(logging.WARNING):
        assert reader.feed.plan(reader.offset, planned) == []
        reader.read()
    texts = [record.message for record in caplog.records]
    assert [text.partition("; ")[2] for text in texts] == [
        "a batch that runs again lacks its rows.", "its rows are loaded again from the newest snapshot.",
    ]  # fmt: skip
    assert reader.rows() == table_rows(table)
    put(table, ("+I", 9, "b"))
    assert reader.read() == [("+I", 9, "b")]


def test_a_long_lived_changelog_is_read_after_its_snapshot_has_expired(tmp_path: Path) -> None:
    table = filled(tmp_path, 2, "input", changelog__num_retained__max="100", changelog__num_retained__min="100")
    reader = StreamReader(table, scan_mode="latest")
    for number in range(3, 8):
        put(table, ("+I", number, "a"))
    expire(table, 2)
    assert table._store().snapshots.earliest_id() == 6
    assert [change[1] for change in reader.read()] == [3, 4, 5, 6, 7]
    assert [change[1] for change in StreamReader(table, scan_snapshot_id=4).read()] == [4, 5, 6, 7]


def test_changed_columns_end_the_reader_after_the_rows_before_them(tmp_path: Path) -> None:
    table, catalog = filled(tmp_path, 2), Catalog(str(tmp_path))
    reader = StreamReader(table)
    reader.read()
    catalog.alter_table("db.t", SetOption("snapshot.num-retained.max", "50"))
    catalog.alter_table("db.t", UpdateColumnComment("v", "a note"))
    put(table, ("+I", 3, "a"))
    assert reader.read() == [("+I", 3, "a")], "options and comments change no row"
    put(table, ("+I", 4, "a"))
    catalog.alter_table("db.t", AddColumn("w", parse_type("INT")))
    table.write([{"k": 5, "v": "b", "w": 7}])
    for _ in range(2):
        with pytest.raises(StreamSchemaChangedError, match=r"columns changed in schema 3.*Start the stream again"):
            reader.read()
    assert reader.state.keys() == {1, 2, 3, 4}
    reader.restart()
    assert reader.read() == [("+I", 5, "b", 7)]


def test_a_changelog_producer_that_was_altered_applies_from_its_schema_on(tmp_path: Path) -> None:
    table = filled(tmp_path, 1)
    reader = StreamReader(table)
    reader.read()
    put(table, ("+I", 2, "a"))
    Catalog(str(tmp_path)).alter_table("db.t", SetOption("changelog-producer", "input"))
    put(table, ("-U", 2, "a"), ("+U", 2, "b"))
    assert reader.read() == [("+I", 2, "a"), ("-U", 2, "a"), ("+U", 2, "b")]


def test_many_snapshots_without_changes_move_the_offset(tmp_path: Path) -> None:
    table = filled(tmp_path, 1)
    reader = StreamReader(table)
    reader.read()
    start = reader.offset
    for number in range(12):
        table.overwrite([{"k": number, "v": "x"}])
        reader.read()
    assert start.snapshot_id < reader.offset.snapshot_id


def test_a_missing_file_of_a_kept_snapshot_is_damage_and_no_data_loss(tmp_path: Path) -> None:
    table = filled(tmp_path, 5)
    reader = StreamReader(table, scan_snapshot_id=2, failOnDataLoss=False)
    Path(table._store().paths.snapshot_file(3)).unlink()
    with pytest.raises(Exception, match="snapshot-3 is missing, and later snapshots exist"):
        reader.read()


def test_a_dropped_table_and_a_moved_one_are_told_apart(tmp_path: Path) -> None:
    table = filled(tmp_path / "a", 2)
    start = feed_of(table).newest()
    shutil.move(tmp_path / "a", tmp_path / "b")
    moved = Table.for_path(str(tmp_path / "b" / "db.db" / "t"))
    assert feed_of(moved).next(start) == start
    with pytest.raises(InvalidInputError, match="does not exist"):
        feed_of(table).next(start)

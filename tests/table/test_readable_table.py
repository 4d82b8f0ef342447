"""Reads of a table: refused arguments, time travel, schema evolution, and metadata."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Table
from lakelsm.errors import CorruptTableError, InvalidInputError, SnapshotNotFoundError
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from lakelsm.types import parse_type
from tests.engines import TableEngine, in_order
from tests.maintain.versioned_table import values, versioned_table
from tests.table_files import root_of


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Three snapshots, an hour apart: row 1 with v = 1; row 2 and a new column; row 1 with v = 10."""
    warehouse = tmp_path_factory.mktemp("history")
    local = TableEngine("local")
    table = local.create(warehouse, "id INT, v INT", ["id"])
    local.write(table, [(1, 1)], commit_user="job", batch_id=1)
    local.catalog(warehouse).alter_table("db.t", AddColumn("w", parse_type("STRING")))
    local.write(table, [(2, 2, "new")], commit_user="job", batch_id=2)
    local.write(table, [(1, 10, "later")], commit_user="job", batch_id=3)
    for number in (1, 2, 3):
        _set_time(table, number, NOON + timedelta(hours=number - 1))
    return table


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone of this machine to UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


NOON = datetime(2024, 7, 1, 12, tzinfo=timezone.utc)


def _set_time(table: Table, snapshot: int, moment: datetime) -> None:
    path = root_of(table) / "snapshot" / f"snapshot-{snapshot}"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["timeMillis"] = int(moment.timestamp() * 1000)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_a_snapshot_is_read_with_its_rows_and_the_columns_of_its_time(engine: TableEngine, history: Table) -> None:
    table = engine.opened(root_of(history))
    assert engine.columns(table.at(snapshot=1)) == ["id", "v"]
    assert engine.rows(table.at(snapshot=1)) == [(1, 1)]
    assert engine.rows(table.at(snapshot=2)) == [(1, 1, None), (2, 2, "new")]
    assert engine.rows(table) == [(1, 10, "later"), (2, 2, "new")]


def test_time_travel_refuses_a_condition_on_a_later_column(
    engine: TableEngine, history: Table
) -> None:
    table = engine.opened(root_of(history))
    with pytest.raises(InvalidInputError, match="condition: column 'w' does not exist"):
        engine.rows(table.at(snapshot=1), "w = 'new'")
    with pytest.raises(InvalidInputError, match="w"):
        engine.rows(table.at(snapshot=1), columns=["w"])


@pytest.mark.parametrize(
    ("timestamp", "snapshot"),
    [
        ("2024-07-01 12:59:59.999", 1),
        (NOON + timedelta(hours=1), 2),
        (datetime(2024, 7, 1, 13, 30), 2),
        ("2024-07-02", 3),
    ],
)
def test_a_time_means_the_newest_snapshot_that_is_not_later(
    utc: None, history: Table, timestamp: str | datetime, snapshot: int
) -> None:
    assert history.at(timestamp=timestamp).explain().snapshot_id == snapshot


def test_a_time_before_the_first_snapshot_names_the_oldest(utc: None, local: TableEngine, history: Table) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"2024-07-01 11:59:59.*earliest.*2024-07-01 12:00:00"):
        local.rows(history.at(timestamp="2024-07-01 11:59:59"))


def test_the_tag_of_an_expired_snapshot_is_readable(local: TableEngine, history: Table) -> None:
    root = root_of(history)
    (root / "tag").mkdir(exist_ok=True)
    snapshot = json.loads((root / "snapshot" / "snapshot-2").read_text(encoding="utf-8"))
    tag = {**snapshot, "tagCreateTime": [2024, 7, 1, 13, 30], "tagTimeRetained": 86400.0}
    (root / "tag" / "tag-monthly").write_text(json.dumps(tag), encoding="utf-8")
    hidden = root / "snapshot" / "snapshot-2"
    kept = hidden.read_bytes()
    hidden.unlink()
    try:
        assert local.rows(history.at(tag="monthly")) == [(1, 1, None), (2, 2, "new")]
        assert local.rows(history.at(tag="monthly"), "v = 2", ["w"]) == [("new",)]
        with pytest.raises(SnapshotNotFoundError, match=r"'weekly'.*monthly"):
            local.rows(history.at(tag="weekly"))
    finally:
        hidden.write_bytes(kept)


def test_a_missing_snapshot_is_named_with_the_existing_ones(local: TableEngine, history: Table) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 9 .*snapshots 1 to 3"):
        local.rows(history.at(snapshot=9))
    with pytest.raises(SnapshotNotFoundError, match="9"):
        history.at(snapshot=9).inspect.files().to_spark()


def test_columns_are_in_the_requested_order(engine: TableEngine, history: Table) -> None:
    assert engine.columns(engine.opened(root_of(history)), columns=["w", "id"]) == ["w", "id"]


def test_snapshots_files_and_buckets_are_frames(spark: SparkSession, history: Table) -> None:
    rows = [row.asDict() for row in history.inspect.snapshots().to_spark().collect()]
    assert [row["snapshot_id"] for row in rows] == [1, 2, 3]
    assert [row["commit_kind"] for row in rows] == ["APPEND"] * 3
    assert [row["schema_id"] for row in rows] == [0, 1, 1]
    assert [(row["commit_user"], row["commit_identifier"]) for row in rows] == [("job", 1), ("job", 2), ("job", 3)]
    assert [(row["total_record_count"], row["delta_record_count"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]
    from pyspark.sql import functions as F

    hours = history.inspect.snapshots().to_spark().select(F.unix_timestamp("commit_time")).collect()
    assert [row[0] - int(NOON.timestamp()) for row in hours] == [0, 3600, 7200]
    files = history.inspect.files().to_spark().collect()
    assert sorted((row.min_sequence_number, row.max_sequence_number) for row in files) == [(0, 0), (1, 1), (2, 2)]
    assert all(Path(row.file_path).stat().st_size == row.file_size_in_bytes for row in files)
    assert history.at(snapshot=1).inspect.files().to_spark().count() == 1
    (bucket,) = history.inspect.buckets().to_spark().collect()
    assert (bucket.files, bucket.records, bucket.bytes) == (3, 3, sum(row.file_size_in_bytes for row in files))


def test_a_table_without_snapshots_is_empty(engine: TableEngine, tmp_path: Path) -> None:
    table = engine.create(tmp_path, "id INT, v DECIMAL(5, 1)", ["id"])
    assert engine.rows(table) == []
    if engine.spark is None:
        assert table.to_arrow("id = 1", ["v"]).schema == pa.schema([("v", pa.decimal128(5, 1))])
    else:
        assert table.read("id = 1", ["v"]).dtypes == [("v", "decimal(5,1)")]
        for output in (
            table.inspect.snapshots().to_spark(),
            table.inspect.files().to_spark(),
            table.inspect.buckets().to_spark(),
        ):
            assert output.count() == 0
    assert table.explain().snapshot_id is None
    with pytest.raises(SnapshotNotFoundError, match="has no snapshots"):
        engine.rows(table.at(timestamp="2024-01-01"))
    with pytest.raises(SnapshotNotFoundError, match="has no snapshots"):
        engine.rows(table.at(snapshot=1))


def test_rows_of_old_files_follow_the_schema(engine: TableEngine, tmp_path: Path) -> None:
    """Columns are added, dropped, renamed and widened, and a dropped name is reused, before and after a compaction."""
    catalog = engine.catalog(tmp_path)
    table = engine.create(tmp_path, "id INT, n INT, f FLOAT, d DECIMAL(5, 2), s VARCHAR(3), gone STRING", ["id"])
    engine.write(table, [(1, 1, 0.5, Decimal("1.25"), "a", "old"), (2, 2, 1.5, Decimal("2.50"), "b", "old")])
    catalog.alter_table("db.t", DropColumn("gone"), RenameColumn("s", "name"))
    catalog.alter_table(
        "db.t",
        AddColumn("gone", parse_type("STRING")),
        UpdateColumnType("n", parse_type("BIGINT")),
        UpdateColumnType("f", parse_type("DOUBLE")),
        UpdateColumnType("d", parse_type("DECIMAL(20, 4)")),
        UpdateColumnType("name", parse_type("STRING")),
        AddColumn("front", parse_type("INT"), first=True),
    )
    engine.write(table, [(7, 2, 2**40, 2.5, Decimal("3.1234"), "longer", "new")])
    wanted = [
        (7, 2, 2**40, 2.5, Decimal("3.1234"), "longer", "new"),
        (None, 1, 1, 0.5, Decimal("1.2500"), "a", None),
    ]
    assert engine.columns(table) == ["front", "id", "n", "f", "d", "name", "gone"]
    assert engine.rows(table) == in_order(wanted)
    assert engine.rows(table, "gone IS NULL", ["id"]) == [(1,)]
    assert engine.rows(table, "gone = 'old'") == []
    assert engine.rows(table, "n = 1099511627776 AND name = 'longer'", ["id"]) == [(2,)]
    assert engine.rows(table, "front IS NULL AND d = 1.25", ["id"]) == [(1,)]
    engine.compact(table, full=True)
    assert engine.rows(table) == in_order(wanted)
    assert engine.columns(table.at(snapshot=1)) == ["id", "n", "f", "d", "s", "gone"]
    assert engine.rows(table.at(snapshot=1), columns=["s", "gone"]) == [("a", "old"), ("b", "old")]


def test_members_of_a_row_follow_the_schema(engine: TableEngine, tmp_path: Path) -> None:
    catalog = engine.catalog(tmp_path)
    table = engine.create(tmp_path, "id INT, r ROW<a INT, b STRING>, l ARRAY<ROW<x INT>>", ["id"])
    engine.write(table, [(1, {"a": 1, "b": "old"}, [{"x": 1}]), (2, None, None)])
    catalog.alter_table(
        "db.t",
        DropColumn(("r", "b")),
        UpdateColumnType(("r", "a"), parse_type("BIGINT")),
        AddColumn(("l", "element", "y"), parse_type("STRING")),
    )
    catalog.alter_table("db.t", AddColumn(("r", "b"), parse_type("STRING")), RenameColumn(("r", "a"), "c"))
    engine.write(table, [(3, {"c": 2**40, "b": "new"}, [{"x": 2, "y": "z"}, None])])
    wanted = [
        (1, (1, None), [(1, None)]),
        (2, None, None),
        (3, (2**40, "new"), [(2, "z"), None]),
    ]
    assert engine.rows(table) == wanted
    if engine.spark is not None:  # This process judges conditions on columns, not on their members.
        assert engine.rows(table, "r.b = 'old'", ["id"]) == []
    engine.compact(table, full=True)
    assert engine.rows(table) == wanted


def test_a_snapshot_that_expires_during_a_read_is_not_reported_as_damage(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 4)
    table.tags.create("old", 2)
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    assert values(table.at(tag="old")) == ["v1", "v2"]
    reader = table.at(tag="old").to_reader()
    table.tags.delete("old")
    with pytest.raises(SnapshotNotFoundError, match="snapshot 2 was deleted while it was read"):
        reader.read_all()


def test_a_missing_file_of_a_retained_snapshot_is_damage(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 2)
    reader = table.to_reader()
    next(tmp_path.rglob("data-*.parquet")).unlink()
    with pytest.raises(CorruptTableError):
        reader.read_all()


def test_a_notebook_shows_a_table_and_a_view_with_their_columns(history: Table, tmp_path: Path) -> None:
    assert "id INT NOT NULL,\nv INT,\nw STRING\nPRIMARY KEY (id)" in history._repr_html_()
    view = history.at(snapshot=1)._repr_html_()
    assert "at snapshot 1" in view and "v INT\nPRIMARY KEY" in view
    dropped = TableEngine("local").create(tmp_path, "`a<b` INT", ["a<b"])
    assert "a&lt;b" in dropped._repr_html_()
    shutil.rmtree(root_of(dropped))
    assert "does not exist" in dropped._repr_html_()

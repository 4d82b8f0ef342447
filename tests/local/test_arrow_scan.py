"""Reads in this process: the merged rows, projected, filtered, limited and ordered, of any snapshot."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.local.arrow_scan import matching_rows, stored_schema
from lakelsm.predicate.parser import parse_where
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema_changes import AddColumn
from tests.compact.local_table import LocalTable

COLUMNS = "id INT NOT NULL, dt STRING NOT NULL, v STRING, n BIGINT"


def written(folder: Path, **options: str) -> LocalTable:
    """Write two partitions of two buckets with a compacted level and three runs above it."""
    table = LocalTable(folder / "t", COLUMNS, ("id", "dt"), ("dt",), bucket="2", **options)
    table.write(*((at, dt, f"v{at}", at) for dt in ("a", "b") for at in range(40)))
    table.compact()
    for step in (1, 2, 3):
        table.write(*((at, "a", f"w{step}", at + step) for at in range(step, 60, 4)))
    table.delete(*((at, "b", None, None) for at in range(0, 40, 8)))
    return table


def opened(table: LocalTable) -> Table:
    return Table.for_path(str(table.root))


def tuples(rows: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_all_rows_are_merged_and_in_key_order_if_requested(tmp_path: Path) -> None:
    table = written(tmp_path)
    wanted = table.rows()
    found = opened(table).to_arrow()
    assert sorted(tuples(found)) == wanted
    assert found.schema == pa.schema(
        [pa.field("id", pa.int32(), False), pa.field("dt", pa.string(), False), ("v", pa.string()), ("n", pa.int64())]
    )
    assert tuples(opened(table).to_arrow(ordered=True)) == wanted
    assert opened(table).to_pandas(columns=["id"], ordered=True)["id"].tolist() == [row[0] for row in wanted]


def test_conditions_and_columns_apply_to_the_merged_rows(tmp_path: Path) -> None:
    table = written(tmp_path)
    for where, matches in (
        ("v LIKE 'w_'", lambda row: row[2].startswith("w")),
        ("n = 7 OR dt = 'b' AND id > 30", lambda row: row[3] == 7 or (row[1] == "b" and row[0] > 30)),
        ("v = 'v5'", lambda row: row[2] == "v5"),
        ("n IS NULL", lambda row: False),
        ("id <=> n", lambda row: row[0] == row[3]),
    ):
        wanted = [(row[2],) for row in table.rows() if matches(row)]
        found = opened(table).to_arrow(where, ["V"])
        assert found.column_names == ["V"]
        assert sorted(tuples(found)) == sorted(wanted), where
        ordered = opened(table).to_arrow(where, ["v"], ordered=True)
        assert tuples(ordered) == wanted


def test_a_limit_bounds_the_number_of_rows(tmp_path: Path) -> None:
    table = written(tmp_path)
    assert [len(opened(table).to_arrow(limit=limit)) for limit in (0, 1, 33, 10_000)] == [0, 1, 33, len(table.rows())]
    assert tuples(opened(table).to_arrow(limit=3, ordered=True)) == table.rows()[:3]
    assert len(opened(table).to_arrow("dt = 'b'", limit=2)) == 2


def test_rows_of_an_older_snapshot_and_of_an_empty_table(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    assert opened(table).to_arrow().num_rows == 0
    table.write((1, "a"), (2, "b"))
    table.write((1, "c"))
    assert sorted(tuples(opened(table).at(snapshot=1).to_arrow())) == [(1, "a"), (2, "b")]
    assert sorted(tuples(opened(table).at(timestamp="2999-01-01 00:00:00").to_arrow())) == [(1, "c"), (2, "b")]


def test_fresh_includes_the_rows_of_level_0(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", deletion_vectors__enabled="true")
    table.write((1, "a"), (2, "b"), (3, "c"))
    table.compact()
    table.write((2, "x"), (4, "d"))
    table.compact(full=False)
    table.write((3, "y"))
    assert sorted(tuples(opened(table).to_arrow())) == [(1, "a"), (2, "x"), (3, "c"), (4, "d")]
    assert sorted(tuples(opened(table).to_arrow("v >= 'c'"))) == [(2, "x"), (3, "c"), (4, "d")]
    assert sorted(tuples(opened(table).to_arrow(fresh=True))) == [(1, "a"), (2, "x"), (3, "y"), (4, "d")]
    store, where = table.store, parse_where("v > 'x'", table.store.schema.fields)
    rows = matching_rows(LocalRunner(1), store, table.latest, where, ["id"])
    assert [batch.to_pylist() for batch in rows] == [[{"id": 3}]]
    assert stored_schema(table.store, ["id"]).names == ["id"]


def test_files_of_an_older_schema_are_read_in_the_newest_one(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"), (2, "b"))
    table.alter(AddColumn("w", "BIGINT"))
    table.write((2, "c", 5))
    assert sorted(tuples(opened(table).to_arrow())) == [(1, "a", None), (2, "c", 5)]
    assert tuples(opened(table).to_arrow("w IS NULL", ["id"])) == [(1,)]
    assert tuples(opened(table).to_arrow(columns=["w"], ordered=True)) == [(None,), (5,)]


def test_a_damaged_file_is_named_when_its_rows_are_read(tmp_path: Path) -> None:
    table = written(tmp_path)
    path = max(table.root.rglob("bucket-*/*.parquet"), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes()[:-9])
    for ordered in (False, True):
        reader = opened(table).to_reader(ordered=ordered)
        with pytest.raises(CorruptTableError, match=path.name):
            reader.read_all()


def test_closing_a_stream_stops_its_tasks(tmp_path: Path) -> None:
    table = written(tmp_path)
    others = set(threading.enumerate())
    reader = opened(table).to_reader()
    assert len(reader.read_next_batch())
    del reader
    assert set(threading.enumerate()) <= others


def test_wrong_arguments_and_conditions_that_only_spark_evaluates_are_refused(tmp_path: Path) -> None:
    table = opened(written(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match=r"'n \+ RAND\(\) = 2'.*Table.read"):
        table.to_arrow("id = 1 AND n + rand() = 2")
    with pytest.raises(InvalidInputError, match="limit"):
        table.to_arrow(limit=-1)
    with pytest.raises(InvalidInputError, match="ordered"):
        table.to_arrow(ordered="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="column 'x' does not exist"):
        table.to_arrow("x = 1")
    with pytest.raises(InvalidInputError, match="nope"):
        table.to_arrow(columns=["nope"])

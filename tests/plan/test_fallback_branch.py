"""Reads take the partitions that a table lacks from its fallback branch, as on Paimon's page of branches."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, TableNotFoundError, UnsupportedFeatureError
from lakelsm.schema_changes import AddColumn, SetOption

FALLBACK = "scan.fallback-branch"


def rows_of(table: Table, **read: object) -> list[tuple[object, ...]]:
    found = table.to_arrow(**read).to_pylist()  # type: ignore[arg-type]
    return sorted(tuple(row.values()) for row in found)


def put(table: Table, *rows: tuple[str, str, int]) -> None:
    dates, names, amounts = zip(*rows)
    table.write(pa.table({"dt": dates, "name": names, "amount": pa.array(amounts, pa.int64())}))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """The daily table of the documentation: it has corrected days, its branch has the rows of a stream so far."""
    catalog = Catalog(str(tmp_path))
    table = catalog.create_table(
        "db.t", "dt STRING, name STRING, amount BIGINT", primary_key=["dt", "name"], partition_by=["dt"],
        options={"bucket": 1},
    )
    table.branches.create("stream")
    catalog.alter_table("db.t", SetOption(FALLBACK, "stream"))
    put(table, ("20240725", "apple", 5), ("20240725", "banana", 7))
    stream = table.branches.open("stream")
    put(stream, ("20240725", "apple", 4), ("20240725", "peach", 10), ("20240726", "cherry", 3))
    return table


def test_a_partition_is_read_whole_from_the_table_or_from_the_fallback(table: Table) -> None:
    both = [("20240725", "apple", 5), ("20240725", "banana", 7), ("20240726", "cherry", 3)]
    assert rows_of(table) == both
    put(table, ("20240726", "cherry", 9))
    assert rows_of(table) == [*both[:2], ("20240726", "cherry", 9)]
    assert rows_of(table.branches.open("stream"))[0] == ("20240725", "apple", 4)


def test_conditions_columns_limits_counts_and_plans_include_both(table: Table) -> None:
    assert rows_of(table, where="dt = '20240726'") == [("20240726", "cherry", 3)]
    assert rows_of(table, where="name = 'peach'") == []
    assert rows_of(table, where="amount < 6", columns=["NAME"]) == [("apple",), ("cherry",)]
    assert len(table.to_arrow(limit=1)) == 1 and len(table.to_arrow(limit=3)) == 3
    assert (table.count().rows, table.count("amount < 6").rows, table.count("dt = '20240726'").rows) == (3, 2, 1)
    assert (table.explain().files_scanned, table.explain("dt = '20240726'").files_scanned) == (2, 1)
    put(table, ("20240725", "apple", 6))
    assert table.count().rows == 3


def test_spark_reads_and_counts_both(spark: SparkSession, table: Table) -> None:
    on_spark = table.read(where="amount < 6", columns=["dt", "name"])
    assert sorted(map(tuple, on_spark.collect())) == [("20240725", "apple"), ("20240726", "cherry")]
    put(table, ("20240725", "apple", 6))
    assert (table.read().count(), table.count("amount < 7", engine="spark").rows) == (3, 2)


def test_an_empty_table_falls_back_whole_and_a_dropped_partition_returns(tmp_path: Path, table: Table) -> None:
    table.maintenance.drop_partitions("dt = '20240725'")
    assert [row[1] for row in rows_of(table)] == ["apple", "peach", "cherry"]
    catalog = Catalog(str(tmp_path))
    whole = catalog.create_table("db.w", "id INT", primary_key=["id"], options={"bucket": 1})
    whole.branches.create("b")
    catalog.alter_table("db.w", SetOption(FALLBACK, "b"))
    whole.branches.open("b").write(pa.table({"id": pa.array([1, 2], pa.int32())}))
    assert rows_of(whole) == [(1,), (2,)]
    whole.write(pa.table({"id": pa.array([3], pa.int32())}))
    assert rows_of(whole) == [(3,)]


def test_writes_and_deletes_use_the_table_alone(table: Table) -> None:
    assert table.delete("amount > 0").matched_rows == 2
    assert rows_of(table.branches.open("stream"))[0] == ("20240725", "apple", 4)


def test_a_read_of_the_past_uses_the_fallback_of_that_time(table: Table) -> None:
    newest = table._store().snapshots.latest()
    assert newest is not None
    assert [row[0] for row in rows_of(table.at(snapshot=newest.id))] == ["20240725"] * 2
    later = datetime.now() + timedelta(minutes=1)
    assert len(rows_of(table.at(timestamp=later))) == 3


def test_a_fallback_with_other_columns_or_without_a_branch_is_refused(tmp_path: Path, table: Table) -> None:
    catalog = Catalog(str(tmp_path))
    for name in ("nowhere", "main"):
        with pytest.raises(InvalidInputError, match=r"is not another branch of the table. Branches: stream"):
            catalog.alter_table("db.t", SetOption(FALLBACK, name))
    with pytest.raises(InvalidInputError, match="is not another branch"):
        catalog.create_table("db.u", "id INT", primary_key=["id"], options={FALLBACK: "b"})
    with pytest.raises(InvalidInputError, match="Remove the option first"):
        table.branches.delete("stream")
    catalog.alter_table("db.t", AddColumn("w", "INT"))
    with pytest.raises(InvalidInputError, match=r"its columns \(.*w INT\) differ from those of its fallback branch"):
        table.to_arrow()
    catalog.alter_table("db.t$branch_stream", AddColumn("w", "INT"))
    assert len(rows_of(table)) == 3
    store = table._store()
    store.file_io.delete_dir(store.paths.of_branch("stream").branch_root)
    with pytest.raises(TableNotFoundError, match="branch 'stream' does not exist"):
        table.count()


def test_calls_that_do_not_support_a_fallback_are_refused(table: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="ordered=True"):
        table.to_arrow(ordered=True)
    with pytest.raises(UnsupportedFeatureError, match="lookups"):
        table.lookup()

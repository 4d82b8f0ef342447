"""The reader of the data source: plans once, from metadata, and its partitions have the rows of `Table.to_arrow`."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import datasource
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField, StructType

from lakelsm import Catalog, Table
from lakelsm.data_source.read_options import ReadOptions
from lakelsm.data_source.reader import FilteringReader, TableReader
from lakelsm.data_source.spark_rows import source_struct
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError


def created(tmp_path: Path, **options: str) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    settings = {"bucket": "2"} | {name.replace("_", "-"): value for name, value in options.items()}
    table = catalog.create_table("d.t", {"id": "INT", "n": "INT"}, primary_key="id", options=settings)
    table.write([{"id": number, "n": number} for number in range(100)])
    table.write([{"id": number, "n": -number} for number in range(50)])
    return table


def reader_of(table: Table, kind: type[TableReader] = TableReader, **options: str) -> TableReader:
    given = ReadOptions.of({"path": table._store().paths.root, **options})
    return kind(given, source_struct(given.opened().schema, given.columns))


def rows(reader: TableReader) -> list[dict[str, object]]:
    """Return the rows as Spark reads them: the reader and each partition are pickled."""
    tasks = pickle.loads(pickle.dumps(reader))
    parts = [pickle.loads(pickle.dumps(each)) for each in reader.partitions()]
    batches = [batch for part in parts for batch in tasks.read(part)]
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"])


EXPECTED = [{"id": number, "n": -number if number < 50 else number} for number in range(100)]


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_partitions_have_the_merged_rows(tmp_path: Path, engine: str) -> None:
    table = created(tmp_path, merge_engine=engine, write_only="true")
    assert rows(reader_of(table)) == EXPECTED
    assert rows(reader_of(table, where="n < -47")) == [{"id": 48, "n": -48}, {"id": 49, "n": -49}]
    assert rows(reader_of(table, **{"snapshot-id": "1"}))[1] == {"id": 1, "n": 1}


def test_columns_have_the_names_and_the_order_of_the_option(tmp_path: Path) -> None:
    reader = reader_of(created(tmp_path), columns="N,ID", where="id = 99")
    (batch,) = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert batch.to_pylist() == [{"N": 99, "ID": 99}]


def test_partitions_are_few_and_bounded_by_the_size_of_a_split(tmp_path: Path) -> None:
    table = created(tmp_path, write_only="true")
    assert len(reader_of(table).partitions()) == 1
    options = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b", "bucket": "2"}
    other = Catalog(str(tmp_path)).create_table("d.s", {"id": "INT", "n": "INT"}, primary_key="id", options=options)
    other.write([{"id": number, "n": number} for number in range(100)])
    assert len(reader_of(other).partitions()) == 2


def test_a_table_without_rows_has_no_partition_and_the_one_of_spark_has_no_rows(tmp_path: Path) -> None:
    table = created(tmp_path)
    reader = reader_of(table, where="id > 1000")
    assert list(reader.partitions()) == []
    assert list(reader.read(InputPartition(None))) == []


@pytest.mark.skipif(not hasattr(datasource, "EqualTo"), reason="PySpark 4.0 has no filters")
def test_filters_skip_rows_and_are_all_returned_to_spark(tmp_path: Path) -> None:
    reader = reader_of(created(tmp_path), FilteringReader, where="id > 5")
    assert isinstance(reader, FilteringReader)
    filters = [datasource.LessThan(("id",), 7), datasource.EqualTo(("n", "x"), 1)]
    assert list(reader.pushFilters(filters)) == filters
    assert rows(reader) == [{"id": 6, "n": -6}]


def test_a_schema_that_differs_from_the_table_is_refused(tmp_path: Path) -> None:
    options = ReadOptions.of({"path": created(tmp_path)._store().paths.root})
    with pytest.raises(InvalidInputError, match="column 'id': the table has type int, and bigint is wanted"):
        TableReader(options, StructType().add("id", LongType())).partitions()
    with pytest.raises(InvalidInputError, match="column 'other': the table has no such column"):
        TableReader(options, StructType().add("other", LongType())).partitions()


def test_a_schema_without_null_is_refused_where_the_table_can_have_null(tmp_path: Path) -> None:
    columns = "id INT, n INT, a ARRAY<INT>, m MAP<STRING, ROW<x INT>>, r ROW<x INT NOT NULL>"
    table = Catalog(str(tmp_path)).create_table("d.t", columns, primary_key="id")
    options = ReadOptions.of({"path": table._store().paths.root})
    own = source_struct(table.schema, None)
    TableReader(options, StructType([StructField("id", IntegerType(), False), own["r"]])).partitions()
    inner = StructType([StructField("x", IntegerType(), False)])
    for name, kind, nullable in (
        ("n", IntegerType(), False),
        ("a", ArrayType(IntegerType(), False), True),
        ("m", MapType(StringType(), own["m"].dataType.valueType, False), True),
        ("m", MapType(StringType(), inner), True),
    ):
        with pytest.raises(InvalidInputError, match=f"column '{name}': the schema says NOT NULL"):
            TableReader(options, StructType([StructField(name, kind, nullable)])).partitions()


def test_columns_that_a_given_schema_does_not_have_are_refused(tmp_path: Path) -> None:
    options = ReadOptions.of({"path": created(tmp_path)._store().paths.root, "columns": "n"})
    with pytest.raises(InvalidInputError, match="option 'columns': 'n' are not the columns of the schema"):
        TableReader(options, StructType().add("id", IntegerType())).partitions()


def test_a_snapshot_that_expires_during_the_read_is_reported_as_such(tmp_path: Path) -> None:
    table = created(tmp_path, write_only="true")
    reader = reader_of(table)
    parts = reader.partitions()
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    with pytest.raises(SnapshotNotFoundError):
        pa.Table.from_batches([batch for part in parts for batch in reader.read(part)])

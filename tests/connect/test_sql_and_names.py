"""SQL, registered tables and the data source on a session of Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, datasource

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.spark.connect import is_connect
from tests.engines import in_order
from tests.spark_frames import frame_of

DDL = "k INT, p STRING, v STRING"


@pytest.fixture
def catalog(connect: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    made = Catalog(str(tmp_path / "warehouse"), connect)
    table = made.create_table("of_connect.t", DDL, primary_key=["k", "p"], partition_by=["p"], options={"bucket": "2"})
    table.write({"k": [1, 2], "p": ["x", "y"], "v": ["a", "b"]})
    yield made
    connect.sql("DROP DATABASE IF EXISTS of_connect CASCADE")
    connect.catalog.dropTempView("of_connect.t")


def rows(catalog: Catalog) -> list[tuple[object, ...]]:
    """Return the rows of the table, read in this process."""
    found = catalog.table("of_connect.t").to_arrow()
    return in_order([tuple(row.values()) for row in found.to_pylist()])


def test_statements_run_in_the_session_of_the_catalog(connect: SparkSession, catalog: Catalog) -> None:
    changes = frame_of(connect, [(1, "x", "d"), (2, "y", "u"), (3, "x", "i")], DDL)
    merged = catalog.sql(
        "MERGE INTO of_connect.t t USING c ON t.k = c.k AND t.p = c.p WHEN MATCHED AND c.v = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = concat(t.v, c.v) WHEN NOT MATCHED THEN INSERT *",
        c=changes,
    )
    assert (merged.deleted_rows, merged.updated_rows, merged.inserted_rows) == (1, 1, 1)
    catalog.sql("INSERT INTO of_connect.t SELECT k + 10, p, NULL FROM r", r=pa.table({"k": [4], "p": ["y"]}))
    assert rows(catalog) == [(2, "y", "bu"), (3, "x", "i"), (14, "y", None)]
    assert catalog.sql("CALL sys.compact(table => 'of_connect.t')").status == "done"
    found = catalog.sql("SELECT max(__paimon_bucket) < 2 AS b, count(*) AS n FROM of_connect.t WHERE k > 2")
    assert is_connect(found)
    assert [tuple(row) for row in found.collect()] == [(True, 2)]


def test_registered_tables_are_read_and_written_by_name(connect: SparkSession, catalog: Catalog) -> None:
    assert catalog.register(connect).names == ("of_connect.t",)
    connect.sql("INSERT INTO of_connect.t VALUES (3, 'x', 'n')").collect()
    assert rows(catalog) == [(1, "x", "a"), (2, "y", "b"), (3, "x", "n")]
    assert catalog.register(connect, pinned=True).names == ("`of_connect.t`",)
    assert connect.sql("SELECT k FROM `of_connect.t` WHERE v = 'n'").collect()[0].k == 3


def test_streams_are_written_exactly_once(connect: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        pytest.skip("PySpark 4.0 has no stream writer for Arrow")
    catalog.register(connect)
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / "0.json").write_text(f'{{"k": {number}, "p": "x", "v": "s{number}", "rk": "+I"}}')
        (tmp_path / "in" / "0.json").rename(tmp_path / "in" / f"{number + 1}.json")
        stream = connect.readStream.schema(f"{DDL}, rk STRING").json(str(tmp_path / "in"))
        query = stream.writeStream.trigger(availableNow=True).option("row-kind", "rk")
        query.option("checkpointLocation", str(tmp_path / "log")).toTable("of_connect.t").awaitTermination()
    found = catalog.table("of_connect.t").inspect.snapshots().to_arrow()
    assert found.column("commit_identifier").to_pylist()[-1] == 1
    assert rows(catalog) == [(0, "x", "s0"), (1, "x", "s1"), (2, "y", "b")]


def test_columns_of_connect_are_neither_conditions_nor_rows(tmp_path: Path) -> None:
    from pyspark.sql.connect import functions

    column = functions.col("k") == 1
    catalog = Catalog(str(tmp_path))
    table = catalog.create_table("db.t", DDL, primary_key="k", options={"bucket": "1"})
    table.write({"k": [1], "p": ["x"], "v": ["a"]})
    for call in (
        lambda: table.to_arrow(column),
        lambda: table.to_arrow(columns=[column]),
        lambda: table.delete(column),
        lambda: table.delete(keys=column),
        lambda: table.update({"v": column}, "k = 1"),
        lambda: table.update({"v": "'b'"}, column),
        lambda: table.merge(table, column),
        lambda: table.merge(column, "k").when_matched_delete().execute(),
        lambda: table.merge(table, "k").when_matched_delete(column),
        lambda: table.write(column),
        lambda: table.overwrite(table.to_arrow(), {"p": column}),
        lambda: table.lookup_join(column),
        lambda: catalog.sql(column),
        lambda: catalog.sql("SELECT * FROM c", c=column),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert table.inspect.snapshots().to_arrow().num_rows == 1


def test_a_stream_of_a_table_runs_on_the_server(connect: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    stream = connect.readStream.format("lakelsm").option("read.changelog", "true")
    frame = stream.load(str(tmp_path / "warehouse" / "of_connect.db" / "t"))
    query = frame.writeStream.format("memory").queryName("connect_stream").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    found = connect.sql("SELECT rowkind, k, p, v FROM connect_stream ORDER BY k").collect()
    assert [tuple(row) for row in found] == [("+I", 1, "x", "a"), ("+I", 2, "y", "b")]
    connect.catalog.dropTempView("connect_stream")

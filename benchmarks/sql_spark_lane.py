"""SQL on Spark, and ``format("lakelsm")``: ``python -m benchmarks.sql_spark_lane CONFIG.json OUT.json``.

A query by `Catalog.sql` is measured beside the same text on views of `Table.read` with its columns and condition; reads
and writes by the data source beside `Table.read` and `Table.write`.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import pyspark_lakelsm
from benchmarks.config import KEY, BenchConfig
from benchmarks.data import SCHEMA
from benchmarks.engine import Engine, create, open_catalog, open_table
from benchmarks.floors import drain
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE, FORMAT, READ_BY_HAND, SQL_SPARK, pushed
from benchmarks.session import in_session
from benchmarks.sql_lane import answer_check
from benchmarks.sql_queries import PARTITIONED, SQL_ON_SPARK
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import build, copy_table, remove

_STATE = "small-state"
_POINT = f"{KEY} = 4242"


def prepare(config: BenchConfig) -> None:
    """Write the tables of the lane once, in this process: ``small`` with one more run, and one with partitions."""

    def updated(target: Any) -> None:
        copy_table(config.table("small"), target)
        open_table(target).write(pq.read_table(config.data("upsert-small")))

    def partitioned(target: Any) -> None:
        warehouse = config.scratch / "prepare-partitioned"
        remove(warehouse)
        table = open_catalog(warehouse).create_table(
            "bench.t",
            SCHEMA,
            primary_key=["status", KEY],
            partition_by=["status"],
            options={"bucket": "1", "write-only": "true"},
        )
        table.write(ds.dataset(config.data("small")).scanner().to_reader())
        table.compact(full=True, engine="local")
        table.write(pq.read_table(config.data("upsert-small")))
        (warehouse / "bench.db" / "t").rename(target)
        remove(warehouse)

    build(config.table(_STATE), updated)
    build(config.table(PARTITIONED), partitioned)


def _queries(config: BenchConfig, spark: SparkSession, operation: str) -> list[Contender]:
    """Return those of one operation of SQL_ON_SPARK."""
    query = SQL_ON_SPARK[operation]
    catalog = open_catalog(config.warehouse)
    text = query.text.format(*(f"bench.`{name}`" for name in query.tables))

    def by_sql() -> Any:
        return catalog.sql(text, engine="spark").collect()

    def by_hand() -> Any:
        for at, name in enumerate(query.tables):
            open_table(config.table(name)).read(query.where, query.columns).createOrReplaceTempView(f"rows{at}")
        names = (f"rows{at}" for at in range(len(query.tables)))
        return spark.sql(query.text.format(*names)).collect()

    check = answer_check(query, lambda found: [tuple(row) for row in found])
    return [Contender(READ_BY_HAND, by_hand, check=check), Contender(SQL_SPARK, by_sql, check=check)]


def _formats(config: BenchConfig, spark: SparkSession, operation: str) -> list[Contender]:
    """Return those of one operation of FORMAT_OPERATIONS."""
    path = config.table(_STATE)
    if operation == "format-write":
        return _writes(config, spark)
    columns = ["quantity"] if operation == "format-column" else None
    where = _POINT if operation == "format-point" else None

    def read() -> None:
        drain(open_table(path).read(where, columns))

    def loaded(**options: str) -> DataFrame:
        return spark.read.format("lakelsm").options(**options).load(str(path))

    def unpushed() -> None:
        frame = loaded()
        frame = frame.select(*columns) if columns else frame
        drain(frame.where(where) if where else frame)

    found = [Contender(ENGINE, read), Contender(FORMAT, unpushed)]
    if columns:
        found.append(Contender(pushed(FORMAT), lambda: drain(loaded(columns=",".join(columns)))))
    if where:
        found.append(Contender(pushed(FORMAT), lambda: drain(loaded(where=where))))
    return found


def _writes(config: BenchConfig, spark: SparkSession) -> list[Contender]:
    scratch = config.scratch / "format"
    target = scratch / "bench.db" / "t"

    def rows() -> DataFrame:
        return Engine(config, spark).rows("small")

    def setup() -> None:
        remove(scratch)
        create(config, scratch)

    def clear() -> None:
        remove(scratch)

    def by_format() -> None:
        rows().write.format("lakelsm").mode("append").save(str(target))

    return [
        Contender(ENGINE, lambda: open_table(target).write(rows()), setup, clear),
        Contender(FORMAT, by_format, setup, clear),
    ]


def contenders(config: BenchConfig, spark: SparkSession, operation: str) -> list[Contender]:
    """Return those of one operation of SQL_ON_SPARK or FORMAT_OPERATIONS."""
    made = _queries if operation in SQL_ON_SPARK else _formats
    return made(config, spark, operation)


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure operations of SQL_ON_SPARK and FORMAT_OPERATIONS."""
    prepare(config)
    spark.dataSource.register(pyspark_lakelsm.DefaultSource)
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, contenders(config, spark, operation), config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))

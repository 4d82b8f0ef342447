"""Random queries on two tables: in this process and by Catalog.sql on Spark each gives the rows that Spark gives."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.chance import seeds
from tests.sql.random_queries import T_ROWS, U_ROWS, RandomQuery, T, U

#: Queries of a run; `make fuzz` runs many more.
COUNT = 60
Rows = list[tuple[str, ...]] | str


def write_tables(catalog: Catalog) -> None:
    """Create db.t, whose rows replace older ones in its files, and db.u, which has partitions."""
    t = catalog.create_table(
        "db.t",
        "id INT, a INT, b STRING, c BIGINT, d DATE",
        primary_key="id",
        options={"write-only": "true", "bucket": "2"},
    )
    days = [(*row[:4], row[4] and date.fromisoformat(row[4])) for row in T_ROWS]
    for rows in ([(row[0], 9, "old", 9, date(2020, 1, 1)) for row in T_ROWS], days):
        t.write([dict(zip(T, row)) for row in rows])
    u = catalog.create_table("db.u", "k INT, a INT, b STRING, p STRING", primary_key=["p", "k"], partition_by=["p"])
    u.write([dict(zip(U, row)) for row in U_ROWS])


def in_order(table: pa.Table) -> list[tuple[str, ...]]:
    return sorted(tuple(map(repr, row)) for row in zip(*(column.to_pylist() for column in table.columns)))


def on_spark(spark: SparkSession, text: str) -> Rows:
    try:
        return in_order(spark.sql(text.replace("db.t ", "raw_t ").replace("db.u ", "raw_u ")).toArrow())
    except PySparkException:
        return "error"


def run(catalog: Catalog, text: str, engine: str) -> Rows:
    try:
        found: Any = catalog.sql(text, engine=engine)
        return in_order(found.toArrow() if engine == "spark" else found.to_arrow())
    except UnsupportedFeatureError:
        return "refused"
    except InvalidInputError:
        return "error"


@pytest.mark.spark
def test_random_queries_give_spark_s_rows(tmp_path: Path, interpreted: SparkSession) -> None:
    spark = interpreted
    catalog = Catalog(str(tmp_path), spark)
    write_tables(catalog)
    for name in ("t", "u"):
        rows = spark.createDataFrame(catalog.table(f"db.{name}").to_arrow()).coalesce(1)
        rows.createOrReplaceTempView(f"raw_{name}")
    different, refused = {}, 0
    for at, seed in enumerate(seeds(COUNT)):
        text = RandomQuery(seed).text
        expected = on_spark(spark, text)
        found = {engine: run(catalog, text, engine) for engine in (("local", "spark") if at % 5 == 0 else ("local",))}
        refused += found["local"] == "refused"
        if any(rows not in (expected, "refused") for rows in found.values()):
            different[text] = (found, expected)
    assert different == {}
    assert refused < COUNT / 10, "few queries are evaluated, so the test shows little"


@pytest.mark.parametrize("seed", range(12))
def test_random_queries_are_evaluated_in_this_process(tmp_path: Path, seed: int) -> None:
    catalog = Catalog(str(tmp_path))
    write_tables(catalog)
    assert isinstance(run(catalog, RandomQuery(seed).text, "local"), list)

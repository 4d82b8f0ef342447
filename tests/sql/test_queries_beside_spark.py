"""Random queries on two tables: in this process and by Catalog.sql on Spark each gives the rows that Spark gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.frames.sql_frame import frame_of_rows
from tests.chance import seeds
from tests.sql.random_queries import T_ROWS, U_ROWS, RandomQuery, T, U

#: Queries of a run; `make fuzz` runs many more.
COUNT = 40
Rows = list[tuple[str, ...]] | str


def write_tables(catalog: Catalog) -> None:
    """Create db.t, whose rows replace older ones in its files, and db.u, which has partitions."""
    t = catalog.create_table(
        "db.t",
        "id INT, a INT, b STRING, c BIGINT, d DATE, x DOUBLE, e DECIMAL(10, 2), f BOOLEAN",
        primary_key="id",
        options={"write-only": "true", "bucket": "2"},
    )
    older = {"a": 9, "b": "old", "c": 9, "d": date(2020, 1, 1), "x": 9.0, "e": None, "f": None}
    t.write([{"id": row[0], **older} for row in T_ROWS])
    rows = [dict(zip(T, row)) for row in T_ROWS]
    parsed = {"d": date.fromisoformat, "e": Decimal}
    t.write([{name: _parsed(parsed, name, value) for name, value in row.items()} for row in rows])
    columns = "k INT, a INT, b STRING, p STRING, x DOUBLE, m TIMESTAMP(6), g ARRAY<STRING>"
    u = catalog.create_table("db.u", columns, primary_key=["p", "k"], partition_by=["p"])
    rows = [dict(zip(U, row)) for row in U_ROWS]
    u.write([{name: _parsed({"m": datetime.fromisoformat}, name, value) for name, value in row.items()} for row in rows])


def _parsed(parsers: Mapping[str, Callable[[str], object]], name: str, value: Any) -> object:
    return parsers[name](value) if name in parsers and value is not None else value


def in_order(table: pa.Table, query: RandomQuery) -> list[tuple[str, ...]]:
    """Return rows as texts, with their types. Both zeros are one value."""
    found = [
        tuple(repr(value + 0.0 if isinstance(value, float) else value) for value in row)
        for row in zip(*(column.to_pylist() for column in table.columns))
    ]
    types = ["list" if pa.types.is_nested(kind) else str(kind) for kind in table.schema.types]
    return [tuple(types), *(found if query.is_ordered else sorted(found))]


def on_spark(spark: SparkSession, query: RandomQuery) -> Rows:
    try:
        return in_order(spark.sql(query.text.replace("db.t ", "raw_t ").replace("db.u ", "raw_u ")).toArrow(), query)
    except PySparkException:
        return "error"


def run(catalog: Catalog, query: RandomQuery, engine: str) -> Rows:
    try:
        found: Any = catalog.sql(query.text, engine=engine)
        return in_order(found.toArrow() if engine == "spark" else found.to_arrow(), query)
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
        rows = frame_of_rows(spark, catalog.table(f"db.{name}").to_arrow())
        rows.coalesce(1).createOrReplaceTempView(f"raw_{name}")
    different, refused = {}, 0
    for at, seed in enumerate(seeds(COUNT)):
        query = RandomQuery(seed)
        expected = on_spark(spark, query)
        found = {engine: run(catalog, query, engine) for engine in (("local", "spark") if at % 5 == 0 else ("local",))}
        refused += found["local"] == "refused"
        if any(rows not in (expected, "refused") for rows in found.values()):
            different[query.text] = (found, expected)
    assert different == {}
    assert refused < COUNT / 10, "few queries are evaluated, so the test shows little"


@pytest.mark.parametrize("seed", range(12))
def test_random_queries_are_evaluated_in_this_process(tmp_path: Path, seed: int) -> None:
    catalog = Catalog(str(tmp_path))
    write_tables(catalog)
    assert isinstance(run(catalog, RandomQuery(seed), "local"), list)

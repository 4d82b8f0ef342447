"""Rows of cases are unchanged after Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from pyspark.sql import SparkSession

from tests.conformance.frames import to_frame, to_rows
from tests.conformance.table_case import KindedRow
from tests.conformance.values import Comparison, case_fields, comparable_rows

TYPES = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT NOT NULL", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(20,2)",
    "CHAR(1)", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)",
    "ARRAY<ROW<a INT,b STRING>>", "MAP<VARBINARY(10),INT>", "MAP<STRING,ROW<value STRING,ts STRING>>",
    "ROW<c1 INT,c2 STRING>", "ARRAY<MAP<INT,STRING>>",
]  # fmt: skip
COLUMNS = [{"name": f"c{i}", "type": sql} for i, sql in enumerate(TYPES)]
MOMENT = dt.datetime(1900, 1, 1, 1, 2, 3, 456789)
VALUES = (
    True, -1, 2, 3, 4, 1.1, 1.1, Decimal("999999999999999999.99"), "a", b"\x00\x01",
    dt.date(1, 1, 1), MOMENT, MOMENT, MOMENT, [{"a": 1, "b": None}], [(b"\x01", 1)],
    [("k", {"value": "v", "ts": None})], {"c1": 1, "c2": "x"}, [[(1, "a")], []],
)  # fmt: skip


def test_every_type_is_unchanged_after_spark(spark: SparkSession) -> None:
    fields = case_fields(COLUMNS)
    rows = [KindedRow("+I", VALUES), KindedRow("-D", (None,) * len(VALUES))]
    back = to_rows(to_frame(spark, fields, "op", rows))
    assert [row[-1] for row in back] == ["+I", "-D"]
    types = [field.type for field in fields]
    expected = comparable_rows([row.values for row in rows], types, Comparison())
    assert comparable_rows([row[:-1] for row in back], types, Comparison()) == expected


def test_rows_keep_the_order_of_the_case_in_one_partition(spark: SparkSession) -> None:
    fields = case_fields([{"name": "k", "type": "INT"}])
    frame = to_frame(spark, fields, "op", [KindedRow("+I", (k,)) for k in range(100)])
    assert frame.rdd.getNumPartitions() == 1
    assert [row[0] for row in to_rows(frame)] == list(range(100))

"""The columns of a frame compared with a table's: typed frames by type, Python values by value."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError
from lakelsm.frame_columns import FrameColumns
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import parse_type

FINE = dt.datetime(2026, 1, 1, 0, 0, 0, 1)


def types_of(columns: str, frame: Any, *, by_value: bool = True) -> str:
    schema = create_schema(f"id INT, {columns}", ["id"])
    found = FrameColumns.of(frame, by_value=by_value).of_schema(schema)
    return ", ".join(f"{column.name} {column.type.with_nullable(True).sql()}" for column in found)


@pytest.mark.parametrize(
    ("own", "values", "found"),
    [
        ("TINYINT", [1, None], "TINYINT"),
        ("INT", [1, 2**31], "BIGINT"),
        ("INT", [1, 1.0], "INT"),
        ("INT", [1, 1.5], "DOUBLE"),
        ("BIGINT", [2**70], "BIGINT"),  # No type can hold the value, so the write refuses it.
        ("INT", ["x", 1], "INT"),
        ("INT", ["x"], "STRING"),
        ("DECIMAL(10, 2)", [1, 1.25, Decimal("1.1")], "DECIMAL(10, 2)"),
        ("DECIMAL(10, 2)", [Decimal("1.125")], "DECIMAL(38, 3)"),
        ("VARCHAR(3)", ["abcdef"], "VARCHAR(3)"),
        ("DATE", ["2026-01-31", FINE.date()], "DATE"),
        ("TIMESTAMP(0)", [FINE.replace(microsecond=0)], "TIMESTAMP(0)"),
        ("TIMESTAMP(3)", [FINE, None], "TIMESTAMP(6)"),
        ("TIMESTAMP(6)", [pd.Timestamp(1)], "TIMESTAMP(6)"),
        ("ROW<a INT, b INT>", [{"B": 1}, None], "ROW<`a` INT, `b` INT>"),
        ("ROW<a INT, b INT>", [{"c": 1, "B": 2**40}, {"a": 1}], "ROW<`a` INT, `b` BIGINT, `c` BIGINT>"),
        ("ARRAY<INT>", [[1], [2**40, None]], "ARRAY<BIGINT>"),
        ("ARRAY<ROW<a INT>>", [[{"a": 1}], [{"b": "x"}]], "ARRAY<ROW<`a` INT, `b` STRING>>"),
        ("MAP<INT, INT>", [{1: 2**40}], "MAP<INT, BIGINT>"),
    ],
)
def test_python_values_have_the_columns_type_if_they_fit(own: str, values: list[Any], found: str) -> None:
    expected = f"v {parse_type(found).sql()}"
    for frame in ([{"v": value} for value in values], {"v": values}, {"v": _objects(values)}):
        assert types_of(f"v {own}", frame).replace("INT NOT NULL", "INT") == expected


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def test_typed_columns_keep_their_types_except_nanoseconds_and_integers_of_pandas() -> None:
    times = pd.to_datetime(["2026-01-01"] * 2).astype("datetime64[ns]")
    own = "v INT, f INT, s STRING, d DECIMAL(10, 2), e DECIMAL(10, 2), t TIMESTAMP(3)"
    columns = {
        "v": [1, 2],
        "f": [1, np.nan],
        "s": ["a", None],
        "d": [Decimal("1.1"), None],
        "e": [Decimal("1.125"), None],
        "t": times,
        "n": [Decimal("1.1"), None],
    }
    frame = pd.DataFrame(columns)
    found = "v BIGINT, f {}, s STRING, d DECIMAL(2, 1), e DECIMAL(38, 3), t TIMESTAMP(6), n DECIMAL(38, 1)"
    assert types_of(own, frame) == found.format("INT")
    assert types_of(own, frame, by_value=False) == found.format("DOUBLE")
    for other in ([1.5, 1], [2.0**31, np.nan], [np.inf, 1]):
        assert types_of(own, frame.assign(f=other)) == found.format("DOUBLE")
    assert types_of("v INT, t TIMESTAMP(3)", {"v": np.array([1]), "t": times[:1]}) == "v BIGINT, t TIMESTAMP(6)"
    rows = pa.table({"v": pa.array([1.0]), "t": pa.array([1], pa.timestamp("ns")), "x": pa.nulls(1)})
    for form in (rows, rows.to_batches()[0], rows.to_reader()):
        assert types_of("v INT, t TIMESTAMP(3)", form) == "v DOUBLE, t TIMESTAMP(9), x NULL"


def test_rows_in_memory_can_be_read_again_and_a_stream_only_once() -> None:
    rows = pa.table({"id": [1], "t": pa.array([1], pa.time64("us"))})
    for form in (rows, rows.to_pandas(), rows.to_pylist()):
        assert FrameColumns.of(form).is_in_memory
    assert not FrameColumns.of(rows.to_reader()).is_in_memory
    taken = FrameColumns.of(rows.to_reader())
    assert taken.rows({}) is taken.rows({})
    for form in (rows, rows.to_reader()):
        fine = FrameColumns.of(form).rows({"t": parse_type("TIME(3)")})
        assert isinstance(fine, ArrowInput)
        with pytest.raises(InvalidInputError, match=r"'t': 00:00:00.000001 is finer than the inferred type TIME\(3\)"):
            list(fine.batches)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([{"x": 1}, {"x": "a"}], "column 'x': its values have no common type"),
        ([{"id": 1}, 5], "frame, row 2: expected a dict, got 5."),
        ({"x": 5}, "column 'x' of frame: expected a list"),
        ({"t": np.array([1], "datetime64[ns]")}, "column 't': 1970-01-01 00:00:00.000000001 is finer than"),
        (pa.table({"x": pa.array([1], pa.duration("s"))}), "column 'x': Arrow type duration[s] has no Paimon type"),
        (5, "frame: expected rows in memory (a list of dicts, a dict of columns, "),
    ],
)
def test_a_column_without_a_type_is_refused_by_name(frame: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        types_of("v INT", frame)


def test_a_spark_frame_has_the_types_of_its_schema(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1L AS v, NULL AS n, array(NULL) AS a, timestamp'2026-01-01' AS t")
    found = "v BIGINT, n NULL, a ARRAY<NULL>, t TIMESTAMP(6) WITH LOCAL TIME ZONE"
    assert types_of("v INT", frame) == found and FrameColumns.of(frame).rows({}) is frame
    with pytest.raises(InvalidInputError, match="column 'i': Spark type interval"):
        types_of("v INT", spark.sql("SELECT INTERVAL 1 DAY AS i"))

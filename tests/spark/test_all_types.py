"""Every SQL type is written and read through Spark, before and after compactions."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from lakelsm import Table
from lakelsm.spark.session import resolve_session
from tests.read.tables import create, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Nested types, and columns for which tests/typed_values.py lacks some edge values.
COLUMNS = """
    fl FLOAT, db DOUBLE, vc VARCHAR(7), st STRING, bn BINARY(3), tm TIME, t3 TIMESTAMP(3), t6 TIMESTAMP(6),
    l3 TIMESTAMP_LTZ(3), l6 TIMESTAMP_LTZ(6),
    ar ARRAY<INT>, ma MAP<STRING, BIGINT>, ro ROW<x INT, y ROW<z STRING>>, mu MULTISET<STRING>,
    de ARRAY<MAP<STRING, ROW<q DECIMAL(10, 2)>>>
"""
NAN = float("nan")
UTC = dt.timezone.utc

#: Rows in Spark's Python form; the id is added in front.
ROWS: dict[int, dict[str, Any]] = {
    1: {
        "fl": -0.0,
        "db": NAN,
        "vc": "é\U0001f600xxxxx",
        "st": "a\0b",
        "bn": b"\x00\xff\x80",
        "tm": 86_399_999,
        "t3": dt.datetime(1582, 10, 10, 12, 0, 0, 1000),
        "t6": dt.datetime(1, 1, 1, 0, 0, 0, 1),
        "l3": dt.datetime(1899, 12, 31, 23, 59, 59, 999000, UTC),
        "l6": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        "ar": [1, None, -3],
        "ma": {"": None, "k": 1},
        "ro": {"x": None, "y": {"z": "deep"}},
        "mu": {"m": 3},
        "de": [{"k": {"q": Decimal("1.50")}}, None, {}],
    },
    2: {"ar": [], "ma": {}, "ro": {"x": 1, "y": None}, "db": -math.inf, "tm": 0},
    3: {},
}


def write(table: Table, rows: list[tuple[int, dict[str, Any]]]) -> None:
    from lakelsm.spark.spark_types import to_struct

    struct = to_struct(table.schema.fields)
    values = [tuple({"id": number, **row}.get(name) for name in struct.names) for number, row in rows]
    table.write(resolve_session(table._spark).createDataFrame(values, struct))


def read(table: Table) -> dict[int, dict[str, Any]]:
    # Instants as UTC text, independent of the driver's own zone.
    instants = [F.date_format(name, "yyyy-MM-dd HH:mm:ss.SSSSSS").alias(name) for name in ("l3", "l6")]
    others = [name for name in table.schema.field_names if name not in ("l3", "l6")]
    found = {}
    for row in table.read().select(*others, *instants).collect():
        values = row.asDict(recursive=True)
        if values["ma"]:
            values["ma"] = dict(sorted(values["ma"].items()))
        number = values.pop("id")
        found[number] = {
            name: bytes(value) if isinstance(value, bytearray) else value
            for name, value in values.items()
            if value is not None
        }
    return found


def expected(column: str, value: Any) -> str:
    return value.strftime(f"{value.year:04d}-%m-%d %H:%M:%S.%f") if column in ("l3", "l6") else repr(value)


def check(table: Table) -> None:
    found = read(table)
    assert set(found) == set(ROWS)
    for number, row in ROWS.items():
        got = {name: value if name in ("l3", "l6") else repr(value) for name, value in found[number].items()}
        assert got == {name: expected(name, value) for name, value in row.items()}


@pytest.mark.parametrize("thin", ["true", "false"])
def test_values_are_read_as_written_before_and_after_compaction(spark: SparkSession, tmp_path: Path, thin: str) -> None:
    table = create(spark, tmp_path, f"id INT, {COLUMNS}", ["id"], options={"data-file.thin-mode": thin})
    write(table, [(1, ROWS[3]), (2, ROWS[2]), (3, ROWS[1])])
    write(table, list(ROWS.items()))
    assert table.explain().merged_files
    check(table)
    table.compact(full=True)
    assert not table.explain().merged_files
    check(table)


def test_finer_timestamps_are_cut_downwards_also_before_1970(spark: SparkSession, tmp_path: Path) -> None:
    table = create(spark, tmp_path, "id INT, t3 TIMESTAMP(3), l3 TIMESTAMP_LTZ(3)", ["id"])
    times = {
        6: ("1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999000"),
        7: ("1969-12-31 23:59:59.000001", "1969-12-31 23:59:59.000000"),
        8: ("2024-01-01 00:00:00.123999", "2024-01-01 00:00:00.123000"),
        9: ("0001-01-01 00:00:00.000999", "0001-01-01 00:00:00.000000"),
    }
    rows = (f"({key}, TIMESTAMP_NTZ'{given}', TIMESTAMP'{given} UTC')" for key, (given, _) in times.items())
    table.write(spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS (id, t3, l3)"))
    text = [F.date_format(name, "yyyy-MM-dd HH:mm:ss.SSSSSS") for name in ("t3", "l3")]
    found = {row[0]: (row[1], row[2]) for row in table.read().select("id", *text).collect()}
    assert found == {key: (cut, cut) for key, (_, cut) in times.items()}


# By their bytes, the zeros and the NaNs would have different ones of four buckets.
@pytest.mark.parametrize("buckets", ["4", "-1"])
def test_both_zeros_are_one_key_and_all_nans_are_one_key(spark: SparkSession, tmp_path: Path, buckets: str) -> None:
    table = create(spark, tmp_path, "k DOUBLE, f FLOAT, v INT, x DOUBLE", ["k", "f"], options={"bucket": buckets})
    kinds = table.read().schema
    odd = struct.unpack(">d", bytes.fromhex("fff0000000000001"))[0]
    for keys in ([0.0, -0.0, NAN, odd, 1.0], [-0.0, 2.0, odd, 0.0], [NAN, -0.0]):
        table.write(spark.createDataFrame([(key, key, at, key) for at, key in enumerate(keys)], kinds))
    wanted = [(0.0, 0.0, 1), (1.0, 1.0, 4), (2.0, 2.0, 1), (NAN, NAN, 0)]

    def shown(condition: str) -> list[tuple[Any, ...]]:
        found = rows_of(table.read(where=condition).select("k", "f", "v"))
        assert repr(found) == repr(rows_of(table.read().where(condition).select("k", "f", "v")))
        return found

    for _ in range(2):
        assert repr(shown("v >= 0")) == repr(wanted)
        assert repr(shown("k = 0.0D")) == repr(shown("k = -0.0D")) == repr(shown("x = 0.0D")) == repr(wanted[:1])
        assert repr(shown("k = double('NaN')")) == repr(shown("x > 7")) == repr(wanted[3:])
        table.compact(full=True)
    table.delete("f >= 0 AND f < 0.5")
    assert repr(shown("v >= 0")) == repr(wanted[1:])


@pytest.mark.parametrize("buckets", ["2", "-1"])
@pytest.mark.parametrize("type_name", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(2)"])
def test_times_that_are_stored_equal_are_one_key(
    spark: SparkSession, tmp_path: Path, buckets: str, type_name: str
) -> None:
    table = create(spark, tmp_path, f"k {type_name}, v BIGINT", ["k"], options={"bucket": buckets})
    kind = table.read().schema["k"].dataType.simpleString()
    times = f"CAST('1969-12-31 23:59:59.998' AS {kind}) + make_dt_interval(0, 0, 0, CAST(id AS DECIMAL(18, 6)) / 1000000)"
    table.write(spark.range(0, 3000, 1, 3).selectExpr(f"{times} AS k", "id AS v"))
    assert sorted(row.v for row in table.read().collect()) == [999, 1999, 2999]
    assert table.explain().merged_files == ()


def test_nanoseconds_are_cut_in_a_frame_and_kept_by_compaction(spark: SparkSession, tmp_path: Path) -> None:
    table = create(spark, tmp_path, "id INT, t TIMESTAMP(9), l TIMESTAMP_LTZ(7), u TIMESTAMP(3)", ["id"])
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    columns = "CAST(1 AS INT) AS id, TIMESTAMP_NTZ'{0}' AS t, TIMESTAMP'{0} UTC' AS l, TIMESTAMP_NTZ'9999-12-31' AS u"
    for _ in range(2):
        table.write(spark.sql(f"SELECT {columns.format(moment)}"))
    wanted = [(1, moment, moment.isoformat(sep=" "), dt.datetime(9999, 12, 31))]
    assert rows_of(table.read().select("id", "t", F.col("l").cast("string"), "u")) == wanted
    table.compact(full=True)
    assert rows_of(table.read().select("id", "t", F.col("l").cast("string"), "u")) == wanted


def test_times_with_nanoseconds_have_the_whole_calendar_at_any_depth(spark: SparkSession, tmp_path: Path) -> None:
    columns = "k INT, t TIMESTAMP(9), a ROW<x TIMESTAMP(9), y TIMESTAMP(6) WITH LOCAL TIME ZONE>, b ARRAY<TIMESTAMP(9)>"
    table = create(spark, tmp_path, columns, ["k"])
    first, last = "0001-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"
    rows = spark.sql(
        f"SELECT 1 AS k, TIMESTAMP_NTZ'{last}' AS t, "
        f"named_struct('x', TIMESTAMP_NTZ'{last}', 'y', TIMESTAMP'{first}Z') AS a, "
        f"array(TIMESTAMP_NTZ'{first}', NULL, TIMESTAMP_NTZ'{last}') AS b"
    )
    shown = ["CAST(t AS STRING)", "CAST(a.x AS STRING)", "CAST(to_utc_timestamp(a.y, current_timezone()) AS STRING)"]
    wanted = [(last, last, first, first, None, last)]
    for _ in range(2):
        table.write(rows)
        found = table.read().selectExpr(*shown, *(f"CAST(b[{at}] AS STRING)" for at in range(3)))
        assert rows_of(found) == wanted
    table.compact(full=True)
    assert rows_of(found) == wanted

"""Every SQL type is written and read through Spark, before and after compactions."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from lakelsm.spark.session import resolve_session
from tests.read.tables import create, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = """
    bo BOOLEAN, ti TINYINT, sm SMALLINT, it INT, bi BIGINT, fl FLOAT, db DOUBLE,
    d5 DECIMAL(5, 2), d18 DECIMAL(18, 3), d38 DECIMAL(38, 10),
    ch CHAR(5), vc VARCHAR(7), st STRING, bn BINARY(3), vb VARBINARY(9), by BYTES,
    da DATE, tm TIME, t0 TIMESTAMP(0), t3 TIMESTAMP(3), t6 TIMESTAMP(6), l3 TIMESTAMP_LTZ(3), l6 TIMESTAMP_LTZ(6),
    ar ARRAY<INT>, ma MAP<STRING, BIGINT>, ro ROW<x INT, y ROW<z STRING>>, mu MULTISET<STRING>,
    de ARRAY<MAP<STRING, ROW<q DECIMAL(10, 2)>>>
"""
NAN = float("nan")
UTC = dt.timezone.utc

#: Rows as Spark takes and gives them; id is put before them.
ROWS: dict[int, dict[str, Any]] = {
    1: {
        "bo": True,
        "ti": -128,
        "sm": -(2**15),
        "it": -(2**31),
        "bi": -(2**63),
        "fl": -0.0,
        "db": NAN,
        "d5": Decimal("-999.99"),
        "d18": Decimal("-999999999999999.999"),
        "d38": Decimal("-9999999999999999999999999999.9999999999"),
        "ch": "",
        "vc": "é\U0001f600xxxxx",
        "st": "a\0b",
        "bn": b"\x00\xff\x80",
        "vb": b"",
        "by": b"\x00" * 30,
        "da": dt.date(1, 1, 1),
        "tm": 86_399_999,
        "t0": dt.datetime(1, 1, 1, 0, 0, 1),
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
    2: {"ar": [], "ma": {}, "ro": {"x": 1, "y": None}, "db": -math.inf, "da": dt.date(9999, 12, 31), "tm": 0},
    3: {},
}


@pytest.fixture(scope="module", params=["fixed", "thin"])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    options = {"data-file.thin-mode": str(request.param == "thin").lower()}
    made = create(spark, tmp_path_factory.mktemp(request.param), f"id INT, {COLUMNS}", ["id"], options=options)
    write(made, [(1, ROWS[3]), (2, ROWS[2]), (3, ROWS[1])])
    write(made, list(ROWS.items()))
    return made


def write(table: Table, rows: list[tuple[int, dict[str, Any]]]) -> None:
    from lakelsm.spark.spark_types import to_struct

    struct = to_struct(table.schema.fields)
    values = [tuple({"id": number, **row}.get(name) for name in struct.names) for number, row in rows]
    table.write(resolve_session(table._spark).createDataFrame(values, struct))


def read(table: Table) -> dict[int, dict[str, Any]]:
    # Instants as UTC text: the driver's own zone has no part in it.
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


def test_values_of_every_type_are_read_as_written_before_and_after_compaction(table: Table) -> None:
    assert table.explain().merged_files
    check(table)
    table.compact(full=True)
    assert not table.explain().merged_files
    check(table)


def test_the_columns_have_sparks_types_of_paimons_own_connector(table: Table) -> None:
    types = dict(table.read().dtypes)
    assert {name: types[name] for name in ("ch", "vc", "tm", "t3", "l3", "mu", "d38", "bn")} == {
        "ch": "string",
        "vc": "string",
        "tm": "int",
        "t3": "timestamp_ntz",
        "l3": "timestamp",
        "mu": "map<string,int>",
        "d38": "decimal(38,10)",
        "bn": "binary",
    }


@pytest.fixture(scope="module")
def narrow(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    columns = "id INT, c CHAR(2), v VARCHAR(3), b BINARY(2), vb VARBINARY(3), t3 TIMESTAMP(3), l3 TIMESTAMP_LTZ(3)"
    return create(spark, tmp_path_factory.mktemp("narrow"), columns, ["id"])


@pytest.mark.parametrize(
    ("column", "value", "limit"),
    [
        ("c", "'abc'", r"CHAR\(2\)"),
        ("v", "'abcd'", r"VARCHAR\(3\)"),
        ("b", "X'010203'", r"BINARY\(2\)"),
        ("vb", "X'01020304'", r"VARBINARY\(3\)"),
    ],
)
def test_a_value_longer_than_its_type_fails_the_write_and_changes_nothing(
    narrow: Table, column: str, value: str, limit: str
) -> None:
    before = narrow.explain().snapshot_id
    with pytest.raises(InvalidInputError, match=rf"'{column}' is longer than {limit}"):
        narrow.write(_row(narrow, **{column: value}))
    assert narrow.explain().snapshot_id == before


def test_limits_count_characters_of_text_and_bytes_of_binary(narrow: Table) -> None:
    narrow.write(_row(narrow, id="5", c="'éé'", v="'\U0001f600\U0001f600\U0001f600'", b="X'0102'", vb="X'010203'"))
    (row,) = narrow.read("id = 5").collect()
    assert (row.c, row.v) == ("éé", "\U0001f600" * 3)


def test_finer_timestamps_are_cut_downwards_also_before_1970(narrow: Table) -> None:
    times = {
        6: ("1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999000"),
        7: ("1969-12-31 23:59:59.000001", "1969-12-31 23:59:59.000000"),
        8: ("2024-01-01 00:00:00.123999", "2024-01-01 00:00:00.123000"),
        9: ("0001-01-01 00:00:00.000999", "0001-01-01 00:00:00.000000"),
    }
    rows = [_row(narrow, id=str(key), t3=f"'{given}'", l3=f"'{given} UTC'") for key, (given, _) in times.items()]
    first, *others = rows
    for other in others:
        first = first.unionAll(other)
    narrow.write(first)
    text = [F.date_format(name, "yyyy-MM-dd HH:mm:ss.SSSSSS") for name in ("t3", "l3")]
    found = {row[0]: (row[1], row[2]) for row in narrow.read("id BETWEEN 6 AND 9").select("id", *text).collect()}
    assert found == {key: (cut, cut) for key, (_, cut) in times.items()}


def _row(table: Table, **values: str) -> Any:
    struct = table.read().schema
    values = {"id": "1", **values}
    columns = [f"CAST({values.get(f.name, 'NULL')} AS {f.dataType.simpleString()}) AS {f.name}" for f in struct]
    return resolve_session(table._spark).range(1).selectExpr(*columns)


KEYS = {
    "DECIMAL(38, 5)": [Decimal("-1.00000"), Decimal("0.00001"), Decimal("999999999999999999999999999999999.99999")],
    "TIMESTAMP(3)": [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999000), dt.datetime(9999, 12, 31)],
    "STRING": ["", "a", "a\0", "é", "\U0001f600" * 20],
    "BYTES": [b"", b"\x00", b"\xff"],
    "DATE": [dt.date(1, 1, 1), dt.date(1899, 12, 31)],
    "DOUBLE": [0.0, NAN, -math.inf],
    "BOOLEAN": [False, True],
}


@pytest.fixture(scope="module")
def keyed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Table]]:
    directory = tmp_path_factory.mktemp("keys")
    yield {
        name: create(spark, directory / str(at), f"k {name}, v INT", ["k"], options={"bucket": "2"})
        for at, name in enumerate(KEYS)
    }


@pytest.mark.parametrize("type_name", KEYS)
def test_keys_of_a_type_are_upserted_by_value(keyed: dict[str, Table], type_name: str) -> None:
    table, values = keyed[type_name], KEYS[type_name]
    struct = table.read().schema
    for version in (1, 2):
        table.write(resolve_session(table._spark).createDataFrame([(key, version) for key in values], struct))
    plain = ((bytes(k) if isinstance(k, bytearray) else k, v) for k, v in rows_of(table.read()))
    assert sorted(map(repr, plain)) == sorted(repr((key, 2)) for key in values)


@pytest.mark.parametrize("buckets", ["16", "-1"])
def test_zeros_and_nans_are_one_key_each(spark: SparkSession, tmp_path: Path, buckets: str) -> None:
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
def test_times_that_are_stored_alike_are_one_key(
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


def test_times_with_nanoseconds_have_the_whole_calendar_nested_too(spark: SparkSession, tmp_path: Path) -> None:
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

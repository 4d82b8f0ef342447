"""A user's DataFrame becomes rows to write: columns in order, row kinds, input order, exact casts."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from lakelsm.errors import InvalidInputError
from lakelsm.frames.prepare import value_faults
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import translated_errors
from lakelsm.types import parse_columns, parse_type
from tests.local.test_arrow_rows import schema_of
from tests.row_refusals import REFUSALS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def prepared(
    frame: DataFrame, schema: TableSchema, row_kind: str | None = None, *, safe_casts: bool = True, **fixed: Any
) -> DataFrame:
    from lakelsm.frames.prepare import prepare

    options = TableOptions.parse(dict(schema.options))
    return prepare(frame, schema, options, row_kind, fixed, safe_casts=safe_casts)


def test_columns_are_in_the_tables_order_with_kind_and_input_order(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1), ("b", 1), ("c", 2)], "v STRING, k INT").coalesce(1)
    rows = prepared(frame, schema_of())
    assert rows.columns == ["k", "v", "_VALUE_KIND", "_SEQUENCE_NUMBER"]
    found = [tuple(row) for row in rows.collect()]
    assert [row[:3] for row in found] == [(1, "a", 0), (1, "b", 0), (2, "c", 0)]
    assert [row[3] for row in found] == sorted({row[3] for row in found})


def test_column_names_are_matched_in_any_case(spark: SparkSession) -> None:
    schema = create_schema("`Kéy` INT, v ROW<`In.N` INT>, p STRING", ["Kéy", "p"], ["p"], {"bucket": "1"}, None, 0)
    frame = spark.createDataFrame([(1, (2,), "-D")], "`kÉY` INT, V STRUCT<`iN.n`: INT>, Op STRING")
    (row,) = prepared(frame, schema, "oP", p="x").collect()
    assert row.asDict(recursive=True) | {"_SEQUENCE_NUMBER": 0} == {
        **{"Kéy": 1, "v": {"In.N": 2}, "p": "x"},
        **{"_VALUE_KIND": 3, "_SEQUENCE_NUMBER": 0},
    }


def test_a_fixed_partition_may_have_any_year(spark: SparkSession) -> None:
    schema = create_schema("k INT, d DATE", ["k", "d"], ["d"], {"bucket": "1"}, None, 0)
    frame = spark.createDataFrame([(1,)], "k INT")
    for day in (datetime.date.min, datetime.date.max):
        assert prepared(frame, schema, d=day).collect()[0].d == day


def test_each_refusal_has_the_text_of_arrow_rows(spark: SparkSession) -> None:
    one = spark.range(0, 1, 1, 1)
    for refusal in REFUSALS:
        columns = [
            (F.from_json(F.lit(json.dumps(value)), to_spark(kind)) if isinstance(value, dict) else F.lit(value))
            .cast(to_spark(kind))
            .alias(name)
            for value, (name, _), kind in zip(refusal.row, refusal.given, refusal.types)
        ]
        frame = one.select(*columns)
        with pytest.raises(InvalidInputError) as caught, translated_errors("/"):
            prepared(
                frame, refusal.schema, refusal.row_kind, safe_casts=refusal.safe_casts, **refusal.fixed
            ).collect()
        assert refusal.message in str(caught.value)


def test_the_error_of_a_spark_timestamp_names_paimons_type(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS k, current_timestamp() AS v")
    with pytest.raises(InvalidInputError, match="Spark's timestamp is TIMESTAMP_LTZ: declare the column so"):
        prepared(frame, schema_of("k INT, v TIMESTAMP"))


def kinds(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(enumerate(["+I", "-U", "+U", "-D"])), "k INT, op STRING")


def test_row_kinds_become_codes(spark: SparkSession) -> None:
    rows = prepared(kinds(spark), schema_of("k INT", ignore_delete="true"), "op")
    assert [(row.k, row._VALUE_KIND) for row in rows.collect()] == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_row_kind_field_is_stored_and_decides(spark: SparkSession) -> None:
    schema = schema_of("k INT, op STRING", rowkind__field="op")
    rows = prepared(kinds(spark), schema)
    assert [(row.k, row.op, row._VALUE_KIND) for row in rows.collect()] == [
        (0, "+I", 0),
        (1, "-U", 1),
        (2, "+U", 2),
        (3, "-D", 3),
    ]
    with pytest.raises(InvalidInputError, match=r"in its column 'op' \(rowkind.field\)\. Leave row_kind out"):
        prepared(kinds(spark).withColumnRenamed("op", "kind").selectExpr("k", "kind AS op", "kind"), schema, "kind")


def test_fixed_columns_may_be_left_out(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "k INT")
    noon = datetime.datetime(2020, 1, 1, 12, 30)
    schema = schema_of("k INT, d DATE, t TIMESTAMP(6), n DECIMAL(9, 2), s STRING")
    row = prepared(frame, schema, d=noon.date(), t=noon, n=Decimal("1.50"), s="x").collect()[0]
    assert tuple(row)[:5] == (1, noon.date(), noon, Decimal("1.50"), "x")


def test_a_partial_update_may_leave_out_columns(spark: SparkSession) -> None:
    columns = "k INT, v STRING, a ARRAY<INT>, r ROW<x INT>, n INT NOT NULL"
    schema = schema_of(columns, merge_engine="partial-update")
    row = prepared(spark.createDataFrame([(5, 1)], "n INT, k INT"), schema).collect()[0]
    assert tuple(row)[:5] == (1, None, None, None, 5)
    with pytest.raises(InvalidInputError, match="lacks column n"):
        prepared(spark.createDataFrame([(1, "a")], "k INT, v STRING"), schema)
    with pytest.raises(InvalidInputError, match="lacks column k"):
        prepared(spark.createDataFrame([(1, "a")], "n INT, v STRING"), schema)
    with pytest.raises(InvalidInputError, match="lacks column v"):
        prepared(spark.createDataFrame([(1,)], "k INT"), schema_of())


WIDENED = [
    ("TINYINT", "BIGINT", 7, 7),
    ("SMALLINT", "INT", -7, -7),
    ("INT", "BIGINT", 7, 7),
    ("INT", "DOUBLE", 7, 7.0),
    ("SMALLINT", "FLOAT", 7, 7.0),
    ("FLOAT", "DOUBLE", 0.5, 0.5),
    ("INT", "DECIMAL(12, 2)", 7, Decimal("7.00")),
    ("DECIMAL(5, 1)", "DECIMAL(9, 2)", Decimal("7.5"), Decimal("7.50")),
    ("DATE", "TIMESTAMP", datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)),
    ("ARRAY<INT>", "ARRAY<BIGINT>", [1], [1]),
    ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", {"a": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("source", "target", "value", "stored"), WIDENED, ids=str)
def test_a_narrower_type_is_widened(spark: SparkSession, source: str, target: str, value: Any, stored: Any) -> None:
    frame = spark.createDataFrame([(1, value)], f"k INT, v {source}")
    assert prepared(frame, schema_of(f"k INT, v {target}")).collect()[0].v == stored


def test_an_untyped_null_fits_every_column(spark: SparkSession) -> None:
    assert prepared(spark.sql("SELECT 1 AS k, NULL AS v"), schema_of()).collect()[0].v is None


def test_lengths_count_characters_of_text_and_bytes_of_binary(spark: SparkSession) -> None:
    schema = schema_of("k INT, t VARCHAR(3), b VARBINARY(3)")
    row = prepared(spark.sql("SELECT 1 AS k, 'é\U0001f600ê' AS t, X'010203' AS b"), schema).collect()[0]
    assert (row.t, bytes(row.b)) == ("é\U0001f600ê", b"\1\2\3")


def test_sparks_time_is_refused_with_the_unit_to_write(spark: SparkSession) -> None:
    from pyspark.sql import types as T

    if not hasattr(T, "TimeType"):
        pytest.skip("this Spark has no TIME")
    frame = spark.sql("SELECT 1 AS k, TIME'01:00:00' AS t")
    with pytest.raises(InvalidInputError, match=r"column 't' is time\(6\).*time_to_millis"):
        prepared(frame, schema_of("k INT, t TIME(3)"))


FIELDS = parse_columns(
    "r ROW<x INT NOT NULL, y STRING>, a ARRAY<ROW<p INT NOT NULL>>, n ARRAY<INT NOT NULL>, "
    "m MAP<STRING, INT NOT NULL>, d MAP<STRING, ARRAY<ROW<q INT NOT NULL>>>, t TIME(3), u ARRAY<TIME(0)>"
)
_TYPES = (
    "r STRUCT<x: INT, y: STRING>, a ARRAY<STRUCT<p: INT>>, n ARRAY<INT>, m MAP<STRING, INT>, "
    "d MAP<STRING, ARRAY<STRUCT<q: INT>>>, t INT, u ARRAY<INT>"
)
_NULL = "which is NOT NULL, is NULL in a row. Remove or fill such rows"
_TIME = "has a number outside 0 to 86399999 (milliseconds) in a row"
#: A column, a value with a fault, and the text of the fault.
FAULTY = [
    ("r", (None, "b"), f"'r.x', {_NULL}"),
    ("a", [None, (None,)], f"'a.element.p', {_NULL}"),
    ("n", [1, None], f"'n.element', {_NULL}"),
    ("m", {"a": 1, "b": None}, f"'m.value', {_NULL}"),
    ("d", {"a": None, "b": [(1,), (None,)]}, f"'d.value.element.q', {_NULL}"),
    ("t", 86_400_000, f"'t' (TIME(3)) {_TIME}"),
    ("t", -1, f"'t' (TIME(3)) {_TIME}"),
    ("u", [0, 86_400_000], f"'u.element' (TIME(0)) {_TIME}"),
]
#: Values without a fault; parts of a NULL row are not checked.
SOUND = [
    {"r": (7, None), "a": [(7,), None], "n": [1], "m": {"a": 1}, "d": {"a": None, "b": [None]}, "t": 86_399_999},
    {"a": [], "n": [], "m": {}, "d": {}, "t": 0, "u": [None, 0]},
    {},
]


@pytest.mark.usefixtures("classic_functions")
def test_each_fault_is_found_in_its_row_only(spark: SparkSession) -> None:
    values = [{name: value} for name, value, _ in FAULTY] + SOUND
    frame = spark.createDataFrame([tuple(value.get(field.name) for field in FIELDS) for value in values], _TYPES)
    faults = [(field.name, finds, text) for field in FIELDS for finds, text in value_faults(field.type, field.name)]
    assert {text for _, _, text in faults} == {text for _, _, text in FAULTY}
    checks = [F.when(test(F.col(name)), F.lit(text)) for name, test, text in faults]
    found = [row[0] for row in frame.coalesce(1).select(F.array_compact(F.array(*checks))).collect()]
    assert found == [[text] for _, _, text in FAULTY] + [[]] * len(SOUND)


@pytest.mark.usefixtures("classic_functions")
@pytest.mark.parametrize(
    "kind", ["INT NOT NULL", "STRING", "ROW<x INT>", "MAP<INT NOT NULL, STRING>", "ARRAY<ARRAY<INT>>"]
)
def test_types_without_faults_have_no_checks(kind: str) -> None:
    assert value_faults(parse_type(kind), "c") == []

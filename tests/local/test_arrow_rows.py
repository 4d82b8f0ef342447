"""A user's Arrow rows become rows to write: columns in order, row kinds, input order, exact casts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import prepare_arrow
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import to_arrow
from tests.nano_times import column_of, python_rows
from tests.option_keys import option_keys
from tests.row_refusals import REFUSALS, Refusal


def schema_of(columns: str = "k INT, v STRING", **options: str) -> TableSchema:
    given = option_keys(options)
    return create_schema(columns, ["k"], [], {"bucket": "1", **given}, None, 0)


def prepared(
    frame: Any, schema: TableSchema, row_kind: str | None = None, *, stored: bool = False, **fixed: object
) -> pa.Table:
    options = TableOptions.parse(dict(schema.options))
    batches = list(prepare_arrow(ArrowInput.of(frame), schema, options, row_kind, fixed=fixed, stored=stored))
    return pa.Table.from_batches(batches) if batches else pa.table({})


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def table_of(refusal: Refusal) -> pa.Table:
    columns = [column_of([value], to_arrow(kind)) for value, kind in zip(refusal.row, refusal.types)]
    return pa.Table.from_arrays(columns, names=[name for name, _ in refusal.given])


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal.table}: {refusal.given}"[:70])
def test_each_refusal_has_the_text_of_a_spark_frame(refusal: Refusal) -> None:
    with pytest.raises(InvalidInputError) as caught:
        given = ArrowInput.of(table_of(refusal))
        options, strict = refusal.parsed_options, {"fixed": refusal.fixed, "safe_casts": refusal.safe_casts}
        list(prepare_arrow(given, refusal.schema, options, refusal.row_kind, **strict))
    assert refusal.message in str(caught.value)


def test_the_error_of_a_refused_type_names_an_accepted_one() -> None:
    schema = schema_of("k INT, v TIMESTAMP(9) WITH LOCAL TIME ZONE")
    with pytest.raises(InvalidInputError, match=re.escape("Cast it to timestamp[ns, tz=UTC] before the write")):
        prepared(pa.table({"k": ints(1), "v": pa.array([1], pa.timestamp("ns"))}), schema)
    assert len(prepared(pa.table({"k": ints(1), "v": pa.array([1], pa.timestamp("ns", "UTC"))}), schema)) == 1


def test_columns_are_in_the_tables_order_with_kind_and_input_order() -> None:
    rows = prepared(pa.table({"v": ["a", "b", "c"], "K": ints(1, 1, 2)}), schema_of())
    assert rows.column_names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "v"]
    assert rows.to_pydict() == {
        **{"_SEQUENCE_NUMBER": [0, 1, 2], "_VALUE_KIND": [0, 0, 0]},
        **{"k": [1, 1, 2], "v": ["a", "b", "c"]},
    }


def test_the_input_order_continues_across_batches() -> None:
    rows = prepared(pa.table({"k": ints(*range(200_000))}), schema_of("k INT"))
    assert rows["_SEQUENCE_NUMBER"].to_pylist() == rows["k"].to_pylist() == list(range(200_000))


def test_row_kinds_become_codes() -> None:
    kinds = pa.array(["+I", "-U", "+U", "-D"]).dictionary_encode()
    rows = prepared(pa.table({"k": ints(0, 1, 2, 3), "op": kinds}), schema_of("k INT", ignore_delete="true"), "op")
    assert list(zip(rows["k"].to_pylist(), rows["_VALUE_KIND"].to_pylist())) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_row_kind_field_is_stored_and_decides() -> None:
    frame = pa.table({"k": ints(0, 1), "op": ["+I", "-D"]})
    rows = prepared(frame, schema_of("k INT, op STRING", rowkind__field="op"))
    assert rows["op"].to_pylist() == ["+I", "-D"] and rows["_VALUE_KIND"].to_pylist() == [0, 3]


def test_fixed_columns_may_be_left_out_or_given_with_the_same_value() -> None:
    noon = datetime.datetime(2020, 1, 1, 12, 30)
    schema = schema_of("k INT, d DATE, t TIMESTAMP(6), n DECIMAL(9, 2), s STRING, c TIME(3), f DOUBLE, z TIMESTAMP(9)")
    fixed: Mapping[str, object] = {
        **{"d": noon.date(), "t": noon, "n": Decimal("1.50"), "s": "x", "c": 5, "f": np.nan, "z": noon}
    }
    frame = pa.table({"k": ints(1), "d": [noon.date()], "f": [np.nan]})
    row = python_rows(prepared(frame, schema, **fixed))[0]
    assert (row["d"], row["t"], row["n"], row["s"], row["z"]) == (noon.date(), noon, Decimal("1.50"), "x", noon)
    assert row["c"] == datetime.time(0, 0, 0, 5000) and np.isnan(row["f"])


def test_a_fixed_column_that_is_null_accepts_only_null() -> None:
    schema = schema_of("k INT, s STRING")
    assert prepared(pa.table({"k": ints(1), "s": pa.nulls(1)}), schema, s=None)["s"].to_pylist() == [None]
    with pytest.raises(InvalidInputError, match="a row is not in the overwritten partition, where column 's' is 'None'"):
        prepared(pa.table({"k": ints(1), "s": ["a"]}), schema, s=None)


def test_a_partial_update_may_leave_out_columns() -> None:
    schema = schema_of("k INT, v STRING, a ARRAY<INT>, r ROW<x INT>, n INT NOT NULL", merge_engine="partial-update")
    row = prepared(pa.table({"n": ints(5), "k": ints(1)}), schema).to_pylist()[0]
    assert [row[name] for name in ("k", "v", "a", "r", "n")] == [1, None, None, None, 5]
    with pytest.raises(InvalidInputError, match="lacks column n"):
        prepared(pa.table({"k": ints(1), "v": ["a"]}), schema)


DAY, SECOND = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 1)
FITTING: list[tuple[pa.DataType, str, Any, Any]] = [
    (pa.int8(), "BIGINT", 7, 7),
    (pa.int16(), "FLOAT", -7, -7.0),
    (pa.int32(), "DOUBLE", 7, 7.0),
    (pa.uint8(), "SMALLINT", 255, 255),
    (pa.uint32(), "BIGINT", 2**32 - 1, 2**32 - 1),
    (pa.uint64(), "DECIMAL(20, 0)", 2**64 - 1, Decimal(2**64 - 1)),
    (pa.float16(), "FLOAT", np.float16(0.5), 0.5),
    (pa.float32(), "DOUBLE", 0.5, 0.5),
    (pa.int32(), "DECIMAL(12, 2)", 7, Decimal("7.00")),
    (pa.decimal256(5, 1), "DECIMAL(9, 2)", Decimal("7.5"), Decimal("7.50")),
    (pa.date32(), "TIMESTAMP", DAY, datetime.datetime(2020, 1, 1)),
    (pa.date64(), "DATE", DAY, DAY),
    (pa.date32(), "TIMESTAMP(9)", DAY, datetime.datetime(2020, 1, 1)),
    (pa.list_(pa.int8()), "ARRAY<TIME(3)>", [5], [datetime.time(0, 0, 0, 5000)]),
    (pa.timestamp("s"), "TIMESTAMP(6)", SECOND, SECOND),
    (pa.timestamp("ns"), "TIMESTAMP(9)", SECOND, SECOND),
    (pa.timestamp("us"), "TIMESTAMP(0)", SECOND.replace(microsecond=1999), SECOND.replace(microsecond=1000)),
    (pa.time64("us"), "TIME(3)", datetime.time(1, 2, 3, 4999), datetime.time(1, 2, 3, 4000)),
    (pa.time32("s"), "TIME(3)", datetime.time(1, 2, 3), datetime.time(1, 2, 3)),
    (pa.int16(), "TIME(3)", 5, datetime.time(0, 0, 0, 5000)),
    (pa.large_string(), "CHAR(1)", "é", "é"),
    (pa.binary(3), "VARBINARY(3)", b"abc", b"abc"),
    (pa.null(), "ARRAY<INT>", None, None),
    (pa.large_list(pa.uint8()), "ARRAY<BIGINT>", [1], [1]),
    (pa.list_(pa.null()), "ARRAY<BIGINT>", [None], [None]),
    (pa.map_(pa.large_string(), pa.int8()), "MAP<STRING, BIGINT>", [("a", 1)], [("a", 1)]),
    (pa.map_(pa.string(), pa.int16()), "MULTISET<STRING>", [("a", 1)], [("a", 1)]),
    (pa.struct([("X", pa.uint8())]), "ROW<x INT>", {"X": 1}, {"x": 1}),
]


@pytest.mark.parametrize(("kind", "target", "value", "stored"), FITTING, ids=str)
def test_a_value_that_fits_is_stored_in_the_columns_type(kind: pa.DataType, target: str, value: Any, stored: Any) -> None:
    schema = schema_of(f"k INT, v {target}")
    rows = prepared(pa.table({"k": ints(1), "v": pa.array([value], kind)}), schema)
    assert rows["v"].type == to_arrow(schema.field("v").type)
    assert python_rows(rows.select(["v"])) == [{"v": stored}]


def test_instants_of_any_zone_are_accepted_by_columns_with_a_zone() -> None:
    times = pa.array([0], pa.timestamp("us", "Asia/Tokyo"))
    rows = prepared(pa.table({"k": ints(1), "v": times}), schema_of("k INT, v TIMESTAMP_LTZ(6)"))
    assert rows["v"].type == pa.timestamp("us", "UTC") and rows["v"].cast(pa.int64()).to_pylist() == [0]
    with pytest.raises(InvalidInputError, match="Arrow's timestamp with a zone is TIMESTAMP_LTZ: declare the column so"):
        prepared(pa.table({"k": ints(1), "v": times}), schema_of("k INT, v TIMESTAMP(6)"))


_OUTSIDE = "column 'v': a timestamp is outside the years"


@pytest.mark.parametrize(
    ("array", "target", "message"),
    [
        (pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), "TIMESTAMP(6)", _OUTSIDE),
        (pa.array([2**61], pa.timestamp("s")), "TIMESTAMP(6)", _OUTSIDE),
        (pa.array([2**61], pa.timestamp("s")), "TIMESTAMP(9)", _OUTSIDE),
        (pa.array([1], pa.duration("s")), "BIGINT", r"column 'v': Arrow type duration\[s\] has no Paimon type\. Cast it"),
    ],
)
def test_an_unfit_value_is_refused_with_its_column(array: pa.Array, target: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        prepared(pa.table({"k": ints(1), "v": array}), schema_of(f"k INT, v {target}"))
    assert type(caught.value).__module__ == "lakelsm.errors"


def test_invalid_utf8_is_refused() -> None:
    broken = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(InvalidInputError, match=r"column 'v': a value is not a valid STRING .Invalid UTF8"):
        prepared(pa.table({"k": ints(1), "v": broken}), schema_of())


def test_a_float_key_has_one_bit_pattern_and_a_partition_keeps_its_zeros() -> None:
    schema = create_schema("k DOUBLE, p FLOAT, v DOUBLE", ["k", "p"], ["p"], {"bucket": "1"}, None, 0)
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x8000000000000000], np.uint64).view(np.float64)
    frame = pa.table({"k": bits, "p": pa.array([np.nan, -0.0, 0.0], pa.float32()), "v": bits})
    rows = prepared(frame, schema)
    assert rows["k"].to_numpy().view(np.uint64).tolist() == [0x7FF8000000000000, 0x7FF8000000000000, 0]
    assert np.signbit(rows["p"].to_numpy()).tolist() == [False, True, False]
    assert rows["v"].to_numpy().view(np.uint64).tolist() == bits.view(np.uint64).tolist()
    again = prepared(frame, schema, stored=True)
    assert again["k"].to_numpy().view(np.uint64).tolist() == bits.view(np.uint64).tolist()


def test_stored_rows_are_accepted_in_the_tables_own_types() -> None:
    schema = schema_of("k INT, v TIMESTAMP(9)")
    own = pa.table({"k": ints(1), "v": column_of([SECOND], to_arrow(schema.field("v").type))})
    assert python_rows(prepared(own, schema, stored=True))[0]["v"] == SECOND
    with pytest.raises(InvalidInputError, match=r"column 'v' is fixed_size_binary\[10\]"):
        prepared(own, schema)

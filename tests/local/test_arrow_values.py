"""Arrow's several types of a value have one plain form and one Paimon type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_values import plain_array, plain_type, value_type
from lakelsm.schema.row_rules import OnlyNull

DAY = datetime.date(2020, 2, 29)
#: An Arrow type, a value of it, and the SQL text of the Paimon type.
FORMS: list[tuple[pa.DataType, Any, str]] = [
    (pa.int8(), 1, "TINYINT"),
    (pa.uint8(), 255, "SMALLINT"),
    (pa.uint16(), 65535, "INT"),
    (pa.uint32(), 2**32 - 1, "BIGINT"),
    (pa.uint64(), 2**64 - 1, "DECIMAL(20, 0)"),
    (pa.float16(), np.float16(1.5), "FLOAT"),
    (pa.string(), "a", "STRING"),
    (pa.large_string(), "a", "STRING"),
    (pa.string_view(), "a", "STRING"),
    (pa.dictionary(pa.int8(), pa.large_string()), "a", "STRING"),
    (pa.dictionary(pa.uint32(), pa.string_view()), "a", "STRING"),
    (pa.large_binary(), b"a", "BYTES"),
    (pa.binary_view(), b"a", "BYTES"),
    (pa.binary(2), b"ab", "BINARY(2)"),
    (pa.date32(), DAY, "DATE"),
    (pa.date64(), DAY, "DATE"),
    (pa.time32("s"), datetime.time(1, 2, 3), "TIME(0)"),
    (pa.time64("us"), datetime.time(1, 2, 3, 4), "TIME(3)"),
    (pa.timestamp("s"), datetime.datetime(2020, 1, 1), "TIMESTAMP(0)"),
    (pa.timestamp("ns"), datetime.datetime(2020, 1, 1), "TIMESTAMP(9)"),
    (pa.timestamp("ms", "Europe/Paris"), None, "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    (pa.decimal256(20, 2), Decimal("1.50"), "DECIMAL(20, 2)"),
    (pa.null(), None, "NULL"),
    (pa.large_list(pa.uint8()), [1, None], "ARRAY<SMALLINT>"),
    (pa.list_(pa.large_string(), 1), ["a"], "ARRAY<STRING>"),
    (pa.large_list(pa.null()), [None], "ARRAY<NULL>"),
    (pa.list_view(pa.int8()), [1, None], "ARRAY<TINYINT>"),
    (pa.map_(pa.large_string(), pa.uint16()), [("a", 1)], "MAP<STRING, INT>"),
    (pa.struct([("x", pa.dictionary(pa.int32(), pa.string())), ("y", pa.float16())]), None, "ROW<`x` STRING, `y` FLOAT>"),
    (pa.list_(pa.struct([("x", pa.large_list(pa.date64()))])), [{"x": [DAY]}], "ARRAY<ROW<`x` ARRAY<DATE>>>"),
]


@pytest.mark.parametrize(("kind", "value", "sql"), FORMS, ids=str)
def test_each_type_has_a_plain_form_with_the_same_values(kind: pa.DataType, value: Any, sql: str) -> None:
    values = [value, None, value]
    if pa.types.is_dictionary(kind):
        codes = pa.array([None if each is None else 0 for each in values], kind.index_type)
        array = pa.DictionaryArray.from_arrays(codes, pa.array([value], kind.value_type))
    elif pa.types.is_struct(kind):
        array = pa.nulls(3, kind)
    else:
        array = pa.array(values, kind)
    plain = plain_array(array)
    assert plain.type == plain_type(kind) == plain_type(plain.type)
    assert plain.to_pylist() == [None if each is None else plain[0].as_py() for each in values]
    if value is not None and not pa.types.is_nested(kind):
        assert plain[0].as_py() == value
    assert value_type(plain.type).sql().replace(" NOT NULL", "") == sql


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal256(40, 2),
        pa.list_(pa.duration("s")),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.struct([("x", pa.list_view(pa.int8()))]),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
    ids=str,
)
def test_types_without_a_paimon_type_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match=r"[Cc]ast it|[Uu]se 1 to 38"):
        value_type(plain_type(kind))


def test_the_null_type_is_not_a_column_type() -> None:
    assert value_type(pa.null()) == OnlyNull() and OnlyNull().root == "NULL"


@given(
    st.lists(st.none() | st.lists(st.none() | st.text(max_size=3), max_size=4), max_size=30),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_a_slice_has_only_its_values(values: list[Any], start: int, length: int) -> None:
    array = pa.array(values, pa.large_list(pa.large_string())).slice(start, length)
    assert plain_array(array).to_pylist() == values[start : start + length]


def test_a_small_slice_of_a_large_array_is_cast_without_the_rest() -> None:
    large = pa.array([["x" * 1000]] * 1000, pa.large_list(pa.large_string()))
    assert plain_array(large.slice(998)).get_total_buffer_size() < 10_000


@given(st.lists(st.none() | st.lists(st.none() | st.integers(0, 99), max_size=4), max_size=30), st.integers(0, 30))
def test_views_of_lists_keep_every_value(values: list[Any], start: int) -> None:
    assert plain_array(pa.array(values, pa.list_view(pa.int8())).slice(start)).to_pylist() == values[start:]

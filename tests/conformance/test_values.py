"""Values of conformance cases."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lakelsm.types import parse_type
from tests.conformance.values import (
    Comparison,
    arrow_type,
    case_ddl,
    comparable,
    comparable_rows,
    from_notation,
    show,
    spark_ddl,
)

NOTATIONS = [
    ("BOOLEAN", True, True),
    ("INT", 7, 7),
    ("DOUBLE", 1, 1.0),
    ("FLOAT", 1.1, 1.1),
    ("DECIMAL(4,2)", "1.10", Decimal("1.10")),
    ("DATE", "2024-02-29", dt.date(2024, 2, 29)),
    ("TIMESTAMP", "2024-01-01T00:00:01", dt.datetime(2024, 1, 1, 0, 0, 1)),
    ("TIMESTAMP(9)", "2024-01-01T00:00:01.123456789", dt.datetime(2024, 1, 1, 0, 0, 1, 123456)),
    ("TIMESTAMP_LTZ(3)", "2024-01-01T00:00:01.5Z", dt.datetime(2024, 1, 1, 0, 0, 1, 500000)),
    ("VARBINARY(10)", "hex:0102", b"\x01\x02"),
    ("ARRAY<INT>", [1, None], [1, None]),
    ("MAP<INT,STRING>", [[1, "a"]], [(1, "a")]),
    ("ROW<c1 INT,c2 STRING>", [1, None], {"c1": 1, "c2": None}),
    ("ARRAY<ROW<k INT,d DATE>>", [[1, "2024-01-01"]], [{"k": 1, "d": dt.date(2024, 1, 1)}]),
]


@pytest.mark.parametrize(("sql", "notation", "value"), NOTATIONS)
def test_a_value_is_read_from_its_notation(sql: str, notation: Any, value: Any) -> None:
    assert from_notation(notation, parse_type(sql)) == value
    assert from_notation(None, parse_type(sql)) is None


@pytest.mark.parametrize(("sql", "notation", "value"), NOTATIONS)
def test_a_value_is_equal_to_itself_after_arrow(
    sql: str, notation: Any, value: Any
) -> None:
    data_type = parse_type(sql)
    [back] = pa.array([from_notation(notation, data_type)], arrow_type(data_type)).to_pylist()
    assert comparable(back, data_type) == comparable(value, data_type)


def test_floats_compare_as_32_bits_and_doubles_as_64() -> None:
    assert comparable(-1.2321, parse_type("FLOAT")) == comparable(
        float(pa.scalar(-1.2321, pa.float32()).as_py()), parse_type("FLOAT")
    )
    assert comparable(1.1, parse_type("DOUBLE")) != comparable(
        float(pa.scalar(1.1, pa.float32()).as_py()), parse_type("DOUBLE")
    )
    assert comparable(float("nan"), parse_type("DOUBLE")) == comparable(float("nan"), parse_type("DOUBLE"))


def test_maps_compare_without_order() -> None:
    data_type = parse_type("MAP<INT,STRING>")
    assert comparable([(1, "a"), (2, None)], data_type) == comparable([(2, None), (1, "a")], data_type)
    assert comparable([(1, "a")], data_type) != comparable([(1, "b")], data_type)


@pytest.mark.parametrize(
    ("value", "sql"), [(1, "BOOLEAN"), (True, "INT"), ("1", "INT"), (1, "DOUBLE"), (1.5, "DECIMAL(4,2)")]
)
def test_a_value_of_another_type_does_not_compare_equal(value: Any, sql: str) -> None:
    assert comparable(value, parse_type(sql)) != value


def test_array_columns_compare_as_multisets_only_if_the_case_requires_it() -> None:
    types = [parse_type("ARRAY<ARRAY<INT>>")]
    one, other = [([[2], [1, 3]],)], [([[1, 3], [2]],)]
    unordered = Comparison(array_unordered=True)
    assert comparable_rows(one, types, Comparison()) != comparable_rows(other, types, Comparison())
    assert comparable_rows(one, types, unordered) == comparable_rows(other, types, unordered)
    nested = [([[3, 1], [2]],)]
    assert comparable_rows(one, types, unordered) != comparable_rows(nested, types, unordered), (
        "only the outer array"
    )
    twice = [([[2], [2], [1, 3]],)]
    assert comparable_rows(one, types, unordered) != comparable_rows(twice, types, unordered)


def test_bitmaps_compare_by_their_numbers() -> None:
    numbers = range(1, 11)
    run_encoded = BitMap(numbers).serialize()
    array_encoded = struct.pack("<IIHHI10H", 12346, 1, 0, len(numbers) - 1, 16, *numbers)
    one, other = [(run_encoded,)], [(array_encoded,)]
    types, decoded = [parse_type("BYTES")], Comparison(binary_compare="roaring32")
    assert comparable_rows(one, types, decoded) == comparable_rows(other, types, decoded)
    assert comparable_rows(one, types, Comparison()) != comparable_rows(other, types, Comparison())


def test_theta_sketches_compare_by_their_hashes() -> None:
    one, other = 0x05A186BDCB7DF915, 0x1E9D708112FC97C3
    head = bytes.fromhex("02030300001ACC93") + (2).to_bytes(4, "little") + b"\x00\x00\x80\x3f"

    def sketch(*hashes: int) -> list[tuple[bytes]]:
        return [(head + b"".join(h.to_bytes(8, "little") for h in hashes),)]

    types, decoded = [parse_type("BYTES")], Comparison(binary_compare="theta")
    assert comparable_rows(sketch(one, other), types, decoded) == comparable_rows(
        sketch(other, one), types, decoded
    )
    assert comparable_rows(sketch(one, one), types, decoded) != comparable_rows(
        sketch(one, other), types, decoded
    )


def test_binary_without_a_length_is_bytes_of_any_length() -> None:
    assert (
        case_ddl([{"name": "a", "type": "BINARY"}, {"name": "b", "type": "CHAR(1)"}])
        == "`a` BYTES, `b` CHAR(1)"
    )


@pytest.mark.parametrize(
    ("sql", "spark"),
    [
        ("TIMESTAMP(3)", "TIMESTAMP_NTZ"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP"),
        ("VARBINARY(10)", "BINARY"),
        ("CHAR(3)", "STRING"),
        ("MAP<INT,ROW<a DECIMAL(4,2)>>", "MAP<INT, STRUCT<`a`: DECIMAL(4, 2)>>"),
    ],
)
def test_spark_gets_its_own_type_for_each_paimon_type(sql: str, spark: str) -> None:
    assert spark_ddl(parse_type(sql)) == spark


def test_rows_are_printed_in_the_notation_of_the_cases() -> None:
    assert (
        show([(1, Decimal("1.10"), b"\x01", dt.date(2024, 1, 1), None)])
        == '[[1, "1.10", "hex:01", "2024-01-01", null]]'
    )

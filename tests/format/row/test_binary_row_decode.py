"""Stored rows are decoded to columns: Java's and pypaimon's bytes, rows of older schemas, and damaged bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.binary_row import EMPTY_ROW, encode_row, encode_rows, with_arity
from lakelsm.format.row.binary_row_decode import decode_row, decode_rows
from lakelsm.types import AtomicType, parse_type, to_arrow
from tests.format.row.binary_row_cases import arrow_column, atomic_types, rows_of_types

INT, BIGINT, STRING = atomic_types(["INT", "BIGINT", "STRING"])

BYTES = parse_type("BYTES")

TS3, TS6, TS9 = atomic_types(["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"])


def test_a_wide_decimal_with_one_byte_too_many_as_pypaimon_writes_it_decodes() -> None:
    row = _one_field("0200000010000000 ff80000000000000 0000000000000000")
    assert decode_row(row, [parse_type("DECIMAL(20, 2)")]) == (Decimal("-1.28"),)


@pytest.mark.parametrize("name", ["DECIMAL(20, 2)", "TIMESTAMP(6)"])
def test_a_null_without_reserved_space_as_pypaimon_writes_it_decodes(name: str) -> None:
    row = bytes.fromhex("00000001 0001000000000000 0000000000000000")
    assert decode_row(row, [parse_type(name)]) == (None,)


def test_nested_fields_of_statistics_decode_as_null() -> None:
    array_type = parse_type({"type": "ARRAY", "element": "INT"})
    row = bytes.fromhex("00000002 0002000000000000 0100000000000000 0000000000000000")
    columns = decode_rows([row], [INT, array_type])
    assert columns[0].to_pylist() == [1]
    assert columns[1].equals(pa.nulls(1, to_arrow(array_type)))


def test_empty_statistics_and_rows_of_older_schemas_decode_with_nulls_for_missing_fields() -> None:
    rows = [EMPTY_ROW, encode_row([1], [INT]), encode_row([2, "hello world"], [INT, STRING])]
    columns = decode_rows(rows, [INT, STRING])
    assert columns[0].to_pylist() == [None, 1, 2]
    assert columns[1].to_pylist() == [None, None, "hello world"]


def _one_field(slot: str) -> bytes:
    return bytes.fromhex("00000001 0000000000000000" + slot)


def _damaged() -> list[tuple[str, bytes, str]]:
    text = encode_row(["hello world"], [STRING])
    return [
        ("cut off in the arity", text[:3], "STRING"),
        ("cut off in the header", text[:9], "STRING"),
        ("cut off in the slots", text[:14], "STRING"),
        ("cut off in the variable part", text[:-8], "STRING"),
        ("more fields than the schema", encode_row([1, 2], [INT, INT]), "INT"),
        ("an absurd arity", b"\xff\xff\xff\xff" + text[4:], "STRING"),
        ("an offset into the header", text[:16] + b"\0\0\0\0" + text[20:], "STRING"),
        ("an offset past the row", text[:16] + b"\xff\xff\xff\x7f" + text[20:], "STRING"),
        ("an inline length of 127", text[:19] + b"\xff" + text[20:], "STRING"),
        ("text that is not UTF-8", encode_row([b"\xff\xfe"], [BYTES]), "STRING"),
        ("a decimal of no bytes", _one_field("0000000010000000") + bytes(16), "DECIMAL(20, 2)"),
        ("a decimal of 17 bytes", _one_field("1100000010000000") + bytes(24), "DECIMAL(20, 2)"),
        ("a million nanoseconds", _one_field("40420f0010000000") + bytes(8), "TIMESTAMP(6)"),
        ("a timestamp outside the row", _one_field("0000000010000000"), "TIMESTAMP(6)"),
        ("a day of 25 hours", encode_row([90_000_000], [INT]), "TIME(3)"),
    ]  # fmt: skip


@pytest.mark.parametrize(("damage", "row", "name"), _damaged(), ids=lambda value: value if isinstance(value, str) else "")
def test_damaged_rows_are_reported_as_corrupt(damage: str, row: bytes, name: str) -> None:
    data_type = parse_type(name)
    good = encode_row([None], [data_type])
    with pytest.raises(CorruptTableError):
        decode_rows([good, row, good], [data_type])


@given(
    st.binary(max_size=60),
    st.lists(st.sampled_from(["INT", "STRING", "DECIMAL(30, 1)", "TIMESTAMP(6)"]), max_size=3),
)
def test_any_bytes_decode_or_are_reported(row: bytes, names: list[str]) -> None:
    types = atomic_types(names)
    try:
        columns = decode_rows([row], types)
    except (CorruptTableError, UnsupportedFeatureError):
        return
    for column in columns:
        if not pa.types.is_decimal(column.type):  # All 16 bytes are kept, even beyond the precision.
            column.validate(full=True)


def test_days_beyond_pythons_range_decode_to_columns_and_are_refused_as_python_values() -> None:
    days = parse_type("DATE")
    row = with_arity(encode_rows([pa.array([4_000_000], pa.int32()).view(pa.date32())], [days]), 1)[0].as_py()
    assert decode_rows([row], [days])[0].cast(pa.int32()).to_pylist() == [4_000_000]
    with pytest.raises(UnsupportedFeatureError, match="date32"):
        decode_row(row, [days])


def test_the_error_names_the_number_of_the_damaged_row() -> None:
    good = encode_row([1], [INT])
    with pytest.raises(CorruptTableError, match=r"^row number 2 ends before its last field"):
        decode_rows([good, good, good[:-1], good], [INT])
    with pytest.raises(CorruptTableError, match="a stored row is NULL"):
        decode_rows(pa.array([good, None], pa.binary()), [INT])


@given(rows_of_types(max_fields=3), st.integers(0, 9))
def test_a_slice_of_an_array_of_rows_decodes_as_its_own_rows(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]], start: int
) -> None:
    types, rows = drawn
    columns = [arrow_column([row[index] for row in rows], data_type) for index, data_type in enumerate(types)]
    stored = with_arity(encode_rows(columns, types), len(types))
    found = decode_rows(stored.slice(start), types)
    assert all(column.equals(whole.slice(start)) for column, whole in zip(found, columns, strict=True))

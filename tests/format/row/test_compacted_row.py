"""Compacted rows: columns are encoded and decoded, and equal a reference that writes field by field."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.format.row.compacted_row import decode_compacted, encode_compacted, require_compacted_type
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.types import AtomicType, DataType, parse_type, to_arrow
from tests.format.row.binary_row_cases import WIDE, arrow_column, atomic_types, rows_of_types, single_rows

ROW = {
    "type": "ROW",
    "fields": [{"id": 1, "name": "a", "type": "BIGINT"}, {"id": 2, "name": "b", "type": "STRING"}],
}


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def reference(values: Sequence[Any], types: Sequence[AtomicType]) -> bytes:
    """Return a row by the description of docs/format.md 8.5, value by value."""
    header = bytearray((8 + len(types) + 7) // 8)
    body = b""
    for index, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            header[1 + index // 8] |= 1 << index % 8
        else:
            body += _field(value, data_type)
    return bytes(header) + body


def _field(value: Any, data_type: AtomicType) -> bytes:
    root, precision = data_type.root, data_type.precision or 0
    if root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        data = value.encode() if isinstance(value, str) else value
        return varint(len(data)) + data
    if root == "DECIMAL":
        unscaled = int(value.scaleb(data_type.scale or 0, WIDE))
        if precision <= 18:
            return struct.pack("<q", unscaled)
        size = next(n for n in range(1, 17) if -(1 << (8 * n - 1)) <= unscaled < 1 << (8 * n - 1))
        return varint(size) + unscaled.to_bytes(size, "big", signed=True)
    if root.startswith("TIMESTAMP") and precision > 3:
        per_milli = 1_000_000 if precision > 6 else 1_000
        millis, rest = divmod(value, per_milli)
        return struct.pack("<q", millis) + varint(rest * (1_000_000 // per_milli))
    codes = {"BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "FLOAT": "<f", "DOUBLE": "<d"}
    return struct.pack(codes.get(root, "<q" if root == "BIGINT" or root.startswith("TIMESTAMP") else "<i"), value)


def decoded(rows: Sequence[bytes], types: Sequence[DataType]) -> list[pa.Array]:
    return decode_compacted(RowBytes.of(pa.array(rows, pa.binary())), types)


@given(rows_of_types(max_fields=20), st.booleans())
def test_rows_have_the_bytes_of_the_layout_and_are_read_back(
    case: tuple[list[AtomicType], list[tuple[Any, ...]]], sliced: bool
) -> None:
    types, rows = case
    columns = [arrow_column(values, data_type) for values, data_type in zip(zip(*rows), types)]
    if sliced:
        columns, rows = [column.slice(1) for column in columns], rows[1:]
    encoded = encode_compacted(columns, types).to_pylist()
    assert encoded == [reference(row, types) for row in rows]
    assert all(found.equals(column) for found, column in zip(decoded(encoded, types), columns))


def test_rows_are_decoded_from_any_offsets_and_more_than_once() -> None:
    types = atomic_types(["INT", "STRING"])
    encoded = encode_compacted([pa.array([1, None, 3], pa.int32()), pa.array(["a", "b", None])], types)
    rows = RowBytes.of(encoded.combine_chunks()).take(np.array([2, 0, 2, 1]))
    assert [column.to_pylist() for column in decode_compacted(rows, types)] == [[3, 1, 3, None], [None, "a", None, "b"]]


def test_a_value_of_many_bytes_has_a_length_of_several() -> None:
    types = atomic_types(["BYTES"])
    values = [b"x" * size for size in (127, 128, 16383, 16384, 70000)]
    encoded = encode_compacted([pa.array(values)], types).to_pylist()
    assert encoded == [b"\0\0" + varint(len(value)) + value for value in values]
    assert decoded(encoded, types)[0].to_pylist() == values


def test_a_row_within_a_row_is_its_length_and_its_bytes() -> None:
    types = [parse_type("INT"), parse_type(ROW)]
    column = pa.array([{"a": 5, "b": "x"}, None, {"a": None, "b": None}], to_arrow(types[1]))
    encoded = encode_compacted([pa.array([1, 2, 3], pa.int32()), column], types).to_pylist()
    assert encoded[0].hex(" ") == "00 00 01 00 00 00 0c 00 00 05 00 00 00 00 00 00 00 01 78"
    assert encoded[1].hex(" ") == "00 02 02 00 00 00"
    assert encoded[2].hex(" ") == "00 00 03 00 00 00 02 00 03"
    assert decoded(encoded, types)[1].equals(column)
    sliced = encode_compacted([pa.array([2, 3], pa.int32()), column.slice(1)], types)
    assert sliced.to_pylist() == encoded[1:]


@pytest.mark.parametrize(
    ("row", "kind", "problem"),
    [
        ("00", "INT", "shorter than its header"),
        ("0000 010000", "INT", "ends before its last field"),
        ("0000 05 6162", "STRING", "ends before its last field"),
        ("0000 01000000 ff", "INT", "bytes after its last field"),
        ("0002 01000000", "INT", "more fields than its schema"),
        ("0000 80", "STRING", "continues after its end"),
        ("0000 ffffffffffffffffff7f", "STRING", "continues after its end"),
        ("0000 ffffffffffffffff7f", "STRING", "ends before its last field"),
        ("0000 02 fffe", "STRING", "not UTF-8"),
        ("0000 00", "DECIMAL(20, 2)", "not 1 to 16 bytes"),
        ("0000 11 0000000000000000000000000000000000", "DECIMAL(20, 2)", "not 1 to 16 bytes"),
        ("0000 0000000000000000 c0843d", "TIMESTAMP(6)", "more than a millisecond"),
        ("0000 00e87648", "TIME(3)", "beyond 24 hours"),
    ],
)
def test_bytes_that_contradict_the_layout_are_refused(row: str, kind: str, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        decoded([bytes.fromhex(row)], [parse_type(kind)])


@given(rows_of_types(), st.data())
def test_damaged_rows_give_rows_or_an_error_of_lakelsm(
    case: tuple[list[AtomicType], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    types, rows = case
    columns = [arrow_column(values, data_type) for values, data_type in zip(zip(*rows), types)]
    row = bytearray(encode_compacted(columns, types).to_pylist()[0])
    offset = data.draw(st.integers(0, len(row) - 1))
    row[offset] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(row)))
    with contextlib.suppress(CorruptTableError, UnsupportedFeatureError):
        assert len(decoded([bytes(row[:cut])], types)) == len(types)


def test_types_without_a_compacted_form_are_refused_by_name() -> None:
    require_compacted_type("r", parse_type(ROW))
    with pytest.raises(UnsupportedFeatureError, match=r"column 'v': .*type VARIANT.*lookup.local-file-type"):
        require_compacted_type("v", parse_type("VARIANT"))


def test_values_that_do_not_fit_and_columns_that_do_not_match_are_refused() -> None:
    columns, types = single_rows(["INT"], [1])
    with pytest.raises(InvalidInputError, match="2 columns given for 1 types"):
        encode_compacted([*columns, *columns], types)
    with pytest.raises(InvalidInputError, match="does not fit"):
        encode_compacted([pa.array([Decimal("1234.5")])], atomic_types(["DECIMAL(2, 0)"]))

"""Slots and variable parts of one field: every layout and unit of Arrow, and values that do not fit."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.row.binary_row import decode_row, encode_row, encode_rows
from lakelsm.format.row.binary_row_slots import (
    byte_layout,
    field_slots,
    is_wide_decimal,
    is_wide_timestamp,
    load_words,
    minimal_big_endian,
    padded_words,
    split_millis,
)
from lakelsm.types import parse_type
from tests.format.row.binary_row_cases import atomic_types, reference_row

INT, BIGINT, STRING = atomic_types(["INT", "BIGINT", "STRING"])

BYTES = parse_type("BYTES")

TS3, TS6, TS9 = atomic_types(["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"])


@pytest.mark.parametrize("layout", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_every_layout_of_text_gives_the_same_rows(layout: pa.DataType) -> None:
    texts = ["a", None, "hello world", "a", "", "中文数据"]
    plain = pa.array(texts)
    other = pa.array(texts, pa.string()).dictionary_encode() if pa.types.is_dictionary(layout) else plain.cast(layout)
    assert encode_rows([other[1:]], [STRING]).equals(encode_rows([plain[1:]], [STRING]))


def test_every_layout_of_binary_gives_the_same_rows() -> None:
    blobs = [b"12345678", None, b"abcdefgh"]
    expected = encode_rows([pa.array(blobs, pa.binary())], [BYTES])
    for layout in (pa.large_binary(), pa.binary(8), pa.binary_view()):
        assert encode_rows([pa.array(blobs, layout)], [BYTES]).equals(expected)


@pytest.mark.parametrize("nanos", [1_704_067_200_123_456_789, -1, -1_000_000, -1_000_001, 0, 999_999])
def test_time_units_finer_than_the_type_are_floored_to_the_unit_of_the_type(nanos: int) -> None:
    fine = pa.array([nanos], pa.timestamp("ns"))
    micros, millis = nanos // 1_000, nanos // 1_000_000
    assert encode_rows([fine], [TS9])[0].as_py() == reference_row([nanos], [TS9])
    assert encode_rows([fine], [TS6])[0].as_py() == reference_row([micros], [TS6])
    assert encode_rows([fine], [TS3])[0].as_py() == reference_row([millis], [TS3])
    assert encode_rows([pa.array([micros], pa.timestamp("us"))], [TS3])[0].as_py() == reference_row([millis], [TS3])


def test_time_units_coarser_than_the_type_keep_their_instant() -> None:
    seconds = pa.array([-5, 7], pa.timestamp("s"))
    assert encode_rows([seconds], [TS6]).to_pylist() == [reference_row([v * 1_000_000], [TS6]) for v in (-5, 7)]
    far = pa.array([253_402_300_799_999_999], pa.timestamp("us"))  # 9999-12-31, beyond 64-bit nanoseconds
    assert encode_rows([far], [TS9])[0].as_py() == reference_row([253_402_300_799_999_999 * 1_000], [TS9])


def test_times_and_dates_of_other_widths_are_normalised() -> None:
    time, day = atomic_types(["TIME(3)", "DATE"])
    expected = reference_row([3_600_123, 19723], [time, day])
    arrays = [
        pa.array([3_600_123_999_999], pa.time64("ns")),
        pa.array([datetime(2024, 1, 1)], pa.date64()),
    ]
    assert encode_rows(arrays, [time, day])[0].as_py() == expected


def test_local_zoned_timestamps_encode_their_instant() -> None:
    zoned = parse_type("TIMESTAMP(3) WITH LOCAL TIME ZONE")
    berlin = pa.array([datetime(2024, 1, 1, tzinfo=timezone.utc)], pa.timestamp("ms", tz="Europe/Berlin"))
    assert encode_rows([berlin], [zoned])[0].as_py() == reference_row([1_704_067_200_000], [TS3])
    row = encode_row([datetime(2024, 1, 1, tzinfo=timezone.utc)], [zoned])
    assert decode_row(row, [zoned]) == (datetime(2024, 1, 1, tzinfo=timezone.utc),)


@pytest.mark.parametrize(("text", "hex_bytes"), [("-1.28", "80"), ("1.28", "0080"), ("-1.29", "ff7f"), ("0.00", "00")])
def test_wide_decimals_are_stored_in_the_fewest_bytes(text: str, hex_bytes: str) -> None:
    wide = parse_type("DECIMAL(20, 2)")
    row = encode_row([Decimal(text)], [wide])
    assert row[12] == len(hex_bytes) // 2
    assert row[20:].hex() == hex_bytes.ljust(32, "0")
    assert decode_row(row, [wide]) == (Decimal(text),)


def test_columns_of_nulls_without_a_type_are_null_in_every_type() -> None:
    types = atomic_types(["BIGINT", "STRING", "DECIMAL(20, 2)", "TIMESTAMP(9)", "BOOLEAN"])
    assert encode_rows([pa.nulls(2)] * 5, types).to_pylist() == [reference_row([None] * 5, types)] * 2


@pytest.mark.parametrize(
    ("array", "name"),
    [
        (pa.array(["12"]), "BIGINT"),
        (pa.array([1 << 40]), "INT"),
        (pa.array([1.5]), "INT"),
        (pa.array([1]), "STRING"),
        (pa.array([b"x"]), "STRING"),
        (pa.array([Decimal("123.45")]), "DECIMAL(4, 2)"),
        (pa.array([1]), "TIMESTAMP(3)"),
        (pa.array([[1]]), "INT"),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_values_of_another_kind_or_out_of_range_are_refused_with_both_types_named(array: pa.Array, name: str) -> None:
    with pytest.raises(InvalidInputError, match=str(array.type).replace("(", r"\(").replace(")", r"\)")) as caught:
        encode_rows([array], [parse_type(name)])
    assert name in str(caught.value)


@pytest.mark.parametrize("value", [{"type": "ARRAY", "element": "INT"}, "VARIANT"])
def test_nested_types_are_refused_by_name_when_encoding(value: Any) -> None:
    data_type = parse_type(value)
    with pytest.raises(UnsupportedFeatureError, match=data_type.root):
        encode_rows([pa.nulls(1)], [data_type])


WHOLE = (1 << 128) - 1
EDGES = [sign * (1 << (8 * size - 1)) + step for size in range(1, 16) for sign in (1, -1) for step in (-1, 0)]


@given(st.lists(st.sampled_from(EDGES) | st.integers(-(1 << 127), (1 << 127) - 1), max_size=9))
def test_a_number_takes_as_many_bytes_as_javas_big_integer(numbers: list[int]) -> None:
    low = np.array([number & 0xFFFFFFFFFFFFFFFF for number in numbers], np.uint64)
    high = np.array([(number & WHOLE) >> 64 for number in numbers], np.uint64)
    lengths, first, second = minimal_big_endian(low, high)
    found = [
        (int(a).to_bytes(8, "big") + int(b).to_bytes(8, "big"))[: int(length)]
        for a, b, length in zip(first, second, lengths)
    ]
    sizes = [(number + (number < 0)).bit_length() // 8 + 1 for number in numbers]
    assert found == [number.to_bytes(size, "big", signed=True) for number, size in zip(numbers, sizes)]


@given(st.binary(max_size=40), st.data())
def test_eight_bytes_are_read_at_any_offset(data: bytes, drawn: st.DataObject) -> None:
    offsets = drawn.draw(st.lists(st.integers(0, len(data)), max_size=9))
    words = load_words(padded_words(np.frombuffer(data, np.uint8)), np.array(offsets, np.int64))
    padded = data + bytes(8)
    assert words.tolist() == [int.from_bytes(padded[offset : offset + 8], "little") for offset in offsets]


@pytest.mark.parametrize(("unit", "nanos"), [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)])
@given(values=st.lists(st.integers(-(1 << 50), 1 << 50), max_size=9))
def test_a_time_is_whole_milliseconds_and_nanoseconds_beyond_them(unit: str, nanos: int, values: list[int]) -> None:
    millis, rest = split_millis(np.array(values, np.int64), unit)
    assert list(zip(millis.tolist(), rest.tolist())) == [divmod(value * nanos, 1_000_000) for value in values]


@given(st.lists(st.none() | st.binary(max_size=20), max_size=9), st.integers(0, 9))
def test_bytes_have_the_offsets_of_the_layout_also_in_slices(values: list[bytes | None], start: int) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        offsets, data = byte_layout(pa.array(values, kind).slice(start))
        parts = [data[begin:end].tobytes() for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
        assert parts == [value or b"" for value in values[start:]]


def test_a_field_is_inline_up_to_seven_bytes_and_has_words_beyond() -> None:
    found = field_slots(pa.array(["1234567", "12345678", None, "123456789"]), STRING)
    assert found.slots.tolist() == [int.from_bytes(b"1234567\x87", "little"), 8, 0, 9]
    assert found.nulls is not None and found.nulls.tolist() == [False, False, True, False]
    assert not isinstance(found.var_words, int) and found.var_words.tolist() == [0, 1, 0, 2]
    assert found.var_data is not None and found.var_data.tobytes() == b"12345678" + b"123456789" + bytes(7)


@pytest.mark.parametrize(
    ("name", "wide"),
    [
        ("DECIMAL(18, 2)", False),
        ("DECIMAL(19, 2)", True),
        ("TIMESTAMP(3)", False),
        ("TIMESTAMP(4)", True),
        ("INT", False),
    ],
)
def test_the_precision_determines_the_use_of_the_variable_part(name: str, wide: bool) -> None:
    [data_type] = atomic_types([name])
    assert (is_wide_decimal(data_type) or is_wide_timestamp(data_type)) is wide
    words = field_slots(pa.nulls(1), data_type).var_words
    assert words == (0 if not wide else 2 if data_type.root == "DECIMAL" else 1)

"""BinaryRow bytes: Java's examples, a slow reference, Java's manifests, and bytes that are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.format.row.binary_row import (
    EMPTY_ROW,
    decode_row,
    decode_rows,
    encode_row,
    encode_rows,
    with_arity,
)
from lakelsm.types import AtomicType, parse_type, to_arrow
from tests.format.row.binary_row_cases import (
    EXAMPLES,
    Case,
    arrow_column,
    atomic_types,
    java_entries,
    reference_row,
    rows_of_types,
    single_rows,
)
from tests.golden_tables import GoldenTable
from tests.nano_times import times_of_nanos

INT, BIGINT, STRING = atomic_types(["INT", "BIGINT", "STRING"])
BYTES = parse_type("BYTES")
TS3, TS6, TS9 = atomic_types(["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]} {example[1]}")
def test_rows_have_the_bytes_that_java_writes(example: Case) -> None:
    names, values, text = example
    arrays, types = single_rows(names, values)
    assert encode_rows(arrays, types)[0].as_py() == bytes.fromhex(text)
    assert encode_row(values, types) == len(types).to_bytes(4, "big") + bytes.fromhex(text)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]} {example[1]}")
def test_rows_that_java_writes_decode_to_their_values(example: Case) -> None:
    names, values, text = example
    arrays, types = single_rows(names, values)
    stored = len(types).to_bytes(4, "big") + bytes.fromhex(text)
    assert [array.to_pylist() for array in decode_rows([stored], types)] == [
        array.to_pylist() for array in arrays
    ]


def test_the_null_bits_of_more_than_56_fields_take_two_words() -> None:
    values = [None if index % 3 == 0 else index for index in range(57)]
    row = encode_row(values, [INT] * 57)
    assert row[4:20].hex() == "00499224499224490000000000000000"
    assert len(row) == 4 + 16 + 57 * 8
    assert list(decode_row(row, [INT] * 57)) == values


@pytest.mark.parametrize(("fields", "header"), [(56, 8), (57, 16), (120, 16), (121, 24)])
def test_the_header_grows_by_a_word_for_every_64_fields(fields: int, header: int) -> None:
    values: list[int | None] = [7] * (fields - 1) + [None]
    row = encode_row(values, [INT] * fields)
    assert row[4:] == reference_row(values, [INT] * fields)
    assert len(row) == 4 + header + 8 * fields
    assert list(decode_row(row, [INT] * fields)) == values


def test_an_empty_row_is_its_arity_and_one_word() -> None:
    assert encode_row([], []) == EMPTY_ROW == bytes(12)
    assert decode_row(EMPTY_ROW, []) == ()


@given(rows_of_types())
def test_rows_equal_those_of_a_row_by_row_encoder_and_decode_again(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]],
) -> None:
    types, rows = drawn
    columns = [arrow_column([row[index] for row in rows], t) for index, t in enumerate(types)]
    encoded = encode_rows(columns, types)
    assert encoded.to_pylist() == [reference_row(row, types) for row in rows]
    decoded = decode_rows(with_arity(encoded, len(types)).to_pylist(), types)
    for column, original in zip(decoded, columns, strict=True):
        column.validate(full=True)
        assert column.equals(original)


@given(rows_of_types(), st.integers(0, 5), st.integers(0, 5))
def test_slices_and_chunks_encode_as_the_values_they_hold(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]], start: int, cut: int
) -> None:
    types, rows = drawn
    columns = [arrow_column([row[index] for row in rows], t) for index, t in enumerate(types)]
    expected = [reference_row(row, types) for row in rows][start:]
    sliced = [column.slice(start) for column in columns]
    assert encode_rows(sliced, types).to_pylist() == expected
    chunked = [pa.chunked_array([c.slice(0, cut), c.slice(cut)], type=c.type) for c in columns]
    assert encode_rows([column.slice(start) for column in chunked], types).to_pylist() == expected


@pytest.mark.parametrize(
    "layout", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_every_layout_of_text_gives_the_same_rows(layout: pa.DataType) -> None:
    texts = ["a", None, "hello world", "a", "", "中文数据"]
    plain = pa.array(texts)
    other = (
        pa.array(texts, pa.string()).dictionary_encode()
        if pa.types.is_dictionary(layout)
        else plain.cast(layout)
    )
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
    assert encode_rows([pa.array([micros], pa.timestamp("us"))], [TS3])[0].as_py() == reference_row(
        [millis], [TS3]
    )


def test_time_units_coarser_than_the_type_keep_their_instant() -> None:
    seconds = pa.array([-5, 7], pa.timestamp("s"))
    assert encode_rows([seconds], [TS6]).to_pylist() == [
        reference_row([v * 1_000_000], [TS6]) for v in (-5, 7)
    ]
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


@pytest.mark.parametrize(
    ("text", "hex_bytes"), [("-1.28", "80"), ("1.28", "0080"), ("-1.29", "ff7f"), ("0.00", "00")]
)
def test_wide_decimals_are_stored_in_the_fewest_bytes(text: str, hex_bytes: str) -> None:
    wide = parse_type("DECIMAL(20, 2)")
    row = encode_row([Decimal(text)], [wide])
    assert row[12] == len(hex_bytes) // 2
    assert row[20:].hex() == hex_bytes.ljust(32, "0")
    assert decode_row(row, [wide]) == (Decimal(text),)


def test_a_wide_decimal_with_one_byte_too_many_as_pypaimon_writes_it_decodes() -> None:
    row = _one_field("0200000010000000 ff80000000000000 0000000000000000")
    assert decode_row(row, [parse_type("DECIMAL(20, 2)")]) == (Decimal("-1.28"),)


@pytest.mark.parametrize("name", ["DECIMAL(20, 2)", "TIMESTAMP(6)"])
def test_a_null_without_reserved_space_as_pypaimon_writes_it_decodes(name: str) -> None:
    row = bytes.fromhex("00000001 0001000000000000 0000000000000000")
    assert decode_row(row, [parse_type(name)]) == (None,)


def test_columns_of_nulls_without_a_type_are_null_in_every_type() -> None:
    types = atomic_types(["BIGINT", "STRING", "DECIMAL(20, 2)", "TIMESTAMP(9)", "BOOLEAN"])
    assert encode_rows([pa.nulls(2)] * 5, types).to_pylist() == [reference_row([None] * 5, types)] * 2


def test_rows_span_blocks_of_different_shapes() -> None:
    keys = pa.array([f"{index}" * (1 if index < 70_000 else 4) for index in range(140_000)])
    numbers = pa.array(range(140_000), pa.int32())
    rows = encode_rows([keys, numbers], [STRING, INT])
    assert len(rows) == 140_000
    for index in (0, 65_535, 65_536, 69_999, 70_000, 139_999):
        assert rows[index].as_py() == reference_row([keys[index].as_py(), index], [STRING, INT])


def test_no_rows_give_no_rows() -> None:
    assert encode_rows([pa.array([], pa.string())], [STRING]).equals(pa.array([], pa.binary()))
    assert [len(column) for column in decode_rows([], [INT, STRING])] == [0, 0]


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
def test_values_of_another_kind_or_out_of_range_are_refused_with_both_types_named(
    array: pa.Array, name: str
) -> None:
    with pytest.raises(
        InvalidInputError, match=str(array.type).replace("(", r"\(").replace(")", r"\)")
    ) as caught:
        encode_rows([array], [parse_type(name)])
    assert name in str(caught.value)


@pytest.mark.parametrize("value", [{"type": "ARRAY", "element": "INT"}, "VARIANT"])
def test_nested_types_are_refused_by_name_when_encoding(value: Any) -> None:
    data_type = parse_type(value)
    with pytest.raises(UnsupportedFeatureError, match=data_type.root):
        encode_rows([pa.nulls(1)], [data_type])


def test_columns_of_different_lengths_and_counts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="different lengths"):
        encode_rows([pa.array([1, 2]), pa.array([1])], [BIGINT, BIGINT])
    with pytest.raises(InvalidInputError, match="1 columns given for 2 types"):
        encode_rows([pa.array([1, 2])], [BIGINT, BIGINT])


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


@pytest.mark.parametrize(
    ("damage", "row", "name"), _damaged(), ids=lambda value: value if isinstance(value, str) else ""
)
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
        if not pa.types.is_decimal(column.type):  # any 16 bytes are kept, also beyond the precision
            column.validate(full=True)


def test_nanosecond_timestamps_have_the_whole_calendar() -> None:
    times = times_of_nanos([253_402_300_799_999_999_999, -62_135_596_800_000_000_000 + 1, None, -1])
    rows = with_arity(encode_rows([times], [TS9]), 1)
    assert decode_rows(rows.to_pylist(), [TS9])[0].equals(times)


def test_a_timestamp_that_microseconds_cannot_hold_is_refused() -> None:
    row = encode_rows([pa.array([(1 << 63) // 1000 + 1], pa.timestamp("ms"))], [TS9])
    with pytest.raises(UnsupportedFeatureError, match="294246"):
        decode_rows(with_arity(row, 1).to_pylist(), [TS9])


def test_arrow_scalars_of_any_layout_encode_as_their_values() -> None:
    columns = [
        (pa.array([5], pa.int64()), INT),
        (pa.array(["hello world"], pa.string_view()), STRING),
        (pa.array(["hello world"]).dictionary_encode(), STRING),
        (pa.array([None], pa.string()), STRING),
        (pa.array([1_704_067_200_123_456_789], pa.timestamp("ns")), TS6),
        (pa.array([Decimal("1.5")], pa.decimal128(20, 2)), parse_type("DECIMAL(20, 2)")),
        (pa.array([True]), parse_type("BOOLEAN")),
    ]
    arrays, types = [column for column, _ in columns], [data_type for _, data_type in columns]
    row = encode_row([column[0] for column in arrays], types)
    assert row == with_arity(encode_rows(arrays, types), len(types))[0].as_py()


def test_days_beyond_pythons_range_decode_to_columns_and_are_refused_as_python_values() -> None:
    days = parse_type("DATE")
    row = with_arity(encode_rows([pa.array([4_000_000], pa.int32()).view(pa.date32())], [days]), 1)[0].as_py()
    assert decode_rows([row], [days])[0].cast(pa.int32()).to_pylist() == [4_000_000]
    with pytest.raises(UnsupportedFeatureError, match="date32"):
        decode_row(row, [days])


def test_python_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="INT"):
        encode_row(["x"], [INT])
    with pytest.raises(InvalidInputError, match="2 values given for 1 types"):
        encode_row([1, 2], [INT])


KEY_TABLES = ["all_parquet", "all_orc", "part", "part2", "dyn", "simple", "longkey_false", "st_full_true"]


@pytest.mark.parametrize("name", KEY_TABLES)
def test_keys_and_partitions_of_javas_manifests_encode_back_to_the_same_bytes(
    name: str, golden: Callable[..., GoldenTable]
) -> None:
    table = golden(name)
    schema = json.loads(sorted((table.path / "schema").glob("schema-*"))[-1].read_text())
    types = {field["name"]: parse_type(field["type"]) for field in schema["fields"]}
    partition_types = [types[key] for key in schema["partitionKeys"]]
    key_types = [types[key] for key in schema["primaryKeys"] if key not in schema["partitionKeys"]]
    checked = 0
    for entry in java_entries(table.path):
        file = entry.file
        rows = [(entry.partition, partition_types), (file.min_key, key_types), (file.max_key, key_types)]
        for row, row_types in rows:
            assert encode_row(decode_row(row, row_types), row_types) == row
            checked += 1
    assert checked

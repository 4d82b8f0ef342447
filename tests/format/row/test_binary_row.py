"""BinaryRow bytes equal Java's examples, a slow reference, and Java's manifests; damaged bytes are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.binary_row import (
    EMPTY_ROW,
    decode_row,
    decode_rows,
    encode_row,
    encode_rows,
    with_arity,
)
from lakelsm.types import AtomicType, parse_type
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

TS3, TS6, TS9 = atomic_types(["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]} {example[1]}")
def test_rows_have_the_bytes_that_java_writes(example: Case) -> None:
    names, values, text = example
    arrays, types = single_rows(names, values)
    assert encode_rows(arrays, types)[0].as_py() == bytes.fromhex(text)
    stored = len(types).to_bytes(4, "big") + bytes.fromhex(text)
    assert encode_row(values, types) == stored
    assert [array.to_pylist() for array in decode_rows([stored], types)] == [array.to_pylist() for array in arrays]


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
def test_slices_and_chunks_are_encoded_as_their_values(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]], start: int, cut: int
) -> None:
    types, rows = drawn
    columns = [arrow_column([row[index] for row in rows], t) for index, t in enumerate(types)]
    expected = [reference_row(row, types) for row in rows][start:]
    sliced = [column.slice(start) for column in columns]
    assert encode_rows(sliced, types).to_pylist() == expected
    chunked = [pa.chunked_array([c.slice(0, cut), c.slice(cut)], type=c.type) for c in columns]
    assert encode_rows([column.slice(start) for column in chunked], types).to_pylist() == expected


def test_rows_span_blocks_of_different_shapes() -> None:
    keys = pa.array([f"{index}" * (1 if index < 70_000 else 4) for index in range(140_000)])
    numbers = pa.array(range(140_000), pa.int32())
    rows = encode_rows([keys, numbers], [STRING, INT])
    assert len(rows) == 140_000
    for index in (0, 65_535, 65_536, 69_999, 70_000, 139_999):
        assert rows[index].as_py() == reference_row([keys[index].as_py(), index], [STRING, INT])


def test_columns_without_rows_give_no_rows() -> None:
    assert encode_rows([pa.array([], pa.string())], [STRING]).equals(pa.array([], pa.binary()))
    assert [len(column) for column in decode_rows([], [INT, STRING])] == [0, 0]


def test_columns_of_different_lengths_and_counts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="different lengths"):
        encode_rows([pa.array([1, 2]), pa.array([1])], [BIGINT, BIGINT])
    with pytest.raises(InvalidInputError, match="1 columns given for 2 types"):
        encode_rows([pa.array([1, 2])], [BIGINT, BIGINT])


def test_nanosecond_timestamps_cover_the_whole_calendar() -> None:
    times = times_of_nanos([253_402_300_799_999_999_999, -62_135_596_800_000_000_000 + 1, None, -1])
    rows = with_arity(encode_rows([times], [TS9]), 1)
    assert decode_rows(rows.to_pylist(), [TS9])[0].equals(times)


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


def test_python_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="INT"):
        encode_row(["x"], [INT])
    with pytest.raises(InvalidInputError, match="2 values given for 1 types"):
        encode_row([1, 2], [INT])


KEY_TABLES = ["all_parquet", "all_orc", "part", "part2", "dyn", "simple", "longkey_false", "st_full_true"]


@pytest.mark.parametrize("name", KEY_TABLES)
def test_keys_and_partitions_of_javas_manifests_have_the_same_bytes_after_rewriting(
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

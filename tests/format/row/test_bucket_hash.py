"""Bucket hashes and bucket functions equal Java's vectors and a slow reference, on every code path."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.binary_row import encode_rows
from lakelsm.format.row.bucket_hash import (
    _hash_buckets,
    bucket_ids,
    finished_hash,
    hash_bytes,
    hash_rows,
    key_hashes,
    mixed_words,
)
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.types import AtomicType, parse_type
from tests.counted_calls import counted_calls
from tests.format.row.binary_row_cases import (
    BUCKETS_OF_4,
    BUCKETS_OF_16,
    HASHES,
    arrow_column,
    atomic_types,
    java_entries,
    reference_hash,
    reference_row,
    rows_of_types,
    single_rows,
)
from tests.golden_tables import GoldenTable

INT, BIGINT, STRING = atomic_types(["INT", "BIGINT", "STRING"])


@pytest.mark.parametrize("case", HASHES, ids=lambda case: f"{case[0]} {case[1]}")
def test_keys_have_javas_hashes(case: tuple[tuple[str, ...], tuple[Any, ...], int]) -> None:
    names, values, expected = case
    arrays, types = single_rows(names, values)
    assert key_hashes(arrays, types).tolist() == [expected]
    assert hash_rows(encode_rows(arrays, types)).tolist() == [expected]


@pytest.mark.parametrize(("buckets", "column"), [(4, BUCKETS_OF_4), (16, BUCKETS_OF_16)], ids=["4", "16"])
def test_keys_have_javas_buckets(buckets: int, column: list[int]) -> None:
    found = [int(bucket_ids(*single_rows(names, values), buckets)[0]) for names, values, _ in HASHES]
    assert found == column


def test_the_empty_row_hashes_as_in_java() -> None:
    assert hash_rows(pa.array([bytes(8)])).tolist() == [-1670924195]
    with pytest.raises(InvalidInputError, match="0 columns"):
        key_hashes([], [])


@given(rows_of_types())
def test_hashes_equal_those_of_a_row_by_row_hash(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]],
) -> None:
    types, rows = drawn
    columns = [arrow_column([row[index] for row in rows], t) for index, t in enumerate(types)]
    expected = [reference_hash(reference_row(row, types)) for row in rows]
    assert key_hashes(columns, types).tolist() == expected
    assert hash_rows(encode_rows(columns, types)).tolist() == expected
    for buckets in (1, 3, 1 << 20):
        assert bucket_ids(columns, types, buckets).tolist() == [abs(value) % buckets for value in expected]


@given(
    st.lists(st.binary(max_size=100).map(lambda row: row[: len(row) // 4 * 4]), max_size=40),
    st.integers(0, 3),
)
def test_rows_of_any_lengths_have_the_same_hashes_in_slices(rows: list[bytes], start: int) -> None:
    expected = [reference_hash(row) for row in rows[start:]]
    assert hash_rows(pa.array(rows, pa.binary())[start:]).tolist() == expected


def test_many_rows_with_a_few_very_long_keys_have_the_same_hashes() -> None:
    texts = [f"key-{index:07}" for index in range(40_000)]
    for index in (0, 20_000, 39_999):
        texts[index] = f"{index}" * 20_000
    hashes = key_hashes([pa.array(texts)], [STRING])
    for index in (0, 1, 16_383, 16_384, 20_000, 39_998, 39_999):
        assert hashes[index] == reference_hash(reference_row([texts[index]], [STRING]))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_key_of_a_megabyte_is_hashed_in_few_calls(rows: int) -> None:
    texts = ["x" * (1 << 20) + "y" * row for row in range(rows)]
    encoded = encode_rows([pa.array(texts)], [STRING])

    def hashed() -> tuple[np.ndarray, ...]:
        return key_hashes([pa.array(texts[:1])], [STRING]), hash_rows(encoded), hash_bytes(RowBytes.of(encoded))

    (by_fields, by_rows, by_bytes), calls = counted_calls(hashed)
    assert calls < 1000
    assert by_rows.tolist() == [reference_hash(encoded[row].as_py()) for row in range(rows)]
    assert by_fields[0] == by_rows[0] == by_bytes[0] and by_bytes[-1] == by_rows[-1]


def test_nulls_in_one_block_do_not_change_other_blocks() -> None:
    values: list[int | None] = list(range(50_000))
    values[20_000] = None
    hashes = key_hashes([pa.array(values)], [BIGINT])
    for index in (0, 16_384, 19_999, 20_000, 20_001, 49_999):
        assert hashes[index] == reference_hash(reference_row([values[index]], [BIGINT]))


def test_chunked_and_empty_columns_hash_row_by_row() -> None:
    chunks = pa.chunked_array([["a"], [], ["hello world", None]])
    rest = key_hashes([chunks[1:]], [STRING]).tolist()
    assert key_hashes([chunks], [STRING]).tolist() == [943281246, *rest]
    assert key_hashes([pa.array([], pa.int64())], [BIGINT]).tolist() == []
    for function in ("default", "mod", "hive"):
        assert bucket_ids([pa.array([], pa.int64())], [BIGINT], 4, function).tolist() == []


def test_the_bucket_of_the_smallest_hash_is_not_negative() -> None:
    hashes = np.array([-(2**31), 2**31 - 1, -1, 0], dtype=np.int32)
    assert _hash_buckets(hashes, 7).tolist() == [2**31 % 7, (2**31 - 1) % 7, 1, 0]


@pytest.mark.parametrize("data_type", [INT, BIGINT], ids=str)
def test_mod_is_the_floored_remainder_and_null_is_zero(data_type: AtomicType) -> None:
    keys = pa.array([17, -3, 5, 1, -1, None], pa.int64())
    assert bucket_ids([keys], [data_type], 5, "mod").tolist() == [2, 2, 0, 1, 4, 0]
    assert bucket_ids([pa.array([1, -1, 17, -3])], [data_type], 4, "mod").tolist() == [1, 3, 1, 1]


def test_mod_refuses_other_keys_by_name() -> None:
    with pytest.raises(InvalidInputError, match="VARCHAR"):
        bucket_ids([pa.array(["a"])], [STRING], 4, "mod")
    with pytest.raises(InvalidInputError, match="one bucket key of type INT or BIGINT"):
        bucket_ids([pa.array([1]), pa.array([2])], [BIGINT, BIGINT], 4, "mod")


def test_zero_buckets_and_unknown_functions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="not 0"):
        bucket_ids([pa.array([1])], [BIGINT], 0)
    with pytest.raises(InvalidInputError, match="'md5'"):
        bucket_ids([pa.array([1])], [BIGINT], 4, "md5")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["all_parquet", "conf"])
def test_rows_of_javas_tables_are_in_the_bucket_of_their_hash(
    name: str, golden: Callable[..., GoldenTable]
) -> None:
    table = golden(name)
    schema = json.loads(sorted((table.path / "schema").glob("schema-*"))[-1].read_text())
    buckets = int(schema["options"]["bucket"])
    types = {field["name"]: parse_type(field["type"]) for field in schema["fields"]}
    keys = [key for key in schema["primaryKeys"] if key not in schema["partitionKeys"]]
    keys = schema["options"].get("bucket-key", ",".join(keys)).split(",")
    checked = 0
    for path in table.path.rglob("data-*.parquet"):
        rows = pq.ParquetFile(path).read(keys)
        found = bucket_ids(rows.columns, [types[key] for key in keys], buckets)
        assert set(found.tolist()) == {int(path.parent.name.removeprefix("bucket-"))}
        checked += len(rows)
    assert checked


def test_the_hash_index_of_javas_dynamic_buckets_holds_the_hashes_of_the_keys(
    golden: Callable[..., GoldenTable],
) -> None:
    table = golden("dyn")
    stored: set[int] = set()
    for path in (table.path / "index").glob("index-*"):
        stored |= set(np.frombuffer(path.read_bytes(), dtype=">i4").tolist())
    keys: set[int] = set()
    for entry in java_entries(table.path):
        for row in (entry.file.min_key, entry.file.max_key):
            keys |= set(hash_rows(pa.array([row[4:]], pa.binary())).tolist())
    assert keys
    assert keys <= stored


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=30))
def test_byte_strings_of_any_length_hash_as_in_java(values: list[bytes]) -> None:
    assert hash_bytes(RowBytes.of(pa.array(values, pa.binary()))).tolist() == [_of_bytes(value) for value in values]


def _of_bytes(value: bytes) -> int:
    """Hash one value: words of four bytes, then each remaining byte as a separate signed number."""
    whole = len(value) // 4 * 4
    words = [int.from_bytes(value[at : at + 4], "little") for at in range(0, whole, 4)]
    tail = [(byte - 256 if byte >= 128 else byte) & 0xFFFFFFFF for byte in value[whole:]]
    found = finished_hash(mixed_words([*words, *tail]), len(value))
    return found - (1 << 32) if found >> 31 else found

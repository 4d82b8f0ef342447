"""Hashes of values equal those of Java's FastHash."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.format.index.file_index.fast_hash import _BLOCK_ROWS, as_longs, fast_hashes
from lakelsm.types import parse_type, to_arrow
from tests.format.index.file_index.test_xx_hash import plain_xxh64
from tests.nano_times import column_of


def wang(key: int) -> int:
    """Return Thomas Wang's 64-bit mix of one number."""

    def wrapped(number: int) -> int:
        return (number + 2**63) % 2**64 - 2**63

    key = wrapped(~key + (key << 21))
    key ^= key >> 24
    key = wrapped(key + (key << 3) + (key << 8))
    key ^= key >> 14
    key = wrapped(key + (key << 2) + (key << 4))
    key ^= key >> 28
    return wrapped(key + (key << 31))


def _column(kind: str, *values: Any) -> pa.Array:
    return column_of(values, to_arrow(parse_type(kind)))


_FAR = dt.datetime(1960, 1, 1, 0, 0, 0, 1)


@pytest.mark.parametrize(
    ("kind", "value", "number"),
    [
        ("TINYINT", -128, -128),
        ("SMALLINT", 300, 300),
        ("INT", -(2**31), -(2**31)),
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("BOOLEAN", True, 1),
        ("FLOAT", 1.0, 0x3F800000),
        ("FLOAT", -0.0, -(2**31)),
        ("FLOAT", math.nan, 0x7FC00000),
        ("DOUBLE", -0.0, -(2**63)),
        ("DOUBLE", math.nan, 0x7FF8000000000000),
        ("DATE", dt.date(1969, 12, 31), -1),
        ("TIME(3)", dt.time(0, 0, 1, 5000), 1005),
        ("TIMESTAMP(0)", dt.datetime(1970, 1, 1, 0, 0, 1), 1000),
        ("TIMESTAMP(3)", dt.datetime(1970, 1, 1, 0, 0, 0, 5000), 5),
        ("TIMESTAMP(6)", _FAR, -315619199999999),
        ("TIMESTAMP(9)", _FAR, -315619199999999),
    ],
)
def test_numbers_and_times_are_hashed_as_javas_numbers(kind: str, value: Any, number: int) -> None:
    column = _column(kind, None, value)
    assert as_longs(column)[1] == number
    assert fast_hashes(column).tolist() == [0, wang(number)]


def test_texts_and_bytes_are_hashed_by_their_bytes_and_null_is_0() -> None:
    for kind, values in (("STRING", ["é", None, ""]), ("BYTES", [b"\xc3\xa9", None, b""])):
        first, null, empty = fast_hashes(_column(kind, *values)).tolist()
        assert (first % 2**64, null, empty % 2**64) == (plain_xxh64(b"\xc3\xa9"), 0, plain_xxh64(b""))


def test_many_values_are_hashed_block_by_block() -> None:
    numbers = pa.array(range(2 * _BLOCK_ROWS + 3))
    hashes = fast_hashes(numbers)
    assert len(hashes) == len(numbers)
    assert [hashes[at] for at in (0, _BLOCK_ROWS, -1)] == [wang(at) for at in (0, _BLOCK_ROWS, 2 * _BLOCK_ROWS + 2)]
    assert fast_hashes(pa.array([], pa.int64())).tolist() == []

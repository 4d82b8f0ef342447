"""Entries have equal hashes for equal keys, and rows without a key have none."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.lookup.store.key_entries import MOST_ROWS, check_rows, hashes_of, key_entries
from tests.lookup.store.keyed_tables import fields_of


def test_entries_are_the_hash_and_the_row() -> None:
    fields = fields_of(["INT", "STRING"])
    rows = pa.table({"k1": ["a", "b"], "k0": pa.array([1, 2], pa.int32())})
    hashes = key_hashes([rows.column("k0"), rows.column("k1")], [field.type for field in fields])
    expected = [(int(hash_) & 0xFFFFFFFF) << 32 | row for row, hash_ in enumerate(hashes.tolist(), 70)]
    assert key_entries(70, rows, fields).tolist() == expected


def test_rows_with_a_null_in_their_key_have_no_entry() -> None:
    fields = fields_of(["INT", "STRING"])
    rows = pa.table({"k0": pa.array([1, None, 3, None], pa.int32()), "k1": ["a", "b", None, None]})
    assert [entry & 0xFFFFFFFF for entry in key_entries(5, rows, fields).tolist()] == [5]


@pytest.mark.parametrize(("kind", "code"), [("FLOAT", "<f"), ("DOUBLE", "<d")])
def test_zeros_have_one_hash_and_so_has_every_nan(kind: str, code: str) -> None:
    fields = fields_of([kind])
    (other_nan,) = struct.unpack(code, b"\1" + struct.pack(code, -math.nan)[1:])
    column = pa.array([0.0, -0.0, math.nan, other_nan], pa.float32() if kind == "FLOAT" else pa.float64())
    zero, minus, nan, other = hashes_of(pa.table({"k0": column}), fields).tolist()
    assert zero == minus and nan == other and zero != nan


def test_more_rows_than_an_index_numbers_are_refused() -> None:
    check_rows(MOST_ROWS)
    with pytest.raises(InvalidInputError, match=f"a lookup of {MOST_ROWS + 1} rows at once"):
        check_rows(MOST_ROWS + 1)

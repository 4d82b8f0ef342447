"""Entries of an index: for each row that has a key, the hash of the key and the row's number, in 64 bits.

The hash is the one of buckets (`lakelsm.format.row.bucket_hash`), of values in one form: of floats 0.0 for -0.0, and one
NaN, as keys are equal by their order (`lakelsm.merge.key_order`). Where a part of the key is NULL, the row has no key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.local.arrow_rows import one_bit_pattern
from lakelsm.lookup.store.piece_file import PieceWriter
from lakelsm.types import DataField

Entries = npt.NDArray[np.uint64]

ENTRIES = "entries"
#: Rows whose entries are one piece of a file.
BLOCK_ROWS = 1 << 20
#: An index has numbers of 32 bits.
MOST_ROWS = (1 << 32) - 1


class KeyEntries:
    """Writes the entries of one key of the rows that a file is given, as a section of another file."""

    def __init__(self, file: PieceWriter, fields: Sequence[DataField]) -> None:
        self.file = file
        self._fields = tuple(fields)

    def add(self, first_row: int, rows: pa.Table) -> None:
        """Write the entries of rows; ``first_row`` is the number of the first of them."""
        check_rows(first_row + len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            self.file.append(ENTRIES, key_entries(first_row + start, rows.slice(start, BLOCK_ROWS), self._fields))


def check_rows(rows: int) -> None:
    """Raise InvalidInputError where rows are more than an index can number."""
    if rows > MOST_ROWS:
        raise InvalidInputError(
            f"a lookup of {rows} rows at once: an index has {MOST_ROWS} at most. Look up in fewer partitions or "
            "buckets, or with 'lookup.cache' = 'partial'."
        )


def key_entries(first_row: int, rows: pa.Table, fields: Sequence[DataField]) -> Entries:
    """The entries of rows with a key of these columns."""
    entries = hashes_of(rows, fields).astype(np.uint64)
    entries <<= np.uint64(32)
    entries |= np.arange(first_row, first_row + len(rows), dtype=np.uint64)
    columns = [rows.column(field.name) for field in fields]
    for column in columns:
        if column.null_count:
            valid = np.logical_and.reduce([pc.is_valid(each).to_numpy() for each in columns])
            return entries[valid]
    return entries


def hashes_of(rows: pa.Table, fields: Sequence[DataField]) -> npt.NDArray[np.uint32]:
    """The hashes of keys of these columns."""
    columns = [one_bit_pattern(rows.column(field.name), zeros=False) for field in fields]
    return key_hashes(columns, [field.type for field in fields]).view(np.uint32)

"""Finds rows of files by key. Reads key columns only, and only row groups that can contain one of the keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import ValueRange
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.schema.table_schema import column_mapping
from lakelsm.types import DataField, same_layout

#: A file is decoded in batches of the memory divided by this number.
_BATCHES = 4


@dataclass(frozen=True)
class KeyLookup:
    """Finds the rows of files that have given keys. ``reader`` reads the key columns and no others."""

    reader: RunReader

    def positions(self, file: RunFile, keys: pa.Table) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the row indexes, ascending, of the rows of ``file`` that have one of the keys.

        ``keys`` are sorted and unique. The reader's columns are those of ``keys``, the first column of the key first.
        Rows that the deletion vector masks are found too. The file is not opened if its key range or bloom filters
        exclude all keys.
        """
        leading = _Leading(keys.column(0)) if _is_ranged(keys.column(0).type) else None
        if not self._may_hold(file, keys, leading):
            return
        source = self.reader.open_file(file, system=False)
        allowance = self.reader.memory_bytes // _BATCHES
        may_hold = None if leading is None else leading.may_hold
        for start, found_rows in source.batches(lambda: allowance, keys.column_names[0], may_hold):
            rows = found_rows.select(keys.column_names)  # A table may have another order of columns than its key.
            wanted = keys if leading is None else keys.slice(*leading.of_rows(rows.column(0)))
            if len(wanted):
                found = start + _rows_with_keys(rows, wanted)
                if len(found):
                    yield found

    def _may_hold(self, file: RunFile, keys: pa.Table, leading: _Leading | None) -> bool:
        """Return False if the file's key range or its bloom filters exclude all of the keys."""
        file_schema = self.reader.schemas[file.schema_id]
        if leading is not None and file.expected is not None:
            types = [field.type for field in file_schema.key_fields]
            bounds = decode_rows([file.expected.min_key, file.expected.max_key], types)[0]
            keys = keys.slice(*leading.of_rows(bounds))
        if file.index is None or not len(keys):
            return bool(len(keys))
        columns = {
            source.name: keys.column(column.name).combine_chunks()
            for column, source in column_mapping(file_schema, self.reader.schema)
            if column.name in keys.column_names and source is not None and _has_one_hash(column, source)
        }
        return not columns or file.index.read(self.reader.file_io.filesystem()).may_hold_keys(columns)


def _has_one_hash(column: DataField, source: DataField) -> bool:
    """Return whether equal keys have the same hash in the file; 0.0 and -0.0 have two."""
    return same_layout(column.type, source.type) and column.type.root not in ("FLOAT", "DOUBLE")


def _is_ranged(kind: pa.DataType) -> bool:
    """Return whether Python compares values of the type as keys are compared, and can represent all of them."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind))


class _Leading:
    """The first column of sorted keys, for binary search. Dates are days since 1970.

    NULL is the smallest value. The searched sequence has only the other values, so that Python never compares None.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._nulls = column.null_count
        self._values = _without_dates(column.slice(self._nulls))

    def may_hold(self, known: ValueRange) -> bool:
        """Return whether the first value of a key is within the range ``known`` of statistics, of rows without NULL."""
        low, high = (_days(value) if isinstance(value, date) else value for value in known)
        return bisect_left(self, low) < bisect_right(self, high)

    def of_rows(self, column: pa.Array | pa.ChunkedArray) -> tuple[int, int]:
        """Return the first index, and the number, of the keys whose first value is in the range of a sorted column."""
        values = _without_dates(column)
        low, high = values[0].as_py(), values[-1].as_py()
        first = 0 if low is None else self._nulls + bisect_left(self, low)
        stop = self._nulls + (0 if high is None else bisect_right(self, high))
        return first, stop - first

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Any:
        return self._values[index].as_py()


def _without_dates(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def _days(value: date) -> int:
    return value.toordinal() - date(1970, 1, 1).toordinal()


def _rows_with_keys(rows: pa.Table, keys: pa.Table) -> npt.NDArray[np.int64]:
    """Return the indexes of those rows that have one of the keys. ``rows`` and ``keys`` are sorted by key."""
    columns = zip(rows.columns, keys.columns)
    ordered = order_keys([pa.chunked_array([*own.chunks, *wanted.chunks]) for own, wanted in columns])
    own, wanted = ordered[: len(rows)], ordered[len(rows) :]
    positions = np.searchsorted(own, wanted)
    positions[positions == len(own)] = 0
    found: npt.NDArray[np.int64] = positions[own[positions] == wanted].astype(np.int64)
    return found

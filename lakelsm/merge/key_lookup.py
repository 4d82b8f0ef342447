"""Rows of files found by their keys: only key columns are read, of the row groups that can hold one of the keys."""

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

#: A file is decoded in batches of this share of the memory.
_BATCHES = 4


@dataclass(frozen=True)
class KeyLookup:
    """Finds the rows of files that have given keys. ``reader`` reads the key columns, and those alone."""

    reader: RunReader

    def positions(self, file: RunFile, keys: pa.Table) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the positions, ascending, of the rows of ``file`` whose key is among ``keys``: sorted and unique.

        The reader's columns are those of ``keys``, the key's first column first. A row that the file's deletion vector
        masks is found like any other. A file is not opened if its key range or bloom filters exclude all keys.
        """
        leading = _Leading(keys.column(0)) if _is_ranged(keys.column(0).type) else None
        if not self._may_hold(file, keys, leading):
            return
        source = self.reader.open_file(file, system=False)
        allowance = self.reader.memory_bytes // _BATCHES
        may_hold = None if leading is None else leading.may_hold
        for start, found_rows in source.batches(lambda: allowance, keys.column_names[0], may_hold):
            rows = found_rows.select(keys.column_names)  # A table may have them in another order than its key.
            wanted = keys if leading is None else keys.slice(*leading.of_rows(rows.column(0)))
            if len(wanted):
                found = start + _places(rows, wanted)
                if len(found):
                    yield found

    def _may_hold(self, file: RunFile, keys: pa.Table, leading: _Leading | None) -> bool:
        """False if the range of the file's keys, or its bloom filters, exclude all of the keys."""
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
    """Whether equal keys have one hash in the file: 0.0 and -0.0 have two."""
    return same_layout(column.type, source.type) and column.type.root not in ("FLOAT", "DOUBLE")


def _is_ranged(kind: pa.DataType) -> bool:
    """Whether Python compares values of the type as keys are compared, and has all of them."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind))


class _Leading:
    """The first column of sorted keys, whose values are searched; days since 1970 instead of dates.

    NULL is the least value. The sequence that is searched has the others only, so that Python compares no None.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._nulls = column.null_count
        self._values = _without_dates(column.slice(self._nulls))

    def may_hold(self, known: ValueRange) -> bool:
        """Whether a key's first value lies in the range that statistics have, of rows without NULL."""
        low, high = (_days(value) if isinstance(value, date) else value for value in known)
        return bisect_left(self, low) < bisect_right(self, high)

    def of_rows(self, column: pa.Array | pa.ChunkedArray) -> tuple[int, int]:
        """Where the keys whose first value lies in the range of a sorted column begin, and how many they are."""
        values = _without_dates(column)
        low, high = values[0].as_py(), values[-1].as_py()
        first = 0 if low is None else self._nulls + bisect_left(self, low)
        stop = self._nulls + (0 if high is None else bisect_right(self, high))
        return first, stop - first

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: int) -> Any:
        return self._values[place].as_py()


def _without_dates(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def _days(value: date) -> int:
    return value.toordinal() - date(1970, 1, 1).toordinal()


def _places(rows: pa.Table, keys: pa.Table) -> npt.NDArray[np.int64]:
    """The indexes of the rows, which are sorted by key as ``keys`` are, that have one of the keys."""
    columns = zip(rows.columns, keys.columns)
    ordered = order_keys([pa.chunked_array([*own.chunks, *wanted.chunks]) for own, wanted in columns])
    own, wanted = ordered[: len(rows)], ordered[len(rows) :]
    at = np.searchsorted(own, wanted)
    at[at == len(own)] = 0
    found: npt.NDArray[np.int64] = at[own[at] == wanted].astype(np.int64)
    return found

"""Decoded fields of manifest entries by path, checked for their types: numbers, bytes, texts and lists.

Rows are entry numbers. A missing field or one of another type is damage; the error names the manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.lanes import DecodedColumns, ListColumn, LongColumn, SliceColumn

Longs: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DecodedFields:
    """The decoded fields of manifests; ``source`` names these in errors."""

    decoded: DecodedColumns
    source: str

    def _column(self, path: str, kind: type[Any], required: bool) -> Any:
        column = self.decoded.columns.get(path)
        if column is None and not required:
            return None
        if not isinstance(column, kind) or (required and column.present is not None):
            raise CorruptTableError(f"{self.source} is not a manifest: field {path} is missing or wrong.")
        return column

    def longs(self, path: str) -> Longs:
        """Return the values of a field that every entry has."""
        values: Longs = self._column(path, LongColumn, required=True).values
        return values

    def longs_or_minus_one(self, path: str, rows: Longs) -> Longs:
        """Return the numbers of an optional field, -1 if missing."""
        column: LongColumn | None = self._column(path, LongColumn, required=False)
        if column is None:
            return np.full(len(rows), -1, np.int64)
        values = column.values[rows]
        return values if column.present is None else np.where(column.present[rows], values, -1)

    def binary(self, path: str, rows: Longs) -> pa.LargeBinaryArray:
        """Return the bytes of a field of the entries ``rows``, as one array."""
        return _gathered(self.decoded.data, self._column(path, SliceColumn, required=True), rows)

    def slices(self, path: str, rows: Longs) -> list[bytes]:
        """Return the bytes of a field of the entries ``rows``."""
        return _slices(self.decoded.data, self._column(path, SliceColumn, required=True), rows)

    def optional_numbers(self, path: str, rows: Longs) -> pa.Int64Array:
        """Return the numbers of an optional field, NULL if missing."""
        column: LongColumn | None = self._column(path, LongColumn, required=False)
        return pa.nulls(len(rows), pa.int64()) if column is None else _numbers(column, rows)

    def optional_text(self, path: str, rows: Longs) -> pa.LargeStringArray:
        """Return the texts of an optional field, NULL if missing."""
        column: SliceColumn | None = self._column(path, SliceColumn, required=False)
        if column is None:
            return pa.nulls(len(rows), pa.large_string())
        values = self._text(_gathered(self.decoded.data, column, rows))
        return values if column.present is None else pc.if_else(pa.array(column.present[rows]), values, None)

    def lists(self, path: str, rows: Longs, kind: pa.DataType) -> pa.LargeListArray:
        """Return the lists of an optional field, of numbers or texts."""
        column: ListColumn | None = self._column(path, ListColumn, required=False)
        if column is None:
            return pa.nulls(len(rows), pa.large_list(kind))
        inner, items = column.items, _items_of(column, rows)
        if isinstance(inner, LongColumn) != pa.types.is_integer(kind):
            raise CorruptTableError(f"{self.source} is not a manifest: field {path} is missing or wrong.")
        if isinstance(inner, LongColumn):
            values = _numbers(inner, items)
        else:
            values = self._text(_gathered(self.decoded.data, inner, items))
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(column.offsets[rows + 1] - column.offsets[rows], out=offsets[1:])
        absent = None if column.present is None else pa.array(~column.present[rows])
        return pa.LargeListArray.from_arrays(pa.array(offsets), values, mask=absent)

    def _text(self, values: pa.LargeBinaryArray) -> pa.LargeStringArray:
        try:
            return values.cast(pa.large_string())
        except pa.ArrowInvalid as error:
            raise CorruptTableError(f"{self.source} has a name that is not text: {error}") from error

    def optional_longs(self, path: str, rows: Longs) -> list[int | None]:
        """Return the numbers of an optional field, None if missing."""
        column: LongColumn | None = self._column(path, LongColumn, required=False)
        return [None] * len(rows) if column is None else _nullable_longs(column, rows)

    def optional_bytes(self, path: str, rows: Longs) -> Sequence[bytes | None]:
        """Return the bytes of an optional field, None if missing."""
        column: SliceColumn | None = self._column(path, SliceColumn, required=False)
        if column is None:
            return [None] * len(rows)
        if column.present is None:
            return _slices(self.decoded.data, column, rows)
        present = column.present[rows]
        if not present.any():
            return [None] * len(rows)
        values = zip(_slices(self.decoded.data, column, rows), present.tolist(), strict=True)
        return [value if there else None for value, there in values]

    def optional_texts(self, path: str, rows: Longs) -> list[str | None]:
        """Return the texts of an optional field, None if missing."""
        values = self.optional_bytes(path, rows)
        return [None if value is None else self.texts([value])[0] for value in values]

    def texts(self, values: Iterable[bytes]) -> list[str]:
        """Return bytes as text. Raises CorruptTableError for invalid text."""
        try:
            return [str(value, "utf-8") for value in values]
        except UnicodeDecodeError as error:
            raise CorruptTableError(f"{self.source} has a name that is not text: {error}") from error

    def long_tuples(self, path: str, rows: Longs) -> list[tuple[Any, ...] | None]:
        """Return the lists of numbers of an optional field."""
        column: ListColumn | None = self._column(path, ListColumn, required=False)
        if column is None or (column.present is not None and not column.present[rows].any()):
            return [None] * len(rows)
        if not isinstance(column.items, LongColumn):
            raise CorruptTableError(f"{self.source} is not a manifest: field {path} is missing or wrong.")
        return _tuples(column, rows, _nullable_longs(column.items, _items_of(column, rows)))

    def text_tuples(self, path: str, rows: Longs) -> list[tuple[Any, ...] | None]:
        """Return the lists of texts of an optional field; equal lists are one object."""
        column: ListColumn | None = self._column(path, ListColumn, required=False)
        if column is None or (column.present is not None and not column.present[rows].any()):
            return [None] * len(rows)
        if not isinstance(column.items, SliceColumn):
            raise CorruptTableError(f"{self.source} is not a manifest: field {path} is missing or wrong.")
        items = _slices(self.decoded.data, column.items, _items_of(column, rows))
        distinct = list(set(items))
        known = dict(zip(distinct, self.texts(distinct), strict=True))
        shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        tuples = _tuples(column, rows, [known[value] for value in items])
        return [None if names is None else shared.setdefault(names, names) for names in tuples]


def _slices(data: bytes, column: SliceColumn, rows: Longs) -> list[bytes]:
    starts = column.offsets[rows]
    ends = starts + column.lengths[rows]
    return [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _gathered(data: bytes, column: SliceColumn, rows: Longs) -> pa.LargeBinaryArray:
    """Return the values of ``rows`` as one array."""
    starts, lengths = column.offsets[rows], column.lengths[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    width = int(lengths[0]) if len(rows) else 0
    if width and (lengths == width).all():
        packed = np.ndarray((len(data) - width + 1,), f"V{width}", data, 0, (1,))[starts]
    else:
        packed = np.frombuffer(data, np.uint8)[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(packed))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(rows), buffers)


def _numbers(column: LongColumn, rows: Longs) -> pa.Int64Array:
    return pa.array(column.values[rows], mask=None if column.present is None else ~column.present[rows])


def _nullable_longs(column: LongColumn, rows: Longs) -> list[Any]:
    values: list[Any] = column.values[rows].tolist()
    if column.present is not None:
        for row in np.flatnonzero(~column.present[rows]).tolist():
            values[row] = None
    return values


def _items_of(column: ListColumn, rows: Longs) -> Longs:
    """Return the item numbers of the lists of ``rows``, in the order of the rows."""
    starts = column.offsets[rows]
    lengths = column.offsets[rows + 1] - starts
    shifts = starts - (np.cumsum(lengths) - lengths)
    numbers: Longs = np.arange(int(lengths.sum())) + np.repeat(shifts, lengths)
    return numbers


def _tuples(column: ListColumn, rows: Longs, items: list[Any]) -> list[tuple[Any, ...] | None]:
    """Cut ``items`` (those of ``rows``, in order) into one tuple a row; None where the array is null."""
    lengths = column.offsets[rows + 1] - column.offsets[rows]
    width = int(lengths[0]) if len(lengths) else 0
    result: list[Any]
    if not (lengths == width).all():
        ends = np.cumsum(lengths)
        result = [
            tuple(items[start:end])
            for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        ]
    elif width == 0:
        result = [()] * len(lengths)
    else:
        result = list(zip(*[iter(items)] * width, strict=True))
    if column.present is not None:
        for row in np.flatnonzero(~column.present[rows]).tolist():
            result[row] = None
    return result

"""Keys as one whole number each, whose order is that of keys: rows that come in it are found without an index.

A key of one column of numbers or times is what the column stores; a key of several, or of floats, booleans or decimals,
that fits eight bytes, has its number in a column of its own (`KEY_NUMBER`) beside the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.binary_row_slots import primitive_values
from lakelsm.merge.key_order import order_keys
from lakelsm.schema.system_columns import SYSTEM_FIELDS
from lakelsm.types import DataField, parse_type, to_arrow

Numbers = npt.NDArray[np.signedinteger[Any]]

#: The number of a row's key, where no column of the key has it.
KEY_NUMBER = DataField(SYSTEM_FIELDS[-1].id - 2, "_KEY_NUMBER", parse_type("BIGINT"))
_SIGN = np.uint64(1 << 63)


class KeyNumbers:
    """The numbers of keys of some columns. Made by `of`."""

    def __init__(self, key: Sequence[DataField], plain: bool) -> None:
        self._names = [field.name for field in key]
        self._kinds = [to_arrow(field.type) for field in key]
        self._is_plain = plain
        self._is_integer = plain and bool(pa.types.is_integer(self._kinds[0]))

    @staticmethod
    def of(key: Sequence[DataField]) -> KeyNumbers | None:
        """None where keys have no such numbers: those with text or bytes, and long ones."""
        kinds = [to_arrow(field.type) for field in key]
        if len(kinds) == 1 and _is_number(kinds[0]):
            return KeyNumbers(key, plain=True)
        if all(map(_has_fixed_width, kinds)) and order_keys([pa.nulls(0, kind) for kind in kinds]).dtype == np.uint64:
            return KeyNumbers(key, plain=False)
        return None

    @property
    def column(self) -> str:
        """The column that has the numbers."""
        return self._names[0] if self._is_plain else KEY_NUMBER.name

    @property
    def added(self) -> tuple[DataField, ...]:
        """The columns that rows need for it."""
        return () if self._is_plain else (KEY_NUMBER,)

    def added_to(self, rows: pa.Table) -> pa.Table:
        """Rows with that column; a key that has a NULL has no number."""
        if self._is_plain:
            return rows
        columns = [rows.column(name) for name in self._names]
        if any(column.null_count for column in columns):
            return rows.append_column(KEY_NUMBER.name, pa.nulls(len(rows), pa.int64()))
        return rows.append_column(KEY_NUMBER.name, pa.array(self._packed(columns)))

    def of_keys(self, keys: pa.Table) -> Numbers:
        """The numbers of keys without NULLs."""
        columns = [keys.column(name) for name in self._names]
        if not self._is_plain:
            return self._packed(columns)
        parts = [primitive_values(chunk) for chunk in columns[0].chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([primitive_values(pa.array([], self._kinds[0])), *parts])

    def of_key(self, key: Sequence[Any]) -> int:
        """The number of one key of Python values, as `pa.Array.to_pylist` has them."""
        if self._is_integer:
            return int(key[0])
        columns = [pa.array([value], kind) for value, kind in zip(key, self._kinds, strict=True)]
        return int((primitive_values(columns[0]) if self._is_plain else self._packed(columns))[0])

    def _packed(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        words: npt.NDArray[np.uint64] = order_keys(columns) ^ _SIGN
        return words.view(np.int64)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _has_fixed_width(kind: pa.DataType) -> bool:
    others = pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
    return _is_number(kind) or bool(others)

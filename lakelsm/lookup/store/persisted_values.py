"""What lookup files have for a key: a row of the layout's values, or what Paimon's own keep of a data file's row.

Facts: docs/format.md 20.5.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.binary_row_slots import Longs
from lakelsm.format.row.compacted_row import decode_compacted, encode_compacted
from lakelsm.format.row.row_bytes import (
    RowBytes,
    check_rows,
    load_numbers,
)
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.types import DataField, contiguous

_POSITION_BYTES, _SEQUENCE_BYTES, _KIND_BYTES = 8, 8, 1  # Persisted: do not change


class ValueForm(Protocol):
    """How the values of a lookup file lie in it."""

    def decode(self, values: RowBytes) -> pa.Table:
        """The columns of some values. Raises CorruptTableError for bytes that are none."""


@dataclass(frozen=True)
class CompactedValues:
    """Compacted rows of some fields."""

    fields: tuple[DataField, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.fields)

    def encode(self, rows: pa.Table) -> pa.BinaryArray:
        """The bytes of each row."""
        columns = [rows.column(field.name) for field in self.fields]
        return contiguous(encode_compacted(columns, [field.type for field in self.fields]))

    def decode(self, values: RowBytes) -> pa.Table:
        """As `ValueForm.decode`."""
        columns = decode_compacted(values, [field.type for field in self.fields])
        return pa.table(columns, names=self.columns)


class ValueProcessor(Enum):
    """What Paimon keeps of a data file's row, by its identifier in the name of a file. Persisted: do not change."""

    VALUE = "value"
    VALUE_AND_POSITION = "position-and-value"
    POSITION = "position"
    EMPTY = "empty"


@dataclass(frozen=True)
class ValueTails:
    """What lies behind the columns of rows. ``positions`` is None where the processor keeps none."""

    sequences: Longs
    _: KW_ONLY
    kinds: npt.NDArray[np.uint8]
    positions: Longs | None
    size: int


@dataclass(frozen=True)
class PersistedValues:
    """What a processor keeps of a data file's rows: all of their ``fields``, sequence number and kind, their position."""

    processor: ValueProcessor
    fields: tuple[DataField, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows are made of; none where the processor keeps no rows."""
        if self.processor not in (ValueProcessor.VALUE, ValueProcessor.VALUE_AND_POSITION):
            return ()
        position = (POSITION,) if self.processor is ValueProcessor.VALUE_AND_POSITION else ()
        return (*(field.name for field in self.fields), *position, SEQUENCE_NUMBER, VALUE_KIND)

    def decode(self, values: RowBytes) -> pa.Table:
        """As `ValueForm.decode`, of a processor that keeps rows."""
        tails = self.tails(values)
        rows = RowBytes(values.buffer, values.starts, values.lengths - tails.size)
        table = CompactedValues(self.fields).decode(rows)
        if tails.positions is not None:
            table = table.append_column(POSITION, pa.array(tails.positions))
        table = table.append_column(SEQUENCE_NUMBER, pa.array(tails.sequences))
        return table.append_column(VALUE_KIND, pa.array(tails.kinds.astype(np.int8)))

    def tails(self, values: RowBytes) -> ValueTails:
        """What lies behind the columns. Raises as `decode`."""
        ends = values.starts + values.lengths
        positioned = self.processor is ValueProcessor.VALUE_AND_POSITION
        size = _SEQUENCE_BYTES + _KIND_BYTES + (_POSITION_BYTES if positioned else 0)
        check_rows(values.lengths < size, "is shorter than its sequence number and kind")
        kinds = values.buffer[ends - _KIND_BYTES]
        check_rows(kinds >= len(ROW_KINDS), "has a kind that no row has")
        return ValueTails(
            load_numbers(values.buffer, ends - _SEQUENCE_BYTES - _KIND_BYTES, "<i8"),
            kinds=kinds,
            positions=load_numbers(values.buffer, ends - size, "<i8") if positioned else None,
            size=size,
        )

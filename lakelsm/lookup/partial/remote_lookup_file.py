"""Lookup files beside data files (`.lookup`), which Java writes in compactions: their choice, copies and stores.

Format: docs/format.md 20.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs as arrow_fs

from lakelsm.cancellation import raise_if_cancelled
from lakelsm.errors import CorruptStoreError, CorruptTableError, UnsupportedFeatureError
from lakelsm.format.data_file.file_check import ExpectedFile
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.format.row.binary_row_slots import Longs
from lakelsm.format.row.compacted_row import decode_compacted, require_compacted_type
from lakelsm.format.row.row_bytes import RowBytes, check_rows, load_numbers
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.lookup.store.sort_store import CompactedValues, SortStore
from lakelsm.lookup.store.store_file import new_file
from lakelsm.merge.key_order import order_keys
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, same_layout

_SUFFIX = ".lookup"  # Persisted: do not change
_POSITION_BYTES, _SEQUENCE_BYTES, _KIND_BYTES = 8, 8, 1  # Persisted: do not change
#: The version of the serialization of rows. Persisted: do not change
SERIALIZER_VERSION = "v1"
#: The false-positive rate of the bloom filter that is made when a file is opened.
_ERROR_RATE = 0.05
#: Bytes that are copied at a time.
_COPIED_BYTES = 4 << 20


class ValueProcessor(Enum):
    """The parts of a row that Paimon stores, by the processor's identifier in the file name. Persisted: do not change."""

    VALUE = "value"
    VALUE_AND_POSITION = "position-and-value"
    POSITION = "position"
    EMPTY = "empty"


@dataclass(frozen=True)
class ValueTails:
    """The bytes of rows after their columns. ``positions`` is None if the processor stores none."""

    sequences: Longs
    _: KW_ONLY
    kinds: npt.NDArray[np.uint8]
    positions: Longs | None
    size: int


@dataclass(frozen=True)
class PersistedValues:
    """The stored parts of a data file's rows: all ``fields``, sequence number, row kind, and the row index."""

    processor: ValueProcessor
    fields: tuple[DataField, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stored rows; empty if the processor stores no rows."""
        if self.processor not in (ValueProcessor.VALUE, ValueProcessor.VALUE_AND_POSITION):
            return ()
        position = (POSITION,) if self.processor is ValueProcessor.VALUE_AND_POSITION else ()
        return (*(field.name for field in self.fields), *position, SEQUENCE_NUMBER, VALUE_KIND)

    def decode(self, values: RowBytes) -> pa.Table:
        """Do the same as `ValueForm.decode`, for a processor that stores rows."""
        tails = self.tails(values)
        rows = RowBytes(values.buffer, values.starts, values.lengths - tails.size)
        table = CompactedValues(self.fields).decode(rows)
        if tails.positions is not None:
            table = table.append_column(POSITION, pa.array(tails.positions))
        table = table.append_column(SEQUENCE_NUMBER, pa.array(tails.sequences))
        return table.append_column(VALUE_KIND, pa.array(tails.kinds.astype(np.int8)))

    def tails(self, values: RowBytes) -> ValueTails:
        """Decode the bytes after the columns. Raises CorruptTableError for invalid bytes."""
        ends = values.starts + values.lengths
        positioned = self.processor is ValueProcessor.VALUE_AND_POSITION
        size = _SEQUENCE_BYTES + _KIND_BYTES + (_POSITION_BYTES if positioned else 0)
        check_rows(values.lengths < size, "is shorter than a sequence number and a row kind")
        kinds = values.buffer[ends - _KIND_BYTES]
        check_rows(kinds >= len(ROW_KINDS), "has an unknown row kind")
        return ValueTails(
            load_numbers(values.buffer, ends - _SEQUENCE_BYTES - _KIND_BYTES, "<i8"),
            kinds=kinds,
            positions=load_numbers(values.buffer, ends - size, "<i8") if positioned else None,
            size=size,
        )


@dataclass(frozen=True)
class RemoteLookupFile:
    """A lookup file in the directory of its data file."""

    name: str
    _: KW_ONLY
    bytes: int
    processor: ValueProcessor

    @classmethod
    def among(cls, data_file: str, extra_files: Sequence[str]) -> RemoteLookupFile | None:
        """Return the lookup file among the ``extra_files`` of a data file that lakelsm can read, or None."""
        known = {member.value: member for member in ValueProcessor}
        for name in extra_files:
            size, processor, version = _name_parts(data_file, name)
            if version == SERIALIZER_VERSION and processor in known and size.isascii() and size.isdecimal():
                return cls(name, bytes=int(size), processor=known[processor])
        return None

    def serves(self, layout: StoreLayout, written: TableSchema, schema: TableSchema) -> bool:
        """Return whether the file can answer lookups of a layout instead of its data file, of schema ``written``.

        It has the columns of the table's schema at its creation, but does not record this schema. So the columns of
        ``schema`` must be those of ``written``. Keys must not be floats: Java distinguishes their zeros and NaNs.
        """
        values = PersistedValues(self.processor, schema.fields)
        return (
            bool(layout.values)
            and {field.name for field in layout.values} <= {*values.columns}
            and [field.name for field in layout.keys] == [*schema.trimmed_primary_keys]
            and not any(field.type.root in ("FLOAT", "DOUBLE") for field in layout.keys)
            and written.trimmed_primary_keys == schema.trimmed_primary_keys
            and len(written.fields) == len(schema.fields)
            and all(
                (one.id, one.name) == (other.id, other.name) and same_layout(one.type, other.type)
                for one, other in zip(written.fields, schema.fields)
            )
            and all(map(_has_compacted_form, schema.fields))
        )

    def copy(self, filesystem: arrow_fs.FileSystem, source: str, path: Path) -> None:
        """Copy the file from ``source`` to a new local file, at most one byte more than its expected size.

        Raises CorruptStoreError if it cannot be read.
        """
        with new_file(path) as file:
            for piece in _pieces(filesystem, source, self.bytes + 1):
                file.write(piece)

    def store(
        self, reader: SortFileReader, layout: StoreLayout, schema: TableSchema, expected: ExpectedFile
    ) -> SortStore:
        """Return the store of an open copy, for a layout that the file `serves`. All of the copy is checked first.

        Raises CorruptStoreError, and closes the ``reader``, if the file is damaged, if lakelsm cannot read it, or if its
        rows are not those of the data file, which the manifest describes as ``expected``.
        """
        values = PersistedValues(self.processor, schema.fields)
        try:
            if reader.disk_bytes != self.bytes:
                raise CorruptStoreError(
                    f"{reader.path}: the lookup file has {reader.disk_bytes} bytes instead of {self.bytes}"
                )
            check = _RowCheck(layout, values, expected)
            reader.verify(expected.row_count, _ERROR_RATE, check.check)
            with reader.error_context("the end"):
                check.finish()
            return SortStore(reader, layout, values)
        except BaseException as error:
            reader.close()
            if isinstance(error, UnsupportedFeatureError):
                raise CorruptStoreError(f"lakelsm cannot read the lookup file: {error}") from error
            raise


class _RowCheck:
    """Checks that a file has the rows of its data file: ascending keys, and the ranges of the manifest.

    So a valid file of other rows is detected too.
    """

    def __init__(self, layout: StoreLayout, values: PersistedValues, expected: ExpectedFile) -> None:
        self._types = [field.type for field in layout.keys]
        self._values = values
        self._expected = expected
        bounds = decode_rows([expected.min_key, expected.max_key], self._types)
        self._first, self._end = ([column.slice(at, 1) for column in bounds] for at in (0, 1))
        self._last: list[pa.Array] | None = None
        self._count = 0
        self._sequences: list[int] = []

    def check(self, keys: RowBytes, values: RowBytes) -> None:
        """Check the next rows."""
        if not len(keys.starts):
            return
        columns = decode_compacted(keys, self._types)
        before = self._first if self._last is None else self._last
        ordered = order_keys([pa.concat_arrays([one, other]) for one, other in zip(before, columns)])
        below = ordered[1:] <= ordered[:-1]
        if self._last is None:
            below[0] = ordered[0] != ordered[1]
        check_rows(below, "has a key that the data file does not have there")
        tails = self._values.tails(values)
        if tails.positions is not None:
            count = np.arange(self._count, self._count + len(tails.positions))
            check_rows(tails.positions != count, "has another row index than in the data file")
        self._sequences += [int(tails.sequences.min()), int(tails.sequences.max())]
        self._count += len(keys.starts)
        self._last = [column.slice(len(column) - 1) for column in columns]

    def finish(self) -> None:
        """Check the end of the ranges, after the last rows."""
        if self._last is None:
            return
        ordered = order_keys([pa.concat_arrays([one, other]) for one, other in zip(self._last, self._end)])
        found = (min(self._sequences), max(self._sequences))
        wanted = (self._expected.min_sequence_number, self._expected.max_sequence_number)
        if ordered[0] != ordered[1] or found != wanted:
            raise CorruptTableError("its rows are not those of the data file")


def _pieces(filesystem: arrow_fs.FileSystem, source: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the first ``max_bytes`` bytes of a file, in pieces."""
    try:
        with filesystem.open_input_file(source) as stored:
            while max_bytes:
                raise_if_cancelled()
                piece = stored.read(min(max_bytes, _COPIED_BYTES))
                if not piece:
                    return
                yield piece
                max_bytes -= len(piece)
    except OSError as error:
        raise CorruptStoreError(f"Lookup file {source} cannot be read: {error}.") from error


def _name_parts(data_file: str, name: str) -> tuple[str, str, str]:
    """Return size, processor and version from the name of a lookup file; empty texts for any other name."""
    if name.startswith(f"{data_file}.") and name.endswith(_SUFFIX):
        parts = name[len(data_file) + 1 : -len(_SUFFIX)].split(".")
        if len(parts) == 3:
            return parts[0], parts[1], parts[2]
    return "", "", ""


def _has_compacted_form(field: DataField) -> bool:
    try:
        require_compacted_type(field.name, field.type)
    except UnsupportedFeatureError:
        return False
    return True

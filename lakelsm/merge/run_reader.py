"""Reads sorted runs from their files inside a task, in batches within a memory limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.fs import LocalFileSystem
from pyroaring import BitMap

from lakelsm.format.data_file.decode_steps import batch_bytes
from lakelsm.format.data_file.file_check import FileCheck
from lakelsm.format.data_file.key_value_file import KeyValueReader, ValueRange
from lakelsm.format.data_file.vector_location import positions_within, read_vectors
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_unit import Key, MergeUnit, RunFile
from lakelsm.schema.system_columns import FILE_NUMBER, POSITION
from lakelsm.schema.table_schema import TableSchema, column_mapping
from lakelsm.schema.type_widening import check_readable
from lakelsm.storage import FileIO
from lakelsm.types import to_arrow

_MAX_READ_AHEAD = 1 << 18
_MIN_READ_AHEAD = 1 << 13
#: Maximum bytes of a batch. The arrays of larger batches exceed the processor's caches, and the allocator returns
#: them to the system, which costs a sixth of a merge.
_MAX_BATCH = 12 << 20
#: A merge holds a batch of each run, their concatenation, the keys and the merged rows: about this number of copies.
_COPIES = 5


@dataclass(frozen=True)
class RunReader:
    """Opens the runs of a unit as the tables that the kernel merges. Pickled into tasks.

    ``schemas`` has every schema that a file may name. Rows have the columns of ``schema``, restricted to ``columns``,
    which include the key. ``memory_bytes`` limits the memory of a merge of the unit. Rows that a deletion vector masks
    are left out; the other rows keep their positions.
    """

    file_io: FileIO
    schema: TableSchema
    _: KW_ONLY
    schemas: Mapping[int, TableSchema]
    columns: tuple[str, ...]
    memory_bytes: int

    def open_runs(self, unit: MergeUnit, positions: bool = False, system: bool = True) -> list[Iterator[pa.Table]]:
        """Return one iterator for each of ``unit.all_runs``.

        With ``positions`` rows have `FILE_NUMBER` and `POSITION`, with ``system`` the system columns of files.
        """
        shares = _Shares([max(file.row_count for file in run) for run in unit.all_runs], self.memory_bytes // _COPIES)
        masked = {file: (file.vector, file.row_count) for file in unit.files if file.vector is not None}
        masks = dict(zip(masked, read_vectors(self.file_io.filesystem(), masked.values())))
        checks = self._checks(unit.files)
        runs: list[Iterator[pa.Table]] = []
        first = 0
        for number, run in enumerate(unit.all_runs):
            reach = unit.reach if number < len(unit.looked_up) else None
            runs.append(self._read_run(unit, number, first if positions else None, shares, reach, masks, checks, system))
            first += len(run)
        return runs

    def _read_run(
        self,
        unit: MergeUnit,
        number: int,
        first: int | None,
        shares: _Shares,
        reach: tuple[Key, Key] | None,
        masks: Mapping[RunFile, BitMap],
        checks: Mapping[RunFile, FileCheck],
        system: bool,
    ) -> Iterator[pa.Table]:
        bounds = _Bounds.of(unit, self.schema)
        leading = self.schema.trimmed_primary_keys[0]
        low = None if unit.lower is None else unit.lower[0]
        high = None if unit.upper is None else unit.upper[0]
        if reach is not None:
            low, high = reach[0][0], reach[1][0]
        may_hold = partial(_overlaps, low, high)
        for index, file in enumerate(unit.all_runs[number]):
            reader = self._opened(file, checks.get(file), len(unit.all_runs), system)
            masked = masks.get(file)
            for start, table in reader.batches(shares.bytes, leading, may_hold):
                shares.measured(number, table)
                if first is not None:
                    table = _located(table, first + index, start)
                if masked:
                    table = _unmasked(table, start, masked)
                yield table if bounds is None else bounds.cut(table)
                del table  # Free it before the next one is read.

    def open_file(self, file: RunFile, system: bool = True) -> KeyValueReader:
        """Return a reader of all rows of a file, masked rows included; with ``system`` also of its system columns."""
        return self._opened(file, self._checks([file]).get(file), 1, system)

    def _checks(self, files: Sequence[RunFile]) -> dict[RunFile, FileCheck]:
        """Return the checks that refuse a wrong file. One call for all files costs little more than one for one file."""
        checks: dict[RunFile, FileCheck] = {}
        for schema_id in {file.schema_id for file in files}:
            expected = {file: file.expected for file in files if file.schema_id == schema_id and file.expected}
            checks.update(zip(expected, FileCheck.of([*expected.values()], self.schemas[schema_id]), strict=True))
        return checks

    def _opened(self, file: RunFile, check: FileCheck | None, runs: int, system: bool) -> KeyValueReader:
        file_schema = self.schemas[file.schema_id]
        mapping = column_mapping(file_schema, self.schema)
        wanted = [(column, source) for column, source in mapping if column.name in self.columns]
        for column, source in wanted:
            if source is not None:
                check_readable(column, source)
        ahead = self.memory_bytes // (4 * runs * (len(wanted) + 2))
        return KeyValueReader(
            LocalFileSystem() if file.local else self.file_io.filesystem(),
            file.path,
            wanted,
            read_ahead=max(_MIN_READ_AHEAD, min(_MAX_READ_AHEAD, ahead)),
            check=check,
            system=system,
        )


def _overlaps(low: Any, high: Any, known: ValueRange) -> bool:
    """Return whether the range ``known`` contains a value from ``low`` to ``high`` (None: no bound)."""
    return (high is None or known[0] <= high) and (low is None or known[1] >= low)


class _Shares:
    """The bytes that a batch of each run may have: equal shares, and large runs also get what small runs do not need."""

    def __init__(self, rows: Sequence[int], total: int) -> None:
        """``rows`` has the row count of each run's largest file. No batch has rows of two files."""
        self._rows = rows
        self._total = total
        self._widths = [0.0] * len(rows)
        self._needs = [inf] * len(rows)

    def measured(self, run: int, batch: pa.Table) -> None:
        """Record the width of a batch's rows."""
        self._widths[run] = max(self._widths[run], batch_bytes(batch) / len(batch))
        self._needs[run] = self._rows[run] * self._widths[run]

    def bytes(self) -> int:
        """Return the bytes for a batch of a run that can use its full share."""
        left, share = float(self._total), 0.0
        for fewer, need in enumerate(sorted(self._needs)):
            share = left / (len(self._needs) - fewer)
            if need > share:
                break
            left -= need
        return max(min(int(share), _MAX_BATCH), 1)


@dataclass(frozen=True)
class _Bounds:
    """The key range of a unit, as rows that can be compared with the rows of its files."""

    names: tuple[str, ...]
    rows: tuple[pa.Array, ...]
    has_lower: bool
    has_upper: bool

    @staticmethod
    def of(unit: MergeUnit, schema: TableSchema) -> _Bounds | None:
        keys = [key for key in (unit.lower, unit.upper) if key is not None]
        if not keys:
            return None
        names = schema.trimmed_primary_keys
        rows = tuple(
            pa.array([key[index] for key in keys], to_arrow(schema.field(name).type)) for index, name in enumerate(names)
        )
        return _Bounds(names, rows, unit.lower is not None, unit.upper is not None)

    def cut(self, table: pa.Table) -> pa.Table:
        """Return the rows of a sorted table that are in the range."""
        columns = [pa.chunked_array([*table.column(name).chunks, bound]) for name, bound in zip(self.names, self.rows)]
        keys = order_keys(columns)
        own, bounds = keys[: len(table)], keys[len(table) :]
        start = int(np.searchsorted(own, bounds[0], side="left")) if self.has_lower else 0
        stop = int(np.searchsorted(own, bounds[-1], side="left")) if self.has_upper else len(table)
        return table.slice(start, max(stop - start, 0))


def _unmasked(table: pa.Table, start: int, masked: BitMap) -> pa.Table:
    """Return the rows of a table that are not masked. ``start`` is the position of its first row in the file."""
    positions = positions_within(masked, start, start + len(table))
    if not len(positions):
        return table
    shown = np.ones(len(table), dtype=bool)
    shown[positions - start] = False
    return table.filter(pa.array(shown))


def _located(table: pa.Table, file: int, start: int) -> pa.Table:
    files = pa.array(np.full(len(table), file, dtype=np.int32))
    positions = pa.array(np.arange(start, start + len(table)))
    return table.append_column(FILE_NUMBER, files).append_column(POSITION, positions)

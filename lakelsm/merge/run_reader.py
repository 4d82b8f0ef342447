"""Sorted runs read from their files inside a task, in batches that keep to a memory bound."""

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
#: Bytes of a batch, however ample memory is: the arrays of longer ones leave the processor's caches, and the allocator
#: gives them back to the system, which costs a sixth of a merge.
_MAX_BATCH = 12 << 20
#: Merging holds a batch of each run, their concatenation, the keys and the merged rows: about so many copies.
_COPIES = 5


@dataclass(frozen=True)
class RunReader:
    """Opens the runs of a unit as the tables that the kernel merges. Pickled into tasks.

    ``schemas`` has every schema that a file may name; rows come as ``schema`` has them, restricted to ``columns``, which
    include the key. ``memory_bytes`` bounds what a merge of the unit holds. Rows that a file's deletion vector masks are
    left out; the others keep their positions.
    """

    file_io: FileIO
    schema: TableSchema
    _: KW_ONLY
    schemas: Mapping[int, TableSchema]
    columns: tuple[str, ...]
    memory_bytes: int

    def open_runs(self, unit: MergeUnit, positions: bool = False, system: bool = True) -> list[Iterator[pa.Table]]:
        """One iterator for each of ``unit.every_run``.

        ``positions``: rows carry `FILE_NUMBER` and `POSITION`; ``system``: and the system columns of files.
        """
        shares = _Shares([max(file.row_count for file in run) for run in unit.every_run], self.memory_bytes // _COPIES)
        masked = {file: (file.vector, file.row_count) for file in unit.files if file.vector is not None}
        masks = dict(zip(masked, read_vectors(self.file_io.filesystem(), masked.values())))
        checks = self._checks(unit.files)
        runs: list[Iterator[pa.Table]] = []
        first = 0
        for number, run in enumerate(unit.every_run):
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
        for place, file in enumerate(unit.every_run[number]):
            reader = self._opened(file, checks.get(file), len(unit.every_run), system)
            masked = masks.get(file)
            for start, table in reader.batches(shares.bytes, leading, may_hold):
                shares.measured(number, table)
                if first is not None:
                    table = _located(table, first + place, start)
                if masked:
                    table = _unmasked(table, start, masked)
                yield table if bounds is None else bounds.cut(table)
                del table  # Not held while the next one is read.

    def open_file(self, file: RunFile, system: bool = True) -> KeyValueReader:
        """A reader of all rows of one file, masked ones too; ``system``: as it has it."""
        return self._opened(file, self._checks([file]).get(file), 1, system)

    def _checks(self, files: Sequence[RunFile]) -> dict[RunFile, FileCheck]:
        """What refuses each file that is not the expected one; worked out at once, as one file costs nearly as much."""
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
    """Whether a range of values can hold one from ``low`` to ``high`` (None: open)."""
    return (high is None or known[0] <= high) and (low is None or known[1] >= low)


class _Shares:
    """The bytes that a batch of each run may have: equal shares, and for large runs what small ones do not need."""

    def __init__(self, rows: Sequence[int], total: int) -> None:
        """``rows`` are those of each run's largest file; no batch has rows of two."""
        self._rows = rows
        self._total = total
        self._widths = [0.0] * len(rows)
        self._needs = [inf] * len(rows)

    def measured(self, run: int, batch: pa.Table) -> None:
        """Take the width of a batch's rows into account."""
        self._widths[run] = max(self._widths[run], batch_bytes(batch) / len(batch))
        self._needs[run] = self._rows[run] * self._widths[run]

    def bytes(self) -> int:
        """The share of a run that fills it."""
        left, share = float(self._total), 0.0
        for fewer, need in enumerate(sorted(self._needs)):
            share = left / (len(self._needs) - fewer)
            if need > share:
                break
            left -= need
        return max(min(int(share), _MAX_BATCH), 1)


@dataclass(frozen=True)
class _Bounds:
    """The key range of a unit, as rows that compare with those of its files."""

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
            pa.array([key[at] for key in keys], to_arrow(schema.field(name).type)) for at, name in enumerate(names)
        )
        return _Bounds(names, rows, unit.lower is not None, unit.upper is not None)

    def cut(self, table: pa.Table) -> pa.Table:
        """The rows of a sorted table that lie in the range."""
        columns = [pa.chunked_array([*table.column(name).chunks, bound]) for name, bound in zip(self.names, self.rows)]
        keys = order_keys(columns)
        own, bounds = keys[: len(table)], keys[len(table) :]
        start = int(np.searchsorted(own, bounds[0], side="left")) if self.has_lower else 0
        stop = int(np.searchsorted(own, bounds[-1], side="left")) if self.has_upper else len(table)
        return table.slice(start, max(stop - start, 0))


def _unmasked(table: pa.Table, start: int, masked: BitMap) -> pa.Table:
    """The rows of a table, whose first is at position ``start`` of its file, that are not masked."""
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

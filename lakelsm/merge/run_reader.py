"""Sorted runs read from their files inside a task, in batches that keep to a memory bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from lakelsm.format.decode_steps import batch_bytes
from lakelsm.format.file_check import ExpectedFile, FileCheck
from lakelsm.format.key_value_file import KeyValueReader
from lakelsm.merge.key_order import order_keys
from lakelsm.schema import TableSchema
from lakelsm.schema_evolution import column_mapping
from lakelsm.storage import FileIO
from lakelsm.types import to_arrow

#: Columns that tell where a row came from: the file's number within the unit, and the row's place in the file.
FILE_COLUMN = "_KEY__FILE"
POSITION_COLUMN = "_KEY__POSITION"

#: What a byte costs that is read to look keys up, beside one that is merged and written again.
LOOK_UP_COST = 0.25

_MAX_READ_AHEAD = 1 << 18
_MIN_READ_AHEAD = 1 << 13
#: Merging holds a batch of each run, their concatenation, the keys and the merged rows: about so many copies.
_COPIES = 5

#: Values of the trimmed primary key, in its order.
Key = tuple[object, ...]


@dataclass(frozen=True)
class RunFile:
    """One data file of a run. ``path`` is as the file system has it; ``local``: a scratch file of this machine.

    ``expected`` is what the manifest entry says of it (None: a scratch file, which has none).
    """

    path: str
    schema_id: int
    row_count: int
    file_size: int
    local: bool = False
    level: int = 0
    expected: ExpectedFile | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class MergeUnit:
    """Files whose rows are merged together: ``runs`` oldest first, the files of each in key order.

    Only rows with ``lower`` <= key < ``upper`` belong to the unit (None: no bound). ``looked_up`` are runs below the
    output of a compaction: they stay as they are, and the merge looks there for keys of the unit, which all lie in
    ``reach`` (both inclusive).
    """

    runs: tuple[tuple[RunFile, ...], ...]
    lower: Key | None = None
    upper: Key | None = None
    looked_up: tuple[tuple[RunFile, ...], ...] = ()
    reach: tuple[Key, Key] | None = None

    @property
    def every_run(self) -> tuple[tuple[RunFile, ...], ...]:
        """The runs, after those that are looked up."""
        return (*self.looked_up, *self.runs)

    @cached_property
    def files(self) -> tuple[RunFile, ...]:
        """The files of `every_run`; a row's `FILE_COLUMN` is the place here."""
        return tuple(file for run in self.every_run for file in run)

    @cached_property
    def levels(self) -> npt.NDArray[np.int64]:
        """The level of each of the ``files``."""
        return np.array([file.level for file in self.files], dtype=np.int64)

    @property
    def cost(self) -> int:
        """Bytes of the files of the runs, and a share of those that are looked up."""
        looked_up = sum(file.file_size for run in self.looked_up for file in run)
        return sum(file.file_size for run in self.runs for file in run) + int(looked_up * LOOK_UP_COST)


@dataclass(frozen=True)
class RunReader:
    """Opens the runs of a unit as the tables that the kernel merges. Pickled into tasks.

    ``schemas`` has every schema that a file may name; rows come as ``schema`` has them, restricted to ``columns``, which
    include the key. ``memory_bytes`` bounds what a merge of the unit holds.
    """

    file_io: FileIO
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    columns: tuple[str, ...]
    memory_bytes: int

    def open_runs(self, unit: MergeUnit, positions: bool = False) -> list[Iterator[pa.Table]]:
        """One iterator for each of ``unit.every_run``; ``positions``: rows carry `FILE_COLUMN` and `POSITION_COLUMN`."""
        shares = _Shares([max(file.row_count for file in run) for run in unit.every_run], self.memory_bytes // _COPIES)
        runs: list[Iterator[pa.Table]] = []
        first = 0
        for number, run in enumerate(unit.every_run):
            reach = unit.reach if number < len(unit.looked_up) else None
            runs.append(self._read_run(unit, number, first if positions else None, shares, reach))
            first += len(run)
        return runs

    def _read_run(
        self, unit: MergeUnit, number: int, first: int | None, shares: _Shares, reach: tuple[Key, Key] | None
    ) -> Iterator[pa.Table]:
        bounds = _Bounds.of(unit, self.schema)
        leading = self.schema.trimmed_primary_keys[0]
        low = None if unit.lower is None else unit.lower[0]
        high = None if unit.upper is None else unit.upper[0]
        if reach is not None:
            low, high = reach[0][0], reach[1][0]
        for place, file in enumerate(unit.every_run[number]):
            reader = self._reader(file, len(unit.every_run))
            for start, table in reader.batches(shares.bytes, leading, low, high):
                shares.measured(number, table)
                if first is not None:
                    table = _located(table, first + place, start)
                yield table if bounds is None else bounds.cut(table)
                del table  # Not held while the next one is read.

    def _reader(self, file: RunFile, runs: int) -> KeyValueReader:
        file_schema = self.schemas[file.schema_id]
        mapping = column_mapping(file_schema, self.schema)
        wanted = [(column, source) for column, source in mapping if column.name in self.columns]
        ahead = self.memory_bytes // (4 * runs * (len(wanted) + 2))
        return KeyValueReader(
            LocalFileSystem() if file.local else self.file_io.filesystem(),
            file.path,
            wanted,
            max(_MIN_READ_AHEAD, min(_MAX_READ_AHEAD, ahead)),
            None if file.expected is None else FileCheck.of([file.expected], file_schema)[0],
        )


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
        return max(int(share), 1)


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


def _located(table: pa.Table, file: int, start: int) -> pa.Table:
    files = pa.array(np.full(len(table), file, dtype=np.int32))
    positions = pa.array(np.arange(start, start + len(table)))
    return table.append_column(FILE_COLUMN, files).append_column(POSITION_COLUMN, positions)

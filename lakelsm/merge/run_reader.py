"""Sorted runs read from their files inside a task, in batches that keep to a memory bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from lakelsm.format.key_value_file import KeyValueReader
from lakelsm.schema import TableSchema
from lakelsm.schema_evolution import column_mapping
from lakelsm.storage import FileIO

#: Columns that tell where a row came from: the file's number within the unit, and the row's place in the file.
FILE_COLUMN = "_KEY__FILE"
POSITION_COLUMN = "_KEY__POSITION"

_MIN_BATCH_ROWS = 1024
_MAX_BATCH_ROWS = 1 << 19
#: Merging holds a batch of each run, their concatenation, the keys and the merged rows: about so many copies.
_COPIES = 5


@dataclass(frozen=True)
class RunFile:
    """One data file of a run. ``path`` is as the file system has it."""

    path: str
    schema_id: int
    row_count: int
    file_size: int


@dataclass(frozen=True)
class MergeUnit:
    """Files whose rows are merged together: ``runs`` oldest first, the files of each in key order."""

    runs: tuple[tuple[RunFile, ...], ...]

    @cached_property
    def files(self) -> tuple[RunFile, ...]:
        """All files; a row's `FILE_COLUMN` is the place here."""
        return tuple(file for run in self.runs for file in run)


@dataclass(frozen=True)
class RunReader:
    """Opens the runs of a unit as the tables that the kernel merges. Pickled into tasks.

    ``schemas`` has every schema that a file may name; rows come as ``schema`` has them, restricted to ``columns``.
    ``memory_bytes`` bounds what a merge of the unit holds.
    """

    file_io: FileIO
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    columns: tuple[str, ...]
    memory_bytes: int

    def open_runs(self, unit: MergeUnit, positions: bool = False) -> list[Iterator[pa.Table]]:
        """One iterator a run; with ``positions`` each row carries `FILE_COLUMN` and `POSITION_COLUMN`."""
        rows = self._batch_rows(unit)
        runs: list[Iterator[pa.Table]] = []
        first = 0
        for run in unit.runs:
            runs.append(self._read_run(run, first if positions else None, rows))
            first += len(run)
        return runs

    def _read_run(self, run: Sequence[RunFile], first: int | None, batch_rows: int) -> Iterator[pa.Table]:
        for number, file in enumerate(run):
            start = 0
            for table in self._reader(file).batches(batch_rows):
                if first is not None:
                    table = _located(table, first + number, start)
                start += len(table)
                yield table

    def _reader(self, file: RunFile) -> KeyValueReader:
        mapping = column_mapping(self.schemas[file.schema_id], self.schema)
        wanted = [(column, source) for column, source in mapping if column.name in self.columns]
        return KeyValueReader(self.file_io.filesystem(), file.path, wanted)

    def _batch_rows(self, unit: MergeUnit) -> int:
        """Rows of a batch, from the widest rows among the runs' first files."""
        width = max(self._reader(run[0]).bytes_per_row for run in unit.runs) + 16
        rows = int(self.memory_bytes / (_COPIES * len(unit.runs) * width))
        return max(_MIN_BATCH_ROWS, min(_MAX_BATCH_ROWS, rows))


def _located(table: pa.Table, file: int, start: int) -> pa.Table:
    files = pa.array(np.full(len(table), file, dtype=np.int32))
    positions = pa.array(np.arange(start, start + len(table)))
    return table.append_column(FILE_COLUMN, files).append_column(POSITION_COLUMN, positions)

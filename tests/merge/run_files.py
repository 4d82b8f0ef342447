"""Data files of runs for tests of merging: written with the product's writer, described for its reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from lakelsm.format.data_file.key_value_file import FileLayout, KeyValueReader, row_schema
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.file_names import FileNames
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage import LocalFileIO
from tests.nano_times import column_of

IO = LocalFileIO()

#: (sequence number, kind, values by column)
Row = tuple[int, int, Mapping[str, Any]]


def layout_of(schema: TableSchema, **changes: Any) -> FileLayout:
    return replace(FileLayout.of(schema, TableOptions.parse(schema.options)), **changes)


def rows_table(schema: TableSchema, rows: Sequence[Row]) -> pa.Table:
    """Return rows as the writer expects them; columns that a row leaves out are NULL."""
    arrow = row_schema(schema.fields)
    columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.int8())]
    columns += [column_of([row[2].get(field.name) for row in rows], field.type) for field in list(arrow)[2:]]
    return pa.Table.from_arrays(columns, schema=arrow)


def write_files(
    directory: Path, layout: FileLayout, batches: Iterable[pa.Table], level: int = 0, file_source: int = 0
) -> list[DataFileMeta]:
    writer = RollingWriter(
        IO.filesystem(), str(directory), FileNames(str(uuid4())), layout, level=level, file_source=file_source
    )
    for batch in batches:
        writer.write(batch)
    return writer.close()


def write_run(
    directory: Path, schema: TableSchema, rows: Sequence[Row], files: int = 1, group_rows: int | None = None
) -> tuple[RunFile, ...]:
    """Write one run of about ``files`` files with row groups of ``group_rows`` rows."""
    step = max(1, -(-len(rows) // files))
    run: list[RunFile] = []
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        size = group_rows or len(part)
        layout = layout_of(schema, row_group_bytes=1, target_file_size=1 << 40)
        batches = [rows_table(schema, part[at : at + size]) for at in range(0, len(part), size)]
        run += [as_run_file(directory, schema, meta) for meta in write_files(directory, layout, batches)]
    return tuple(run)


def as_run_file(directory: Path, schema: TableSchema, meta: DataFileMeta) -> RunFile:
    return RunFile(
        f"{directory}/{meta.file_name}", schema_id=schema.id, row_count=meta.row_count, file_size=meta.file_size
    )


def reader_of(
    schema: TableSchema,
    columns: Sequence[str] | None = None,
    older: Sequence[TableSchema] = (),
    memory_bytes: int = 64 << 20,
) -> RunReader:
    names = tuple(columns or schema.field_names)
    return RunReader(
        IO, schema, schemas={one.id: one for one in (*older, schema)}, columns=names, memory_bytes=memory_bytes
    )


def decoded_groups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Records (row group, columns) of each row group that is decoded."""
    found: list[tuple[int, int]] = []
    gathered = KeyValueReader._gathered

    def noted(self: KeyValueReader, group: int, *more: Any) -> Any:
        found.append((group, len(self._mapping)))
        return gathered(self, group, *more)

    monkeypatch.setattr(KeyValueReader, "_gathered", noted)
    return found


def read_unit(reader: RunReader, unit: MergeUnit, positions: bool = False) -> list[list[dict[str, Any]]]:
    """The rows of each run."""
    return [[row for table in run for row in table.to_pylist()] for run in reader.open_runs(unit, positions=positions)]

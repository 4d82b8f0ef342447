"""Which files with nanoseconds are left to tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.merge.merge_unit import RunFile
from lakelsm.read.nanosecond_files import nanosecond_files
from lakelsm.schema.changes import DropColumn
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.storage import LocalFileIO
from tests.merge.run_files import write_run

NESTED = "k INT, a ARRAY<TIMESTAMP(9)>, t TIMESTAMP(6)"


def left(file: RunFile, schema: TableSchema, now: TableSchema | None = None) -> bool:
    return nanosecond_files(LocalFileIO(), now or schema, {schema.id: schema}, [file]) == {file.path}


def foreign(directory: Path, kind: pa.DataType, int96: bool = False) -> RunFile:
    table = pa.table({"k": pa.array([1], pa.int32()), "a": pa.array([[1]], pa.list_(kind))})
    path = directory / "foreign.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96)
    return RunFile(str(path), schema_id=0, row_count=1, file_size=path.stat().st_size)


@pytest.mark.parametrize("columns", [NESTED, "k INT, t TIMESTAMP(9)", "k INT, t TIMESTAMP(6)"])
def test_files_of_lakelsm_are_scanned(tmp_path: Path, columns: str) -> None:
    schema = create_schema(columns, ["k"], (), {"bucket": "1"})
    (file,) = write_run(tmp_path, schema, [(0, 0, {"k": 1})])
    assert not left(file, schema)


def test_files_of_others_with_int96_or_64_bit_nanoseconds_are_left_nested_too(tmp_path: Path) -> None:
    schema = create_schema(NESTED, ["k"], (), {"bucket": "1"})
    assert left(foreign(tmp_path, pa.timestamp("ns"), int96=True), schema)
    assert left(foreign(tmp_path, pa.timestamp("ns")), schema)
    assert not left(foreign(tmp_path, pa.timestamp("us")), schema)


def test_only_wanted_columns_count(tmp_path: Path) -> None:
    schema = create_schema(NESTED, ["k"], (), {"bucket": "1"})
    file = foreign(tmp_path, pa.timestamp("ns"))
    assert not left(file, schema, apply_changes(schema, [DropColumn("a")], 0))

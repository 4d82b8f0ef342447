"""Files that Spark's own scan reads wrongly, and the task that reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.frames.task_scan import nanosecond_files, split_by_reader
from lakelsm.merge.merge_unit import RunFile
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema_changes import DropColumn
from lakelsm.storage import LocalFileIO
from tests.merge.run_files import write_run


@pytest.mark.parametrize(
    ("name", "scanned"),
    [
        ("data-1f-0.parquet", True),
        ("a+b=c~d,e@f-0.parquet", True),
        ("_data-0.parquet", False),
        (".data-0.parquet", False),
        ("my data-0.parquet", False),
        ("50%-0.parquet", False),
        ("a#b?c-0.parquet", False),
        ("dé-0.parquet", False),
        ("a\u2028b-0.parquet", False),
    ],
)
def test_spark_scans_files_whose_names_it_lists_and_shows_unchanged(name: str, scanned: bool) -> None:
    file = RunFile(f"/_wh/.db/t/_dt=1/bucket-0/{name}", schema_id=0, row_count=1, file_size=1)
    assert split_by_reader([file], {0: create_schema("id INT", ["id"])}) == (([file], []) if scanned else ([], [file]))


@pytest.mark.parametrize(
    ("columns", "scanned"),
    [
        ("id INT, v ROW<_metadata INT>", True),
        ("id INT, _Metadata INT", False),
        ("id INT, _tmp_metadata_row_index INT", False),
        ("id INT, _value_kind INT", False),
        ("id INT, _key_id INT", False),
        ("id INT, v INT, V INT", False),
        ("id INT, v MAP<INT, ARRAY<ROW<a INT, A INT>>>", False),
    ],
)
def test_spark_scans_files_whose_column_names_differ_in_more_than_case(columns: str, scanned: bool) -> None:
    file = RunFile("/wh/data-0.parquet", schema_id=0, row_count=1, file_size=1)
    assert split_by_reader([file], {0: create_schema(columns, ["id"])}) == (([file], []) if scanned else ([], [file]))


def test_each_file_is_checked_by_its_schema_and_content() -> None:
    schemas = {0: create_schema("id INT", ["id"]), 1: create_schema("id INT, _metadata INT", ["id"])}
    plain, taken, held = (
        RunFile(f"/t/{name}", schema_id=schema_id, row_count=1, file_size=1)
        for name, schema_id in (("a", 0), ("b", 1), ("c", 0))
    )
    assert split_by_reader([plain, taken, held], schemas, {held.path}) == ([plain], [taken, held])
    assert split_by_reader([], schemas) == ([], [])


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


def test_tasks_read_files_of_other_writers_with_nanoseconds_at_any_depth(tmp_path: Path) -> None:
    schema = create_schema(NESTED, ["k"], (), {"bucket": "1"})
    assert left(foreign(tmp_path, pa.timestamp("ns"), int96=True), schema)
    assert left(foreign(tmp_path, pa.timestamp("ns")), schema)
    assert not left(foreign(tmp_path, pa.timestamp("us")), schema)


def test_only_the_tables_columns_are_checked(tmp_path: Path) -> None:
    schema = create_schema(NESTED, ["k"], (), {"bucket": "1"})
    file = foreign(tmp_path, pa.timestamp("ns"))
    assert not left(file, schema, apply_changes(schema, [DropColumn("a")], 0))

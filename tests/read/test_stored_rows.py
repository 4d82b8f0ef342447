"""The task that reads data files unchanged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm.merge.run_reader import RunReader
from lakelsm.read.stored_rows import StoredRows
from lakelsm.schema.system_columns import FILE_NAME, POSITION
from lakelsm.schema.table_schema import create_schema
from lakelsm.storage import LocalFileIO
from tests.merge.run_files import reader_of, write_run


def test_a_task_reads_every_row_of_a_file_with_its_row_index(tmp_path: Path) -> None:
    schema = create_schema("id INT, v STRING", ["id"])
    run = write_run(tmp_path, schema, [(3, 0, {"id": 1, "v": "a"}), (4, 3, {"id": 2, "v": None})])
    reader = RunReader(LocalFileIO(), schema, schemas={0: schema}, columns=("id", "v"), memory_bytes=1 << 20)
    assert reader_of(schema, ["id", "v"]).columns == reader.columns
    (rows,) = StoredRows(reader, pa.schema([("v", pa.string()), ("_SEQUENCE_NUMBER", pa.int64())]))(run)
    assert rows.to_pylist() == [
        {"v": "a", "_SEQUENCE_NUMBER": 3, FILE_NAME: run[0].name, POSITION: 0},
        {"v": None, "_SEQUENCE_NUMBER": 4, FILE_NAME: run[0].name, POSITION: 1},
    ]

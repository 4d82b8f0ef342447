"""The task that finds keys in other files of a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyroaring import BitMap

from lakelsm.merge.merge_unit import KeySearch
from lakelsm.merge.run_reader import RunReader
from lakelsm.read.key_positions import KeyPositions
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.table_schema import create_schema
from lakelsm.storage import LocalFileIO
from tests.merge.run_files import write_run


@pytest.mark.parametrize(("rows", "found"), [([0, 1, 2], [1, 2]), ([0], []), ([2], [2]), ([], [])])
def test_the_keys_of_some_rows_are_found_at_their_row_indexes(
    tmp_path: Path, rows: list[int], found: list[int]
) -> None:
    schema = create_schema("id INT, v INT", ["id"])
    (source,) = write_run(tmp_path, schema, [(9, 0, {"id": key, "v": 0}) for key in (1, 4, 6)])
    (target,) = write_run(tmp_path, schema, [(0, 0, {"id": key, "v": 0}) for key in (2, 4, 6, 8)])
    keys = RunReader(LocalFileIO(), schema, schemas={0: schema}, columns=("id",), memory_bytes=1 << 20)
    (batch,) = KeyPositions(keys)(KeySearch((b"", 0), source, BitMap(rows), (target,)))
    positions = TaskMessages.of_row([column[0].as_py() for column in batch.columns]).positions
    assert positions == ({(b"", 0): {target.name: BitMap(found)}} if found else {})

"""The task that returns rows that scans cannot return: merged rows of contested keys, and rows of small files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.options import TableOptions
from lakelsm.read.merged_rows import EVERY_FILE, MergedRows, is_read_by_task
from lakelsm.schema.table_schema import create_schema
from tests.merge.run_files import reader_of, write_run

SUMS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "bucket": "1"}
SCHEMA = create_schema("id INT, v INT", ["id"], [], SUMS)
ROWS = pa.schema([("v", pa.int32()), ("id", pa.int32())])


def run(folder: Path, *rows: tuple[int, int, int, int], level: int = 0) -> tuple[Any, ...]:
    """A run of one file with rows (number, kind, id, v)."""
    files = write_run(folder, SCHEMA, [(number, kind, {"id": key, "v": value}) for number, kind, key, value in rows])
    return tuple(replace(file, level=level) for file in files)


def handed(*units: MergeUnit, small: int = 0, **options: str) -> list[tuple[int, int]]:
    """Return (id, v) of all rows that the task yields."""
    spec = MergeSpec.of(SCHEMA, TableOptions.parse({**SUMS, **options}))
    batches = list(MergedRows(reader_of(SCHEMA), spec, ROWS, small)(units))
    assert all(batch.schema == ROWS for batch in batches)
    return [(row["id"], row["v"]) for batch in batches for row in batch.to_pylist()]


def test_a_task_reads_files_below_the_size_of_small_ones(tmp_path: Path) -> None:
    (file,) = run(tmp_path, (0, 0, 1, 1))
    assert is_read_by_task(file, file.file_size + 1)
    assert not is_read_by_task(file, file.file_size)


def test_only_contested_keys_are_merged_and_returned(tmp_path: Path) -> None:
    runs = run(tmp_path, (0, 0, 1, 10), (1, 0, 2, 20)), run(tmp_path, (2, 0, 2, 1), (3, 0, 3, 30))
    assert handed(MergeUnit(runs)) == [(2, 21)]
    assert handed(MergeUnit(runs[:1])) == []


def test_rows_of_small_files_are_returned_too_and_retractions_never(tmp_path: Path) -> None:
    large = run(tmp_path, *((number, 0, number, number) for number in range(1000)))
    small = run(tmp_path, (1000, 0, 5, 100), (1001, 0, 2000, 7), (1002, 3, 2001, 8))
    limit = large[0].file_size
    assert small[0].file_size < limit
    unit = MergeUnit((large, small))
    assert handed(unit, small=limit) == [(5, 105), (2000, 7)]
    assert sorted(handed(unit, small=EVERY_FILE)) == [(key, key + 100 * (key == 5)) for key in range(1000)] + [(2000, 7)]
    assert handed(unit) == [(5, 105)]


@pytest.mark.parametrize(("options", "total"), [({}, 111), ({"changelog-producer": "lookup"}, 101)], ids=str)
def test_in_a_table_that_looks_rows_up_the_lowest_level_includes_the_older_ones(
    tmp_path: Path, options: dict[str, str], total: int
) -> None:
    runs = (
        run(tmp_path, (0, 0, 1, 10), level=5),
        run(tmp_path, (1, 0, 1, 100), level=3),
        run(tmp_path, (2, 0, 1, 1), level=0),
    )
    assert handed(MergeUnit(runs), **options) == [(1, total)]


def test_each_unit_has_the_keys_within_its_bounds(tmp_path: Path) -> None:
    runs = tuple(run(tmp_path, *((number, 0, key, 1) for key in range(4))) for number in (0, 1))
    assert handed(MergeUnit(runs, upper=(1,)), MergeUnit(runs, lower=(3,))) == [(0, 2), (3, 2)]
    assert handed() == []

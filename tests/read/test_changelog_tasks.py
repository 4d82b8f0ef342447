"""The tasks of an incremental read: merged new files, the difference of two states, and the added columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.options import TableOptions
from lakelsm.plan.changelog_plan import DifferenceUnit
from lakelsm.read.changelog_tasks import Differences, MergedChanges, check_added_columns
from lakelsm.schema.table_schema import TableSchema, create_schema
from tests.merge.run_files import reader_of, write_run


@pytest.mark.parametrize(
    ("columns", "kind_column", "positions", "message"),
    [
        ("id INT, Change STRING", "change", False, "kind_column: 'Change' is the name of another column"),
        ("id INT", "_snapshot_id", True, "kind_column: '_SNAPSHOT_ID' is the name of another column"),
        ("id INT, _snapshot_ID INT", "kind", True, "positions=True adds a column '_snapshot_ID', which the table has"),
    ],
)
def test_a_read_of_changes_does_not_add_columns_of_the_table(
    columns: str, kind_column: str, positions: bool, message: str
) -> None:
    schema = create_schema(columns, ["id"])
    check_added_columns(schema, "other", False)
    with pytest.raises(InvalidInputError, match=message):
        check_added_columns(schema, kind_column, positions)


SUMS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}


def schema_of(**options: str) -> TableSchema:
    return create_schema("id INT, v INT", ["id"], [], {"bucket": "1", **options})


def run(folder: Path, schema: TableSchema, *rows: tuple[int, int, int, int | None], files: int = 1) -> tuple[Any, ...]:
    """A run of rows (number, kind, id, v)."""
    written = [(number, kind, {"id": key, "v": value}) for number, kind, key, value in rows]
    return write_run(folder, schema, written, files=files)


def task_of(kind: type, schema: TableSchema) -> Any:
    spec = MergeSpec.of(schema, TableOptions.parse(schema.options))
    return kind(reader_of(schema), spec, row_schema(schema.fields))


def rows_of(batches: Sequence[pa.RecordBatch]) -> list[tuple[int, int, int | None]]:
    """(kind, id, v) of all rows."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [(row["_VALUE_KIND"], row["id"], row["v"]) for row in rows]


def test_new_files_give_one_row_for_each_key_retractions_included(tmp_path: Path) -> None:
    schema = schema_of()
    old = run(tmp_path, schema, (0, 0, 1, 10), (1, 0, 2, 20))
    new = run(tmp_path, schema, (2, 3, 1, 10), (3, 2, 3, 30))
    batches = list(task_of(MergedChanges, schema)([MergeUnit((old, new))]))
    assert rows_of(batches) == [(3, 1, 10), (0, 2, 20), (2, 3, 30)]
    assert all(batch.schema == row_schema(schema.fields) for batch in batches)


def test_units_are_merged_one_by_one_within_their_keys(tmp_path: Path) -> None:
    schema = schema_of(**SUMS)
    runs = tuple(run(tmp_path, schema, *((number, 0, key, 1) for key in range(6))) for number in (0, 1))
    units = [MergeUnit(runs, upper=(2,)), MergeUnit(runs, lower=(4,))]
    assert rows_of(list(task_of(MergedChanges, schema)(units))) == [(0, key, 2) for key in (0, 1, 4, 5)]
    assert list(task_of(MergedChanges, schema)([])) == []


def compared(schema: TableSchema, runs: Sequence[Any], before: str, after: str, **more: Any) -> list[Any]:
    """Return the difference of two states; each has the runs whose letters (a, b, ...) it names."""
    letters = [letter for letter, files in zip("abcdef", runs) for _ in files]
    masks = (tuple(letter in state for letter in letters) for state in (before, after))
    return rows_of(list(task_of(Differences, schema)([DifferenceUnit(MergeUnit(tuple(runs), **more), *masks)])))


def test_added_deleted_and_changed_keys_are_reported_and_equal_ones_are_not(tmp_path: Path) -> None:
    schema = schema_of()
    runs = (
        run(tmp_path, schema, (0, 0, 1, 10), (1, 0, 2, 20), (2, 0, 3, 30)),
        run(tmp_path, schema, (3, 0, 2, 21), (4, 3, 3, None), (5, 0, 4, 40)),
    )
    assert compared(schema, runs, "a", "ab") == [(1, 2, 20), (2, 2, 21), (3, 3, 30), (0, 4, 40)]
    assert compared(schema, runs, "ab", "a") == [(1, 2, 21), (2, 2, 20), (0, 3, 30), (3, 4, 40)]
    assert compared(schema, runs, "ab", "ab") == []
    assert compared(schema, runs, "", "ab") == [(0, 1, 10), (0, 2, 21), (0, 4, 40)]


def test_a_rewritten_file_with_the_same_rows_is_no_change(tmp_path: Path) -> None:
    schema = schema_of()
    rows = [(number, 0, number, number) for number in range(6)]
    runs = run(tmp_path, schema, *rows, files=2), run(tmp_path, schema, *rows)
    assert compared(schema, runs, "a", "b") == []


@pytest.mark.parametrize(("lower", "upper", "keys"), [(None, (2,), [1]), ((2,), (3,), [2]), ((3,), None, [3])])
def test_only_keys_within_the_bounds_are_compared(tmp_path: Path, lower: Any, upper: Any, keys: list[int]) -> None:
    schema = schema_of()
    runs = [run(tmp_path, schema, *((number, 0, key, number) for key in (1, 2, 3))) for number in (0, 1)]
    found = compared(schema, runs, "a", "ab", lower=lower, upper=upper)
    assert found == [change for key in keys for change in ((1, key, 0), (2, key, 1))]


def test_states_of_an_engine_that_combines_rows_are_compared_after_their_merges(tmp_path: Path) -> None:
    schema = schema_of(**SUMS)
    runs = [run(tmp_path, schema, (number, 0, 1, 5)) for number in range(3)]
    assert compared(schema, runs, "ab", "abc") == [(1, 1, 10), (2, 1, 15)]

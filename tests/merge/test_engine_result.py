"""The rows of contested keys are combined with those of the other keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.merge.engine_result import EngineResult, assemble_rows, system_columns

#: Rows 0 and 3 have their own keys; rows 1 and 2 share one.
TABLE = pa.table(
    {
        "_SEQUENCE_NUMBER": pa.array([5, 6, 7, 8], pa.int64()),
        "_VALUE_KIND": pa.array([0, 0, 3, 2], pa.int8()),
        "a": pa.chunked_array([["w", "x"], ["y", "z"]], pa.string()),
        "b": pa.array([10, None, 30, 40], pa.int16()),
    }
)
HEADS, CONTESTED = np.array([0, 2, 3]), np.array([False, True, False])


def put(**changes: object) -> list[dict[str, object]]:
    result = EngineResult(np.array([2]), changes.pop("columns", {}), **changes)  # type: ignore[arg-type]
    table = assemble_rows(TABLE, HEADS, CONTESTED, result)
    assert table.schema == TABLE.schema
    return table.to_pylist()


def test_columns_that_the_engine_leaves_out_come_from_its_row() -> None:
    first, contested, last = put()
    assert (first["a"], last["a"]) == ("w", "z")
    assert contested == {"_SEQUENCE_NUMBER": 7, "_VALUE_KIND": 3, "a": "y", "b": 30}


def test_a_column_of_row_indexes_takes_the_values_of_these_rows_and_null_for_none() -> None:
    assert put(columns={"a": np.array([1]), "b": np.array([0])})[1] == {
        "_SEQUENCE_NUMBER": 7, "_VALUE_KIND": 3, "a": "x", "b": 10,
    }
    found = put(columns={"a": np.array([-1])})
    assert [row["a"] for row in found] == ["w", None, "z"]


def test_a_column_of_values_is_cast_to_the_type_of_the_table() -> None:
    found = put(columns={"b": pa.array([77], pa.int64()), "a": pa.array([None], pa.string())})
    assert [(row["a"], row["b"]) for row in found] == [("w", 10), (None, 77), ("z", 40)]


def test_a_key_without_a_result_is_left_out_and_the_others_stay() -> None:
    found = put(columns={"b": pa.array([77], pa.int16())}, kept=np.array([False]))
    assert [(row["a"], row["b"]) for row in found] == [("w", 10), ("z", 40)]
    assert len(put(kept=np.array([True]))) == 3


def test_numbers_and_kinds_of_results_are_the_system_columns() -> None:
    columns = system_columns(np.array([9], np.int64), np.array([3], np.int8))
    assert {name: (column.type, column.to_pylist()) for name, column in columns.items()} == {  # type: ignore[union-attr]
        "_SEQUENCE_NUMBER": (pa.int64(), [9]),
        "_VALUE_KIND": (pa.int8(), [3]),
    }

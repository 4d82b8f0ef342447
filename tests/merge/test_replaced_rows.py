"""Replaced rows are collected by row index or by key, in any number of look-ups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.merge.key_lookup import KeyLookup
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.replaced_rows import ReplacedRows
from lakelsm.schema.system_columns import FILE_NUMBER, POSITION
from lakelsm.schema.table_schema import create_schema
from tests.merge.run_files import Row, reader_of, write_run

SCHEMA = create_schema("v STRING, a INT, b INT", ["b", "a"], (), {"bucket": "1"})


def files_of(directory: Path, *ids: range) -> list[RunFile]:
    """One file each with the keys (b, a) = (number // 10, number % 10) of its numbers."""
    found: list[RunFile] = []
    for numbers in ids:
        rows: list[Row] = [(at, 0, {"a": n % 10, "b": n // 10, "v": "x"}) for at, n in enumerate(numbers)]
        found += write_run(directory, SCHEMA, rows, group_rows=7)
    return found


def replaced_rows(files: list[RunFile], memory_bytes: int = 1 << 20) -> ReplacedRows:
    return ReplacedRows(reader_of(SCHEMA, SCHEMA.trimmed_primary_keys, memory_bytes=memory_bytes), files)


def keys(numbers: range) -> pa.Table:
    found = np.array(numbers, np.int32)
    return pa.table({"a": found % 10, "b": found // 10})


def numbered(result: ReplacedRows, files: list[RunFile]) -> list[list[int]]:
    positions = result.positions()
    return [list(positions.get(file.name, ())) for file in files]


@pytest.mark.parametrize("memory_bytes", [1, 2_000, 1 << 20])
def test_rows_of_all_files_are_found_by_key_also_with_another_order_of_columns(
    tmp_path: Path, memory_bytes: int
) -> None:
    files = files_of(tmp_path, range(50), range(50, 100), range(0, 100, 2))
    found = replaced_rows(files, memory_bytes)
    for first in range(0, 120, 30):
        found.add_keys(keys(range(first, first + 20, 5)))
    assert numbered(found, files) == [
        [0, 5, 10, 15, 30, 35, 40, 45],
        [10, 15, 20, 25, 40, 45],
        [0, 5, 15, 20, 30, 35, 45],
    ]


def test_keys_are_looked_up_together_until_they_take_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    original = KeyLookup.positions
    monkeypatch.setattr(
        KeyLookup, "positions", lambda self, file, keys: (looked_up.append(len(keys)), original(self, file, keys))[1]
    )
    files = files_of(tmp_path, range(50))
    found = replaced_rows(files, memory_bytes=4 * 250 * 8)
    for first in range(0, 1000, 100):
        found.add_keys(keys(range(first, first + 100)))
    assert numbered(found, files) == [list(range(50))]
    assert looked_up == [300, 300, 300, 100]


def test_row_indexes_and_keys_are_combined(tmp_path: Path) -> None:
    files = files_of(tmp_path, range(20), range(20, 40))
    found = replaced_rows(files)
    found.add_keys(keys(range(19, 21)))
    locations = pa.table({FILE_NUMBER: pa.array([0, 1, 1, 2], pa.int32()), POSITION: pa.array([3, 0, 7, 9])})
    found.add_positions([files[0].name, files[1].name, "data-other"], locations)
    assert {name: list(rows) for name, rows in found.positions().items()} == {
        files[0].name: [3, 19],
        files[1].name: [0, 7],
        "data-other": [9],
    }


def test_without_files_and_without_keys_there_are_no_positions(tmp_path: Path) -> None:
    nothing = replaced_rows([])
    nothing.add_keys(keys(range(5)))
    assert nothing.positions() == {}
    found = replaced_rows(files_of(tmp_path, range(20)))
    found.add_keys(keys(range(0)))
    found.add_keys(keys(range(30, 50)))
    assert found.positions() == {}

"""Appends give the newest rows only if metadata prove it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.plan.newest_rows import plan_newest_rows
from lakelsm.snapshots.table_store import TableStore
from tests.compact import local_table
from tests.compact.local_table import LocalTable


def rows_added(store: TableStore, first: int, last: int, only: set[int] | None = None) -> int | None:
    units = plan_newest_rows(store, store.snapshots.get(first), store.snapshots.get(last), only)
    return None if units is None else sum(file.row_count for unit in units for file in unit.files)


def test_compactions_add_no_rows_to_the_appended_ones(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="2")
    table.write(*((key, "a") for key in range(20)))
    table.write((1, "b"), (2, "b"))
    table.delete((3, "b"))
    table.compact()
    assert rows_added(table.store, 1, 4) == 3 and rows_added(table.store, 2, 4) == 1
    assert rows_added(table.store, 3, 4) == 0
    assert (rows_added(table.store, 1, 4, {0}) or 0) + (rows_added(table.store, 1, 4, {1}) or 0) == 3


def test_overwrites_and_missing_snapshots_prove_nothing(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    first = table.write((1, "a"))
    table.overwrite((2, "b"))
    last = table.write((3, "c"))
    assert rows_added(table.store, 1, 3) is None and rows_added(table.store, 2, 3) == 1
    (table.root / "snapshot" / "snapshot-2").unlink()
    assert plan_newest_rows(table.store, first, last) is None


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "v"},
        {"ignore-delete": "true"},
        {"merge-engine": "partial-update"},
        {"merge-engine": "first-row"},
        {"deletion-vectors.enabled": "true"},
    ],
    ids=str,
)
def test_tables_whose_newest_row_depends_on_other_rules_prove_nothing(options: dict[str, str], tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **options)
    table.write((1, "a"))
    table.write((1, "b"))
    assert rows_added(table.store, 1, 2) is None


def test_rows_that_expire_prove_nothing_after_a_compaction(tmp_path: Path) -> None:
    expiry = {"record-level.expire-time": "1 h", "record-level.time-field": "at"}
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, at INT", **expiry)
    table.write((1, 5))
    table.write((2, 5))
    table.write((3, 5))
    table.compact()
    assert rows_added(table.store, 1, 3) == 2 and rows_added(table.store, 1, 4) is None


def test_numbers_that_do_not_exceed_earlier_ones_prove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.write((1, "b"))
    monkeypatch.setattr(local_table, "table_max_sequence", lambda *_: 0)
    table.write((1, "c"))
    assert rows_added(table.store, 1, 2) == 1 and rows_added(table.store, 2, 3) is None

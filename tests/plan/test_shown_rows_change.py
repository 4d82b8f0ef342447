"""The files in which two snapshots of a table with deletion vectors show different rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelsm.format.snapshot import Snapshot
from lakelsm.plan import shown_rows_change
from lakelsm.plan.changelog_plan import LiveFile, live_files
from lakelsm.plan.shown_rows_change import ShownFile, plan_shown_rows, shows_rows_of_files
from lakelsm.snapshots.table_store import TableStore
from tests.compact.local_table import LocalTable


def changes(table: LocalTable, first: int, last: int, only: set[int] | None = None) -> tuple[ShownFile, ...]:
    store = table.store
    return plan_shown_rows(store, store.snapshots.get(first), store.snapshots.get(last), only)


def test_files_are_added_and_deleted_and_vectors_mask_rows(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(*((key, "a") for key in range(50)))
    table.compact()
    table.write((1, "b"))
    assert changes(table, 2, 3) == (), "level 0 is not shown"
    table.compact(full=False)
    found = sorted(changes(table, 2, 4), key=lambda change: change.file.row_count)
    assert [(one.file.row_count, one.in_before, one.in_after) for one in found] == [(1, False, True), (50, True, True)]
    assert found[1].vector_before is None and found[1].file.vector is not None
    table.write((2, "c"))
    table.compact(full=True)
    assert {(one.in_before, one.in_after) for one in changes(table, 2, 6)} == {(False, True), (True, False)}
    assert changes(table, 6, 6) == () and changes(table, 2, 6, {7}) == ()


def test_reads_show_rows_of_files_only_in_tables_that_mask_replaced_rows(tmp_path: Path) -> None:
    def shows(name: str, **options: str) -> bool:
        return shows_rows_of_files(LocalTable(tmp_path / name, **options).store.options)

    assert shows("a", **{"deletion-vectors.enabled": "true"}) and shows("b", **{"merge-engine": "first-row"})
    assert not shows("c")
    assert not shows("d", **{"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"})


def test_an_upgraded_file_shows_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LocalTable(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write((1, "a"))
    table.compact()
    table.write((2, "b"))

    def with_moved_files(store: TableStore, snapshot: Snapshot, *rest: Any) -> dict[Any, LiveFile]:
        files = live_files(store, snapshot, *rest)
        return {(snapshot.id, *identity): file for identity, file in files.items()}

    monkeypatch.setattr(shown_rows_change, "live_files", with_moved_files)
    assert table.levels() != [0, 0] and changes(table, 2, 3) == ()

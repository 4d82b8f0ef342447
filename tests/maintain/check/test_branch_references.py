"""The references of a branch: its states and the files that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lakelsm.maintain.check.branch_references import BranchReferences
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.manifests import StoredFiles
from lakelsm.maintain.check.state_references import CheckedState
from tests.compact.local_table import LocalTable


def followed(table: LocalTable, has_time: Callable[[], bool] = lambda: True) -> tuple[CheckedState | None, list[str]]:
    store, findings = table.store, Findings()
    state = BranchReferences(store, StoredFiles(store), findings, has_time, named=set()).follow()
    return state, [found.rule for found in findings.reported(store.file_io)[0]]


def test_a_table_without_snapshots_is_sound(tmp_path: Path) -> None:
    assert followed(LocalTable(tmp_path / "t")) == (None, [])


def test_a_file_of_only_one_middle_snapshot_is_checked(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((0, "a"))
    table.write((1, "b"))
    (middle,) = [table.path_of(entry) for entry in table.live() if entry.file.min_sequence_number == 1]
    table.compact(full=True)
    table.write((2, "c"))
    middle.unlink()
    assert followed(table)[1] == ["data-file-missing"]


def test_if_the_newest_state_is_unreadable_the_previous_one_is_checked(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((0, "a"))
    table.write((1, "b"))
    (table.root / "manifest" / table.latest.delta_manifest_list).unlink()
    state, rules = followed(table)
    assert state is not None and state.snapshot.id == 1 and len(state.batches) == 1
    assert rules == ["manifest-list-unreadable"]


def test_references_are_not_followed_after_the_deadline(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((0, "a"))
    assert followed(table, lambda: False)[0] is None

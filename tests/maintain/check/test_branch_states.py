"""The state files of a branch, and the valid values of its hints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakelsm.maintain.check.branch_states import BranchStates, Hints
from lakelsm.maintain.check.findings import Findings
from tests.compact.local_table import LocalTable
from tests.maintain.versioned_table import versioned_table


@pytest.mark.parametrize(
    ("name", "text", "kept", "rules"),
    [
        ("LATEST", None, [1, 2, 3], []),
        ("LATEST", "3", [1, 2, 3], []),
        ("LATEST", "2", [1, 2, 3], ["stale-hint"]),
        ("LATEST", "9", [1, 2, 3], ["latest-hint"]),
        ("LATEST", "-1", [1, 2, 3], ["stale-hint"]),
        ("EARLIEST", "1", [1, 2, 3], []),
        ("EARLIEST", "2", [2, 3], ["expiry-unfinished"]),
        ("EARLIEST", "7", [1, 2, 3], ["stale-hint"]),
    ],
)
def test_a_hint_names_an_existing_snapshot_or_is_reported(
    tmp_path: Path, name: str, text: str | None, kept: list[int], rules: list[str]
) -> None:
    table = versioned_table(tmp_path, 3)
    store, hint = table._store(), Path(table._store().paths.snapshot_dir) / name
    hint.unlink(missing_ok=True)
    if text is not None:
        hint.write_text(text)
    findings = Findings()
    hints = Hints(store, findings)
    ids = store.snapshots.ids()
    assert list(hints.kept(ids)) == kept
    hints.check_latest(ids)
    assert [rule for rule, _ in findings._found] == rules


def test_snapshots_below_earliest_that_are_newer_than_the_hint_are_no_unfinished_expiry(tmp_path: Path) -> None:
    """Java's fast-forward copies snapshots of a branch to the main branch, and does not change EARLIEST."""
    store = versioned_table(tmp_path, 3)._store()
    hint = Path(store.paths.earliest_hint)
    hint.write_text("3")
    os.utime(hint, (1_500_000_000, 1_500_000_000))
    findings = Findings()
    assert list(Hints(store, findings).kept(store.snapshots.ids())) == [1, 2, 3] and not findings._found
    os.utime(store.paths.snapshot_file(1), (1_400_000_000, 1_400_000_000))
    assert list(Hints(store, findings).kept(store.snapshots.ids())) == [3]
    assert [rule for rule, _ in findings._found] == ["expiry-unfinished"]


def test_an_earliest_hint_copied_from_a_branch_is_no_unfinished_expiry(tmp_path: Path) -> None:
    """Java's fast-forward copies EARLIEST of the branch, and keeps the older snapshots of the main branch."""
    table = versioned_table(tmp_path, 3)
    table.tags.create("t", snapshot=2)
    table.branches.create("b", "t")
    store = table._store()
    copied = Path(store.paths.of_branch("b").earliest_hint)
    hint = Path(store.paths.earliest_hint)
    copied.write_text("2")
    for text, kept, rules in (("2", [2, 3], []), ("3", [3], ["expiry-unfinished"])):
        hint.write_text(text)
        findings = Findings()
        assert list(Hints(store, findings).kept(store.snapshots.ids())) == kept
        assert [rule for rule, _ in findings._found] == rules
    hint.write_text("2")
    branch = Path(store.paths.of_branch("b").snapshot_file(2))
    branch.write_text(branch.read_text() + " ")
    findings = Findings()
    assert list(Hints(store, findings).kept(store.snapshots.ids())) == [2, 3]
    assert [rule for rule, _ in findings._found] == ["expiry-unfinished"], "the snapshots are of another history"


def test_a_gap_of_long_lived_changelogs_is_reported(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    for key in range(4):
        table.write((key, "a"))
    (table.root / "changelog").mkdir()
    for number in (1, 3):
        (table.root / "snapshot" / f"snapshot-{number}").rename(table.root / "changelog" / f"changelog-{number}")
    (table.root / "snapshot" / "snapshot-2").unlink()
    findings = Findings()
    assert [changelog.id for changelog in BranchStates(table.store, findings).changelogs()] == [1, 3]
    assert [rule for rule, _ in findings._found] == ["changelog-gap"]

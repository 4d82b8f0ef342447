"""The files that one state names exist and match, or a finding reports the difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.manifests import StoredFiles
from lakelsm.maintain.check.state_references import StateReferences
from tests.compact.local_table import LocalTable


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t")
    made.write((0, "a"))
    made.write((1, "b"))
    return made


def followed(table: LocalTable, *states: Snapshot) -> tuple[list[bool], list[str], int]:
    """Return whether each state is readable, the broken rules, and the number of manifests that were read."""
    store, findings = table.store, Findings()
    references = StateReferences(store, StoredFiles(store), findings, {0: store.schema}, named=set())
    whole = [references.follow(state, "s", is_end=True, keeps_batches=False).is_whole for state in states]
    return whole, [rule for rule, _ in findings._found], references.manifests


@pytest.mark.parametrize(
    ("changes", "whole", "rules"),
    [
        ({}, True, []),
        ({"changelog_record_count": 1}, True, ["snapshot-counts"]),
        ({"schema_id": 7}, True, ["schema-unreadable"]),
        ({"delta_manifest_list": "gone"}, False, ["manifest-list-unreadable"]),
    ],
)
def test_the_files_of_a_state_exist_and_match(
    table: LocalTable, changes: dict[str, object], whole: bool, rules: list[str]
) -> None:
    found, broken, _ = followed(table, replace(table.latest, **changes))  # type: ignore[arg-type]
    assert ([whole], rules) == (found, broken)


def test_a_manifest_that_several_states_name_is_read_once(table: LocalTable) -> None:
    first = table.store.snapshots.get(1)
    assert followed(table, table.latest)[2] == followed(table, table.latest, first)[2] == 2

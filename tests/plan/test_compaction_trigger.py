"""When a compaction after a write is a full one, and what it covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.plan.compaction_trigger import FULL_COMPACTION_PROPERTY, commits_since_full_compaction, scope_after_write
from tests.commit.commit_table import CommitTable, add
from tests.compact.local_table import LocalTable

WRITTEN = frozenset([(b"", 0)])


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    table = CommitTable(tmp_path / "t")
    table.append(add())
    return table.snapshots.get(1)


def test_commits_are_counted_back_to_the_last_full_compaction(snapshot: Snapshot) -> None:
    overwrite = replace(snapshot, commit_kind=CommitKind.OVERWRITE)
    compaction = replace(snapshot, commit_kind=CommitKind.COMPACT)
    full = replace(compaction, properties={FULL_COMPACTION_PROPERTY: "true"})
    assert commits_since_full_compaction([snapshot, compaction, overwrite, full, snapshot]) == 2
    assert commits_since_full_compaction([]) == 0


@pytest.mark.parametrize(
    ("options", "full", "whole"),
    [
        ({}, False, False),
        ({"full_compaction__delta_commits": "2"}, True, True),
        ({"full_compaction__delta_commits": "3"}, False, False),
        ({"changelog_producer": "full-compaction"}, True, False),
        ({"changelog_producer": "full-compaction", "full_compaction__delta_commits": "3"}, False, False),
    ],
)
def test_the_scope_after_two_commits_follows_the_options(
    tmp_path: Path, options: dict[str, str], full: bool, whole: bool
) -> None:
    table = LocalTable(tmp_path / "t", **options)
    table.write((1, "a"))
    table.write((1, "b"))
    scope = scope_after_write(table.store, WRITTEN)
    assert scope == CompactionScope(full, only=None if whole else WRITTEN)

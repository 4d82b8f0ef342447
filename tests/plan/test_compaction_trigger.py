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
    full = replace(compaction, properties={FULL_COMPACTION_PROPERTY: "true"}).signed()
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


@pytest.mark.parametrize(("option", "gentle"), [({}, False), ({"lookup_compact": "gentle"}, True)])
def test_level_0_may_wait_after_a_write_where_the_table_is_gentle(
    tmp_path: Path, option: dict[str, str], gentle: bool
) -> None:
    table = LocalTable(tmp_path / "t", **option)
    table.write((1, "a"))
    assert scope_after_write(table.store, WRITTEN).gentle is gentle


def compact_after_write(table: LocalTable) -> list[int]:
    """The levels of the files after the compaction that follows a write."""
    (written,) = {(entry.partition, entry.bucket) for entry in table.live()}
    table.compact(scope=scope_after_write(table.store, [written]))
    return table.levels()


def test_a_gentle_table_takes_level_0_when_an_ordinary_rule_or_a_caller_asks_for_it(tmp_path: Path) -> None:
    options = {"deletion_vectors__enabled": "true", "num_sorted_run__compaction_trigger": "3"}
    table = LocalTable(tmp_path / "t", **options, lookup_compact="gentle")
    table.write(*((number, "a") for number in range(3_000)))
    table.compact()
    (top,) = table.levels()
    table.write((1, "b"))
    assert compact_after_write(table) == [0, top]
    table.write((2, "b"))
    assert compact_after_write(table) == [top - 1, top], "two runs of like size"
    table.write((3, "b"))
    table.compact(full=False)
    assert 0 not in table.levels()


@pytest.mark.parametrize(("interval", "waits"), [({}, True), ({"lookup_compact__max_interval": "1"}, False)])
def test_a_gentle_table_waits_for_so_many_files_at_most(
    tmp_path: Path, interval: dict[str, str], waits: bool
) -> None:
    """And for as many as the trigger of ordinary rules at least, whatever the option says."""
    options = {"deletion_vectors__enabled": "true", "num_sorted_run__compaction_trigger": "3"}
    table = LocalTable(tmp_path / "t", **options, lookup_compact="gentle", **interval)
    for count in (30_000, 3_000, 1):
        assert table.levels() == [0] * len(table.levels())
        table.write(*((number, f"{count}") for number in range(count)))
        levels = compact_after_write(table)
    assert (levels == [0, 0, 0]) is waits
    assert 0 not in levels or waits

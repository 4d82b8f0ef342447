"""The status of a branch's upkeep: what it retains and what is due."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError
from lakelsm.maintain.upkeep_status import upkeep_status
from lakelsm.results import UpkeepStatus
from tests.compact.local_table import LocalTable

DAY = 86_400_000


def later(table: LocalTable, millis: int = 0) -> UpkeepStatus:
    return upkeep_status(table.store, replace(SYSTEM, clock=lambda: SYSTEM.clock() + millis))


def test_a_table_without_snapshots_retains_nothing(tmp_path: Path) -> None:
    assert later(LocalTable(tmp_path / "t")) == UpkeepStatus()


def test_a_status_has_the_retained_states_the_due_ones_and_what_keeps_them(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", snapshot__num_retained__min="2")
    for number in range(6):
        table.write((number, "a"))
    opened = Table.for_path(str(table.root))
    opened.tags.create("kept", snapshot=1)
    opened.branches.create("b")
    assert later(table).snapshots_to_expire == 0
    found = later(table, DAY)
    assert (found.snapshots, found.snapshots_to_expire, found.tags, found.branches) == (6, 4, 1, 1)
    assert found.oldest_snapshot_age_seconds is not None and DAY / 1000 <= found.oldest_snapshot_age_seconds < DAY / 999
    assert (found.consumers, found.slowest_consumer, found.lag_snapshots, found.lag_seconds) == (0, None, None, None)
    opened.consumers.record("slow", 3)
    opened.consumers.record("quick", 7)
    found = later(table, DAY)
    assert (found.consumers, found.slowest_consumer, found.lag_snapshots) == (2, "slow", 4)
    assert found.lag_seconds is not None and DAY / 1000 <= found.lag_seconds < DAY / 999
    slow, quick = {each.name: (each.lag_snapshots, each.lag_seconds) for each in opened.consumers.list()}, (0, 0.0)
    assert slow["quick"] == quick and slow["slow"][0] == 4 and 0 <= slow["slow"][1] < DAY / 1000
    assert found.snapshots_to_expire == 2 and "slow" in found.held_by[0]


def test_written_bytes_are_those_of_appends_and_compactions_and_not_of_moved_files(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.compact(full=True)  # The file moves to a higher level without a rewrite.
    first = later(table)
    assert (first.write_amplification, first.bytes_compacted, first.snapshots_measured) == (1.0, 0, 2)
    table.write((1, "b"))
    table.compact(full=True)
    found = later(table)
    (live,) = table.live()
    assert found.bytes_compacted == live.file.file_size and found.bytes_appended > first.bytes_appended
    assert found.write_amplification == 1 + found.bytes_compacted / found.bytes_appended


def test_a_status_has_the_last_removal_of_orphans(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    assert later(table).orphans_removed is None
    Table.for_path(str(table.root)).maintenance.remove_orphans("2 days", engine="local")
    found = later(table)
    assert found.orphans_removed == 0 and found.orphans_removed_at is not None
    assert json.loads(json.dumps(found.as_dict()))["orphans_removed_at"].endswith("+00:00")


def test_a_status_fits_one_screen(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="2")
    table.write(*((number, "a") for number in range(9)))
    table.compact(full=True)
    table.write((1, "b"))
    status = Table.for_path(str(table.root)).inspect.status()
    assert (status.small_files, status.upkeep.snapshots) == (2, 3)
    assert status.small_bytes == sum(entry.file.file_size for entry in table.live() if entry.file.level)
    assert 0 < status.median_bucket_bytes <= status.largest_bucket_bytes
    shown = status.as_text().splitlines()
    assert len(shown) <= 25 and max(map(len, shown)) < 200
    for line in (
        "snapshots            3, oldest",
        "small files          2,",
        "unreferenced files   no removal recorded",
        "bucket sizes         median",
    ):
        assert any(found.startswith(line) for found in shown), shown
    json.dumps(status.as_dict())


def test_an_unreadable_old_snapshot_is_reported_by_name(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.write((1, "b"))
    (table.root / "snapshot" / "snapshot-1").write_text("{}")
    with pytest.raises(CorruptTableError, match="snapshot-1"):
        later(table)

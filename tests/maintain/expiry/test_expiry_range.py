"""The ids that expire: the oldest ones, those that an earlier run announced, and changelogs by their own limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.expiry.expiry_range import ExpiryRange, expiry_range, is_due
from lakelsm.maintain.expiry.retention import UNLIMITED, Retention
from lakelsm.snapshots.consumer_store import consumer_text
from tests.commit.commit_table import ReadingFileIO
from tests.maintain.expiry.expiry_table import ExpiryTable


def grown(root: Path, snapshots: int = 6, **options: str) -> ExpiryTable:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    table = ExpiryTable(root / "t", keys)
    for _ in range(snapshots):
        table.append(table.new())
    return table


def chosen(table: ExpiryTable, keep: int) -> ExpiryRange:
    found = expiry_range(table.store, Retention(min_count=keep, max_count=keep, older_than=0, limit=1000), now=10**13)
    assert found is not None
    return found


def ids(snapshots: Sequence[Snapshot]) -> list[int]:
    return [snapshot.id for snapshot in snapshots]


def test_the_oldest_snapshots_expire(tmp_path: Path) -> None:
    table = grown(tmp_path)
    found = chosen(table, 2)
    assert (ids(found.snapshots), found.first.id) == ([1, 2, 3, 4], 5)
    assert (found.new_changelogs, found.changelogs, found.kept_changelogs) == ((), (), ())
    assert chosen(table, 9).is_empty


def test_a_table_without_snapshots_has_nothing_to_expire(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    assert expiry_range(table.store, Retention(min_count=1, max_count=1, older_than=0, limit=1), now=0) is None


def test_announced_snapshots_expire_even_if_more_are_to_be_kept_now(tmp_path: Path) -> None:
    table = grown(tmp_path)
    table.snapshots.announce_earliest(4)
    assert (ids(chosen(table, 9).snapshots), chosen(table, 9).first.id) == ([1, 2, 3], 4)
    table.expire(2)
    assert ids(chosen(table, 9).snapshots) == [1, 3]


def test_consumers_keep_snapshots_or_only_changelogs(tmp_path: Path) -> None:
    table = grown(tmp_path)
    table.file_io.write(table.paths.consumer("etl"), consumer_text(3))
    found = chosen(table, 1)
    assert (ids(found.snapshots), found.held_by) == ([1, 2], ("consumer etl, which reads snapshot 3 next",))
    other = grown(tmp_path / "o", consumer__changelog_only="true", changelog__num_retained__min="20")
    other.file_io.write(other.paths.consumer("etl"), consumer_text(3))
    assert ids(chosen(other, 1).snapshots) == [1, 2, 3, 4, 5]


def test_an_unreadable_consumer_stops_expiry(tmp_path: Path) -> None:
    table = grown(tmp_path)
    table.file_io.write(table.paths.consumer("etl"), b"{")
    with pytest.raises(CorruptTableError, match="consumer-etl"):
        chosen(table, 1)


def test_changelogs_outlive_their_snapshots_up_to_their_own_limits(tmp_path: Path) -> None:
    limits = {"changelog__num_retained__min": "4", "changelog__num_retained__max": "4"}
    table = grown(tmp_path, snapshot__num_retained__min="1", snapshot__num_retained__max="2", **limits)
    found = chosen(table, 2)
    assert (ids(found.snapshots), ids(found.new_changelogs), found.first_changelog) == ([1, 2, 3, 4], [3, 4], 3)
    for snapshot in found.new_changelogs:
        table.store.changelogs.keep(snapshot)
    table.expire(1, 2, 3, 4)
    table.append(table.new())
    found = chosen(table, 2)
    assert (ids(found.snapshots), ids(found.new_changelogs)) == ([5], [5])
    assert (ids(found.changelogs), found.kept_changelogs, found.first_changelog) == ([3], [4], 4)


def test_a_few_reads_show_that_nothing_is_due(tmp_path: Path) -> None:
    table = grown(tmp_path, 30)
    file_io = ReadingFileIO()
    table.file_io = file_io
    wide = Retention(min_count=10, max_count=UNLIMITED, older_than=5, limit=50)
    assert not is_due(table.store, wide)
    assert Path(table.paths.earliest_hint).read_text() == "1"
    file_io.reads.clear()
    assert not is_due(table.store, wide)
    assert [name for name in file_io.reads if name != "schema-0"] == ["EARLIEST", "snapshot-2"]
    assert is_due(table.store, Retention(min_count=10, max_count=1000, older_than=10**13, limit=50))
    assert is_due(table.store, Retention(min_count=1, max_count=20, older_than=0, limit=50))
    assert not is_due(ExpiryTable(tmp_path / "empty").store, Retention(min_count=1, max_count=1, older_than=0, limit=50))


def test_after_a_commit_expiry_is_due_if_a_twentieth_of_the_retained_snapshots_may_expire(tmp_path: Path) -> None:
    table = grown(tmp_path, 100)
    beyond = [Retention(min_count=1, max_count=max_count, older_than=0, limit=50) for max_count in (96, 95)]
    assert [is_due(table.store, retention) for retention in beyond] == [False, True]
    assert is_due(table.store, Retention(min_count=1, max_count=98, older_than=0, limit=2)), "one run expires no more"
    aged = [Retention(min_count=1, max_count=UNLIMITED, older_than=time, limit=50) for time in times_of(table, 5, 6)]
    assert [is_due(table.store, retention) for retention in aged] == [False, True]


def times_of(table: ExpiryTable, *snapshot_ids: int) -> list[int]:
    """Return age bounds that expire all snapshots before each id. A snapshot ages from the commit of the next one."""
    return [table.snapshots.get(snapshot_id + 1).time_millis for snapshot_id in snapshot_ids]

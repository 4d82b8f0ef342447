"""Snapshots are found by hint, id, time and user."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.format.snapshot import CHECKSUMS_KEY
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ALWAYS, ActingFileIO, raising
from tests.commit.commit_table import CommitTable, add, file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots 1 to 12, committed at 10 s, 20 s, ... by users u0 and u1 in turn."""
    table = CommitTable(tmp_path_factory.mktemp("made"))
    for number in range(12):
        table.time = (number + 1) * 10_000 - 1  # A commit reads the clock once.
        table.append(add(file(seq=(number, number))), user=f"u{number % 2}")
    return table.root


@pytest.fixture
def table(made: Path, tmp_path: Path) -> CommitTable:
    """A copy of the template table."""
    return CommitTable(shutil.copytree(made, tmp_path / "t"))


@pytest.mark.parametrize("hint", [None, b"", b"x", b"0", b"-1", b"3", b"11", b"12", b"1\n", b"\xff"])
def test_the_newest_snapshot_is_found_from_any_lower_hint(table: CommitTable, hint: bytes | None) -> None:
    if hint is None:
        table.file_io.delete(table.paths.latest_hint)
    else:
        table.file_io.write(table.paths.latest_hint, hint)
    assert table.snapshots.latest_id() == 12
    latest = table.snapshots.latest()
    assert latest is not None and latest.id == 12


@pytest.mark.parametrize("hint", [b"13", b"99"])
def test_a_hint_above_the_newest_snapshot_is_damage_unless_a_rollback_runs(table: CommitTable, hint: bytes) -> None:
    table.file_io.write(table.paths.latest_hint, hint)
    for find in (table.snapshots.latest_id, table.snapshots.latest):
        with pytest.raises(CorruptTableError, match=rf"snapshot-{hint.decode()} is missing, .* to snapshot 12"):
            find()
    table.file_io.write(table.paths.consumer("lakelsm-rollback-to-12"), b'{"nextSnapshot": 12}')
    assert table.snapshots.latest_id() == 12


class _MovedOn(LocalFileIO):
    """An expiry announces a later snapshot, and deletes those below, before the first check whether a file exists."""

    table: CommitTable

    def exists(self, path: str) -> bool:
        if not self.table.file_io.exists(self.table.paths.snapshot_file(8)):
            return super().exists(path)
        self.table.snapshots.announce_earliest(9)
        self.table.expire(*range(3, 9))
        return super().exists(path)


def test_an_expiry_that_raises_earliest_during_a_check_is_seen(table: CommitTable) -> None:
    table.snapshots.announce_earliest(6)
    files = _MovedOn()
    files.table = table
    assert SnapshotManager(files, table.paths).is_expiring(2)


def test_an_unreadable_hint_is_not_a_missing_one(table: CommitTable) -> None:
    table.snapshots.announce_earliest(6)
    no_hints = ActingFileIO(raising(TimeoutError("no answer")), "read", path="(EARLIEST|LATEST)$", times=ALWAYS)
    snapshots = SnapshotManager(no_hints, table.paths)
    looks: tuple[Callable[[], object], ...] = (
        lambda: snapshots.is_expiring(2),
        lambda: snapshots.announce_earliest(3),
        lambda: snapshots.withdraw_earliest(2),
        snapshots.hinted_latest_id,
        snapshots.latest_id,
    )
    for look in looks:
        with pytest.raises(TimeoutError):
            look()
    assert snapshots.earliest_id() == 1, "the directory is listed"


def test_a_table_whose_snapshots_are_all_missing_is_damaged(table: CommitTable) -> None:
    table.expire(*range(1, 13))
    with pytest.raises(CorruptTableError, match=r"snapshot-12 is missing, .*or delete the hint"):
        table.snapshots.latest()
    table.file_io.delete(table.paths.latest_hint)
    assert table.snapshots.latest() is None


def test_stray_names_in_the_directory_are_ignored(table: CommitTable) -> None:
    table.file_io.delete(table.paths.latest_hint)
    for name in (
        "snapshot-99.tmp",
        ".snapshot-50.x.tmp",
        "snapshot-",
        "snapshot-7b",
        "schema-70",
        "EARLIEST.bak",
    ):
        table.file_io.write(f"{table.paths.snapshot_dir}/{name}", b"{")
    assert table.snapshots.latest_id() == 12
    assert table.snapshots.ids() == list(range(1, 13))


@pytest.mark.parametrize("hint", [None, b"2", b"4", b"77"])
def test_the_earliest_snapshot_is_found_after_expiry(table: CommitTable, hint: bytes | None) -> None:
    table.expire(1, 2, 3)
    if hint is not None:
        table.file_io.write(table.paths.earliest_hint, hint)
    assert table.snapshots.earliest_id() == 4


def test_a_table_without_snapshots_has_none(tmp_path: Path) -> None:
    empty = CommitTable(tmp_path / "e").snapshots
    assert (empty.latest_id(), empty.latest(), empty.earliest_id()) == (None, None, None)
    assert empty.list() == []
    with pytest.raises(SnapshotNotFoundError, match="has no snapshots"):
        empty.get(1)
    with pytest.raises(SnapshotNotFoundError, match="has no snapshots"):
        empty.at_or_before(1)


@pytest.mark.parametrize(("number", "text"), [(2, "has expired"), (13, "does not exist"), (0, "does not exist")])
def test_a_missing_snapshot_is_named_with_the_existing_ones(table: CommitTable, number: int, text: str) -> None:
    table.expire(1, 2, 3)
    with pytest.raises(SnapshotNotFoundError, match=rf"snapshot {number} .*{text}\. The table has snapshots 4 to 12"):
        table.snapshots.get(number)


@pytest.mark.parametrize(
    ("millis", "expected"), [(10_000, 1), (19_999, 1), (20_000, 2), (65_000, 6), (120_000, 12), (10**15, 12)]
)
def test_time_travel_finds_the_newest_at_or_before(table: CommitTable, millis: int, expected: int) -> None:
    assert table.snapshots.at_or_before(millis).id == expected


def test_time_travel_before_the_earliest_snapshot_names_its_time(table: CommitTable) -> None:
    table.expire(1, 2)
    assert table.snapshots.at_or_before(30_000).id == 3
    with pytest.raises(SnapshotNotFoundError, match=r"29\.999 UTC.* is 3, committed at 1970-01-01 00:00:30\.000 UTC"):
        table.snapshots.at_or_before(29_999)


def test_a_damaged_snapshot_is_named(table: CommitTable) -> None:
    table.file_io.write(table.paths.snapshot_file(5), b'{"version" : 3, ')
    with pytest.raises(CorruptTableError, match="snapshot-5"):
        table.snapshots.get(5)


def test_snapshots_of_a_user_are_returned_newest_first(table: CommitTable) -> None:
    table.expire(1, 2)
    assert [snapshot.id for snapshot in table.snapshots.of_user("u0")] == [11, 9, 7, 5, 3]
    assert next(table.snapshots.of_user("u1")).id == 12
    assert list(table.snapshots.of_user("u")) == []


@pytest.mark.parametrize("user", ['q"uote', "back\\slash", "a/b", "ü", "<x>"])
def test_users_with_characters_that_json_escapes_are_found(tmp_path: Path, user: str) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(), user="somebody")
    path = table.paths.snapshot_file(1)
    values = {**json.loads(table.file_io.read(path)), "commitUser": user}
    del values[CHECKSUMS_KEY]
    escaped = json.dumps(values).replace("/", "\\/")
    table.file_io.write(path, escaped.encode("ascii"))
    assert [snapshot.id for snapshot in table.snapshots.of_user(user)] == [1]


def test_the_newest_snapshot_is_found_from_a_hint_that_a_slow_writer_lowered(table: CommitTable) -> None:
    table.snapshots.write_latest_hint(table.snapshots.get(11))
    assert table.file_io.read(table.paths.latest_hint) == b"11"
    assert table.snapshots.latest_id() == 12
    table.file_io.write(table.paths.latest_hint, b"40")
    table.snapshots.write_latest_hint(table.snapshots.get(12))
    assert table.file_io.read(table.paths.latest_hint) == b"12"


def test_a_hint_never_names_an_orphaned_snapshot(table: CommitTable) -> None:
    """Its writer deletes it, and LATEST would then be too high. Snapshot 12 is published on a second snapshot 11."""
    removed, abandoned = table.snapshots.get(12), table.file_io.read(table.paths.snapshot_file(12))
    table.expire(12, 11)
    table.file_io.write(table.paths.latest_hint, b"10")
    table.append(add(file("new", seq=(20, 20))))
    table.file_io.write(table.paths.snapshot_file(12), abandoned)
    newest = table.snapshots.newest_linked()
    assert newest is not None and newest.id == 11
    table.snapshots.write_latest_hint(replace(removed, id=13))
    assert table.file_io.read(table.paths.latest_hint) == b"11"


@pytest.mark.parametrize(
    ("millis", "shown"), [(-(10**15), "-1000000000000000 ms since 1970"), (-62_135_596_800_000, "0001-01-01 00:00:00")]
)
def test_a_time_before_all_snapshots_is_shown_for_any_year(table: CommitTable, millis: int, shown: str) -> None:
    with pytest.raises(SnapshotNotFoundError, match=shown):
        table.snapshots.at_or_before(millis)


def test_a_snapshot_is_linked_if_its_base_exists_or_has_expired(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    first, second, third = (table.append(add()) for _ in range(3))
    snapshots = table.snapshots
    assert all(map(snapshots.is_linked, (first, second, third)))
    table.expire(2)
    assert not snapshots.is_linked(third), "the base is missing"
    Path(table.paths.snapshot_file(2)).write_text(replace(second, base_manifest_list="another", extra={}).to_json())
    assert not snapshots.is_linked(third), "another one has the id now"
    snapshots.announce_earliest(3)
    assert snapshots.is_linked(third), "the id was free as it had expired"
    snapshots.withdraw_earliest(2)
    assert not snapshots.is_linked(third)


def test_earliest_is_announced_before_snapshots_are_deleted_and_never_decreases(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    for _ in range(5):
        table.append(add())
    snapshots, hint = table.snapshots, Path(table.paths.earliest_hint)
    assert not snapshots.is_expiring(1)
    assert snapshots.hinted_earliest_id() == 1 and hint.read_text() == "1"
    snapshots.announce_earliest(3)
    snapshots.announce_earliest(2)
    assert hint.read_text() == "3"
    assert [number for number in snapshots.ids() if snapshots.is_expiring(number)] == [1, 2]
    assert snapshots.hinted_earliest_id() == snapshots.earliest_id() == 3
    table.expire(1, 2, 3)
    assert not snapshots.is_expiring(2), "a hint to a missing snapshot is ignored"
    assert snapshots.hinted_earliest_id() == 4
    snapshots.announce_earliest(4)
    assert hint.read_text() == "4"

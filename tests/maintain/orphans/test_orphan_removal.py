"""Removal of orphan files: what is kept, what is deleted, and what other processes may do concurrently."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelsm import Table
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptTableError, InvalidInputError, StorageError
from lakelsm.format.snapshot import Tag
from lakelsm.maintain.orphans import orphan_removal
from lakelsm.maintain.orphans.orphan_removal import age_bound, remove_orphans
from lakelsm.results import OrphanResult
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ALWAYS, ActingFileIO, raising
from tests.compact.local_table import LocalTable
from tests.maintain.orphans.table_census import census, unnamed

UUID = "01234567-89ab-cdef-0123-456789abcdef"
ORPHAN = f"data-{UUID}-0.parquet"


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t", columns="p STRING NOT NULL, id INT NOT NULL, v STRING", primary_key=("p", "id"),
                      partition_by=("p",), changelog_producer="input")
    made.write(("a", 1, "x"), ("b", 1, "x"))
    made.write(("a", 1, "y"), ("b", 2, "y"))
    made.compact()
    return made


def removed(table: LocalTable, before: Callable[[str], None] | None = None, **named: Any) -> OrphanResult:
    """Remove files of any age. ``before`` is called with the name of each file of the table that is read."""
    store = table.store if before is None else replace(table.store, file_io=WatchedFileIO(before))
    environment = replace(SYSTEM, sleep=lambda seconds: None)
    return remove_orphans(LocalRunner(1), store, SYSTEM.clock() + 1, force=True, environment=environment, **named)


class WatchedFileIO(LocalFileIO):
    def __init__(self, before: Callable[[str], None]) -> None:
        self.before = before

    def read(self, path: str, limit: int | None = None) -> bytes:
        self.before(path.rsplit("/", 1)[-1])
        return super().read(path, limit)


def orphan(table: LocalTable, path: str = f"p=a/bucket-0/{ORPHAN}", content: bytes = b"12345") -> Path:
    made = table.root / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_bytes(content)
    os.utime(made, (0, 0))
    return made


def test_orphans_of_every_kind_are_deleted_and_foreign_and_named_files_are_kept(table: LocalTable) -> None:
    strangers = ("p=a/_SUCCESS", "p=a/bucket-0/mine.txt", "manifest/mine.txt", "service/mine.txt", "mine.txt",
                 f"mine/bucket-0/{ORPHAN}", f"q=a/bucket-0/{ORPHAN}", f"p=a/{ORPHAN}")
    for path in strangers:
        orphan(table, path)
    before = census(table.root)
    own = (
        f"p=a/bucket-0/{ORPHAN}",
        f"p=b/bucket-0/changelog-{UUID}-1.parquet",
        f"p=b/bucket-0/{ORPHAN}.index",
        f"manifest/manifest-{UUID}-0",
        f"manifest/manifest-list-{UUID}-0",
        f"manifest/index-manifest-{UUID}-0",
        f"index/index-{UUID}-0",
        f"statistics/stat-{UUID}-0",
        f"snapshot/.snapshot-4.{UUID}.tmp",
        f"tag/.tag-x.{UUID}.tmp",
        f"service/.x.{UUID}.tmp",
    )
    for path in own:
        orphan(table, path)
    result = removed(table)
    assert census(table.root) == before
    assert (result.files, result.bytes, result.files_too_young) == (11, 55, 0)
    assert len(result.examples) == 10 and set(result.examples) <= set(own)
    assert sum(result.kinds.values()) == 11 and result.kinds["temporary"] == 3
    assert table.rows() == [("a", 1, "y"), ("b", 1, "x"), ("b", 2, "y")]
    assert result.as_dict()["kinds"] == result.kinds


def test_files_younger_than_the_bound_are_kept_and_counted(table: LocalTable) -> None:
    orphan(table)
    young = orphan(table, f"p=b/bucket-0/{ORPHAN}")
    os.utime(young)
    result = remove_orphans(LocalRunner(1), table.store, SYSTEM.clock() - 3_700_000)
    assert (result.files, result.files_too_young, result.directories) == (1, 1, 0)
    assert young.exists() and unnamed(table.root) == {f"p=b/bucket-0/{ORPHAN}"}


def test_empty_directories_are_deleted_up_to_the_table(table: LocalTable) -> None:
    orphan(table, f"p=c/bucket-0/{ORPHAN}")
    orphan(table, f"p=d/bucket-0/{ORPHAN}")
    orphan(table, "p=d/_SUCCESS")
    orphan(table, f"statistics/stat-{UUID}-0")
    assert removed(table, dry_run=True).directories == 0
    assert removed(table).directories == 3
    assert sorted(path.name for path in table.root.glob("p=*")) == ["p=a", "p=b", "p=d"]
    assert (table.root / "statistics").exists() and not (table.root / "p=d" / "bucket-0").exists()


def test_many_files_are_processed_in_parts(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MAX_LISTED", "_DIRECTORIES", "_UNITS", "_STATES", "_MANIFESTS"):
        monkeypatch.setattr(orphan_removal, name, 1)
    paths = [orphan(table, f"p={value}/bucket-{number}/{ORPHAN}") for value in "abc" for number in range(3)]
    result = removed(table)
    assert (result.files, result.kinds) == (9, {"data": 9})
    assert not any(path.exists() for path in paths) and unnamed(table.root) == set()


def test_files_that_cannot_be_deleted_are_in_the_result(table: LocalTable) -> None:
    orphan(table)
    refusing = ActingFileIO(raising(PermissionError("no")), "delete", path=f"{ORPHAN}$", times=ALWAYS)
    result = remove_orphans(LocalRunner(1), replace(table.store, file_io=refusing), SYSTEM.clock(), force=True)
    assert len(result.failures) == 1 and ORPHAN in result.failures[0] and "no" in result.failures[0]


def test_files_committed_after_the_listing_are_kept(table: LocalTable) -> None:
    """The worst case: files older than the bound are committed after the listing, and again during the search."""
    commits = [("a", 5, "late"), ("b", 6, "later")]

    def commit(name: str) -> None:
        if name.startswith("manifest-") and commits:
            known = census(table.root)
            table.write(commits.pop(0))
            for path in census(table.root) - known:
                os.utime(table.root / path, (0, 0))

    for _ in range(2):
        orphan(table)
        waiting = list(commits)
        result = removed(table, commit)
        assert result.files == 1 and len(commits) < len(waiting)
        commits[:] = [("a", 7, "last")]
    assert unnamed(table.root) == set()
    assert ("a", 5, "late") in table.rows() and ("b", 6, "later") in table.rows()


def test_a_concurrently_expired_snapshot_is_not_an_error(table: LocalTable) -> None:
    first = table.store.snapshots.get(1)

    def expire(name: str) -> None:
        if name == first.base_manifest_list:
            (table.root / "manifest" / name).unlink(missing_ok=True)
            (table.root / "snapshot" / "snapshot-1").unlink(missing_ok=True)

    orphan(table)
    assert removed(table, expire).files >= 1
    assert table.rows() == [("a", 1, "y"), ("b", 1, "x"), ("b", 2, "y")]
    assert removed(table).files >= 1, "the files that only the snapshot named"
    assert unnamed(table.root) == set()


def a_manifest(table: LocalTable) -> Path:
    return next((table.root / "manifest").glob("manifest-[!l]*"))


#: New content of a damaged file; None deletes the file.
DAMAGES: dict[str, tuple[Callable[[LocalTable], Path], bytes | None]] = {
    "a snapshot": (lambda table: table.root / "snapshot" / "snapshot-1", b"{}"),
    "a tag": (lambda table: table.root / "tag" / "tag-x", b"{"),
    "a changelog": (lambda table: table.root / "changelog" / "changelog-1", b""),
    "a snapshot of a branch": (lambda table: table.root / "branch" / "branch-x" / "snapshot" / "snapshot-1", b"[]"),
    "a list is lost": (lambda table: table.root / "manifest" / table.latest.base_manifest_list, None),
    "a manifest is lost": (a_manifest, None),
    "a manifest": (a_manifest, b"Obj"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_unreadable_state_ends_the_run_and_nothing_is_removed(table: LocalTable, damage: str) -> None:
    orphan(table)
    path_of, content = DAMAGES[damage]
    path = path_of(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    before = census(table.root)
    with pytest.raises(CorruptTableError):
        removed(table)
    assert census(table.root) == before


def test_files_named_by_a_tag_a_branch_or_a_long_lived_changelog_are_kept(table: LocalTable) -> None:
    root, store = table.root, table.store
    for folder in ("tag", "changelog", "branch/branch-x/snapshot"):
        (root / folder).mkdir(parents=True)
    first, second, third = (store.snapshots.get(number) for number in (1, 2, 3))
    kept = [root / "tag" / "tag-first", root / "changelog" / "changelog-2", root / "branch/branch-x/snapshot/snapshot-3"]
    kept[0].write_text(Tag(first).to_json())
    kept[1].write_text(second.to_json())
    kept[2].write_text(third.to_json())
    shutil.rmtree(root / "snapshot")
    before = census(root)
    result = removed(table)
    deleted = before - census(root)
    assert deleted and all(path.startswith("manifest/manifest-list") for path in deleted), "of the second"
    assert result.files == len(deleted) and unnamed(root) == set()
    for path in kept:
        path.unlink()
        assert removed(table).files > 0
    assert not list(root.rglob("*.parquet")) and not list((root / "manifest").iterdir())


def test_on_spark_tasks_list_the_files_and_read_the_manifests(table: LocalTable, spark: SparkSession) -> None:
    orphan(table)
    orphan(table, f"index/index-{UUID}-0")
    before = unnamed(table.root)
    result = Table.for_path(str(table.root), spark).maintenance.remove_orphans("1 h", engine="spark")
    assert (result.files, result.kinds) == (2, {"data": 1, "index": 1})
    assert len(before) == 2 and unnamed(table.root) == set()
    (table.root / "manifest" / table.latest.delta_manifest_list).write_bytes(b"damage")
    with pytest.raises(CorruptTableError, match="manifest-list"):
        Table.for_path(str(table.root), spark).maintenance.remove_orphans("1 h", engine="spark")


HOUR = 3_600_000
NOW = 50 * HOUR


class OtherClock(LocalFileIO):
    """A store with a clock that always shows ``NOW``."""

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        super().write(path, data, durable)
        os.utime(path, ns=(0, NOW * 1_000_000))


class Forgetful(LocalFileIO):
    """A store that loses what is written."""

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        pass


def at(millis: int) -> Environment:
    return replace(SYSTEM, clock=lambda: millis)


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    return replace(table.store, file_io=OtherClock())


@pytest.mark.parametrize(("here", "bound"), [(NOW, NOW - HOUR), (NOW + 9 * HOUR, NOW - HOUR), (NOW - 9, NOW - HOUR - 9)])
def test_the_earlier_of_two_clocks_counts(store: TableStore, here: int, bound: int) -> None:
    before = set(os.listdir(store.paths.snapshot_dir))
    assert age_bound(store, here - HOUR, at(here), force=False, dry_run=False) == bound
    assert set(os.listdir(store.paths.snapshot_dir)) == before


def test_a_dry_run_writes_nothing_and_uses_the_clock_of_this_machine(store: TableStore) -> None:
    ahead = NOW + 9 * HOUR
    forgetful = replace(store, file_io=Forgetful())
    assert age_bound(forgetful, ahead - HOUR, at(ahead), force=False, dry_run=True) == ahead - HOUR


@pytest.mark.parametrize("age", [HOUR - 1, 0, -5 * HOUR])
def test_an_age_below_an_hour_is_refused_without_force(store: TableStore, age: int) -> None:
    with pytest.raises(InvalidInputError, match=r"older_than leaves \d+ minutes .* force=True"):
        age_bound(store, NOW - age, at(NOW), force=False, dry_run=True)
    assert age_bound(store, NOW - age, at(NOW), force=True, dry_run=False) == NOW - max(age, 0)


def test_a_store_that_does_not_list_a_written_file_is_refused(store: TableStore) -> None:
    with pytest.raises(StorageError, match="does not list it"):
        age_bound(replace(store, file_io=Forgetful()), 0, at(NOW), force=False, dry_run=False)

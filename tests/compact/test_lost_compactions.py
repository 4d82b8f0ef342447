"""A compaction with concurrent commits, or whose commit fails: it deletes its own files, and never rows of others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelsm.compact.compactor import Compactor
from lakelsm.errors import CommitOutcomeUnknownError, CorruptTableError, StorageError
from lakelsm.format.snapshot import CommitKind
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.storage import LocalFileIO
from lakelsm.types import AtomicType
from tests.compact.local_table import LocalTable


def two_commits(root: Path, **options: str) -> LocalTable:
    table = LocalTable(root / "t", **options)
    table.write((1, "a"), (2, "a"), (3, "a"), (4, "a"))
    table.write((1, "b"), (2, "b"), (3, "b"), (4, "b"))
    return table


def once(table: LocalTable, action: Callable[[], object]) -> None:
    """Call ``action`` after the tasks of the next job, before its commit."""

    def run() -> None:
        table.runner.after_tasks = None
        action()

    table.runner.after_tasks = run


def test_losing_against_an_overwrite_discards_the_new_files_and_keeps_the_overwrites_rows(tmp_path: Path) -> None:
    table = two_commits(tmp_path)
    before = table.data_files()
    once(table, lambda: table.overwrite((7, "overwritten")))
    result = table.compact()
    assert (result.status, result.snapshot_ids, result.files_written) == ("conflict", (), 0)
    assert table.rows() == [(7, "overwritten")]
    assert table.data_files() == before | table.names(), "new files are deleted, old files are kept"
    assert table.latest.commit_kind is CommitKind.OVERWRITE


def test_losing_against_another_compaction_keeps_its_files(tmp_path: Path) -> None:
    table = two_commits(tmp_path)
    rows = table.rows()
    once(table, table.compact)
    assert table.compact().status == "conflict"
    assert table.names() < table.data_files()
    assert len(table.names()) == 1
    assert len(table.data_files()) == 3
    assert table.rows() == rows


def test_an_upgrade_that_loses_deletes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    real = SnapshotManager.latest
    calls: list[int] = []

    def latest(manager: SnapshotManager, known: int | None = None) -> object:
        calls.append(1)
        if len(calls) == 2:  # The compaction has planned with the first schema and begins its commit.
            monkeypatch.undo()
            table.overwrite((1, "overwritten"))
        return real(manager, known)

    monkeypatch.setattr(SnapshotManager, "latest", latest)
    assert table.compact().status == "conflict"
    assert table.rows() == [(1, "overwritten")]
    assert len(table.data_files()) == 2


def test_a_concurrent_append_is_no_conflict(tmp_path: Path) -> None:
    table = two_commits(tmp_path)
    once(table, lambda: table.write((2, "newest"), (9, "new")))
    result = table.compact()
    assert (result.status, result.snapshot_ids) == ("done", (4,))
    assert table.levels() == [0, 5]
    assert table.rows() == [(1, "b"), (2, "newest"), (3, "b"), (4, "b"), (9, "new")]


def test_a_group_that_loses_does_not_affect_other_groups(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "p INT NOT NULL, id INT NOT NULL, v STRING", ("p", "id"), ("p",))
    for text in ("a", "b"):
        table.write((1, 1, text), (2, 1, text), (3, 1, text))
    partitions = {table.store.partition_values(entry.partition)["p"]: entry.partition for entry in table.live()}
    once(table, lambda: table.overwrite((1, 1, "overwritten"), partitions=lambda row: row == partitions[1]))
    result = table.compact(commit_every=1)
    assert (result.status, result.buckets, result.snapshot_ids) == ("conflict", 2, (4, 5))
    (lost,) = result.conflicts
    assert result.error == lost and lost.kind == "retry" and "again" in lost.remedy
    assert "(the newest snapshot is 3, OVERWRITE by commit user " in lost.text and "data-" in lost.text
    assert table.rows() == [(1, 1, "overwritten"), (2, 1, "b"), (3, 1, "b")]
    assert table.levels() == [5, 5, 5]
    assert len(table.data_files()) == 6 + 1 + 2


def test_a_deadline_does_not_hide_a_conflict(tmp_path: Path) -> None:
    table = two_commits(tmp_path, bucket="4")
    once(table, lambda: table.overwrite((7, "overwritten")))
    times = iter([0.0, 0.0, 100.0, 100.0])
    assert table.compact(commit_every=1, deadline=1, clock=lambda: next(times)).status == "conflict"


def test_a_failing_task_does_not_change_the_table(tmp_path: Path) -> None:
    table = two_commits(tmp_path)
    snapshot = table.latest
    broken = table.path_of(table.live()[0])
    broken.write_bytes(b"PAR1 this is no parquet file PAR1")
    before = table.data_files()
    with pytest.raises(CorruptTableError, match=broken.name):
        table.compact()
    assert table.latest == snapshot
    assert table.data_files() == before


def test_a_commit_refused_for_damage_discards_the_new_files(tmp_path: Path) -> None:
    table = two_commits(tmp_path)
    before = table.data_files()

    def damage() -> None:
        for manifest in (table.root / "manifest").glob("manifest-*-0"):
            manifest.write_bytes(b"damaged")

    once(table, damage)
    with pytest.raises(CorruptTableError, match="manifest-"):
        table.compact()
    assert table.data_files() == before


def test_an_interrupt_after_the_snapshot_is_visible_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = two_commits(tmp_path)
    rows = table.rows()

    def interrupted(manager: SnapshotManager, snapshot_id: int) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotManager, "write_latest_hint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            table.compact()
    assert table.latest.commit_kind is CommitKind.COMPACT
    assert table.names() <= table.data_files()
    assert table.rows() == rows


def test_an_unknown_outcome_deletes_nothing_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_commits(tmp_path)
    before = table.data_files()

    sent: list[str] = []

    def answer_lost(file_io: LocalFileIO, path: str, data: bytes) -> bool:
        sent.append(path)
        raise OSError("the connection was lost")

    real_read = LocalFileIO.read

    def read(file_io: LocalFileIO, path: str, limit: int | None = None) -> bytes:
        if path in sent:
            raise OSError("the connection was lost")
        return real_read(file_io, path, limit)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileIO, "create_if_absent", answer_lost)
        patch.setattr(LocalFileIO, "read", read)
        patch.setattr("time.sleep", lambda seconds: None)
        with pytest.raises(CommitOutcomeUnknownError, match="no file was deleted"):
            table.compact()
    assert len(table.data_files()) == len(before) + 1
    assert table.compact().status == "done"


def test_a_compaction_that_began_before_a_column_was_added_does_not_lose_its_values(tmp_path: Path) -> None:
    table = two_commits(tmp_path)
    outdated = table.store
    table.alter(AddColumn("n", AtomicType("INT")))
    table.write((1, "c", 7))
    rows = table.rows()
    before = table.data_files()
    compactor = Compactor(table.runner, outdated)
    assert compactor.compact(CompactionScope(full=True)).status == "conflict"
    assert table.data_files() == before
    assert table.rows() == rows
    assert table.compact().status == "done"
    assert table.rows() == rows


def test_a_failing_task_deletes_the_files_of_finished_tasks(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "p INT NOT NULL, id INT NOT NULL, v STRING", ("p", "id"), ("p",), bucket="2")
    for text in "ab":
        table.write(*((part, key, text) for part in range(3) for key in range(8)))
    before = table.data_files()
    broken = table.path_of(table.live()[-1])
    whole = broken.read_bytes()
    broken.write_bytes(whole[:200] + b"damage" + whole[206:])
    with pytest.raises(CorruptTableError, match=broken.name):
        table.compact()
    assert table.runner.tasks > 1, "other tasks had finished"
    assert table.data_files() == before
    broken.write_bytes(whole)
    assert table.compact().status == "done"


def test_on_a_full_disk_nothing_is_published_and_written_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = two_commits(tmp_path)
    before = {path for path in table.root.rglob("*") if path.is_file()}
    real = os.fsync

    def full(descriptor: int) -> None:
        if "snapshot" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match=r"snapshot-3 cannot be written \(\d+ bytes\): No space left on device"):
            table.compact()
    assert {path for path in table.root.rglob("*") if path.is_file()} == before
    assert table.compact().status == "done"

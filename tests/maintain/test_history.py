"""The maintenance history: runs with and without a snapshot, newest first."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError, InvalidInputError, StorageError
from lakelsm.maintain.history import maintenance_record, maintenance_runs, recorded
from lakelsm.snapshots.table_store import TableStore
from tests.acting_file_io import ActingFileIO, raising
from tests.compact.local_table import LocalTable
from tests.maintain.versioned_table import versioned_table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Catalog(str(tmp_path)).create_table(
        "db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 4, "write-only": True}
    )
    for value in "ab":
        made.write(pa.table({"k": pa.array(range(40), pa.int32()), "v": [value] * 40}))
    return made


def store_of(table: Table) -> TableStore:
    return table._opened


def operations(table: Table, limit: int = 50) -> list[tuple[str, str]]:
    return [(run.operation, run.outcome) for run in maintenance_runs(table._store(), limit)]


def test_runs_with_and_without_a_snapshot_are_listed_newest_first(table: Table) -> None:
    assert maintenance_runs(table._store(), 50) == []
    compaction = table.compact(full=True, commit_user="me", engine="local")
    table.maintenance.remove_orphans(engine="local")
    table.maintenance.remove_orphans(engine="local", dry_run=True)
    table.compact(full=True, engine="local")  # Nothing to do, and nothing published.
    newest, oldest = maintenance_runs(table._store(), 50)
    assert (newest.operation, newest.outcome, newest.snapshot_ids) == ("remove_orphans", "done", ())
    assert (oldest.operation, oldest.user, oldest.snapshot_ids) == ("compact", "me", compaction.snapshot_ids)
    assert (oldest.files, oldest.bytes) == (compaction.files_written, compaction.bytes_written)
    assert newest.host == oldest.host != "" and 0 <= oldest.seconds <= compaction.seconds + 1
    assert operations(table, 1) == [("remove_orphans", "done")]


def test_a_compaction_of_several_commits_is_one_run_and_an_interrupted_one_is_partial(table: Table) -> None:
    ended = table.compact(full=True, commit_every=1, engine="local")
    (run,) = maintenance_runs(table._store(), 50)
    assert (run.outcome, run.snapshot_ids, run.files) == ("done", ended.snapshot_ids, ended.files_written)
    table.write(pa.table({"k": pa.array(range(40), pa.int32()), "v": ["c"] * 40}))
    stopped = table.compact(full=True, commit_every=1, deadline=0, engine="local")
    newest, _ = maintenance_runs(table._store(), 50)
    assert (newest.outcome, newest.snapshot_ids) == ("partial", stopped.snapshot_ids) and len(stopped.snapshot_ids) == 1


def test_the_history_outlives_its_snapshots(table: Table, tmp_path: Path) -> None:
    table.compact(full=True, engine="local")
    (before,) = maintenance_runs(table._store(), 50)
    table.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["c"]}))
    for number in (1, 2, 3):
        (tmp_path / "db.db" / "t" / "snapshot" / f"snapshot-{number}").unlink()
    assert maintenance_runs(table._store(), 50) == [before]


def test_a_failed_run_is_recorded_and_a_refused_call_is_not(table: Table) -> None:
    for error in (CorruptTableError("x"), InvalidInputError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)), recorded(store_of(table), "rollback") as run:
            run.files = 3
            raise error
    (run,) = maintenance_runs(table._store(), 50)
    assert (run.operation, run.outcome, run.files) == ("rollback", "failed: CorruptTableError", 3)


def test_the_newest_hundred_files_are_kept(table: Table, tmp_path: Path) -> None:
    for number in range(103):
        later = replace(SYSTEM, clock=lambda number=number: 1_700_000_000_000 + number)
        with recorded(store_of(table), f"run {number}", environment=later):
            pass
    assert len(os.listdir(tmp_path / "db.db" / "t" / "service")) == 100
    assert [run.operation for run in maintenance_runs(table._store(), 2)] == ["run 102", "run 101"]
    assert maintenance_runs(table._store(), 1000)[-1].operation == "run 3"


def test_a_failure_of_a_record_fails_no_operation(table: Table, tmp_path: Path) -> None:
    full = ActingFileIO(raising(StorageError("full")), "create_if_absent")
    with recorded(replace(store_of(table), file_io=full), "rollback"):
        pass
    assert maintenance_runs(table._store(), 50) == []
    service = tmp_path / "db.db" / "t" / "service"
    service.mkdir(exist_ok=True)
    (service / "lakelsm-maintenance-000000000000001-a").write_bytes(b"\xff" * 9000)
    (service / "lakelsm-maintenance-000000000000002-b").write_text("[[1]]")
    (service / "lakelsm-maintenance-000000000000003-c").mkdir()
    assert maintenance_runs(table._store(), 50) == []


def test_records_and_service_files_are_not_orphan_files(table: Table) -> None:
    table.maintenance.remove_orphans(0, force=True, engine="local")
    assert table.maintenance.remove_orphans(0, force=True, engine="local").files == 0
    assert operations(table) == [("remove_orphans", "done")] * 2


def test_an_operation_publishes_its_record_with_its_snapshot(tmp_path: Path) -> None:
    made = LocalTable(tmp_path / "t")
    made.write((1, "a"))
    record = maintenance_record("analyze", "me", SYSTEM.clock() - 2000, files=1, bytes=9)
    assert (record.operation, record.user, record.files, record.bytes) == ("analyze", "me", 1, 9) and record.seconds >= 2
    assert maintenance_runs(made.store, 5) == []


def test_every_action_leaves_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Records are in the order of their starts. Two actions may start in one millisecond of a real clock.
    monkeypatch.setattr(time, "time_ns", count(time.time_ns(), 1_000_000).__next__)
    table = Catalog(str(tmp_path)).create_table(
        "db.p", "p STRING, k INT", primary_key=["p", "k"], partition_by=["p"], options={"bucket": 1, "write-only": True}
    )
    for number in range(3):
        table.write(pa.table({"p": ["a", "b"], "k": pa.array([number, number], pa.int32())}))
    table.tags.create("x")
    table.tags.rename("x", "y")
    table.branches.create("b", tag="y")
    with pytest.raises(InvalidInputError):
        table.branches.create("b")
    table.branches.delete("b")
    table.maintenance.drop_partitions("p = 'a'", commit_user="me")
    table.rollback(to="y")
    table.tags.delete("y")
    table.maintenance.expire_snapshots(retain_last=1)
    table.maintenance.expire_snapshots(retain_last=1, dry_run=True)
    recorded_runs = [run.operation for run in reversed(maintenance_runs(table._store(), 50))]
    assert recorded_runs == ["create_tag", "rename_tag", "create_branch", "delete_branch", "rollback", "delete_tag",
                    "expire_snapshots"], "the drop expired with its snapshot"
    assert maintenance_runs(table._store(), 1)[0].files > 0


def test_a_call_for_an_existing_state_leaves_no_record(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 2)
    table.branches.create("b")
    table.tags.create("q")
    before = maintenance_runs(table._store(), 50)
    table.branches.create("b", ignore_if_exists=True)
    table.tags.create("q", 1, if_not_exists=True)
    assert maintenance_runs(table._store(), 50) == before

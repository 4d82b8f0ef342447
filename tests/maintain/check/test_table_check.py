"""The check of a table: scope, branches, deadline, and the text of its result."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Table
from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError
from lakelsm.format.paths import TablePaths
from lakelsm.maintain.check.table_check import CheckScope, check_table
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.branch_store import BranchStore
from tests.acting_file_io import ActingFileIO
from tests.compact.local_table import LocalTable

COLUMNS = "dt STRING NOT NULL, id INT NOT NULL, v STRING"


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t", COLUMNS, ("dt", "id"), ("dt",))
    made.write(("a", 1, "x"), ("b", 1, "y"))
    made.write(("a", 1, "z"))
    return made


def opened(table: LocalTable) -> Table:
    return Table.for_path(str(table.root))


def test_the_result_of_a_sound_table_is_one_line(table: LocalTable) -> None:
    result = opened(table).maintenance.check(engine="local")
    assert (result.ok, result.snapshots, result.files) == (True, 2, 3)
    looked = "2 snapshots, no tags, 2 manifests, 3 data files"
    assert result.as_text().startswith(f"Table {result.table}: no findings in {looked}")
    assert result.as_dict()["ok"] is True


def test_a_condition_selects_whole_partitions(table: LocalTable) -> None:
    assert opened(table).maintenance.check(where="dt = 'b'", engine="local").files == 1
    for where in ("id = 1", "dt = 'a' AND v = 'x'"):
        with pytest.raises(InvalidInputError, match="where: a check selects whole partitions"):
            opened(table).maintenance.check(where=where, engine="local")


def test_the_newest_schema_may_be_lost_while_a_table_is_open(table: LocalTable) -> None:
    reader = opened(table)
    (table.root / "schema" / "schema-1").write_text("{}")
    (finding,) = reader.maintenance.check(engine="local").findings
    assert finding.rule == "schema-unreadable" and finding.thing.endswith("schema-1")


def test_every_branch_is_checked(table: LocalTable) -> None:
    branch = table.root / "branch" / "branch-b"
    shutil.copytree(table.root / "schema", branch / "schema")
    shutil.copytree(table.root / "snapshot", branch / "snapshot")
    assert opened(table).maintenance.check(engine="local").snapshots == 4
    (branch / "snapshot" / "snapshot-1").write_text("{}")
    (finding,) = opened(table).maintenance.check(engine="local").findings
    assert finding.rule == "snapshot-unreadable" and finding.thing == str(branch / "snapshot" / "snapshot-1")


def test_missing_files_of_a_replaced_snapshot_are_no_findings(table: LocalTable) -> None:
    """Before the newest snapshot's list is read, the snapshot is rolled back and another one takes its id."""

    def roll_back() -> None:
        opened(table).rollback(1)
        opened(table).write(pa.table({"dt": ["a"], "id": pa.array([7], pa.int32()), "v": ["other"]}))

    latest = table.store.snapshots.get(2)
    lists = f"({latest.base_manifest_list}|{latest.delta_manifest_list})$"
    file_io = ActingFileIO(roll_back, "read", path=lists)
    store = replace(table.store, file_io=file_io.within(str(table.root)))
    result = check_table(store, CheckScope(), LocalRunner())
    assert file_io.acted and table.store.snapshots.get(2) != latest
    assert result.ok, result.as_text()


def test_a_deadline_ends_the_check_and_the_result_is_incomplete(table: LocalTable) -> None:
    times = iter(range(100))
    clock = replace(SYSTEM, monotonic=lambda: float(next(times)))
    result = check_table(table.store, CheckScope(deadline=1.5), LocalRunner(), clock)
    assert not result.complete and not result.ok and "deadline" in result.as_text()


def test_tasks_of_spark_have_the_findings_of_threads(spark: SparkSession, table: LocalTable) -> None:
    for entry in table.live()[:2]:
        data = bytearray(table.path_of(entry).read_bytes())
        data[-9] ^= 0x55
        table.path_of(entry).write_bytes(bytes(data))
    opened = Table.for_path(str(table.root), spark)
    found = [opened.maintenance.check(data="full", engine=engine) for engine in ("spark", "local")]
    assert found[0].findings == found[1].findings and len(found[0].findings) == 2, found[0].as_text()
    assert found[0].rows_read == found[1].rows_read > 0


@pytest.mark.parametrize(
    ("removed", "rule"), [("schema/schema-0", "branch-unfinished"), ("snapshot/snapshot-2", "latest-hint")]
)
@pytest.mark.parametrize("later", ["exists", "is deleted", "is complete"])
def test_findings_of_a_concurrently_deleted_or_completed_branch_are_dropped(
    table: LocalTable, monkeypatch: pytest.MonkeyPatch, removed: str, rule: str, later: str
) -> None:
    branch = table.root / "branch" / "branch-b"
    shutil.copytree(table.root / "schema", branch / "schema")
    shutil.copytree(table.root / "snapshot", branch / "snapshot")
    if rule == "branch-unfinished":
        (branch / "snapshot" / "LATEST").unlink()
    data = (branch / removed).read_bytes()
    (branch / removed).unlink()
    acts = {"is deleted": lambda: shutil.rmtree(branch), "is complete": lambda: (branch / removed).write_bytes(data)}
    listed = BranchStore.paths

    def paths(store: BranchStore) -> Sequence[TablePaths]:
        calls.append(True)
        if len(calls) == 2:
            acts.get(later, lambda: None)()
        return listed(store)

    calls: list[bool] = []
    monkeypatch.setattr(BranchStore, "paths", paths)
    found = [finding.rule for finding in opened(table).maintenance.check(engine="local").findings]
    is_reported = later == "exists" or (later == "is complete" and rule == "latest-hint")
    assert found == ([rule] if is_reported else [])

"""Reads whose newest snapshot expires or is rolled back before they read its files: they read the next newest one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Table, TableView
from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.format.snapshot import Snapshot
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from tests.maintain.versioned_table import rows, versioned_table


def expire(table: Table) -> None:
    """Replace the newest snapshot by another one, which has none of its files, and expire it."""
    table.write(rows((9, "v9")))
    table.compact(full=True, engine="local")
    table.maintenance.expire_snapshots(retain_last=1)


def roll_back(table: Table) -> None:
    table.rollback(1)


def texts(found: Any) -> list[str]:
    table = found if isinstance(found, pa.Table) else found.to_arrow()
    return sorted(table["v"].to_pylist())


#: Results of calls that read the newest snapshot.
CALLS: dict[str, Callable[[Table | TableView], Any]] = {
    "to_arrow": lambda table: texts(table.to_arrow()),
    "to_arrow ordered": lambda table: texts(table.to_arrow("id > 0", ordered=True)),
    "to_reader": lambda table: texts(table.to_reader().read_all()),
    "to_pandas": lambda table: sorted(table.to_pandas()["v"]),
    "head": lambda table: texts(table.head()),
    "count": lambda table: table.count(engine="local").rows,
    "count of a condition": lambda table: table.count("v > 'v1'", engine="local").rows,
    "explain": lambda table: table.explain().files_live,
    "files": lambda table: len(table.inspect.files()),
    "buckets": lambda table: sum(table.inspect.buckets().to_arrow()["files"].to_pylist()),
    "partitions": lambda table: table.inspect.partitions().to_arrow()["files"].to_pylist(),
    "system files": lambda table: len(table.inspect.system("files")),
    "system audit_log": lambda table: texts(table.inspect.system("audit_log")),
    "system ro": lambda table: texts(table.inspect.system("ro")),
}
OF_TABLES: dict[str, Callable[[Table], Any]] = {
    "snapshots": lambda table: len(table.inspect.snapshots()),
    "status": lambda table: table.inspect.status().files,
    "partial lookup": lambda table: [table.lookup(cache="partial").get(key) for key in (1, 3, 9)],
    "full lookup": lambda table: [table.lookup(cache="full").get(key) for key in (1, 3, 9)],
    "changes": lambda table: texts(table.changelog_reader().read_all()),
}


def after_first(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, act: Callable[[], object]) -> None:
    """Call ``act`` once, after the first call of a method."""
    method, left = getattr(owner, name), [act]

    def called(self: Any, *args: Any, **named: Any) -> Any:
        found = method(self, *args, **named)
        if left:
            left.pop()()
        return found

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize("removal", [expire, roll_back])
def test_calls_whose_newest_snapshot_is_removed_read_the_new_one(
    tmp_path: Path, removal: Callable[[Table], None]
) -> None:
    calls = {**CALLS, **OF_TABLES}
    if removal is roll_back:  # Otherwise the state before the earliest snapshot has expired.
        calls["compared"] = lambda table: texts(table.changelog_reader(mode="diff").read_all())
    for name, call in calls.items():
        table = versioned_table(tmp_path / name, 3)
        with pytest.MonkeyPatch.context() as patched:
            after_first(patched, SnapshotManager, "latest", lambda made=table: removal(made))
            answer = call(table)
        assert answer == call(table), name


@pytest.mark.parametrize("removal", [expire, roll_back])
def test_rows_are_read_again_if_the_snapshot_is_removed_during_the_read(
    tmp_path: Path, removal: Callable[[Table], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = versioned_table(tmp_path, 3)
    after_first(monkeypatch, LocalRunner, "batches", lambda: removal(table))
    wanted = ["v1", "v2", "v3", "v9"] if removal is expire else ["v1"]
    assert texts(table.to_arrow()) == wanted


@pytest.mark.parametrize("cache", ["partial", "full"])
@pytest.mark.parametrize("removal", [expire, roll_back])
def test_a_lookup_whose_newest_snapshot_is_removed_refreshes_to_the_new_one(
    tmp_path: Path, removal: Callable[[Table], None], cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = versioned_table(tmp_path, 3)
    with table.lookup(cache=cache, refresh="never") as lookup:
        assert lookup.get(3) is not None and lookup.get(4) is None
        table.write(rows((4, "v4")))
        after_first(monkeypatch, SnapshotManager, "latest", lambda: removal(table))
        lookup.refresh()
        found = [lookup.get(key) is not None for key in (1, 3, 4, 9)]
    assert found == ([True] * 4 if removal is expire else [True, False, False, False])


def test_a_stream_whose_snapshot_is_removed_raises(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 3)
    readers = [table.to_reader(), table.changelog_reader(), table.changelog_reader(mode="diff")]
    roll_back(table)
    for reader in readers:
        with pytest.raises(SnapshotNotFoundError, match="snapshot 3 was deleted while it was read"):
            reader.read_all()


@pytest.mark.parametrize("name", CALLS)
def test_a_view_keeps_its_snapshot_and_raises(tmp_path: Path, name: str) -> None:
    table = versioned_table(tmp_path, 3)
    view = table.at(snapshot=3)
    roll_back(table)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 3 was deleted while it was read"):
        CALLS[name](view)


def test_a_removal_at_each_attempt_is_an_error_and_damage_is_no_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, latest, seen = versioned_table(tmp_path, 8), SnapshotManager.latest, []

    def removed(self: SnapshotManager) -> Snapshot | None:
        found = latest(self)
        with monkeypatch.context() as patched:
            patched.setattr(SnapshotManager, "latest", latest)
            assert found is not None
            seen.append(found.id)
            table.rollback(found.id - 1)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(SnapshotManager, "latest", removed)
        with pytest.raises(SnapshotNotFoundError, match="snapshot 4 was deleted while it was read"):
            table.to_arrow()
    assert seen == [8, 7, 6, 5, 4]
    next(tmp_path.rglob("data-*.parquet")).unlink()
    with pytest.raises(CorruptTableError):
        table.to_arrow()


def test_spark_reads_and_counts_the_new_newest_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    for name, call in {
        "read": lambda table: sorted(row.v for row in table.read().collect()),
        "count": lambda table: table.count("v > 'v1'", engine="spark").rows,
        "changelog": lambda table: sorted(row.v for row in table.changelog().collect()),
    }.items():
        table = versioned_table(tmp_path / name, 3)
        with pytest.MonkeyPatch.context() as patched:
            after_first(patched, SnapshotManager, "latest", lambda made=table: roll_back(made))
            assert call(table) == (0 if name == "count" else ["v1"]), name

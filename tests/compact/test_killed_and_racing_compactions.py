"""Processes that are killed while they compact a table with deletion vectors, or compact it concurrently. No JVM."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.maintain.history import maintenance_runs
from lakelsm.results import CompactionStatus
from lakelsm.snapshots.manifest_scan import read_index_entries, read_live_entries
from lakelsm.storage import LocalFileIO
from tests.compact.local_table import LocalTable
from tests.compact.test_remapped_vectors import VectorTable, rows
from tests.crashing_file_io import crashes
from tests.processes import ended, started

_OPTIONS = {"deletion_vectors__enabled": "true", "write_only": "true", "changelog_producer": "lookup"}
_BATCHES, _BATCH_ROWS, _KEYS = 8, 40, 600


def compact_and_exit(root: Path, last: int) -> None:
    """Compact, and kill the process after the ``last`` written file; the first files are those of tasks."""
    files = 0

    def count(*_: object) -> None:
        nonlocal files
        files += 1
        if files == last:
            os._exit(9)

    def counted(name: str) -> None:
        write = getattr(LocalFileIO, name)

        def writes(*arguments: Any, **named: Any) -> Any:
            done = write(*arguments, **named)
            count()
            return done

        setattr(LocalFileIO, name, writes)

    os.fsync = lambda descriptor: None
    counted("write")
    counted("create_if_absent")
    table = LocalTable(root)
    table.runner.after_tasks = count
    table.compact(full=False)


def shown_by_all_snapshots(table: LocalTable) -> None:
    """Check that each file that a snapshot names exists."""
    store = table.store
    for snapshot in store.snapshots.list():
        for entry in read_live_entries(store.file_io, store.paths, snapshot):
            assert table.path_of(entry).exists()
        for index in read_index_entries(store.file_io, store.paths, snapshot):
            assert (table.root / "index" / index.file.file_name).exists()


def test_a_compaction_that_is_killed_after_any_file_changes_no_row_and_a_rerun_completes_it(tmp_path: Path) -> None:
    table = VectorTable(tmp_path / "t", **_OPTIONS)
    table.write(*rows(0, 900, "old"))
    table.compact()
    for first, value in ((0, "new"), (60, "newer")):
        before = table.visible() if first else []
        table.write(*rows(first, first + 90, value))
        if not first:
            assert table.compact(full=False).rows_masked == 90
    before, planned = table.visible(), table.latest.id
    after = sorted({**dict(before), **dict(rows(60, 150, "newer"))}.items())
    assert before != after
    outcomes: list[bool] = []
    code: int | None = 9
    while code == 9:
        copy = VectorTable(shutil.copytree(table.root, tmp_path / f"{len(outcomes)}", copy_function=os.link))
        code = ended(started(compact_and_exit, copy.root, len(outcomes) + 1))
        published = copy.latest.id > planned
        outcomes.append(published)
        assert copy.visible() == (after if published else before)
        result = copy.compact(full=False)
        assert result.status == (CompactionStatus.NOTHING if published else CompactionStatus.DONE)
        assert (copy.visible(), copy.latest.id) == (after, planned + 1)
        shown_by_all_snapshots(copy)
    assert code == 0
    assert outcomes == sorted(outcomes) and outcomes.count(False) >= 6, "tasks, index files, manifests and their lists"
    assert outcomes[-2], "a kill between the snapshot and its hint"


def write_batches(root: Path) -> None:
    table = LocalTable(root)
    for batch in range(_BATCHES):
        table.write(*written(batch))


def compact_until(root: Path, stop: Path, full: bool) -> None:
    table = LocalTable(root)
    while not stop.exists():
        table.compact(full)


def written(batch: int) -> list[tuple[int, str]]:
    return [(key * 7 % _KEYS, f"{batch}") for key in range(batch * 20, batch * 20 + _BATCH_ROWS)]


def test_a_writer_and_two_compactions_in_three_processes_lose_no_row_and_double_no_key(tmp_path: Path) -> None:
    table = VectorTable(tmp_path / "t", **_OPTIONS)
    table.write(*rows(0, _KEYS, "old"))
    table.compact()
    stop = tmp_path / "stop"
    compactions = [started(compact_until, table.root, stop, full) for full in (False, True)]
    assert ended(started(write_batches, table.root)) == 0
    stop.touch()
    assert [ended(process) for process in compactions] == [0, 0]
    table.compact(full=False)
    wanted = dict(rows(0, _KEYS, "old"))
    for batch in range(_BATCHES):
        wanted.update(written(batch))
    assert table.visible() == sorted(wanted.items())
    table.check_index()
    shown_by_all_snapshots(table)


def test_a_compaction_of_several_commits_that_is_killed_loses_at_most_one_group(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table(
        "db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 3, "write-only": True}
    )
    for value in ("old", "new"):
        table.write(pa.table({"k": pa.array(range(30), pa.int32()), "v": [value] * 30}))
    shown, root, done = table.to_arrow(ordered=True), tmp_path / "db.db" / "t", [0]
    while True:
        copy = Path(shutil.copytree(root, tmp_path / f"{len(done)}"))
        crashed = crashes(copy, lambda table: table.compact(full=True, commit_every=1, engine="local"), len(done))
        opened = Table.for_path(str(copy))
        runs = maintenance_runs(opened._store(), 50)
        committed = runs[0].snapshot_ids if runs else ()
        rest = opened.compact(full=True, commit_every=1, engine="local")
        assert len(committed) + rest.buckets == 3, "committed groups are not compacted again"
        assert [run.outcome for run in runs] == (["done" if len(committed) == 3 else "partial"] if runs else [])
        assert opened.to_arrow(ordered=True) == shown
        opened.maintenance.remove_orphans(0, force=True, engine="local")
        assert len(list(copy.rglob("data-*.parquet"))) == 9, "three files of each bucket, and none of the killed run"
        if not crashed:
            break
        done.append(len(committed))
    assert done == sorted(done) and set(done) == {0, 1, 2, 3}

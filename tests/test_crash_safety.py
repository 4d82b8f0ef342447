"""A process that crashes during a commit leaves the table before or after the commit. The same batch then succeeds once.

Either engine does the work of a batch once. Processes then run its commit on copies of the table, and each of them is
killed after one step.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.commit.commit_message import COMMIT_STEPS
from lakelsm.commit.committer import Committer
from lakelsm.errors import CommitOutcomeUnknownError
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from tests.engines import TableEngine, each_case
from tests.processes import ended, started

#: Every commit that finds two manifests merges them, so the third commit takes all steps except those of a changelog.
OPTIONS = {
    "write-only": "true",
    "dynamic-bucket.target-row-num": "3",
    "manifest.full-compaction-threshold-size": "1 b",
}
STEPS = [step for step in COMMIT_STEPS if not step.startswith("changelog")]
VISIBLE = ("snapshot-published", "hint-written")
BEFORE = [("a", 1, 10), ("a", 2, 21), ("a", 3, 31), ("b", 1, 10)]
USER, BATCH = "job", 7

Row = tuple[str, int, int]


class Killed(BaseException):
    """The end of the simulated process."""


def _commit_and_exit(root: str, work: bytes, fatal: str) -> None:
    """Run the commit in the process that is killed."""

    def step(name: str) -> None:
        if name == fatal:
            os._exit(9)

    arguments, named = pickle.loads(work)
    Committer(TableStore.open(root), step).commit(*arguments, **named)


@dataclass
class Action:
    """Work on the table, the rows after it, and the steps of its commit."""

    run: Callable[[Table], Any]
    after: Sequence[Row]
    steps: Sequence[str]


COLUMNS = "p STRING, k INT, v INT"
BATCH_ROWS = [("a", 3, 32), ("a", 4, 40), ("b", 2, 20)]


def actions(engine: TableEngine) -> dict[str, Action]:
    new = engine.frame(BATCH_ROWS, COLUMNS)
    replacing = engine.frame(BATCH_ROWS[:2], COLUMNS)
    return {
        "write": Action(
            lambda table: table.write(new, commit_user=USER, batch_id=BATCH),
            [("a", 1, 10), ("a", 2, 21), ("a", 3, 32), ("a", 4, 40), ("b", 1, 10), ("b", 2, 20)],
            STEPS,
        ),
        "overwrite": Action(
            lambda table: table.overwrite(replacing, {"p": "a"}, commit_user=USER, batch_id=BATCH),
            [("a", 3, 32), ("a", 4, 40), ("b", 1, 10)],
            ["delta-list-written", "index-manifest-written", *VISIBLE],
        ),
        "compact": Action(
            lambda table: engine.compact(table, full=True, commit_user=USER), BEFORE, ["delta-list-written", *VISIBLE]
        ),
    }


@pytest.fixture(scope="module")
def table_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two commits."""
    warehouse = tmp_path_factory.mktemp("crash")
    local = TableEngine("local")
    columns = "p STRING NOT NULL, k INT NOT NULL, v INT"
    table = local.create(warehouse, columns, ["p", "k"], ["p"], {"bucket": "-1", **OPTIONS})
    local.write(table, [("a", 1, 10), ("a", 2, 20), ("b", 1, 10)])
    local.write(table, [("a", 2, 21), ("a", 3, 31)])
    return warehouse / "db.db" / "t"


def rows_of(engine: TableEngine, tables: dict[str, Table]) -> dict[str, list[Row]]:
    return {name: engine.rows(table) for name, table in tables.items()}


def prepared(action: Action, root: Path, engine: TableEngine) -> bytes:
    """Do the work of an action up to its commit. Return the commit in pickled form."""
    from pyspark import cloudpickle

    recorded: list[bytes] = []

    def commit(committer: Committer, *arguments: Any, **named: Any) -> None:
        recorded.append(cloudpickle.dumps((arguments, named)))
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Committer, "commit", commit)
        with pytest.raises(Killed):
            action.run(engine.opened(root))
    return recorded[0]


def kill(root: Path, work: bytes, step: str) -> None:
    """Run the commit in a process that crashes after a step."""
    assert ended(started(_commit_and_exit, str(root), work, step)) == 9, f"the commit did not take the step {step}"


@each_case("name", ["write", "overwrite", "compact"], on_spark=["overwrite"])
def test_after_a_kill_at_any_step_the_commit_is_whole_or_absent_and_the_batch_succeeds_once(
    tmp_path: Path, engine: TableEngine, table_root: Path, name: str
) -> None:
    action = actions(engine)[name]
    shutil.copytree(table_root, tmp_path / "data-files-written")
    work = prepared(action, tmp_path / "data-files-written", engine)
    for step in action.steps:
        shutil.copytree(tmp_path / "data-files-written", tmp_path / step)
        kill(tmp_path / step, work, step)

    tables = {step: engine.opened(tmp_path / step) for step in ("data-files-written", *action.steps)}
    expected = {step: list(action.after) if step in VISIBLE else BEFORE for step in tables}
    assert rows_of(engine, tables) == expected

    results = {step: action.run(table) for step, table in tables.items()}
    assert rows_of(engine, tables) == {step: list(action.after) for step in tables}
    for step in tables:
        if name == "compact":
            assert results[step].status == ("nothing" if step in VISIBLE else "done")
        else:
            assert results[step].already_committed == (step in VISIBLE)
            assert results[step].snapshot_id == 3
        check_history(tmp_path / step)


def check_history(root: Path) -> None:
    """The work is in the history once, and every data file that it names exists."""
    store = TableStore.open(str(root))
    assert [(s.id, s.commit_user == USER) for s in store.snapshots.list()] == [(1, False), (2, False), (3, True)]
    for snapshot in store.snapshots.list():
        for entry in read_live_entries(store.file_io, store.paths, snapshot):
            assert store.file_io.exists(store.data_path(entry.partition, entry.bucket, entry.file.file_name))


FAULTS = product(["data-files-written", "delta-list-written", *VISIBLE], [RuntimeError, KeyboardInterrupt])


@each_case("at", FAULTS, on_spark=[("data-files-written", RuntimeError)])
def test_a_failed_writer_deletes_data_files_only_if_no_snapshot_can_name_them(
    tmp_path: Path, engine: TableEngine, table_root: Path, at: tuple[str, type[BaseException]]
) -> None:
    step, fault = at
    root = tmp_path / "t"
    shutil.copytree(table_root, root)
    store = TableStore.open(str(root))
    before = data_files(root)

    def fail(name: str) -> None:
        if name == step:
            raise fault("fault")

    ended: AbstractContextManager[object] = pytest.raises(fault, match="fault")
    if fault is RuntimeError and step == "snapshot-published":
        ended = pytest.raises(CommitOutcomeUnknownError, match="fault")
    elif fault is RuntimeError and step == "hint-written":
        ended = pytest.warns(UserWarning, match="the commit succeeded, and the LATEST hint .*fault")
    with ended:
        engine.append(engine.opened(root), engine.frame(BATCH_ROWS, COLUMNS), fail)
    latest = store.snapshots.latest()
    assert latest is not None and latest.id == (3 if step in VISIBLE else 2)
    if step in VISIBLE:
        named = {entry.file.file_name for entry in read_delta_entries(store.file_io, store.paths, latest)}
        assert named and data_files(root) == before | named
    elif fault is RuntimeError or step == "data-files-written":
        assert data_files(root) == before
    else:
        assert data_files(root) > before  # After an interrupt, the outcome of the commit is unknown.


def data_files(root: Path) -> set[str]:
    return {path.name for path in root.glob("p=*/bucket-*/*")}

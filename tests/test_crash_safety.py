"""A process that dies during a commit leaves the table as before or as after, and the same batch again succeeds once.

The work of a batch is done by Spark once. Its commit is then run, on copies of the table, by processes without a JVM
that are killed after one step each.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm.commit.commit_message import COMMIT_STEPS
from lakelsm.commit.committer import Committer
from lakelsm.errors import CommitOutcomeUnknownError
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from tests.spark_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm import Table

#: Manifests are merged by every commit that finds two, so that the third takes every step but those of a changelog.
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
    """Stands for the end of the process."""


def _commit_and_die(root: str, work: bytes, fatal: str) -> None:
    """What the killed process does."""

    def step(name: str) -> None:
        if name == fatal:
            os._exit(9)

    arguments, named = pickle.loads(work)
    Committer.of(TableStore.open(root), step).commit(*arguments, **named)


@dataclass
class Action:
    """Work on the table, the rows after it, and the steps of its commit."""

    run: Callable[[Table], Any]
    after: Sequence[Row]
    steps: Sequence[str]


def batch(spark: SparkSession, *rows: Row) -> DataFrame:
    return frame_of(spark, rows, "p STRING, k INT, v INT")


def actions(spark: SparkSession) -> dict[str, Action]:
    new = batch(spark, ("a", 3, 32), ("a", 4, 40), ("b", 2, 20))
    return {
        "write": Action(
            lambda table: table.write(new, commit_user=USER, batch_id=BATCH),
            [("a", 1, 10), ("a", 2, 21), ("a", 3, 32), ("a", 4, 40), ("b", 1, 10), ("b", 2, 20)],
            STEPS,
        ),
        "overwrite": Action(
            lambda table: table.overwrite(new.where("p = 'a'"), {"p": "a"}, commit_user=USER, batch_id=BATCH),
            [("a", 3, 32), ("a", 4, 40), ("b", 1, 10)],
            ["delta-list-written", "index-manifest-written", *VISIBLE],
        ),
        "compact": Action(
            lambda table: table.compact(full=True, commit_user=USER), BEFORE, ["delta-list-written", *VISIBLE]
        ),
    }


@pytest.fixture(scope="module")
def table_root(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A table with two commits."""
    from lakelsm import Catalog

    warehouse = tmp_path_factory.mktemp("crash")
    table = Catalog(str(warehouse), spark).create_table(
        "db.t",
        "p STRING NOT NULL, k INT NOT NULL, v INT",
        primary_key=["p", "k"],
        partition_by=["p"],
        options=OPTIONS,
    )
    table.write(batch(spark, ("a", 1, 10), ("a", 2, 20), ("b", 1, 10)))
    table.write(batch(spark, ("a", 2, 21), ("a", 3, 31)))
    return warehouse / "db.db" / "t"


def opened(root: Path, spark: SparkSession) -> Table:
    from lakelsm import Table

    return Table.for_path(str(root), spark)


def rows_of(tables: dict[str, Table]) -> dict[str, list[Row]]:
    """The rows of each table, read in one Spark job."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    frames = [table.read().select("p", "k", "v", F.lit(name).alias("name")) for name, table in tables.items()]
    found: dict[str, list[Row]] = {name: [] for name in tables}
    for p, k, v, name in reduce(DataFrame.unionAll, frames).collect():
        found[name].append((p, k, v))
    return {name: sorted(rows) for name, rows in found.items()}


def prepared(action: Action, root: Path, spark: SparkSession) -> bytes:
    """Do the work of an action up to its commit, and return the commit as a picklable thing."""
    from pyspark import cloudpickle

    recorded: list[bytes] = []

    def commit(committer: Committer, *arguments: Any, **named: Any) -> None:
        recorded.append(cloudpickle.dumps((arguments, named)))
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Committer, "commit", commit)
        with pytest.raises(Killed):
            action.run(opened(root, spark))
    return recorded[0]


def kill(root: Path, work: bytes, step: str) -> None:
    """Run the commit in a process that dies after a step."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.test_crash_safety"])  # Imported once, and not by each process.
    process = context.Process(target=_commit_and_die, args=(str(root), work, step))
    process.start()
    process.join(120)
    assert process.exitcode == 9, f"the commit did not take the step {step}"


@pytest.mark.parametrize("name", ["write", "overwrite", "compact"])
def test_a_kill_after_any_step_leaves_the_table_as_before_or_after_and_the_batch_again_succeeds_once(
    tmp_path: Path, spark: SparkSession, table_root: Path, name: str
) -> None:
    action = actions(spark)[name]
    shutil.copytree(table_root, tmp_path / "data-files-written")
    work = prepared(action, tmp_path / "data-files-written", spark)
    for step in action.steps:
        shutil.copytree(tmp_path / "data-files-written", tmp_path / step)
        kill(tmp_path / step, work, step)

    tables = {step: opened(tmp_path / step, spark) for step in ("data-files-written", *action.steps)}
    expected = {step: list(action.after) if step in VISIBLE else BEFORE for step in tables}
    assert rows_of(tables) == expected

    results = {step: action.run(table) for step, table in tables.items()}
    assert rows_of(tables) == {step: list(action.after) for step in tables}
    for step in tables:
        if name == "compact":
            assert results[step].status == ("nothing" if step in VISIBLE else "done")
        else:
            assert results[step].already_committed == (step in VISIBLE)
            assert results[step].snapshot_id == 3
        check_history(tmp_path / step)


def check_history(root: Path) -> None:
    """The work is in the history once, and every data file that it names is there."""
    store = TableStore.open(str(root))
    assert [(s.id, s.commit_user == USER) for s in store.snapshots.list()] == [(1, False), (2, False), (3, True)]
    for snapshot in store.snapshots.list():
        for entry in read_live_entries(store.file_io, store.paths, snapshot):
            assert store.file_io.exists(store.data_path(entry.partition, entry.bucket, entry.file.file_name))


@pytest.mark.parametrize("step", ["data-files-written", "delta-list-written", *VISIBLE])
@pytest.mark.parametrize("fault", [RuntimeError, KeyboardInterrupt])
def test_a_fault_in_the_writer_deletes_data_files_only_where_no_snapshot_can_name_them(
    tmp_path: Path, spark: SparkSession, table_root: Path, step: str, fault: type[BaseException]
) -> None:
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare
    from lakelsm.write.batch_write import BatchWriter

    root = tmp_path / "t"
    shutil.copytree(table_root, root)
    store = TableStore.open(str(root))
    before = data_files(root)

    def fail(name: str) -> None:
        if name == step:
            raise fault("fault")

    frame = batch(spark, ("a", 3, 32), ("a", 4, 40), ("b", 2, 20))
    writer = BatchWriter(FrameWriter(spark, store), store, fail)
    known = step in VISIBLE and fault is RuntimeError
    with pytest.raises(CommitOutcomeUnknownError if known else fault, match="fault"):
        writer.append(prepare(frame, store.schema, store.options), USER, BATCH)
    latest = store.snapshots.latest()
    assert latest is not None and latest.id == (3 if step in VISIBLE else 2)
    if step in VISIBLE:
        named = {entry.file.file_name for entry in read_delta_entries(store.file_io, store.paths, latest)}
        assert named and data_files(root) == before | named
    elif fault is RuntimeError or step == "data-files-written":
        assert data_files(root) == before
    else:
        assert data_files(root) > before  # An interrupt says nothing of the commit's outcome.


def data_files(root: Path) -> set[str]:
    return {path.name for path in root.glob("p=*/bucket-*/*")}

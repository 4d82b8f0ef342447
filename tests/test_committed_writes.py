"""A committed write never raises an error: the result of the commit reports all later failures.

Each operation on the store after the publication fails, once and permanently, with errors of every class. If the check
that no rollback removed the base snapshot also fails each time, the outcome is unknown.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.errors import CommitOutcomeUnknownError
from lakelsm.maintain import after_commit
from lakelsm.maintain.history import maintenance_runs
from lakelsm.results import CommitResult, CompactionStatus
from tests.failing_file_io import ERRORS, FailingFileIO, Plan, failing_table

pytestmark = pytest.mark.filterwarnings("ignore:.*the commit succeeded:UserWarning")

#: Each write compacts, expires snapshots, marks partitions as done and creates tags.
BUSY = {
    "bucket": "2",
    "num-sorted-run.compaction-trigger": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
    "snapshot.clean-empty-directories": "true",
    "tag.automatic-creation": "batch",
    "tag.num-retained-max": "1",
    "partition.end-input-to-done": "true",
    "consumer.expiration-time": "1 d",
    "partition.expiration-time": "30000 d",
    "partition.timestamp-pattern": "$p",
    "end-input.check-partition-expire": "true",
}
COLUMNS = "p STRING NOT NULL, k INT NOT NULL, n INT"


def rows(*values: tuple[str, int, int]) -> pa.Table:
    p, k, n = zip(*values)
    return pa.table({"p": list(p), "k": pa.array(k, pa.int32()), "n": pa.array(n, pa.int32())})


BATCH = rows(("2026-01-01", 1, 1), ("2026-01-01", 2, 1), ("2026-01-02", 3, 1))


def made(root: Path, batches: int = 2, **options: str) -> Path:
    """Create a table whose value for key k is the sum of the written values."""
    every = {**BUSY, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", **options}
    catalog = Catalog(str(root))
    table = catalog.create_table("db.t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options=every)
    for _ in range(batches):
        table.write(BATCH)
    return root / "db.db" / "t"


ACTIONS: dict[str, Callable[[Table], Any]] = {
    "write": lambda table: table.write(BATCH),
    "overwrite": lambda table: table.overwrite(BATCH),
    "compact": lambda table: table.compact(full=True, engine="local"),
    "drop_partitions": lambda table: table.maintenance.drop_partitions("p = '2026-01-01'"),
    "analyze": lambda table: table.maintenance.analyze(engine="local"),
    "write, upkeep beside it": lambda table: table.write(BATCH),
}
#: Options of an action's table in addition to `BUSY`.
OWN = {
    "compact": {"num-sorted-run.compaction-trigger": "9"},
    "write, upkeep beside it": {"snapshot.expire.execution-mode": "async"},
}


def newest(root: Path) -> int:
    found = Table.for_path(str(root))._store().snapshots.latest_id()
    assert found is not None
    return found


def tried(base: Path, root: Path, action: str, plan: Plan) -> Any:
    """Run an action on a copy of the table by the plan. Then check the table with working storage."""
    shutil.rmtree(root, ignore_errors=True)
    _await_upkeep()
    shutil.copytree(base, root)
    before = newest(root)
    result = ACTIONS[action](failing_table(root, plan))
    _await_upkeep()
    ids = getattr(result, "snapshot_ids", None) or (result.snapshot_id,)
    assert before < ids[0] <= newest(root)
    return result


def _await_upkeep() -> None:
    """Wait for the end of the upkeep that commits started in the background."""
    after_commit._BACKGROUND._pool.submit(lambda: None).result()


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelsm.commit.commit_run._CHECK_WAITS", (0.0, 0.0))


@pytest.mark.parametrize("action", ACTIONS)
def test_no_failure_after_the_publication_leaves_a_committed_operation(
    tmp_path: Path, action: str
) -> None:
    base, root = made(tmp_path / "wh", **OWN.get(action, {})), tmp_path / "t"
    everything = Plan(1 << 30, MemoryError)
    tried(base, root, action, everything)
    assert everything.seen >= 2
    kinds = list(ERRORS)
    for first in range(1, everything.seen + 1):
        if first > 16 and first % 13:  # The steps of an expiry are repeated.
            continue
        for times in (1, 1 << 30) if first <= 16 else ((1 << 30) if first % 2 else 1,):
            name = kinds[first % len(kinds)] if times == 1 else kinds[(first // 2) % len(kinds)]
            if first == 1 and times > 1:  # It stays unknown whether a rollback removed the base snapshot.
                with pytest.raises(CommitOutcomeUnknownError, match="was published, but the store failed"):
                    tried(base, root, action, Plan(first, ERRORS[name], times))
                continue
            result = tried(base, root, action, Plan(first, ERRORS[name], times))
            if action == "write" and first % 5 == 0:
                Table.for_path(str(root)).compact(engine="local")
                assert Table.for_path(str(root)).to_arrow()["n"].to_pylist() == [3, 3, 3]
            if hasattr(result, "as_dict"):
                json.dumps(result.as_dict(), default=str)


@pytest.mark.parametrize("name", ERRORS)
def test_each_class_of_error_is_in_the_result_and_in_a_warning(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = made(tmp_path)
    table = failing_table(root, Plan(2, ERRORS[name]))  # After the check of the commit.
    warning = pytest.warns(UserWarning, match="the commit succeeded, and the LATEST")
    with caplog.at_level(logging.WARNING, "lakelsm"), warning:
        result = table.write(BATCH)
    (failure, *_) = result.after_commit_failures
    error = ERRORS[name]()
    assert failure.error == type(error).__name__
    assert failure.kind == getattr(getattr(error, "kind", None), "value", None)
    assert failure.text and failure.remedy and failure.step == f"the LATEST hint of snapshot {result.snapshot_id}"
    assert any(failure.text in record.getMessage() for record in caplog.records if record.name.startswith("lakelsm."))


def full_at_the_compaction(root: Path, **more: Any) -> CommitResult:
    """Write with space for the batch but not for the compaction after it."""
    plan = Plan(3, ERRORS["full"])
    return failing_table(root, plan).write(BATCH, **more)


def test_a_failed_compaction_is_reported_and_the_next_write_or_compaction_does_its_work(tmp_path: Path) -> None:
    plain = dict.fromkeys(("tag.automatic-creation",), "none")
    retries: tuple[Callable[[Table], Any], ...] = (
        lambda table: table.write(BATCH).compaction,
        lambda table: table.compact(engine="local"),
    )
    for number, again in enumerate(retries):
        root = made(tmp_path / str(number), batches=1, **plain, **{"snapshot.num-retained.max": "100"})
        failed = "the compaction after it failed: the disk is full. Free space. The next write"
        with pytest.warns(UserWarning, match=failed):
            result = full_at_the_compaction(root)
        assert result.snapshot_id == 2 and result.compaction is not None and result.compaction.error is not None
        assert result.compaction.status is CompactionStatus.FAILED
        assert (result.compaction.error.error, result.compaction.error.kind) == ("StorageError", "fix")
        values = json.loads(json.dumps(result.as_dict()["compaction"]))
        assert values["error"].startswith("the disk is full") and values["error_class"] == "StorageError"
        table = Table.for_path(str(root))
        assert again(table).status == "done"
        assert set(table.to_arrow()["n"].to_pylist()) == {3 - number}, "each write counts once"


def test_a_batch_whose_compaction_failed_is_committed_and_its_rerun_does_nothing(tmp_path: Path) -> None:
    root = made(tmp_path, batches=1)
    with pytest.warns(UserWarning):
        assert full_at_the_compaction(root, commit_user="job", batch_id=4).snapshot_id == 2
    table = Table.for_path(str(root))
    before = newest(root)
    again = table.write(BATCH, commit_user="job", batch_id=4)
    assert (again.already_committed, again.compaction, newest(root)) == (True, None, before)
    assert table.to_arrow()["n"].to_pylist() == [2, 2, 2]


def broken_showwarning(*arguments: Any, **named: Any) -> None:
    raise RuntimeError("a user's own showwarning")


@pytest.mark.parametrize("how", ["error", "showwarning", "handler"])
def test_a_committed_write_raises_nothing_if_warnings_or_logging_raise(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("a user's own handler")

    root = made(tmp_path)
    handler = Raising()
    with warnings.catch_warnings():
        warnings.simplefilter("error" if how == "error" else "always")
        if how == "showwarning":
            monkeypatch.setattr(warnings, "showwarning", broken_showwarning)
        if how == "handler":
            logging.getLogger("lakelsm").addHandler(handler)
            warnings.simplefilter("ignore")
        try:
            for first in (1, 2, 3, 5, 9):
                times = 1 if first == 1 else 1 << 30  # The first operation reads the base snapshot and is repeated.
                result = failing_table(root, Plan(first, ERRORS["defect"], times)).write(BATCH)
                assert result.snapshot_id is not None
        finally:
            logging.getLogger("lakelsm").removeHandler(handler)


def test_failures_of_background_upkeep_are_in_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(store: object, environment: object) -> None:
        raise MemoryError

    steps = (("the expiry of snapshots", "expire_snapshots", "maintenance.expire_snapshots()", step),)
    monkeypatch.setattr(after_commit, "STEPS", steps)
    root = made(tmp_path, batches=0, **{"snapshot.expire.execution-mode": "async"})
    table = Table.for_path(str(root))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.write(BATCH).after_commit_failures == ()
    for _ in range(30_000):  # Five minutes.
        if found := [run for run in maintenance_runs(table._store(), 50) if run.operation == "expire_snapshots"]:
            break
        time.sleep(0.01)
    assert [run.outcome for run in found] == ["failed: MemoryError"]


def test_upkeep_that_cannot_be_started_is_in_the_result_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(work: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(after_commit._BACKGROUND, "submit", refused)
    table = Table.for_path(str(made(tmp_path, batches=0, **{"snapshot.expire.execution-mode": "async"})))
    with pytest.warns(UserWarning, match="can't start new thread"):
        assert [each.error for each in table.write(BATCH).after_commit_failures] == ["RuntimeError"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("first", [1, 2, 3, 12])
def test_an_interruption_is_raised_and_names_the_commit(
    tmp_path: Path, kind: type[BaseException], first: int
) -> None:
    root = made(tmp_path)
    before = newest(root)
    with pytest.raises(kind) as raised:
        failing_table(root, Plan(first, lambda: kind(7), times=1)).write(BATCH)
    assert raised.value.args == (7,), "what a handler of the exit status looks at stays"
    if first == 1:  # Before it is certain that no rollback removed the base snapshot.
        assert not hasattr(raised.value, "committed_snapshot_ids")
        return
    assert raised.value.committed_snapshot_ids[0] == before + 1  # type: ignore[attr-defined]
    assert f"snapshot {before + 1} is committed" in raised.value.__notes__[0]  # type: ignore[attr-defined]


def test_a_batch_with_an_unknown_outcome_is_run_again(tmp_path: Path) -> None:
    root = made(tmp_path, batches=1, **{"num-sorted-run.compaction-trigger": "9"})
    with pytest.raises(CommitOutcomeUnknownError, match=r"snapshot 2 was published.*input/output error.*batch id"):
        failing_table(root, Plan(1, ERRORS["io"])).write(BATCH, commit_user="job", batch_id=4)
    table = Table.for_path(str(root))
    assert table.write(BATCH, commit_user="job", batch_id=4).already_committed
    assert table.to_arrow()["n"].to_pylist() == [2, 2, 2]


def test_a_commit_above_a_rollback_is_not_acknowledged_if_the_store_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made(tmp_path, batches=2, **{"num-sorted-run.compaction-trigger": "9", "snapshot.num-retained.max": "100"})
    real = FailingFileIO.create_if_absent

    def create(files: FailingFileIO, path: str, data: bytes) -> bool:
        if path.endswith("/snapshot-3"):
            Table.for_path(str(root)).rollback(1)
        return real(files, path, data)

    monkeypatch.setattr(FailingFileIO, "create_if_absent", create)
    with pytest.raises(CommitOutcomeUnknownError):
        failing_table(root, Plan(1, ERRORS["io"])).write(BATCH, commit_user="job", batch_id=4)
    assert Table.for_path(str(root)).to_arrow()["n"].to_pylist() == [1, 1, 1]


def test_a_publication_that_cannot_be_verified_stays_unknown(tmp_path: Path) -> None:
    class Lost(Plan):
        def step(self) -> None:
            if self.published:
                raise OSError("no answer")

    root = made(tmp_path)
    plan = Lost(1, MemoryError)
    table = failing_table(root, plan)

    real = type(table._opened.file_io).create_if_absent

    def answer_lost(file_io: Any, path: str, data: bytes) -> bool:
        created = real(file_io, path, data)
        if plan.published:
            raise MemoryError
        return created

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table._opened.file_io), "create_if_absent", answer_lost)
        patch.setattr("time.sleep", lambda seconds: None)
        with pytest.raises(CommitOutcomeUnknownError):
            table.write(BATCH)


def test_a_compaction_that_fails_after_a_commit_returns_what_is_committed(tmp_path: Path) -> None:
    root = made(tmp_path, batches=1, **{"num-sorted-run.compaction-trigger": "9"})
    with pytest.raises(MemoryError):  # Nothing is committed yet, so the error is raised.
        failing_table(root, Plan(1, MemoryError, published=True)).compact(full=True, engine="local")
    found = Plan(1 << 30, MemoryError)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    assert len(failing_table(copy, found).compact(full=True, commit_every=1, engine="local").snapshot_ids) > 1
    with pytest.warns(UserWarning, match="the compaction of further buckets after it failed: MemoryError"):
        result = failing_table(root, Plan(3, MemoryError)).compact(full=True, commit_every=1, engine="local")
    assert (result.status, len(result.snapshot_ids)) == ("failed", 1)
    assert result.error is not None and result.error.text == "MemoryError"
    assert Table.for_path(str(root)).compact(full=True, engine="local").status == "done"


def test_an_expiry_of_partitions_that_fails_after_a_commit_returns_what_is_dropped(tmp_path: Path) -> None:
    root = made(tmp_path, batches=1, **{"partition.expiration-batch-size": "1"})
    with pytest.warns(UserWarning, match="the expiry of further partitions after it failed"):
        result = failing_table(root, Plan(3, ERRORS["io"])).maintenance.expire_partitions("1 s")
    assert len(result.partitions) == len(result.snapshot_ids) == 1
    assert result.error is not None and not result.complete
    assert len(Table.for_path(str(root)).maintenance.expire_partitions("1 s").partitions) == 1


def test_on_spark_a_committed_write_never_raises_either(spark: SparkSession, tmp_path: Path) -> None:
    root = made(tmp_path)
    frame = spark.createDataFrame([("2026-01-01", 1, 1)], COLUMNS.replace(" NOT NULL", ""))
    for first, name in ((1, "io"), (2, "memory"), (3, "full"), (5, "defect"), (20, "mute")):
        before = newest(root)
        with pytest.warns(UserWarning) if first > 1 else warnings.catch_warnings():
            result = failing_table(root, Plan(first, ERRORS[name], 1 if first == 1 else 1 << 30)).write(frame)
        assert result.snapshot_id == before + 1

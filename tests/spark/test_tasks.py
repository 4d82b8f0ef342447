"""The work of tasks in a worker, and the collection of their messages."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lakelsm.errors import SparkUnavailableError, StorageError
from lakelsm.format.file_names import AttemptNames
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.spark import tasks
from lakelsm.spark.tasks import (
    _prepare_worker,
    collect_after_tasks_end,
    collect_messages,
    literal_path,
    map_in_arrow,
    run_units,
    unlogged,
)
from lakelsm.version import VERSION
from tests.commit.commit_table import add, file, hash_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def frozen_objects(unit: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array([unit]), pa.array([gc.get_freeze_count()])], names=["unit", "frozen"])


def test_each_unit_has_a_task_and_loaded_modules_are_exempt_from_collection(spark: SparkSession) -> None:
    rows = run_units(spark, [3, 5, 8], frozen_objects, "unit bigint, frozen bigint").collect()
    assert sorted(row.unit for row in rows) == [3, 5, 8]
    assert min(row.frozen for row in rows) > 10_000


class Job:
    """The part of a DataFrame that a collection uses; its tasks return these rows or fail."""

    def __init__(self, *messages: TaskMessages, failure: Exception | None = None) -> None:
        self._messages, self._failure = messages, failure
        self.tags: list[str] = []
        self.cancelled: list[str] = []
        tracker = SimpleNamespace(getJobIdsForTag=lambda tag: [])
        context = SimpleNamespace(
            addJobTag=self.tags.append,
            removeJobTag=self.tags.remove,
            cancelJobsWithTag=self.cancelled.append,
            statusTracker=lambda: SimpleNamespace(getJobInfo=lambda job: None),
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker)),
        )
        self.sparkSession = SimpleNamespace(sparkContext=context)

    def collect(self) -> list[tuple[Any, ...]]:
        assert len(self.tags) == 1
        if self._failure is not None:
            raise self._failure
        batches = [message.to_batch().columns for message in self._messages]
        values = ([column[0].as_py() for column in columns] for columns in batches)
        return [tuple(bytearray(value) if isinstance(value, bytes) else value for value in row) for row in values]


def collected(job: Job) -> TaskMessages:
    return collect_messages(job, "/wh/t", AttemptNames.new(lambda: "u"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "names", [("a.b", "`tick`", "a", "${x}", "*", "sp ace"), ("a", "b")], ids=["odd names", "plain names"]
)
def test_a_task_gets_the_exact_column_names(spark: SparkSession, names: tuple[str, ...]) -> None:
    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = ["|".join(batch.schema.names), str(gc.get_freeze_count() > 1000)]
            yield pa.RecordBatch.from_arrays([pa.array([text] * len(batch)) for text in texts], names=["names", "frozen"])

    frame = spark.createDataFrame([tuple(range(len(names)))], list(names)).coalesce(1)
    assert map_in_arrow(frame, seen, "names string, frozen string").collect() == [("|".join(names), "True")]


def test_the_messages_of_all_tasks_are_joined_in_their_order() -> None:
    first = TaskMessages([add(file("one"))], [hash_index("index-1")], [])
    second = TaskMessages([add(file("two")), add(file("three"))], [], [add(file("changes"))])
    job = Job(first, TaskMessages(), second)
    joined = collected(job)
    assert [entry.file.file_name for entry in joined.entries] == ["one", "two", "three"]
    assert joined.index_entries == first.index_entries
    assert [entry.file.file_name for entry in joined.changelog_entries] == ["changes"]
    assert (job.tags, job.cancelled) == ([], [])
    assert collected(Job()) == TaskMessages()


def test_a_failed_job_is_cancelled_and_its_error_converted() -> None:
    job = Job(failure=PySparkException("lakelsm.errors.StorageError: no room"))
    with pytest.raises(StorageError, match="no room"):
        collected(job)
    assert job.tags == []
    assert len(job.cancelled) == 1


@pytest.mark.parametrize(
    ("path", "literal"),
    [
        ("/wh/db.db/t/data-0.parquet", "/wh/db.db/t/data-0.parquet"),
        ("/a b/é/50%,x=1", "/a b/é/50%,x=1"),
        ("/[a-z]*/{b}?", r"/\[a-z\]\*/\{b\}\?"),
        ("/back\\slash", "/back\\\\slash"),
    ],
)
def test_special_characters_of_patterns_are_escaped(path: str, literal: str) -> None:
    assert literal_path(path) == literal


@pytest.mark.parametrize(("rows", "size", "expected"), [(100, 1 << 20, [100, 100, 50]), (1 << 20, 160, [20] * 12 + [10])])
def test_batches_are_combined_up_to_limits_of_rows_and_bytes(
    rows: int, size: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_COMBINED_ROWS", rows)
    monkeypatch.setattr(tasks, "_COMBINED_BYTES", size)
    batches = [pa.RecordBatch.from_arrays([pa.array(range(at, at + 10))], ["n"]) for at in range(0, 250, 10)]
    found = list(tasks._combined(iter(batches)))
    assert [len(batch) for batch in found] == expected
    assert pa.Table.from_batches(found).column("n").to_pylist() == list(range(250))
    assert list(tasks._combined(iter([]))) == []


def test_commands_within_unlogged_are_not_logged_and_disabled_loggers_stay_disabled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    sender, off = logging.getLogger("py4j.clientserver"), logging.getLogger("py4j.java_gateway")
    monkeypatch.setattr(off, "disabled", True)
    with unlogged():
        sender.debug("secret")
    sender.debug("after")
    off.debug("off")
    assert [record.message for record in caplog.records] == ["after"]


class RemoteSession:
    """A session of Spark Connect that records its calls; ``collect`` of its frame raises an error."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, error: BaseException) -> None:
        self.calls: list[str] = []
        self.error = error

    def __getattr__(self, name: str) -> Callable[[str], None]:
        return lambda tag: self.calls.append(f"{name} {tag}")

    @property
    def sparkSession(self) -> RemoteSession:
        return self

    def collect(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (KeyboardInterrupt(), ["addTag job", "interruptTag job", "removeTag job"]),
        (PySparkException("the job has failed"), ["addTag job", "removeTag job"]),
    ],
    ids=["an interrupt", "a failed job"],
)
def test_a_connect_server_cancels_a_job_that_this_process_gives_up(error: BaseException, calls: list[str]) -> None:
    session: Any = RemoteSession(error)
    with pytest.raises(type(error)):
        collect_after_tasks_end(session, "job")
    assert session.calls == calls


def test_a_worker_of_another_version_is_refused() -> None:
    _prepare_worker(VERSION)
    with pytest.raises(SparkUnavailableError, match=rf"workers have lakelsm {VERSION}, and this program has 0\.1"):
        _prepare_worker("0.1")

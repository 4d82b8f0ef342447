"""Units that a pool of threads runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError, LakelsmError
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.data_file.written_file import WrittenFile
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind
from lakelsm.runner.local_runner import LocalRunner
from tests.compact.local_table import InlineRunner, LocalTable
from tests.processes import PATIENCE

SCHEMA = pa.schema([("n", pa.int64())])
PATHS = TablePaths("/t")


def counted(unit: int) -> Iterator[pa.RecordBatch]:
    time.sleep(0.002 * (unit % 3))
    yield pa.record_batch([pa.array([unit])], schema=SCHEMA)
    yield pa.record_batch([pa.array([-unit])], schema=SCHEMA)


def test_batches_have_the_order_of_the_units() -> None:
    found = [batch.column(0)[0].as_py() for batch in LocalRunner(3).batches(range(20), counted, SCHEMA, PATHS)]
    assert found == [number for unit in range(20) for number in (unit, -unit)]


#: More units than any machine starts before it sees the failure of one.
UNITS = 5000


def test_no_task_runs_when_a_failure_is_raised() -> None:
    running = threading.Semaphore(0)
    ended: list[int] = []

    def task(unit: int) -> Iterator[pa.RecordBatch]:
        if unit == 1:
            raise CorruptTableError("file 1 is damaged")
        running.release()
        time.sleep(0.05)
        ended.append(unit)
        yield from ()

    with pytest.raises(CorruptTableError, match="file 1 is damaged"):
        LocalRunner(2).messages(range(UNITS), task, PATHS, AttemptNames.new(SYSTEM.new_uuid))
    begun = 0
    while running.acquire(blocking=False):
        begun += 1
    assert begun == len(ended) < UNITS


class Counting:
    """A task that declares its memory, and counts how many run at the same time: each waits until ``wanted`` do."""

    def __init__(self, memory_bytes: int, wanted: int) -> None:
        self.memory_bytes = memory_bytes
        self.max_running = self._now = 0
        self._wanted = wanted
        self._reached = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, unit: int) -> Iterator[pa.RecordBatch]:
        with self._lock:
            self._now += 1
            self.max_running = max(self.max_running, self._now)
            if self._now == self._wanted:
                self._reached.set()
        assert self._reached.wait(PATIENCE)
        time.sleep(0.01)
        with self._lock:
            self._now -= 1
        yield from counted(unit)


@pytest.mark.parametrize("memory, at_a_time", [(100, 1), (399, 1), (400, 2), (650, 3), (10_000, 4)])
def test_as_many_tasks_run_as_cores_and_memory_allow(memory: int, at_a_time: int) -> None:
    task = Counting(200, at_a_time)
    assert len(list(LocalRunner(4, memory).batches(range(12), task, SCHEMA, PATHS))) == 24
    assert task.max_running == at_a_time


def test_a_compaction_in_threads_writes_the_rows_and_messages_of_one_after_the_other(tmp_path: Path) -> None:
    found = []
    for name, runner in (("one", InlineRunner()), ("threads", LocalRunner(3))):
        table = LocalTable(tmp_path / name, "id INT NOT NULL, v STRING", bucket="5")
        for version in range(3):
            table.write(*((number, f"{number}-{version}") for number in range(version, 60, version + 1)))
        table.runner = runner  # type: ignore[assignment]
        table.compact()
        found.append((table.rows(), [(entry.bucket, entry.file.row_count) for entry in table.live()]))
    assert found[0] == found[1]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), MemoryError(), pa.ArrowInvalid("bad")])
def test_a_compaction_that_fails_by_the_machine_leaves_no_file_and_names_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, v STRING", bucket="3")
    for _ in range(2):
        table.write(*((number, "x") for number in range(30)))
    table.runner = LocalRunner(2)  # type: ignore[assignment]
    before, calls = table.data_files(), []
    finish = RollingWriter.finish

    def failing(self: RollingWriter) -> list[WrittenFile]:
        calls.append(True)
        if len(calls) == 3:
            raise fault
        return finish(self)

    monkeypatch.setattr(RollingWriter, "finish", failing)
    with pytest.raises(LakelsmError, match=str(table.root)):
        table.compact()
    assert table.data_files() == before
    assert table.latest.commit_kind is CommitKind.APPEND

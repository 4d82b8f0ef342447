"""Units that a pool of this process runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.paths import AttemptNames
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.surroundings import SYSTEM

SCHEMA = pa.schema([("n", pa.int64())])


def counted(unit: int) -> Iterator[pa.RecordBatch]:
    time.sleep(0.002 * (unit % 3))
    yield pa.record_batch([pa.array([unit])], schema=SCHEMA)
    yield pa.record_batch([pa.array([-unit])], schema=SCHEMA)


def test_batches_come_in_the_order_of_the_units() -> None:
    found = [batch.column(0)[0].as_py() for batch in LocalRunner(3).batches(range(20), counted, SCHEMA, "/t")]
    assert found == [number for unit in range(20) for number in (unit, -unit)]


def test_no_task_runs_when_the_failure_of_one_is_told() -> None:
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
        LocalRunner(2).messages(range(50), task, "/t", AttemptNames.new(SYSTEM.new_uuid))
    begun = 0
    while running.acquire(blocking=False):
        begun += 1
    assert begun == len(ended) < 50

"""Units run by a pool of threads in this process: decoding, sorting and encoding release Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import pyarrow as pa

from lakelsm.commit.commit_message import TaskMessages
from lakelsm.format.paths import AttemptNames
from lakelsm.runner.runner import Task, Unit


class LocalRunner:
    """Runs tasks in threads, as many at a time as the process may use cores."""

    name = "local"

    def __init__(self, cores: int | None = None) -> None:
        self._cores = cores or len(os.sched_getaffinity(0))

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""
        return self._cores

    def messages(self, units: Sequence[Unit], task: Task[Unit], root: str, names: AttemptNames) -> TaskMessages:
        """See `Runner.messages`."""
        joined = TaskMessages()
        for found in self._in_order(units, task):
            for batch in found:
                for row in zip(*(column.to_pylist() for column in batch.columns)):
                    joined.add(TaskMessages.of_row(row))
        return joined

    def batches(
        self, units: Sequence[Unit], task: Task[Unit], schema: pa.Schema, root: str
    ) -> Iterator[pa.RecordBatch]:
        """See `Runner.batches`."""
        for found in self._in_order(units, task):
            yield from found

    def _in_order(self, units: Sequence[Unit], task: Task[Unit]) -> Iterator[list[pa.RecordBatch]]:
        """What each unit's task yields; as many units are under way as there are cores, and one more."""
        left = iter(units)
        pool = ThreadPoolExecutor(self._cores)
        try:
            begun: deque[Future[list[pa.RecordBatch]]] = deque()
            for unit in islice(left, self._cores + 1):
                begun.append(pool.submit(_worked_off, task, unit))
            while begun:
                found = begun.popleft().result()
                for unit in islice(left, 1):
                    begun.append(pool.submit(_worked_off, task, unit))
                yield found
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _worked_off(task: Task[Unit], unit: Unit) -> list[pa.RecordBatch]:
    return list(task(unit))

"""Runs units in a pool of threads of this process: decoding, sorting and encoding release Python's lock."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Protocol, runtime_checkable

import pyarrow as pa

from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.runner.ordered_pool import OrderedPool
from lakelsm.runner.process_limits import usable_cores, usable_memory
from lakelsm.runner.runner import Task, Unit
from lakelsm.runner.task_messages import TaskMessages

#: Maximum bytes of results that wait for the consumer; the next batch in order is never delayed.
_READ_AHEAD = 64 << 20

#: The default memory of all tasks of a runner together is the memory of the process divided by this number.
_MEMORY_SHARE = 2


@runtime_checkable
class BoundedTask(Protocol):
    """A task that declares its maximum memory."""

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of one unit, in bytes."""


class LocalRunner:
    """Runs tasks in threads: at most one for each core, and at most ``memory`` bytes for all together.

    One task always runs, even if it declares more. Tasks that do not declare memory are limited by the cores only.
    """

    name = "local"

    def __init__(self, cores: int | None = None, memory: int | None = None) -> None:
        self._cores = cores or usable_cores()
        self._memory = memory or usable_memory() // _MEMORY_SHARE

    @property
    def cores(self) -> int:
        """The maximum number of tasks that run at the same time."""
        return self._cores

    def messages(self, units: Sequence[Unit], task: Task[Unit], paths: TablePaths, names: AttemptNames) -> TaskMessages:
        """See `Runner.messages`."""
        joined = TaskMessages()
        with closing(self._run(units, task, paths.name, fail_fast=True)) as batches:
            for batch in batches:
                for row in zip(*(column.to_pylist() for column in batch.columns)):
                    joined.add(TaskMessages.of_row(row))
        return joined

    def batches(
        self, units: Sequence[Unit], task: Task[Unit], schema: pa.Schema, paths: TablePaths
    ) -> Iterator[pa.RecordBatch]:
        """See `Runner.batches`. Tasks run ahead by a bounded number of bytes; none runs after the iterator is closed.

        The batches of a unit are returned even if a later unit fails.
        """
        return self._run(units, task, paths.name, fail_fast=False)

    def _run(
        self, units: Sequence[Unit], task: Task[Unit], table: str, fail_fast: bool
    ) -> Generator[pa.RecordBatch, None, None]:
        threads = self._cores
        work: object = task
        if isinstance(work, BoundedTask):
            threads = min(threads, max(self._memory // max(work.memory_bytes, 1), 1))
        pool = OrderedPool(units, task, read_ahead=_READ_AHEAD, fail_fast=fail_fast)
        return pool.run(min(threads, len(units)), table)

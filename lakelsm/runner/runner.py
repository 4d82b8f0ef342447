"""Runs planned units, on Spark's executors or in a pool of this process. Callers do not know which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.runner.task_messages import TaskMessages

Unit = TypeVar("Unit")

#: Works one unit off and yields what it found. It pickles, as its units do.
Task: TypeAlias = Callable[[Unit], Iterator[pa.RecordBatch]]


class Runner(Protocol):
    """Runs a task for each of some units."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``."""

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""

    def messages(self, units: Sequence[Unit], task: Task[Unit], paths: TablePaths, names: AttemptNames) -> TaskMessages:
        """Run the tasks, which yield messages (`TaskMessages.to_batch`), and join these.

        ``paths`` are those of the table, ``names`` those of the attempt that the tasks write files of. What is known of
        a task's failure is raised as a LakelsmError. No task runs any more when it is.
        """

    def batches(
        self, units: Sequence[Unit], task: Task[Unit], schema: pa.Schema, paths: TablePaths
    ) -> Iterator[pa.RecordBatch]:
        """Yield what the tasks yield, of ``schema``, in the order of the units. Errors are as in `messages`."""

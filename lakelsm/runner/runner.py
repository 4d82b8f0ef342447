"""The protocol that runs planned units, in Spark's executors or in a pool of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.runner.task_messages import TaskMessages

Unit = TypeVar("Unit")

#: Processes one unit and yields its result. A task can be pickled, as its units can.
Task: TypeAlias = Callable[[Unit], Iterator[pa.RecordBatch]]


class Runner(Protocol):
    """Runs a task for each of some units."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``."""

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""

    def messages(self, units: Sequence[Unit], task: Task[Unit], paths: TablePaths, names: AttemptNames) -> TaskMessages:
        """Run the tasks, which yield messages (`TaskMessages.to_batch`), and combine the messages.

        ``paths`` are those of the table, ``names`` those of the attempt for which the tasks write files. A known
        failure of a task is raised as a LakelsmError. When it is raised, no task runs any more.
        """

    def batches(
        self, units: Sequence[Unit], task: Task[Unit], schema: pa.Schema, paths: TablePaths
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the tasks, of ``schema``, in the order of the units. Raises the errors of `messages`."""

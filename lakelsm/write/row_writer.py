"""How prepared rows get into level-0 files, which depends on where they are: in a DataFrame, or in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from lakelsm.format.manifest import ManifestEntry
from lakelsm.runner.runner import Runner
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.write.level0_task import Level0Job

#: Prepared rows of a batch: the table's columns, then `VALUE_KIND` and `SEQUENCE_NUMBER`, which orders them.
Rows = TypeVar("Rows")


class RowWriter(Protocol[Rows]):
    """Writes the rows of one kind of engine to a table."""

    @property
    def runner(self) -> Runner:
        """What runs its tasks."""

    def write(self, rows: Rows, job: Level0Job) -> TaskMessages:
        """Give each row its bucket, bring the rows of a key together in order, and let ``job`` write them.

        No task runs any more when it raises.
        """

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Rows:
        """The rows of level-0 or changelog files of this writer, prepared to be written again."""

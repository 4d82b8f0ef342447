"""The writer of a batch. Spark creates it once, and sends it as a pickle to the tasks and to the process that commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakelsm.data_source.planned_write import FilesMessage, PlannedWrite
from lakelsm.data_source.write_options import WriteOptions
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.table.writable_table import known_batch

#: Sequence numbers of one task.
_TASK_NUMBERS = 1 << 32


class TableWriter(DataSourceArrowWriter):
    """Writes rows with the columns of ``schema``. ``overwrite``: they replace all rows of the table."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._planned = PlannedWrite.of(options, schema, overwrite=overwrite, task_numbers=_TASK_NUMBERS)
        store = self._planned.store
        self._user, self._identifier, earlier = known_batch(store, options.commit_user, options.batch_id)
        self._is_committed = earlier is not None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesMessage:
        """Write the rows of a task. If it raises, it deletes its files."""
        return FilesMessage(0, TaskMessages()) if self._is_committed else self._planned.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the files of all tasks as one snapshot, then compact as `Table.write` does.

        If it raises, it deletes the files, unless a snapshot may name them.
        """
        if not self._is_committed:
            written = [message for message in messages if isinstance(message, FilesMessage)]
            self._planned.publish(written, self._user, self._identifier)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of all tasks.

        Spark also calls it after a failed commit. Then each task has a message, and `commit` has deleted what no
        snapshot can name.
        """
        if any(message is None for message in messages):
            self._planned.delete_files()

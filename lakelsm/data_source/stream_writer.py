"""The writer of a stream. Facts of Spark 4.1 to 4.3 that it depends on are in docs/design/streams.md.

Spark creates a writer for the tasks of each batch, and another one, in another process and without a connection to the
first, for its commit. So the tasks report what the commit needs: the planned write, and the id of the query, which only
they know. The commit publishes the files of all tasks under (commit user, batch id) of this query. A replay of a
committed batch publishes nothing and deletes its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakelsm.commit.commit_identity import commit_user_of_query
from lakelsm.data_source.planned_write import FilesMessage, PlannedWrite
from lakelsm.data_source.write_options import WriteOptions
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.table.streamed_table import check_compact_every

#: The local property with the id of the query of a task.
_QUERY_ID = "sql.streaming.queryId"
#: Sequence numbers of one task for each bucket. A table has 2^63: enough for 170 million batches of 200 tasks.
_TASK_NUMBERS = 1 << 28


@dataclass
class BatchMessage(WriterCommitMessage):
    """What one task reports: its files, the write that it is a part of, and the query."""

    files: FilesMessage
    planned: PlannedWrite
    query_id: str


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a query. ``planned`` is the write of one batch; None in the process that commits."""

    def __init__(self, options: WriteOptions, planned: PlannedWrite | None = None) -> None:
        self._options = options
        self._planned = planned

    @staticmethod
    def of_batch(options: WriteOptions, schema: StructType, *, overwrite: bool) -> StreamWriter:
        """Return the writer for the tasks of one batch. ``overwrite``: its rows replace all rows of the table."""
        planned = PlannedWrite.of(options, schema, overwrite=overwrite, task_numbers=_TASK_NUMBERS)
        check_compact_every(planned.store, options.compact_every, "option 'compact-every'")
        return StreamWriter(options, planned)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """Write the rows of a task. If it raises, it deletes its files."""
        assert self._planned is not None
        context = TaskContext.get()
        assert context is not None
        query_id = context.getLocalProperty(_QUERY_ID) or ""
        return BatchMessage(self._planned.write(iterator), self._planned, query_id)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Publish the files of all tasks as one snapshot, unless the batch was committed before, and compact.

        If it raises, it deletes the files, unless a snapshot may name them.
        """
        written = _of_tasks(messages)
        if not written:  # Spark runs one task for a micro-batch without partitions.
            raise UnsupportedFeatureError(
                "format('lakelsm') writes micro-batches, and Spark runs no task of it in continuous processing. Use "
                "another trigger."
            )
        first = written[0]
        user = self._options.commit_user or commit_user_of_query(first.query_id)
        files = [message.files for message in written]
        every = self._options.compact_every
        first.planned.publish(files, user, batchId, query_id=first.query_id, compact_every=every)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete the files of all tasks; without a report of any task, they are left to orphan removal.

        Spark also calls it after a failed commit. Then each task has a message, and `commit` has deleted what no
        snapshot can name.
        """
        written = _of_tasks(messages)
        if written and len(written) < len(messages):
            written[0].planned.delete_files()


def _of_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[BatchMessage]:
    return [message for message in messages if isinstance(message, BatchMessage)]

"""The messages of Spark tasks, collected on the driver."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakelsm.commit.task_messages import TaskMessages
from lakelsm.format.index.index_manifest import decode_index_manifest
from lakelsm.format.manifest import decode_entries
from lakelsm.format.paths import AttemptNames
from lakelsm.spark.task_errors import translated
from lakelsm.spark.tasks import collect_to_end


def collect_messages(frame: DataFrame, root: str, names: AttemptNames) -> TaskMessages:
    """Run the tasks of ``frame`` (rows of `MESSAGE_SCHEMA`) on the table in ``root``, and join their messages.

    What lakelsm knows of a task's failure is raised as a LakelsmError. No task runs any more when it is.
    """
    with translated(root):
        rows = collect_to_end(frame, names.mark)
    joined = TaskMessages()
    for entries, index_entries, changelog_entries in rows:
        decoded = decode_index_manifest(bytes(index_entries), "a task's message")
        joined.add(TaskMessages(decode_entries(bytes(entries)), decoded, decode_entries(bytes(changelog_entries))))
    return joined

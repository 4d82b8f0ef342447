"""What a Spark task tells the driver: manifest entries and index entries, in the format's own encoding."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from lakelsm.format.index_manifest import IndexManifestEntry, decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import ManifestEntry, decode_entries, encode_entries
from lakelsm.spark.task_errors import translated

#: Spark schema of the batches that carry messages.
MESSAGE_SCHEMA = "entries binary, index_entries binary, changelog_entries binary"


@dataclass
class TaskMessages:
    """Files that a task wrote, not yet visible to anybody."""

    entries: list[ManifestEntry] = field(default_factory=list)
    index_entries: list[IndexManifestEntry] = field(default_factory=list)
    changelog_entries: list[ManifestEntry] = field(default_factory=list)

    def add(self, other: TaskMessages) -> None:
        """Append another task's messages."""
        self.entries.extend(other.entries)
        self.index_entries.extend(other.index_entries)
        self.changelog_entries.extend(other.changelog_entries)

    def to_batch(self) -> pa.RecordBatch:
        """One row of `MESSAGE_SCHEMA`."""
        row = {
            "entries": encode_entries(self.entries),
            "index_entries": encode_index_manifest(self.index_entries),
            "changelog_entries": encode_entries(self.changelog_entries),
        }
        return pa.RecordBatch.from_arrays([pa.array([value], pa.binary()) for value in row.values()], list(row))


def collect_messages(frame: DataFrame, root: str) -> TaskMessages:
    """Run the tasks of ``frame`` (rows of `MESSAGE_SCHEMA`) and join their messages.

    ``root`` is the table's directory. What lakelsm knows of a task's failure is raised as a LakelsmError.
    """
    with translated(root):
        rows = frame.collect()
    joined = TaskMessages()
    for entries, index_entries, changelog_entries in rows:
        decoded = decode_index_manifest(bytes(index_entries), "a task's message")
        joined.add(TaskMessages(decode_entries(bytes(entries)), decoded, decode_entries(bytes(changelog_entries))))
    return joined

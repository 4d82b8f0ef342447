"""What a task tells the driver of the files that it wrote, in the format's own encoding."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from lakelsm.format.index.index_manifest import IndexManifestEntry, encode_index_manifest
from lakelsm.format.manifest import ManifestEntry, encode_entries

#: Columns of the batches that carry messages, as Spark's DDL.
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

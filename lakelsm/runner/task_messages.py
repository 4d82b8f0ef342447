"""The messages of tasks to the driver about the files that they wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.index.index_manifest import IndexManifestEntry, decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import ManifestEntry, decode_entries, encode_entries

#: Columns of the batches that carry messages, as Spark's DDL.
MESSAGE_SCHEMA = (
    "entries binary, index_entries binary, changelog_entries binary, "
    "marks array<struct<partition: binary, bucket: int, data_file: string, positions: binary>>, "
    "ignored_rows bigint, ignored_deletes bigint"
)
_MARKS_TYPE = pa.list_(
    pa.struct(
        [("partition", pa.binary()), ("bucket", pa.int32()), ("data_file", pa.string()), ("positions", pa.binary())]
    )
)

#: Rows that a compaction replaced in files that it does not rewrite: positions by data file, by partition and bucket.
Marks: TypeAlias = dict[tuple[bytes, int], dict[str, BitMap]]


@dataclass
class TaskMessages:
    """Files that a task wrote, not yet visible to anybody, and the rows elsewhere that they replace.

    ``ignored_rows`` of its input have no effect (`ignored_rows`); ``ignored_deletes`` of them are of kind -D.
    """

    entries: list[ManifestEntry] = field(default_factory=list)
    index_entries: list[IndexManifestEntry] = field(default_factory=list)
    changelog_entries: list[ManifestEntry] = field(default_factory=list)
    marks: Marks = field(default_factory=dict)
    _: KW_ONLY
    ignored_rows: int = 0
    ignored_deletes: int = 0

    def add(self, other: TaskMessages) -> None:
        """Append another task's messages; marks of one data file are united."""
        self.entries.extend(other.entries)
        self.index_entries.extend(other.index_entries)
        self.changelog_entries.extend(other.changelog_entries)
        self.ignored_rows += other.ignored_rows
        self.ignored_deletes += other.ignored_deletes
        for bucket, files in other.marks.items():
            known = self.marks.setdefault(bucket, {})
            for name, positions in files.items():
                known[name] = known[name] | positions if name in known else positions

    def to_batch(self) -> pa.RecordBatch:
        """One row of `MESSAGE_SCHEMA`."""
        marks = [
            {"partition": partition, "bucket": bucket, "data_file": name, "positions": bytes(positions.serialize())}
            for (partition, bucket), files in self.marks.items()
            for name, positions in files.items()
        ]
        row = {
            "entries": pa.array([encode_entries(self.entries)], pa.binary()),
            "index_entries": pa.array([encode_index_manifest(self.index_entries)], pa.binary()),
            "changelog_entries": pa.array([encode_entries(self.changelog_entries)], pa.binary()),
            "marks": pa.array([marks], _MARKS_TYPE),
            "ignored_rows": pa.array([self.ignored_rows], pa.int64()),
            "ignored_deletes": pa.array([self.ignored_deletes], pa.int64()),
        }
        return pa.RecordBatch.from_arrays(list(row.values()), list(row))

    @staticmethod
    def of_row(row: Sequence[Any]) -> TaskMessages:
        """The messages of a row of `MESSAGE_SCHEMA`."""
        entries, index_entries, changelog_entries, marks, ignored_rows, ignored_deletes = row
        found = TaskMessages(
            decode_entries(bytes(entries)),
            decode_index_manifest(bytes(index_entries), "a task's message"),
            decode_entries(bytes(changelog_entries)),
            ignored_rows=ignored_rows,
            ignored_deletes=ignored_deletes,
        )
        for mark in marks:
            files = found.marks.setdefault((bytes(mark["partition"]), mark["bucket"]), {})
            files[mark["data_file"]] = BitMap.deserialize(bytes(mark["positions"]))
        return found

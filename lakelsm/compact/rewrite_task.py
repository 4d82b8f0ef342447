"""The task that merges the files of a rewrite group and writes them to the output level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa

from lakelsm.format.key_value_file import FileLayout, RollingWriter
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.merge.kernel import MergeSpec
from lakelsm.merge.run_reader import MergeUnit, RunReader
from lakelsm.merge.streaming import merge_runs
from lakelsm.write.messages import TaskMessages

_FILE_SOURCE_COMPACT = 1  # Persisted: do not change.


@dataclass(frozen=True)
class RewriteUnit:
    """Sections in key order whose merged rows go to one stream of files."""

    sections: tuple[MergeUnit, ...]
    partition: bytes
    bucket: int
    total_buckets: int
    directory: str
    output_level: int
    drop_delete: bool


@dataclass(frozen=True)
class RewriteTask:
    """What all rewrite units of a table share; pickled once."""

    reader: RunReader
    layout: FileLayout
    spec: MergeSpec

    def __call__(self, unit: RewriteUnit) -> Iterator[pa.RecordBatch]:
        """Merge and write one unit; yield its message: the ADD entries of the new files."""
        filesystem = self.reader.file_io.filesystem()
        writer = RollingWriter(
            filesystem, unit.directory, str(uuid4()), self.layout, unit.output_level, _FILE_SOURCE_COMPACT
        )
        try:
            for section in unit.sections:
                for rows in merge_runs(self.reader.open_runs(section), self.spec, unit.drop_delete):
                    writer.write(rows)
            files = writer.close()
        except BaseException:
            writer.abort()
            raise
        yield TaskMessages(
            [ManifestEntry(FileKind.ADD, unit.partition, unit.bucket, unit.total_buckets, meta) for meta in files]
        ).to_batch()

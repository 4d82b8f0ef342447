"""The task that merges the files of a rewrite group and writes them to the output level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from uuid import uuid4

import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from lakelsm.format.key_value_file import FileLayout, RollingWriter
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.merge.kernel import MergeSpec
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.merge.run_reader import MergeUnit, RunFile, RunReader
from lakelsm.merge.streaming import merge_runs
from lakelsm.write.messages import TaskMessages

_FILE_SOURCE_COMPACT = 1  # Persisted: do not change.

#: Runs that are merged at once.
_FAN_IN = 64


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
    """What all rewrite units of a table share; pickled once. Rows that ``expiry`` finds too old at ``epoch_millis`` are
    left out before the merge, as Paimon does.
    """

    reader: RunReader
    layout: FileLayout
    spec: MergeSpec
    expiry: RecordExpiry | None = None
    epoch_millis: int = 0

    def __call__(self, unit: RewriteUnit) -> Iterator[pa.RecordBatch]:
        """Merge and write one unit; yield its message: the ADD entries of the new files."""
        filesystem = self.reader.file_io.filesystem()
        writer = RollingWriter(
            filesystem, unit.directory, str(uuid4()), self.layout, unit.output_level, _FILE_SOURCE_COMPACT
        )
        try:
            with TemporaryDirectory(prefix="lakelsm-merge-") as scratch:
                for section in unit.sections:
                    narrow = self._narrowed(section, scratch)
                    for rows in merge_runs(self._open(narrow), self.spec, unit.drop_delete):
                        writer.write(rows)
            files = writer.close()
        except BaseException:
            writer.abort()
            raise
        yield TaskMessages(
            [ManifestEntry(FileKind.ADD, unit.partition, unit.bucket, unit.total_buckets, meta) for meta in files]
        ).to_batch()

    def _open(self, unit: MergeUnit) -> list[Iterator[pa.Table]]:
        runs = self.reader.open_runs(unit)
        if self.expiry is None:
            return runs
        return [map(partial(self.expiry.unexpired, now_millis=self.epoch_millis), run) for run in runs]

    def _narrowed(self, section: MergeUnit, scratch: str) -> MergeUnit:
        """A section of at most `_FAN_IN` runs with the same merged rows: its oldest runs are merged to files first.

        However many runs there are, a task holds a batch of so many only.
        """
        while len(section.runs) > _FAN_IN:
            oldest = replace(section, runs=section.runs[:_FAN_IN])
            writer = RollingWriter(LocalFileSystem(), scratch, str(uuid4()), self.layout, 0, _FILE_SOURCE_COMPACT)
            for rows in merge_runs(self._open(oldest), self.spec, drop_deletes=False):
                writer.write(rows)
            merged = tuple(
                RunFile(f"{scratch}/{meta.file_name}", meta.schema_id, meta.row_count, meta.file_size, local=True)
                for meta in writer.close()
            )
            section = replace(section, runs=(merged, *section.runs[_FAN_IN:]) if merged else section.runs[_FAN_IN:])
        return section

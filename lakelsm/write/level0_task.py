"""The task that writes level-0 files from sorted rows and yields their manifest entries."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import fs as arrow_fs

from lakelsm.commit.attempt_files import delete_unpublished
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.key_value_file import FileLayout, conform, key_types, row_schema
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.data_file.written_file import WrittenFile, file_metas
from lakelsm.format.file_names import AttemptNames, CommitFileNames, FileNames
from lakelsm.format.index.hash_index import encode_hashes
from lakelsm.format.index.index_manifest import HASH_INDEX, IndexFileMeta, IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.partition_path import partition_text
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import EMPTY_ROW, encode_rows, with_arity
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.format.row_kinds import DELETE, ROW_KINDS
from lakelsm.merge.batch_check import check_batch, ignored_rows
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_order import OrderKeys, group_starts, order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.storage import FileIO
from lakelsm.write.event_time import EventTimeColumn


@dataclass(frozen=True, kw_only=True)
class Level0Job:
    """The input of the writing tasks; pickled once.

    ``first_sequence`` is above all sequence numbers of the table. ``total_buckets`` is written to the manifest (-1 for
    dynamic buckets). ``hash_indexes`` maps (partition, bucket) to the HASH index file of the bucket; None for fixed
    buckets. ``batch_bytes`` limits the rows that are merged together. With ``changelog_layout``, all rows are also
    written to changelog files (``changelog-producer`` = ``input``); the rows of a key must come in their order.
    ``interleaved``: rows are sorted by key alone, so all buckets are open; their unwritten rows together are limited to
    the bytes of one row group. Rows of ``dropped_kinds`` are counted and not written.
    ``event_time`` is the column from which the tasks compute the watermark of the batch.
    """

    file_io: FileIO
    paths: TablePaths
    layout: FileLayout
    spec: MergeSpec
    first_sequence: int
    total_buckets: int
    partition_default_name: str
    partition_legacy_name: bool
    batch_bytes: int
    hash_indexes: Mapping[tuple[bytes, int], HashIndex] | None = None
    changelog_layout: FileLayout | None = None
    interleaved: bool = False
    dropped_kinds: tuple[int, ...] = ()
    event_time: EventTimeColumn | None = None
    names: AttemptNames
    environment: Environment = SYSTEM

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task and yield one batch of messages.

        REQUIRES: the rows are sorted by partition, bucket and key, or by key alone if ``interleaved``.
        """
        task = _Level0Task(self)
        try:
            for rows in _gathered(batches, self.batch_bytes):
                task.write(rows)
            yield task.finish().to_batch()
        except BaseException:
            task.abort()
            raise


def _gathered(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.Table]:
    """Yield tables of about ``limit`` bytes: small batches are joined, large ones are cut."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        for part in _cut(batch, limit):
            pending.append(part)
            size += part.nbytes
            if size >= limit:
                yield pa.Table.from_batches(pending)
                pending, size = [], 0
    if pending:
        yield pa.Table.from_batches(pending)


def _cut(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts of at most ``limit`` bytes. It is halved repeatedly, because the size of rows may vary."""
    if batch.nbytes <= limit or len(batch) <= 1:
        yield batch
        return
    half = len(batch) // 2
    yield from _cut(batch.slice(0, half), limit)
    yield from _cut(batch.slice(half), limit)


class _Level0Task:
    def __init__(self, job: Level0Job) -> None:
        self._job = job
        self._schema = job.layout.schema
        self._filesystem = job.file_io.filesystem()
        self._row_schema = row_schema(self._schema.fields)
        self._partition_types = [field.type for field in self._schema.partition_fields]
        self._open: dict[tuple[bytes, int], _BucketWriter] = {}
        self._buckets: list[_BucketFiles] = []
        self._written: list[_WrittenBucket] = []
        self._ignored = self._ignored_deletes = 0
        self._kinds = np.zeros(len(ROW_KINDS), dtype=np.int64)
        self._newest: int | None = None

    def write(self, rows: pa.Table) -> None:
        """Split rows by partition and bucket and hand them to the writers of their buckets."""
        rows = self._without_dropped(rows)
        if not len(rows):
            return
        values = conform(rows, self._row_schema).combine_chunks()
        check_batch(values, self._job.spec)
        self._count(values.column(VALUE_KIND), ignored_rows(values, self._job.spec))
        self._kinds += np.bincount(values.column(VALUE_KIND).to_numpy(), minlength=len(ROW_KINDS))
        if self._job.event_time is not None:
            self._newest = self._job.event_time.newest(values, self._newest)
        # Rows of Spark have TIME as a number, but the bytes and the directory of a partition need the type of the column.
        heads = [*(values.column(name) for name in self._schema.partition_keys), rows.column(BUCKET)]
        groups, order = order_keys(heads, signed_zeros=True), None
        if self._job.interleaved and (groups != groups[0]).any():
            order = np.argsort(groups, kind="stable")
            groups = groups[order]
        starts = np.flatnonzero(group_starts(groups))
        stops = np.append(starts[1:], len(rows))
        firsts = starts if order is None else order[starts]
        for start, stop, first, bucket_key in zip(starts, stops, firsts, self._bucket_keys(heads, firsts)):
            # With `order`, a copy: unwritten rows of one bucket must not keep the rows of all buckets in memory.
            part = values.slice(start, stop - start) if order is None else values.take(pa.array(order[start:stop]))
            self._writer_of(bucket_key, [head[first] for head in heads[:-1]]).write(part)
        if self._job.interleaved:
            self._bound_pending()

    def _without_dropped(self, rows: pa.Table) -> pa.Table:
        if not self._job.dropped_kinds:
            return rows
        kinds = rows.column(VALUE_KIND)
        dropped = np.isin(kinds.to_numpy(), self._job.dropped_kinds)
        self._count(kinds, dropped)
        return rows.filter(pa.array(~dropped)) if dropped.any() else rows

    def _count(self, kinds: pa.ChunkedArray, ignored: Mask) -> None:
        """Count rows without effect."""
        if ignored.any():
            self._ignored += int(ignored.sum())
            self._ignored_deletes += int((ignored & (kinds.to_numpy() == DELETE)).sum())

    def _bucket_keys(self, heads: Sequence[pa.ChunkedArray], firsts: np.ndarray) -> list[tuple[bytes, int]]:
        """Return partition and bucket of rows. Partitions are BinaryRows with arity: NaN = NaN, and -0.0 is not 0.0."""
        taken = [head.take(pa.array(firsts)) for head in heads]
        partitions = [EMPTY_ROW] * len(firsts)
        if self._partition_types:
            types = self._partition_types
            partitions = with_arity(encode_rows(taken[:-1], types), len(types)).to_pylist()
        return list(zip(partitions, taken[-1].to_pylist()))

    def _writer_of(self, bucket_key: tuple[bytes, int], partition_values: Sequence[pa.Scalar]) -> _BucketWriter:
        found = self._open.get(bucket_key)
        if found is None:
            if not self._job.interleaved:
                self._close_buckets()
            partition, bucket = bucket_key
            found = self._open[bucket_key] = _BucketWriter(
                self._job, self._filesystem, partition=partition, partition_values=partition_values, bucket=bucket
            )
            self._buckets.append(found.files)
        return found

    def _bound_pending(self) -> None:
        """Write the largest pending row groups if all together have more bytes than one row group may have."""
        writers = [writer for bucket in self._open.values() for writer in bucket.files.writers]
        total = sum(writer.pending_bytes for writer in writers)
        while total > self._job.layout.row_group_bytes:
            largest = max(writers, key=lambda writer: writer.pending_bytes)
            total -= largest.pending_bytes
            largest.write_pending()

    def finish(self) -> TaskMessages:
        """Close the open buckets and return the entries of all written files."""
        self._close_buckets()
        job, buckets = self._job, self._written
        event_time = job.event_time
        return TaskMessages(
            self._entries([(bucket, file) for bucket in buckets for file in bucket.files], job.layout),
            [entry for bucket in buckets for entry in bucket.indexes],
            self._entries([(bucket, file) for bucket in buckets for file in bucket.changes], job.changelog_layout),
            ignored_rows=self._ignored,
            ignored_deletes=self._ignored_deletes,
            row_kinds=tuple(self._kinds.tolist()),
            watermark=None if event_time is None else event_time.watermark(self._newest),
        )

    def _entries(
        self, files: Sequence[tuple[_WrittenBucket, WrittenFile]], layout: FileLayout | None
    ) -> list[ManifestEntry]:
        if layout is None:
            return []
        metas = file_metas([file for _, file in files], layout.schema)
        return [
            ManifestEntry(FileKind.ADD, bucket.partition, bucket.bucket, self._job.total_buckets, file=meta)
            for (bucket, _), meta in zip(files, metas)
        ]

    def abort(self) -> None:
        """Delete the files that the task wrote, including those of finished buckets."""
        for bucket in self._buckets:
            bucket.abort()

    def _close_buckets(self) -> None:
        self._written += [bucket.finish() for bucket in self._open.values()]
        self._open.clear()


@dataclass(frozen=True, kw_only=True)
class _WrittenBucket:
    """The complete files of one bucket: data files, changelog files, HASH index."""

    partition: bytes
    bucket: int
    files: Sequence[WrittenFile]
    changes: Sequence[WrittenFile]
    indexes: Sequence[IndexManifestEntry]


@dataclass
class _BucketFiles:
    """The files that a task wrote for one bucket."""

    file_io: FileIO
    writers: list[RollingWriter]
    indexes: list[str] = field(default_factory=list)

    def abort(self) -> None:
        """Delete the files. Raises nothing, because another error is being handled."""
        for writer in self.writers:
            writer.abort()
        delete_unpublished(self.file_io, self.indexes)


class _BucketWriter:
    """Merges and writes the rows of one bucket, which arrive in key order."""

    def __init__(
        self,
        job: Level0Job,
        filesystem: arrow_fs.FileSystem,
        *,
        partition: bytes,
        partition_values: Sequence[pa.Scalar],
        bucket: int,
    ) -> None:
        self._job = job
        schema = job.layout.schema
        self._partition = partition
        self._bucket = bucket
        self._key_types = key_types(schema)
        texts = [
            (name, partition_text(value, kind, job.partition_legacy_name, job.partition_default_name))
            for name, value, kind in zip(
                schema.partition_keys, partition_values, (field.type for field in schema.partition_fields)
            )
        ]
        directory = job.paths.bucket_dir(texts, bucket)
        job.file_io.check_directory(directory)
        names = FileNames(job.names.uuid())
        writer_of = partial(
            RollingWriter,
            filesystem,
            directory,
            names,
            make_directory=partial(job.file_io.mkdirs, durable=False),
            make_durable=job.file_io.make_durable if job.layout.durable else None,
            environment=job.environment,
        )
        self._writer = writer_of(job.layout, level=0, file_source=FileSource.APPEND)
        self._changelog: RollingWriter | None = None
        if job.changelog_layout is not None:
            self._changelog = writer_of(job.changelog_layout, level=0, file_source=FileSource.APPEND)
        self.files = _BucketFiles(job.file_io, [w for w in (self._writer, self._changelog) if w is not None])
        self._held: pa.Table | None = None
        self._next_sequence = job.first_sequence
        self._hashes: list[np.ndarray] = []

    def write(self, rows: pa.Table) -> None:
        """Merge rows of equal keys and write them. Rows of the last key are kept, because more may follow."""
        if self._changelog is not None:
            rows = self._numbered(rows)
            self._changelog.write(rows)
        if self._held is not None:
            rows = pa.concat_tables([self._held, rows])
        rows = rows.combine_chunks()
        keys = order_keys([rows.column(name) for name in self._job.spec.key_columns])
        if (keys[1:] < keys[:-1]).any():
            raise CorruptTableError("The rows of a task are not in key order. This is a bug of lakelsm; report it.")
        last = int(np.searchsorted(keys, keys[-1], side="left")) if len(keys) else 0
        held = rows.slice(last)
        if self._job.interleaved:  # A copy: a slice would keep the whole batch in memory until the bucket's next rows.
            held = rows.take(pa.array(np.arange(last, len(rows))))
        self._held = self._bounded(held, keys[last:])
        self._write_merged(self._merged(rows.slice(0, last), keys[:last]))

    def finish(self) -> _WrittenBucket:
        """Write the rows of the last key and close the files."""
        if self._held is not None:
            keys = order_keys([self._held.column(name) for name in self._job.spec.key_columns])
            self._write_merged(self._merged(self._held, keys))
        files = self._writer.finish()
        changes = [] if self._changelog is None else self._changelog.finish()
        return _WrittenBucket(
            partition=self._partition,
            bucket=self._bucket,
            files=files,
            changes=changes,
            indexes=self._write_hash_index(),
        )

    def _numbered(self, rows: pa.Table) -> pa.Table:
        """Return the rows with sequence numbers instead of their order."""
        numbers = np.arange(self._next_sequence, self._next_sequence + len(rows))
        self._next_sequence += len(rows)
        at = rows.schema.get_field_index(SEQUENCE_NUMBER)
        return rows.set_column(at, rows.schema.field(at), pa.array(numbers, pa.int64()))

    def _bounded(self, rows: pa.Table, keys: OrderKeys) -> pa.Table:
        """Return the kept rows of one key, merged if that cannot change the result, or if they are too large."""
        if self._job.spec.keeps_rows or rows.nbytes > self._job.batch_bytes:
            return self._merged(rows, keys)
        return rows

    def _merged(self, rows: pa.Table, keys: OrderKeys) -> pa.Table:
        """Return one row for each key. If all keys have one row, the usual case, nothing is merged."""
        if group_starts(keys).all() and not self._job.spec.ignore_delete:
            return rows
        return merge_rows(rows, keys, self._job.spec)

    def _write_merged(self, rows: pa.Table) -> None:
        if not len(rows):
            return
        # With a changelog, the rows already have their sequence numbers.
        self._writer.write(self._numbered(rows) if self._changelog is None else rows)
        if self._job.hash_indexes is not None:
            arrays = [rows.column(name) for name in self._job.spec.key_columns]
            self._hashes.append(key_hashes(arrays, self._key_types))

    def _write_hash_index(self) -> list[IndexManifestEntry]:
        """Write the bucket's HASH index if the batch has new keys (docs/format.md 10.1)."""
        if self._job.hash_indexes is None or not self._hashes:
            return []
        index = self._job.hash_indexes.get((self._partition, self._bucket))
        known = np.empty(0, np.int32) if index is None else index.read(self._job.file_io)
        every = np.union1d(known, np.concatenate(self._hashes))
        if index is not None and len(every) == len(known):
            return []
        name = CommitFileNames(self._job.names.uuid()).index()
        data = encode_hashes(every)
        self._job.file_io.write(self._job.paths.index(name), data, durable=self._job.layout.durable)
        self.files.indexes.append(self._job.paths.index(name))
        meta = IndexFileMeta(HASH_INDEX, name, len(data), len(every), checksum=zlib.crc32(data))
        return [IndexManifestEntry(FileKind.ADD, self._partition, self._bucket, meta)]

"""The deletion vectors of buckets after a compaction: one index file a bucket, written anew where one of them changes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import compress

from pyroaring import BitMap

from lakelsm.commit.commit_message import Marks
from lakelsm.format.index.deletion_vectors import encode_vectors
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexFileMeta, IndexManifestEntry
from lakelsm.format.manifest import FileKind
from lakelsm.format.paths import AttemptNames, CommitFileNames
from lakelsm.plan.compaction_plan import BucketCompaction, CompactionPlan
from lakelsm.snapshots.table_store import TableStore

_THREADS = 16


@dataclass(frozen=True)
class IndexChanges:
    """Index files that take the place of others: ``adds`` of the buckets that have vectors, ``deletes`` of the rest."""

    adds: list[IndexManifestEntry] = field(default_factory=list)
    deletes: list[IndexManifestEntry] = field(default_factory=list)


def write_vectors(
    store: TableStore, plan: CompactionPlan, buckets: Sequence[BucketCompaction], marks: Marks, names: AttemptNames
) -> IndexChanges:
    """Write the index files of the buckets whose vectors a compaction changes.

    Vectors of files that it rewrites go, and so do those of files that are gone already; new ``marks`` are added to the
    vectors of files that stay. A bucket has one index file, as other writers keep one only.
    """
    rows = _rows_of_files_that_stay(plan, buckets)
    changed = [_changed(plan, bucket, marks, rows) for bucket in buckets]
    with ThreadPoolExecutor(_THREADS) as pool:
        work = list(compress(buckets, changed))
        written = list(pool.map(lambda bucket: _write(store, plan, bucket, marks, rows, names), work))
    changes = IndexChanges()
    for bucket, entry in zip(work, written):
        if entry is not None:
            changes.adds.append(entry)
        else:
            changes.deletes.extend(plan.vectors.entries.get((bucket.partition, bucket.bucket), ()))
    return changes


def _rows_of_files_that_stay(
    plan: CompactionPlan, buckets: Sequence[BucketCompaction]
) -> Mapping[tuple[bytes, int, str], int]:
    """The row counts of the files that a compaction leaves or moves up, by partition, bucket and name."""
    gone = {file.index for bucket in buckets for file in bucket.rewritten_files}
    stay = (entry for index, entry in enumerate(plan.entries) if index not in gone)
    return {(entry.partition, entry.bucket, entry.file.file_name): entry.file.row_count for entry in stay}


def _changed(
    plan: CompactionPlan, bucket: BucketCompaction, marks: Marks, rows: Mapping[tuple[bytes, int, str], int]
) -> bool:
    of, number = bucket.partition, bucket.bucket
    gone = any((of, number, name) not in rows for name in plan.vectors.of_bucket(of, number))
    return gone or bool(marks.get((of, number)))


def _write(
    store: TableStore,
    plan: CompactionPlan,
    bucket: BucketCompaction,
    marks: Marks,
    rows: Mapping[tuple[bytes, int, str], int],
    names: AttemptNames,
) -> IndexManifestEntry | None:
    """Write a bucket's vectors; None where it has none any more."""
    of, number = bucket.partition, bucket.bucket
    filesystem = store.file_io.filesystem()
    vectors: dict[str, BitMap] = {}
    for name, place in plan.vectors.of_bucket(of, number).items():
        if (of, number, name) in rows:
            vectors[name] = place.read(filesystem, rows[of, number, name])
    for name, positions in marks.get((of, number), {}).items():
        vectors[name] = vectors[name] | positions if name in vectors else positions
    if not vectors:
        return None
    data, ranges = encode_vectors(dict(sorted(vectors.items())), store.options.deletion_vectors_bitmap64)
    file_name = CommitFileNames(names.uuid()).index()
    store.file_io.write(store.paths.index(file_name), data, durable=store.options.lakelsm_durable_files)
    file = IndexFileMeta(
        DELETION_VECTORS_INDEX, file_name, len(data), len(ranges), dv_ranges=ranges, checksum=zlib.crc32(data)
    )
    return IndexManifestEntry(FileKind.ADD, of, number, file)

"""Writes the deletion vectors of buckets after a compaction: one index file for each bucket with changed vectors."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import compress

from lakelsm.format.data_file.vector_location import read_vectors
from lakelsm.format.file_names import AttemptNames, CommitFileNames
from lakelsm.format.index.deletion_vector_file import encode_vectors
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexFileMeta, IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.plan.bucket_files import BucketId
from lakelsm.runner.task_messages import MaskedPositions
from lakelsm.snapshots.deletion_vectors import DeletionVectors
from lakelsm.snapshots.table_store import TableStore

_THREADS = 16


@dataclass(frozen=True)
class IndexChanges:
    """Changes of index files: ``adds`` for buckets with vectors, ``deletes`` for buckets without vectors.

    ``masked`` is the number of newly masked rows.
    """

    adds: Sequence[IndexManifestEntry]
    deletes: Sequence[IndexManifestEntry]
    masked: int


def write_vectors(
    store: TableStore,
    before: DeletionVectors,
    files: Iterable[ManifestEntry],
    buckets: Sequence[BucketId],
    *,
    positions: MaskedPositions,
    names: AttemptNames,
) -> IndexChanges:
    """Write the index files of the ``buckets`` whose vectors a compaction changes: vectors ``before`` and ``positions``.

    ``files`` are the files after the compaction; vectors of other files are dropped. A bucket has one index file, because
    other writers keep only one.
    """
    rows = {(entry.partition, entry.bucket, entry.file.file_name): entry.file.row_count for entry in files}
    changed = [_changed(before, bucket, positions, rows) for bucket in buckets]
    work = list(compress(buckets, changed))
    # Names are made before the threads start, so that the same run gives the same name to each bucket.
    file_names = [CommitFileNames(names.uuid()).index() for _ in work]
    with ThreadPoolExecutor(_THREADS) as pool:
        written = list(
            pool.map(lambda bucket, name: _write(store, before, bucket, positions, rows, name), work, file_names)
        )
    emptied = [bucket for bucket, (entry, _) in zip(work, written) if entry is None]
    return IndexChanges(
        adds=[entry for entry, _ in written if entry is not None],
        deletes=[entry for bucket in emptied for entry in before.entries.get(bucket, ())],
        masked=sum(masked for _, masked in written),
    )


def _changed(
    before: DeletionVectors, bucket: BucketId, positions: MaskedPositions, rows: Mapping[tuple[bytes, int, str], int]
) -> bool:
    dropped = any((*bucket, name) not in rows for name in before.of_bucket(*bucket))
    return dropped or bool(positions.get(bucket))


def _write(
    store: TableStore,
    before: DeletionVectors,
    bucket: BucketId,
    positions: MaskedPositions,
    rows: Mapping[tuple[bytes, int, str], int],
    file_name: str,
) -> tuple[IndexManifestEntry | None, int]:
    """Write a bucket's vectors. Returns its index file (None: it has no vectors) and the number of newly masked rows."""
    filesystem = store.file_io.filesystem()
    kept = {name: location for name, location in before.of_bucket(*bucket).items() if (*bucket, name) in rows}
    wanted = ((location, rows[bucket[0], bucket[1], name]) for name, location in kept.items())
    vectors = dict(zip(kept, read_vectors(filesystem, wanted)))
    masked = sum(map(len, vectors.values()))
    for name, added in positions.get(bucket, {}).items():
        vectors[name] = vectors[name] | added if name in vectors else added
    masked = sum(map(len, vectors.values())) - masked
    if not vectors:
        return None, 0
    data, ranges = encode_vectors(dict(sorted(vectors.items())), store.options.deletion_vectors_bitmap64)
    store.file_io.write(store.paths.index(file_name), data, durable=store.options.lakelsm_durable_files)
    file = IndexFileMeta(
        DELETION_VECTORS_INDEX, file_name, len(data), len(ranges), dv_ranges=ranges, checksum=zlib.crc32(data)
    )
    return IndexManifestEntry(FileKind.ADD, *bucket, file), masked

"""Manifest entries as planning sees them: per bucket, with keys as comparable ranks."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.lsm.levels import FileRange
from lakelsm.merge.key_rank import rank_keys
from lakelsm.types import DataType

#: A partition (BinaryRow with arity) and a bucket of it.
BucketId = tuple[bytes, int]


_FILE_SOURCE_COMPACT = 1  # Persisted: do not change.


def by_bucket(
    entries: Sequence[ManifestEntry], key_types: Sequence[DataType], trust_delete_counts: bool = True
) -> dict[BucketId, list[FileRange]]:
    """Return the files of each bucket; `FileRange.index` points into ``entries``.

    Keys are ranked over all entries at once, so ranks of one call compare with each other. Without
    ``trust_delete_counts`` a file that no compaction wrote and that claims no deletes may have some: pypaimon counts
    none (docs/format.md 19.2), and it can write them to tables that have a ``rowkind.field``.
    """
    bounds = [entry.file.min_key for entry in entries] + [entry.file.max_key for entry in entries]
    ranks = rank_keys(bounds, key_types).tolist()
    buckets: dict[BucketId, list[FileRange]] = {}
    for index, (entry, low, high) in enumerate(zip(entries, ranks, ranks[len(entries) :])):
        file = entry.file
        view = FileRange(
            index,
            file.level,
            file.file_size,
            file.row_count,
            min_key=low,
            max_key=high,
            min_seq=file.min_sequence_number,
            max_seq=file.max_sequence_number,
            delete_rows=_delete_rows(file, trust_delete_counts),
            creation_time=file.creation_time_millis,
            name=file.file_name,
        )
        buckets.setdefault((entry.partition, entry.bucket), []).append(view)
    return buckets


def _delete_rows(file: DataFileMeta, trust: bool) -> int | None:
    if trust or file.delete_row_count or file.file_source == _FILE_SOURCE_COMPACT:
        return file.delete_row_count
    return None

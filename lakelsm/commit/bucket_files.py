"""Manifest entries as planning sees them: per bucket, with keys as comparable ranks."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.commit.key_rank import rank_keys
from lakelsm.format.manifest import ManifestEntry
from lakelsm.lsm.levels import FileRange
from lakelsm.types import DataType

#: A partition (BinaryRow with arity) and a bucket of it.
BucketId = tuple[bytes, int]


def by_bucket(entries: Sequence[ManifestEntry], key_types: Sequence[DataType]) -> dict[BucketId, list[FileRange]]:
    """Return the files of each bucket; `FileRange.index` points into ``entries``.

    Keys are ranked over all entries at once, so ranks of one call compare with each other.
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
            low,
            high,
            file.min_sequence_number,
            file.max_sequence_number,
            file.delete_row_count,
            file.creation_time_millis,
            file.file_name,
        )
        buckets.setdefault((entry.partition, entry.bucket), []).append(view)
    return buckets

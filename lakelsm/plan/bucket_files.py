"""Manifest entries as planning sees them: those of some partitions, by bucket, with keys as comparable ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from lakelsm.errors import CorruptTableError, LakelsmError, UnsupportedFeatureError
from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.manifest.data_file_meta import DataFileMeta, FileSource
from lakelsm.lsm.levels import FileRange
from lakelsm.lsm.pruning import partitions_that_may_match
from lakelsm.merge.key_order import rank_keys
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.manifest_scan import BucketFilter, PartitionFilter
from lakelsm.snapshots.table_store import TableStore

#: A partition (BinaryRow with arity) and the number of a bucket in it.
BucketId = tuple[bytes, int]


def by_bucket(store: TableStore, entries: Sequence[ManifestEntry]) -> dict[BucketId, list[FileRange]]:
    """Return the files of each bucket; `FileRange.index` is an index into ``entries``.

    The keys of all entries are ranked together, so ranks of one call can be compared with each other.
    """
    bounds = [entry.file.min_key for entry in entries] + [entry.file.max_key for entry in entries]
    ranks = rank_keys(bounds, key_types(store.schema)).tolist()
    buckets: dict[BucketId, list[FileRange]] = {}
    for index, (entry, low, high) in enumerate(zip(entries, ranks, ranks[len(entries) :])):
        file = entry.file
        if low > high:
            raise _descending_keys(store, file)
        view = FileRange(
            index,
            file.level,
            file.file_size,
            file.row_count,
            min_key=low,
            max_key=high,
            min_seq=file.min_sequence_number,
            max_seq=file.max_sequence_number,
            delete_rows=_delete_rows(store.options, file),
            creation_time=file.creation_time_millis,
            name=file.file_name,
        )
        buckets.setdefault((entry.partition, entry.bucket), []).append(view)
    return buckets


def _descending_keys(store: TableStore, file: DataFileMeta) -> LakelsmError:
    """Return the error for a file whose _MIN_KEY is above its _MAX_KEY in lakelsm's order of keys (docs/keys.md)."""
    subject = f"Table {store.name}: the manifest entry of data file {file.file_name} has a _MIN_KEY above its _MAX_KEY"
    if any(data_type.root in ("FLOAT", "DOUBLE") for data_type in key_types(store.schema)):
        return UnsupportedFeatureError(
            f"{subject}, because Java sorts -0.0 before 0.0 and lakelsm treats them as one key. Write these keys with "
            "only one of the zeros, or read the table with Java Paimon."
        )
    return CorruptTableError(f"{subject}: the manifest is damaged. Restore it, or read an older snapshot.")


def is_shown(options: TableOptions, level: int, fresh: bool = False) -> bool:
    """Return whether reads show files of a level.

    With `first-row` or deletion vectors reads show only levels above 0, as in Paimon. With
    ``deletion-vectors.merge-on-read``, and in ``fresh`` reads, level 0 is visible too.
    """
    if level > 0 or fresh:
        return True
    if options.merge_engine is MergeEngine.FIRST_ROW:
        return False
    return not options.deletion_vectors_enabled or options.deletion_vectors_merge_on_read


def has_one_row_per_key(options: TableOptions) -> bool:
    """Return whether no key has rows on two levels above 0.

    A compaction leaves out rows whose key is on a level below (`first-row`), or masks the rows below (deletion vectors).
    """
    return options.merge_engine is MergeEngine.FIRST_ROW or options.deletion_vectors_enabled


def _delete_rows(options: TableOptions, file: DataFileMeta) -> int | None:
    """Return the number of retractions in a file, None if its recorded count is unreliable.

    pypaimon records 0 for the files that it writes (docs/format.md 19.2), and it can write retractions to tables with a
    ``rowkind.field``. Compactions record the true count.
    """
    trusted = options.rowkind_field is None or file.delete_row_count or file.file_source == FileSource.COMPACT
    return file.delete_row_count if trusted else None


def partition_filter(store: TableStore, predicate: Predicate | None) -> PartitionFilter | None:
    """Return a filter that keeps stored partitions that may have matching rows and are to be read; None keeps all."""
    left_out = store.left_out_partitions
    condition = predicate if store.schema.partition_keys else None
    if condition is None:
        return None if not left_out else lambda partitions: [partition not in left_out for partition in partitions]

    def keep(partitions: Sequence[bytes]) -> Sequence[bool]:
        values = store.comparable_partitions(partitions)
        may_match = partitions_that_may_match(condition, store.schema.partition_keys, values)
        return [may and partition not in left_out for may, partition in zip(may_match, partitions)]

    return keep


def bucket_filter(only: Collection[int] | None) -> BucketFilter | None:
    """Return a filter that keeps entries of the buckets ``only``; None for all."""
    if only is None:
        return None
    wanted = np.array(sorted(only), dtype=np.int64)
    return lambda buckets, _: np.isin(buckets, wanted)


def both_filters(one: BucketFilter | None, other: BucketFilter | None) -> BucketFilter | None:
    """Return a filter that keeps what both filters keep."""
    if one is None or other is None:
        return one or other
    return lambda buckets, totals: one(buckets, totals) & other(buckets, totals)

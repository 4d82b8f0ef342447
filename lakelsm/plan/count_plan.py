"""Counts the rows of a snapshot from its manifests and the cardinalities of its deletion vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.manifest.columns import FileCounts
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.manifest.manifest_file import EntryBatch
from lakelsm.format.row.binary_row_slots import TIMESTAMP_ROOTS
from lakelsm.format.snapshot import Snapshot
from lakelsm.lsm.pruning import partitions_that_may_match
from lakelsm.merge.key_order import rank_keys
from lakelsm.plan.bucket_files import has_one_row_per_key, is_shown, partition_filter
from lakelsm.predicate.predicate import Predicate, columns, is_exact
from lakelsm.results import CountResult
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_scan import read_live_counts
from lakelsm.snapshots.table_store import TableStore

_Longs = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

#: More than the number of buckets that a partition can have.
_BUCKETS = 1 << 32


def selects_partitions(store: TableStore, predicate: Predicate | None) -> bool:
    """Return whether a condition selects whole partitions: it has partition columns only, and is fully understood."""
    return predicate is None or (is_exact(predicate) and columns(predicate) <= {*store.schema.partition_keys})


def prunes_exactly(store: TableStore, predicate: Predicate | None) -> bool:
    """Return whether partition pruning is exact for a condition: Python cannot compare all dates of Paimon's calendar."""
    calendar = {field.name for field in store.schema.partition_fields if field.type.root in ("DATE", *TIMESTAMP_ROOTS)}
    return predicate is None or (selects_partitions(store, predicate) and not columns(predicate) & calendar)


def metadata_count(
    store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None, fresh: bool = False
) -> int | None:
    """Return the number of rows of a snapshot (None: an empty table) that match, None if only data files decide.

    ``fresh`` includes level 0 if reads of the table leave it out. Manifests are sufficient if each file is read
    unchanged: it overlaps no other visible file and has no retraction.
    """
    if not selects_partitions(store, predicate):
        return None
    if snapshot is None:
        return 0
    store.check_schema(snapshot)
    batches = read_live_counts(store.file_io, store.paths, snapshot, partition_filter(store, predicate))
    vectors = deletion_vectors(store, snapshot)
    parts = [_shown(store, batch, rows, fresh) for batch, rows in batches]
    if predicate is not None:
        verdicts = [_matches(store, predicate, part.batch.partitions) for part in parts]
        if any(verdict is None for verdict in verdicts):
            return None
        parts = [
            part.taken(np.array(verdict, np.bool_)[part.batch.partition_codes[part.rows]])
            for part, verdict in zip(parts, verdicts)
        ]
    if not all(_is_clean(store, part.counts).all() for part in parts) or not _all_raw(store, parts):
        return None
    masked = [_masked_rows(part, vectors) for part in parts]
    if any(rows is None for rows in masked):
        return None
    return sum(int(part.counts.rows.sum()) for part in parts) - sum(filter(None, masked))


def combined_count(one: CountResult, other: CountResult) -> CountResult:
    """Return the sum of two counts of different rows, with the snapshot of the first one."""
    return replace(
        one,
        rows=one.rows + other.rows,
        how=other.how if one.how == "metadata" else one.how,
        files_opened=one.files_opened + other.files_opened,
    )


@dataclass(frozen=True)
class _Part:
    """The files of a batch that reads show: their row indexes in the batch, and their counts."""

    batch: EntryBatch
    rows: _Longs
    _: KW_ONLY
    counts: FileCounts

    def taken(self, mask: _Mask) -> _Part:
        return _Part(self.batch, self.rows[mask], counts=self.counts.selected(mask))


def _shown(store: TableStore, batch: EntryBatch, rows: _Longs, fresh: bool) -> _Part:
    part = _Part(batch, rows, counts=batch.counts(rows))
    levels = [level for level in np.unique(part.counts.levels).tolist() if is_shown(store.options, level, fresh)]
    return part.taken(np.isin(part.counts.levels, levels))


def _matches(store: TableStore, predicate: Predicate, partitions: Sequence[bytes]) -> Sequence[bool] | None:
    """Return which partitions match; None if one has a value that Python cannot represent, and so cannot compare."""
    keys = store.schema.partition_keys
    values = store.comparable_partitions(partitions) if keys else [()] * len(partitions)
    if any(type(value) is object for row in values for value in row):
        return None
    return partitions_that_may_match(predicate, keys, values)


def _is_clean(store: TableStore, counts: FileCounts) -> _Mask:
    """Return which files certainly have no retraction, by the rule of `bucket_files.by_bucket`."""
    clean: _Mask = counts.delete_rows == 0
    if store.options.rowkind_field is not None:
        clean &= counts.sources == FileSource.COMPACT
    return clean


def _all_raw(store: TableStore, parts: Sequence[_Part]) -> bool:
    """Return whether no file overlaps another file of its bucket that it would be merged with.

    Keys are read only if the levels do not decide: above level 0, files of one level do not overlap.
    """
    if not any(len(part.rows) for part in parts):
        return True
    partitions: dict[bytes, int] = {}
    codes = []
    for part in parts:
        numbers = np.array([partitions.setdefault(value, len(partitions)) for value in part.batch.partitions], np.int64)
        codes.append(numbers[part.batch.partition_codes[part.rows]] * _BUCKETS + part.batch.buckets[part.rows])
    buckets = np.unique(np.concatenate(codes), return_inverse=True)[1].astype(np.int64).reshape(-1)
    levels = np.concatenate([part.counts.levels for part in parts])
    lowest, highest = np.full(len(buckets), np.iinfo(np.int64).max), np.zeros(len(buckets), np.int64)
    np.minimum.at(lowest, buckets, levels)
    np.maximum.at(highest, buckets, levels)
    one_run = (lowest > 0) & ((lowest == highest) | has_one_row_per_key(store.options))
    unsure = ~one_run[buckets]
    if not unsure.any():
        return True
    masks = np.split(unsure, np.cumsum([len(part.rows) for part in parts])[:-1])
    bounds = [part.batch.key_bounds(part.rows[mask]) for part, mask in zip(parts, masks)]
    keys = pa.concat_arrays([low for low, _ in bounds] + [high for _, high in bounds])
    ranks = rank_keys(keys, key_types(store.schema))
    return _are_apart(buckets[unsure], ranks[: len(ranks) // 2], ranks[len(ranks) // 2 :])


def _are_apart(buckets: _Longs, lows: _Longs, highs: _Longs) -> bool:
    """Return whether no two key ranges of one bucket have a common key."""
    order = np.lexsort((lows, buckets))
    first = buckets[order] * (int(highs.max()) + 1)
    lows, highs = first + lows[order], np.maximum.accumulate(first + highs[order])
    return bool((lows[1:] > highs[:-1]).all())


def _masked_rows(part: _Part, vectors: DeletionVectors) -> int | None:
    """Return the number of rows of the files that deletion vectors mask, None if a vector does not record it."""
    if not vectors.locations or not len(part.rows):
        return 0
    codes, buckets = part.batch.partition_codes[part.rows], part.batch.buckets[part.rows]
    pairs, inverse = np.unique(codes * _BUCKETS + buckets, return_inverse=True)
    bucket_ids = [(part.batch.partitions[pair // _BUCKETS], pair % _BUCKETS) for pair in pairs.tolist()]
    total = 0
    for number, bucket in enumerate(bucket_ids):
        locations = vectors.of_bucket(*bucket)
        if locations:
            in_bucket = inverse.reshape(-1) == number
            files = zip(part.batch.file_names(part.rows[in_bucket]), part.counts.rows[in_bucket].tolist())
            counts = [locations[name].recorded_cardinality(rows) for name, rows in files if name in locations]
            if None in counts:
                return None
            total += sum(filter(None, counts))
    return total

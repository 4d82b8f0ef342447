"""Proves that appends are the only changes between two snapshots: then the rows that they wrote are the newest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lsm.interval_partition import Section, fewest_runs, overlap_groups
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.options import MergeEngine
from lakelsm.plan.bucket_files import BucketId, bucket_filter, by_bucket, is_shown
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_live_entries
from lakelsm.snapshots.sequence_base import NO_SEQUENCE, table_max_sequence
from lakelsm.snapshots.table_store import TableStore


def plan_newest_rows(
    store: TableStore, before: Snapshot, after: Snapshot, only: Collection[int] | None = None
) -> tuple[MergeUnit, ...] | None:
    """Return the units whose merge gives the newest row, or a retraction, of each key that was written after ``before``.

    None if metadata cannot prove this. The proof needs `deduplicate` by sequence numbers, reads that show level 0, and
    appends whose sequence numbers exceed all earlier ones of their buckets. ``only``: the buckets to consider (None:
    all).
    """
    options = store.options
    last_written_wins = options.merge_engine is MergeEngine.DEDUPLICATE and not options.sequence_field
    if not last_written_wins or options.ignore_delete or not is_shown(options, 0):
        return None
    appends = _appends(store, before, after, only)
    if appends is None:
        return None
    table_max = table_max_sequence(store.file_io, store.paths, before)
    if not _are_newer(appends, {}, table_max):
        live = read_live_entries(store.file_io, store.paths, before, keep_buckets=bucket_filter(only), stats=False)
        if not _are_newer(appends, _newest_numbers(live), NO_SEQUENCE):
            return None
    return _units(store, [entry for entries in appends for entry in entries])


def _appends(
    store: TableStore, before: Snapshot, after: Snapshot, only: Collection[int] | None
) -> list[list[ManifestEntry]] | None:
    """Return the entries that each append between two snapshots added; None if another commit may have changed rows."""
    appends: list[list[ManifestEntry]] = []
    for snapshot_id in range(before.id + 1, after.id + 1):
        snapshot = store.snapshots.try_get(snapshot_id)
        if snapshot is None or snapshot.commit_kind is CommitKind.OVERWRITE:
            return None
        if snapshot.commit_kind is CommitKind.COMPACT and RecordExpiry.of(store.options) is not None:
            return None
        if snapshot.commit_kind is CommitKind.APPEND:
            entries = read_delta_entries(store.file_io, store.paths, snapshot)
            appends.append([entry for entry in entries if only is None or entry.bucket in only])
            if any(entry.kind is not FileKind.ADD for entry in appends[-1]):
                return None
    return appends


def _newest_numbers(entries: Sequence[ManifestEntry]) -> dict[BucketId, int]:
    """Return the largest sequence number of each bucket."""
    newest: dict[BucketId, int] = {}
    for entry in entries:
        bucket, number = (entry.partition, entry.bucket), entry.file.max_sequence_number
        newest[bucket] = max(number, newest.get(bucket, number))
    return newest


def _are_newer(appends: Sequence[Sequence[ManifestEntry]], before: Mapping[BucketId, int], max_of_others: int) -> bool:
    """Return whether the sequence numbers of each append exceed all earlier ones of its buckets.

    ``before`` has the largest earlier numbers; ``max_of_others`` is used for buckets that it lacks.
    """
    newest = dict(before)
    for entries in appends:
        for entry in entries:
            if entry.file.min_sequence_number <= newest.get((entry.partition, entry.bucket), max_of_others):
                return False
        newest.update(_newest_numbers(entries))
    return True


def _units(store: TableStore, added: Sequence[ManifestEntry]) -> tuple[MergeUnit, ...]:
    make = MergeUnits(store, added)
    units: list[MergeUnit] = []
    for files in by_bucket(store, added).values():
        for group in overlap_groups(files):
            units += make.of_section(Section(fewest_runs(group)), store.options.source_split_target_size)
    return tuple(units)

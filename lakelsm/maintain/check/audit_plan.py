"""Plans which data files a check opens, and how its tasks share them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from typing import TypeVar

from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.manifest import ManifestEntry
from lakelsm.lsm.splits import pack_in_order, read_units
from lakelsm.maintain.check.file_audit import AuditedBucket, AuditedFile
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.plan.bucket_files import BucketId, by_bucket, has_one_row_per_key
from lakelsm.plan.merge_units import MergeUnits, pack_for_tasks
from lakelsm.snapshots.deletion_vectors import DeletionVectors
from lakelsm.snapshots.hash_indexes import HashIndex, HashIndexes
from lakelsm.snapshots.table_store import TableStore

Work = TypeVar("Work")

#: A sample has one item in 50, but at least 8 and at most 500.
_ONE_IN, _MIN_SAMPLE, _MAX_SAMPLE = 50, 8, 500
#: The maximum number of files of which one task reads only the footers.
_FOOTERS_A_TASK = 256


class CheckedData(str, Enum):
    """The data files that a check opens: none, only their footers, also all rows of a sample, or all rows."""

    NONE = "none"
    FOOTERS = "footers"
    SAMPLE = "sample"
    FULL = "full"


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """Work for `FileAudit`, `KeyAudit` and `HashAudit`. Each entry is the work of one task."""

    files: Sequence[Sequence[AuditedBucket]]
    keys: Sequence[Sequence[MergeUnit]]
    hashes: Sequence[Sequence[HashIndex]]


def plan_audit(
    store: TableStore,
    entries: Sequence[ManifestEntry],
    vectors: DeletionVectors,
    indexes: HashIndexes,
    *,
    data: CheckedData,
    chance: float,
) -> AuditPlan:
    """Plan which live files to open. ``chance`` (0 to 1) shifts the sample, so that each check reads other files."""
    units = MergeUnits(store, entries, vectors.of(entries))
    by_partition: dict[bytes, list[HashIndex]] = {}
    for (partition, _), index in indexes.items():
        by_partition.setdefault(partition, []).append(index)
    return AuditPlan(
        files=_file_work(store, entries, units, vectors, indexes, data, chance),
        keys=_key_work(store, entries, units, data, chance),
        hashes=list(by_partition.values()),
    )


def plan_changelog_audit(store: TableStore, entries: Sequence[ManifestEntry]) -> Sequence[Sequence[AuditedBucket]]:
    """Plan to read all rows of changelog files, given by their entries."""
    units, none = MergeUnits(store, entries), DeletionVectors()
    work = _file_work(store, entries, units, none, {}, CheckedData.FULL, 0.0)
    return [
        [replace(bucket, files=tuple(replace(file, is_changelog=True) for file in bucket.files)) for bucket in part]
        for part in work
    ]


def sampled(items: Sequence[Work], chance: float) -> list[Work]:
    """Return a sample of the items, evenly spread."""
    size = min(len(items), max(_MIN_SAMPLE, min(ceil(len(items) / _ONE_IN), _MAX_SAMPLE)))
    return [items[int((index + chance) * len(items) / size)] for index in range(size)]


def _file_work(
    store: TableStore,
    entries: Sequence[ManifestEntry],
    units: MergeUnits,
    vectors: DeletionVectors,
    indexes: HashIndexes,
    data: CheckedData,
    chance: float,
) -> list[list[AuditedBucket]]:
    chosen = _in_full(range(len(entries)), data, chance)
    locations = vectors.of(entries)
    buckets: dict[BucketId, list[AuditedFile]] = {}
    for index, entry in enumerate(entries):
        audited = AuditedFile(
            file=units.file_of(entry, locations[index]),
            entry=entry,
            in_full=index in chosen,
            index=FileIndexLocation.of(entry.file, units.directory(entry.partition, entry.bucket)),
        )
        buckets.setdefault((entry.partition, entry.bucket), []).append(audited)
    target, min_weight = store.options.source_split_target_size, store.options.source_split_open_file_cost

    def weight(file: AuditedFile) -> int:
        return max(file.file.file_size, min_weight) if file.in_full else ceil(target / _FOOTERS_A_TASK)

    work = [
        AuditedBucket(files=tuple(files), hash_index=indexes.get(bucket))
        for bucket, all_files in buckets.items()
        for files in pack_in_order(all_files, weight, target)
    ]
    return pack_in_order(work, lambda bucket: sum(map(weight, bucket.files)), target)


def _key_work(
    store: TableStore, entries: Sequence[ManifestEntry], units: MergeUnits, data: CheckedData, chance: float
) -> list[list[MergeUnit]]:
    """Return the sections with overlapping files above level 0, if the table allows only one row for each key there."""
    if not has_one_row_per_key(store.options) or data in (CheckedData.NONE, CheckedData.FOOTERS):
        return []
    sections = [
        section
        for files in by_bucket(store, entries).values()
        for section in read_units([file for file in files if file.level > 0]).merge_sections
        if len(section.runs) > 1
    ]
    target = store.options.source_split_target_size
    chosen = _in_full(sections, data, chance)
    work = [unit for section in sections if section in chosen for unit in units.of_section(section, target)]
    return pack_for_tasks(store.options, work, lambda unit: unit.files)


def _in_full(items: Sequence[Work], data: CheckedData, chance: float) -> Collection[Work]:
    if data is CheckedData.FULL:
        return items
    return set(sampled(items, chance)) if data is CheckedData.SAMPLE and items else ()

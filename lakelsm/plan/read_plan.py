"""The files of a batch read: those that are read unchanged, and sections whose rows hide each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.file_names import BUCKET_PREFIX
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.bucket_hash import bucket_ids
from lakelsm.format.snapshot import Snapshot
from lakelsm.lsm.levels import FileRange
from lakelsm.lsm.pruning import VersionRule, files_that_may_match, prune_by_values
from lakelsm.lsm.splits import read_units
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.plan.bucket_files import (
    BucketId,
    both_filters,
    bucket_filter,
    by_bucket,
    has_one_row_per_key,
    is_shown,
    partition_filter,
)
from lakelsm.plan.file_index_pruning import FileIndexPruning
from lakelsm.plan.file_statistics import statistics_of
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.predicate.predicate import Predicate, columns, equality_values
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.manifest_scan import BucketFilter, read_live_entries, read_manifest_metas
from lakelsm.snapshots.table_store import TableStore
from lakelsm.text_table import html_table
from lakelsm.types import DataField, python_arrow
from lakelsm.types.python_arrays import array_of

PartT = TypeVar("PartT")


@dataclass(frozen=True, repr=False)
class ReadPlan:
    """The files of a read of a snapshot. ``raw_files`` need no merge; ``merged_files`` are merged, in ``units``.

    ``files_live`` is the number of data files of the snapshot, ``files_scanned`` the number that the read opens.
    """

    snapshot: Snapshot | None
    _: KW_ONLY
    raw_files: tuple[RunFile, ...]
    merged_files: tuple[RunFile, ...]
    units: tuple[MergeUnit, ...]
    files_live: int

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot; None for a table without snapshots."""
        return None if self.snapshot is None else self.snapshot.id

    @property
    def files_scanned(self) -> int:
        """The number of data files that the read opens."""
        return len(self.raw_files) + len(self.merged_files)

    def __repr__(self) -> str:
        return f"ReadPlan({', '.join(f'{name}={value}' for name, value in self._shown())})"

    def _repr_html_(self) -> str:
        """Return a table of the same values, for notebooks."""
        return html_table(self._shown(), caption="ReadPlan")

    def _shown(self) -> list[tuple[str, int | None]]:
        names = ("snapshot_id", "files_live", "files_scanned")
        return [(name, getattr(self, name)) for name in names]


def plans_of_buckets(plan: ReadPlan) -> dict[int, ReadPlan]:
    """Return the parts of a plan by the numbers of their buckets; an empty plan is that of bucket 0."""
    raw, merged = (_by_bucket(files, lambda file: file) for files in (plan.raw_files, plan.merged_files))
    units = _by_bucket(plan.units, lambda unit: unit.all_runs[0][0])
    found = sorted({*raw, *merged, *units})
    return {
        bucket: replace(plan, raw_files=raw[bucket], merged_files=merged[bucket], units=units[bucket])
        for bucket in found or [0]
    }


def plans_of_directories(plan: ReadPlan) -> dict[str, ReadPlan]:
    """Return the parts of a plan without merges by the directories of their files; an empty plan is that of bucket 0."""
    found: defaultdict[str, list[RunFile]] = defaultdict(list)
    for file in plan.raw_files:
        found[file.path.rpartition("/")[0]].append(file)
    parts = {directory: replace(plan, raw_files=tuple(files)) for directory, files in sorted(found.items())}
    return parts or {f"{BUCKET_PREFIX}0": plan}


def bucket_of(directory: str) -> int:
    """Return the number of the bucket with a directory."""
    return int(directory.rpartition("/")[2].removeprefix(BUCKET_PREFIX))


def _by_bucket(parts: Sequence[PartT], file_of: Callable[[PartT], RunFile]) -> defaultdict[int, tuple[PartT, ...]]:
    found: defaultdict[int, tuple[PartT, ...]] = defaultdict(tuple)
    for part in parts:
        found[bucket_of(file_of(part).path.rpartition("/")[0])] += (part,)
    return found


def plan_read(
    store: TableStore,
    snapshot: Snapshot | None,
    predicate: Predicate | None,
    fresh: bool = False,
    only: Collection[int] | None = None,
    level: int | None = None,
) -> ReadPlan:
    """Plan the read of a snapshot from its manifests alone (None: an empty table).

    ``predicate`` leaves out partitions, buckets and files that certainly have no matching row; it does not filter rows.
    ``fresh`` includes level 0 if reads of the table leave it out. ``only`` are the buckets to read (None: all),
    ``level`` is the only level to read (None: all that reads show).
    """
    if snapshot is None:
        return ReadPlan(None, raw_files=(), merged_files=(), units=(), files_live=0)
    store.check_schema(snapshot)
    prunes_files = predicate is not None and bool(columns(predicate) - set(store.schema.partition_keys))
    entries = read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_partitions=partition_filter(store, predicate),
        keep_buckets=both_filters(_bucket_key_filter(store, predicate), bucket_filter(only)),
        stats=prunes_files,
    )
    every = by_bucket(store, entries)
    buckets = {
        bucket: [
            file for file in files if is_shown(store.options, file.level, fresh) and level in (None, file.level)
        ]
        for bucket, files in every.items()
    }
    if predicate is not None and prunes_files:
        buckets = _prune_files(store, predicate, entries, buckets, _version_rule(store.options, fresh))
    raw: list[RunFile] = []
    merged: list[RunFile] = []
    sections: list[MergeUnit] = []
    units = MergeUnits(store, entries, deletion_vectors(store, snapshot, buckets).of(entries))
    target = store.options.source_split_target_size
    for files in buckets.values():
        parts = read_units(files, unique_keys=has_one_row_per_key(store.options))
        raw.extend(map(units.file, parts.raw_files))
        for section in parts.merge_sections:
            merged.extend(map(units.file, section.files))
            sections.extend(units.of_section(section, target))
    metas = read_manifest_metas(store.file_io, store.paths, snapshot)
    live = sum(meta.num_added_files - meta.num_deleted_files for meta in metas)
    return ReadPlan(snapshot, raw_files=tuple(raw), merged_files=tuple(merged), units=tuple(sections), files_live=live)


def _version_rule(options: TableOptions, fresh: bool) -> VersionRule:
    engine = options.merge_engine
    if options.deletion_vectors_enabled and not is_shown(options, 0, fresh):
        return VersionRule.MASKED
    if engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION):
        return VersionRule.COMBINED
    if engine is MergeEngine.FIRST_ROW or options.sequence_field:
        return VersionRule.ANY_ONE
    return VersionRule.LAST_BY_SEQUENCE


def _bucket_key_filter(store: TableStore, predicate: Predicate | None) -> BucketFilter | None:
    """Keep the buckets that equality conditions on the bucket key allow; a file's own number of fixed buckets decides."""
    keys = store.schema.bucket_keys
    if predicate is None or store.options.bucket <= 0:
        return None
    wanted = equality_values(predicate, keys)
    if wanted is None:
        return None
    fields = [store.schema.field(name) for name in keys]
    arrays = _arrays(wanted, fields)

    def keep(buckets: npt.NDArray[np.int64], totals: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(buckets), dtype=bool)
        for total in np.unique(totals).tolist():
            same_total = totals == total
            if total <= 0:
                mask |= same_total
                continue
            allowed = bucket_ids(arrays, [f.type for f in fields], total, store.options.bucket_function_type.value)
            mask |= same_total & np.isin(buckets, allowed)
        return mask

    return keep


def _arrays(rows: Sequence[tuple[Any, ...]], fields: Sequence[DataField]) -> list[pa.Array]:
    return [array_of([row[index] for row in rows], python_arrow(field.type)) for index, field in enumerate(fields)]


def _prune_files(
    store: TableStore,
    predicate: Predicate,
    entries: Sequence[ManifestEntry],
    buckets: Mapping[BucketId, list[FileRange]],
    rule: VersionRule,
) -> dict[BucketId, list[FileRange]]:
    """Leave out files that have neither a matching row nor a row that hides a row of another file."""
    stats = statistics_of(store, entries, columns(predicate))
    by_keys = files_that_may_match(predicate, stats, store.schema.primary_keys)
    by_values = files_that_may_match(predicate, stats)
    shown = [file.index for files in buckets.values() for file in files]
    by_keys, by_values = FileIndexPruning(store, predicate).keep(entries, shown, by_keys, by_values)
    kept: dict[BucketId, list[FileRange]] = {}
    for bucket, files in buckets.items():
        left = prune_by_values([file for file in files if by_keys[file.index]], by_values, rule)
        if left:
            kept[bucket] = left
    return kept

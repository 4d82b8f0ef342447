"""The files that a stream reads of one snapshot, in groups, in the canonical order of positions.

The order depends on the manifests alone, so that a position means the same files in each process: groups are ordered by
partition and bucket, those of the full phase then by key, those of changes as the commit numbered or listed them. The
condition of a stream and its limits do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from itertools import accumulate

from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.manifest.entry import FileKind
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lsm.interval_partition import Section
from lakelsm.lsm.levels import FileRange, level_count
from lakelsm.lsm.splits import read_units
from lakelsm.options import ChangelogProducer, TableOptions
from lakelsm.plan.bucket_files import BucketId, by_bucket, has_one_row_per_key
from lakelsm.plan.changelog_plan import DifferenceUnit, plan_difference
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.plan.read_plan import bucket_of
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.manifest_scan import read_changelog_entries, read_delta_entries, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.feed_part import FeedUnit, FileChanges, LoadedRows, OverwriteChanges


@dataclass(frozen=True)
class FileGroup:
    """Files of one bucket that are read together. ``make`` makes their units when a batch reads them."""

    bucket: BucketId
    _: KW_ONLY
    files: int
    size: int
    rows: int
    make: Callable[[], Sequence[FeedUnit]] = field(compare=False)


@dataclass(frozen=True)
class SnapshotFiles:
    """The groups of one snapshot in canonical order."""

    groups: Sequence[FileGroup]

    @cached_property
    def positions(self) -> Sequence[int]:
        """The position before each group, and at last the number of all files."""
        return list(accumulate((group.files for group in self.groups), initial=0))

    @property
    def count(self) -> int:
        """The number of files."""
        return self.positions[-1]


def loaded_files(store: TableStore, snapshot: Snapshot) -> SnapshotFiles:
    """Return the files of the full phase: those on the levels that the later changes are based on, as in Paimon."""
    with store.while_read(snapshot):
        entries = read_live_entries(store.file_io, store.paths, snapshot, stats=False)
        found = by_bucket(store, entries)
        buckets = {bucket: _base_of_changes(store.options, files) for bucket, files in found.items()}
        vectors = deletion_vectors(store, snapshot, buckets).of(entries)
    make = MergeUnits(store, entries, vectors)
    groups: list[FileGroup] = []
    for bucket in sorted(buckets):
        units = read_units(buckets[bucket], unique_keys=has_one_row_per_key(store.options))
        parts: list[FileRange | Section] = [*units.raw_files, *units.merge_sections]
        for part in sorted(parts, key=_by_key):
            files = part.files if isinstance(part, Section) else (part,)
            groups.append(_group(bucket, files, partial(_loaded, store, snapshot, make, part)))
    return SnapshotFiles(groups)


def changed_files(store: TableStore, snapshot: Snapshot, producer: ChangelogProducer) -> SnapshotFiles:
    """Return the files with the changes of a snapshot that is not an overwrite, by the ``producer`` at that time."""
    with store.while_read(snapshot, changes=True):
        if producer is not ChangelogProducer.NONE:
            entries = read_changelog_entries(store.file_io, store.paths, snapshot)
        elif snapshot.commit_kind is CommitKind.APPEND:
            entries = read_delta_entries(store.file_io, store.paths, snapshot)
        else:
            entries = []
    added = [entry for entry in entries if entry.kind is FileKind.ADD]
    if producer is ChangelogProducer.NONE:  # Changelog files are listed in the order of their changes.
        added.sort(key=lambda entry: entry.file.min_sequence_number)
    added.sort(key=lambda entry: (entry.partition, entry.bucket))
    make = MergeUnits(store, added)
    return SnapshotFiles(
        [
            FileGroup(
                (entry.partition, entry.bucket),
                files=1,
                size=entry.file.file_size,
                rows=entry.file.row_count,
                make=partial(_changed, snapshot, make, entry),
            )
            for entry in added
        ]
    )


def overwritten_files(store: TableStore, before: Snapshot | None, snapshot: Snapshot) -> SnapshotFiles:
    """Return the files in which the states before and after an overwrite (None: an empty table) differ."""
    plan = plan_difference(store, before, snapshot, None, fresh=True)
    buckets: dict[BucketId, list[DifferenceUnit]] = {}
    for compared in plan.compared:
        file = compared.unit.files[0]
        assert file.expected is not None, "files of a plan have the properties of their manifest entries"
        bucket = file.expected.partition, bucket_of(file.path.rpartition("/")[0])
        buckets.setdefault(bucket, []).append(compared)
    return SnapshotFiles([_overwritten_group(before, snapshot, bucket, buckets[bucket]) for bucket in sorted(buckets)])


def _overwritten_group(
    before: Snapshot | None, snapshot: Snapshot, bucket: BucketId, units: Sequence[DifferenceUnit]
) -> FileGroup:
    """Return the changes of one bucket. They are one group, because options decide into how many units they are cut."""
    files = {file.path: file for compared in units for file in compared.unit.files}.values()
    return FileGroup(
        bucket,
        files=len(files),
        size=sum(file.file_size for file in files),
        rows=sum(file.row_count for file in files),
        make=partial(_overwritten, before, snapshot, units),
    )


def _base_of_changes(options: TableOptions, files: Sequence[FileRange]) -> list[FileRange]:
    """Return the files of a bucket without those whose rows a later changelog contains."""
    if options.changelog_producer is ChangelogProducer.LOOKUP:
        return [file for file in files if file.level > 0]
    if options.changelog_producer is ChangelogProducer.FULL_COMPACTION:
        top = level_count(files, options.num_levels) - 1
        return [file for file in files if file.level == top]
    return list(files)


def _by_key(part: FileRange | Section) -> tuple[object, str]:
    files = part.files if isinstance(part, Section) else (part,)
    return min((file.min_key, file.name) for file in files)


def _group(bucket: BucketId, files: Sequence[FileRange], make: Callable[[], Sequence[FeedUnit]]) -> FileGroup:
    size, rows = sum(file.size for file in files), sum(file.row_count for file in files)
    return FileGroup(bucket, files=len(files), size=size, rows=rows, make=make)


def _loaded(
    store: TableStore, snapshot: Snapshot, make: MergeUnits, part: FileRange | Section
) -> Sequence[FeedUnit]:
    if isinstance(part, FileRange):
        return [LoadedRows(snapshot, make.file(part))]
    target = store.options.source_split_target_size
    return [LoadedRows(snapshot, unit) for unit in make.of_section(part, target)]


def _changed(snapshot: Snapshot, make: MergeUnits, entry: ManifestEntry) -> Sequence[FeedUnit]:
    return [FileChanges(snapshot, make.file_of(entry))]


def _overwritten(
    before: Snapshot | None, snapshot: Snapshot, units: Sequence[DifferenceUnit]
) -> Sequence[FeedUnit]:
    return [OverwriteChanges(snapshot, before, unit) for unit in units]

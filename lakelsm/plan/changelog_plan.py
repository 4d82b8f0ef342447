"""Plans an incremental read: of changelog files, of new data files, or of two states of a table."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import compress
from typing import TypeVar

from lakelsm.arguments import wrong_argument
from lakelsm.errors import SnapshotNotFoundError
from lakelsm.format.data_file.vector_location import VectorLocation, mask_same_rows
from lakelsm.format.manifest import EntryIdentity, ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lsm.interval_partition import Section, fewest_runs, overlap_groups
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.options import ChangelogProducer
from lakelsm.plan.bucket_files import bucket_filter, by_bucket, is_shown, partition_filter
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.manifest_scan import (
    PartitionFilter,
    read_changelog_entries,
    read_delta_entries,
    read_live_entries,
)
from lakelsm.snapshots.table_store import TableStore

#: The key by which files of two states are paired.
_Name = TypeVar("_Name", bound=Hashable)


class ChangelogMode(Enum):
    """The source of the changes (Paimon's ``incremental-between-scan-mode``)."""

    #: The changelog files of the snapshots, except those of overwrites.
    CHANGELOG = "changelog"
    #: The data files that appends added, merged by the merge engine; without files of overwrites and compactions.
    DELTA = "delta"
    #: The difference between the rows of the two snapshots; the snapshots between them need not exist any more.
    DIFF = "diff"

    @staticmethod
    def of(text: str) -> ChangelogMode:
        """Return the mode of this name. Raises InvalidInputError for other names."""
        try:
            return ChangelogMode(text)
        except ValueError:
            modes = ", ".join(repr(mode.value) for mode in ChangelogMode)
            raise wrong_argument("mode", text, f"one of 'auto', {modes}") from None

    @staticmethod
    def automatic(producer: ChangelogProducer) -> ChangelogMode:
        """Return the mode that suits the changelog producer of a table."""
        return ChangelogMode.DELTA if producer is ChangelogProducer.NONE else ChangelogMode.CHANGELOG


@dataclass(frozen=True)
class DifferenceUnit:
    """Files of two states whose rows are compared; ``before`` and ``after`` select the ``unit.files`` of each state.

    A file in which the states mask different rows occurs twice, with the vector of each state.
    """

    unit: MergeUnit
    before: tuple[bool, ...]
    after: tuple[bool, ...]


@dataclass(frozen=True)
class ChangelogPlan:
    """The work of an incremental read.

    ``scanned`` files contain the changes: those of each snapshot, oldest first (None: of any snapshots, in no order).
    The changes of ``merged`` units are the result of their merge, those of ``compared`` units the differences. ``ends``
    are the first and the last snapshot whose changelogs, or states with ``reads_states``, are read.
    """

    scanned: tuple[tuple[int | None, tuple[RunFile, ...]], ...] = ()
    merged: tuple[MergeUnit, ...] = ()
    compared: tuple[DifferenceUnit, ...] = ()
    ends: tuple[Snapshot, ...] = field(default=(), compare=False, kw_only=True)
    reads_states: bool = field(default=False, compare=False, kw_only=True)


def plan_changelog(
    store: TableStore, start: int, end: int, mode: ChangelogMode, predicate: Predicate | None
) -> ChangelogPlan:
    """Plan the changes of the snapshots after ``start`` up to ``end`` from manifests alone.

    ``predicate`` leaves out partitions; it does not filter rows. Raises SnapshotNotFoundError for an expired snapshot.
    """
    keep = partition_filter(store, predicate)
    snapshots = list(_between(store, start, end, mode))
    ends = tuple(snapshots[:1] + snapshots[-1:])
    store.check_schema(snapshots[-1] if snapshots else None)
    with store.while_read(*ends, changes=True):
        if mode is ChangelogMode.CHANGELOG:
            plan = ChangelogPlan(scanned=tuple(_changelog_files(store, snapshots, keep)))
        else:
            plan = _delta(store, snapshots, keep)
    return replace(plan, ends=ends)


def plan_difference(
    store: TableStore,
    before: Snapshot | None,
    after: Snapshot | None,
    predicate: Predicate | None,
    only: Collection[int] | None = None,
    *,
    fresh: bool = False,
) -> ChangelogPlan:
    """Plan the comparison of two snapshots (None: an empty table) in the buckets ``only`` (None: all).

    ``fresh`` includes level 0 if reads of the table leave it out.
    """
    keep, ends = partition_filter(store, predicate), tuple(each for each in (before, after) if each is not None)
    store.check_schema(after)
    with store.while_read(*ends):
        old, new = (live_files(store, snapshot, keep, only, fresh) for snapshot in (before, after))
    unchanged = unchanged_files(store, old, new)
    files_and_sides: list[tuple[LiveFile, tuple[bool, bool]]] = []
    for identity in {**old, **new}:
        if identity in unchanged:
            files_and_sides.append((new[identity], (True, True)))
            continue
        had, has = old.get(identity), new.get(identity)
        versions = ((had, (True, False)), (has, (False, True)))
        files_and_sides += [(file, sides) for file, sides in versions if file is not None]
    entries = [file.entry for file, _ in files_and_sides]
    sides = [[side[state] for _, side in files_and_sides] for state in range(2)]
    make = MergeUnits(store, entries, [file.vector for file, _ in files_and_sides])
    target = store.options.source_split_target_size
    units: list[DifferenceUnit] = []
    for files in by_bucket(store, entries).values():
        for group in overlap_groups(files):
            if all(sides[0][file.index] and sides[1][file.index] for file in group):
                continue
            index_of = {make.file(file): file.index for file in group}
            for unit in make.of_section(Section(fewest_runs(group)), target):
                indexes = [index_of[file] for file in unit.files]
                units.append(DifferenceUnit(unit, *(tuple(side[index] for index in indexes) for side in sides)))
    return ChangelogPlan(compared=tuple(units), ends=ends, reads_states=True)


def plan_state(store: TableStore, snapshot: Snapshot | None) -> ChangelogPlan:
    """Plan the rows of a snapshot (None: an empty table), with retractions that no compaction has dropped."""
    with store.while_read(snapshot):
        live = list(live_files(store, snapshot, None, None).values())
    entries = [file.entry for file in live]
    make = MergeUnits(store, entries, [file.vector for file in live])
    target = store.options.source_split_target_size
    return ChangelogPlan(
        merged=tuple(
            unit
            for files in by_bucket(store, entries).values()
            for group in overlap_groups(files)
            for unit in make.of_section(Section(fewest_runs(group)), target)
        ),
        ends=() if snapshot is None else (snapshot,),
        reads_states=True,
    )


@dataclass(frozen=True)
class LiveFile:
    """A data file in one state, with the deletion vector that it has there."""

    entry: ManifestEntry
    vector: VectorLocation | None


def live_files(
    store: TableStore,
    snapshot: Snapshot | None,
    keep: PartitionFilter | None,
    only: Collection[int] | None,
    fresh: bool = False,
) -> dict[EntryIdentity, LiveFile]:
    """Return the files that a read of a snapshot (None: an empty table) shows, in the buckets ``only`` (None: all).

    ``fresh`` is as in `plan_difference`.
    """
    if snapshot is None:
        return {}
    live = read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_partitions=keep,
        keep_buckets=bucket_filter(only),
        stats=False,
    )
    entries = [entry for entry in live if is_shown(store.options, entry.file.level, fresh)]
    vectors = deletion_vectors(store, snapshot, {(entry.partition, entry.bucket) for entry in entries})
    return {entry.identity: LiveFile(entry, vector) for entry, vector in zip(entries, vectors.of(entries))}


def unchanged_files(store: TableStore, old: Mapping[_Name, LiveFile], new: Mapping[_Name, LiveFile]) -> set[_Name]:
    """Return the files with the same visible rows in two states. Index files also change because of other data files."""
    unchanged: set[_Name] = set()
    vector_pairs: dict[_Name, tuple[VectorLocation, VectorLocation, int]] = {}
    for identity in old.keys() & new.keys():
        one, other = old[identity].vector, new[identity].vector
        if one is not None and other is not None:
            vector_pairs[identity] = one, other, old[identity].entry.file.row_count
        elif one is other:
            unchanged.add(identity)
    same = mask_same_rows(store.file_io.filesystem(), list(vector_pairs.values()))
    return unchanged | set(compress(vector_pairs, same))


def _between(store: TableStore, start: int, end: int, mode: ChangelogMode) -> Iterator[Snapshot]:
    """Yield the snapshots after ``start`` up to ``end``, also expired ones whose changes the mode can still read."""
    for snapshot_id in range(start + 1, end + 1):
        snapshot = store.snapshots.try_get(snapshot_id)
        if snapshot is None:
            snapshot = _long_lived(store, snapshot_id, mode)
        try:
            snapshot = snapshot or store.snapshots.get(snapshot_id)
        except SnapshotNotFoundError as error:
            error.was_removed = True  # The range was made of retained snapshots and changelogs.
            raise
        yield snapshot


def _long_lived(store: TableStore, snapshot_id: int, mode: ChangelogMode) -> Snapshot | None:
    changelog = store.changelogs.try_get(snapshot_id)
    if changelog is None or mode is ChangelogMode.CHANGELOG:
        return changelog
    if not store.file_io.exists(store.paths.manifest(changelog.delta_manifest_list)):
        raise SnapshotNotFoundError(
            f"Table {store.name}: snapshot {snapshot_id} has expired and only its changelog is kept, not the rows that "
            "it appended. Use mode 'changelog'."
        )
    return changelog


def _changelog_files(
    store: TableStore, snapshots: Iterable[Snapshot], keep: PartitionFilter | None
) -> Iterator[tuple[int, tuple[RunFile, ...]]]:
    for snapshot in snapshots:
        if snapshot.commit_kind is CommitKind.OVERWRITE or snapshot.changelog_manifest_list is None:
            continue
        entries = read_changelog_entries(store.file_io, store.paths, snapshot, keep_partitions=keep)
        make = MergeUnits(store, entries)
        if entries:
            yield snapshot.id, tuple(map(make.file_of, entries))


def _delta(store: TableStore, snapshots: Iterable[Snapshot], keep: PartitionFilter | None) -> ChangelogPlan:
    entries = [
        entry
        for snapshot in snapshots
        if snapshot.commit_kind is CommitKind.APPEND
        for entry in read_delta_entries(store.file_io, store.paths, snapshot, keep_partitions=keep)
    ]
    make = MergeUnits(store, entries)
    target = store.options.source_split_target_size
    scanned: list[RunFile] = []
    merged: list[MergeUnit] = []
    for files in by_bucket(store, entries).values():
        for group in overlap_groups(files):
            if len(group) == 1:
                scanned.append(make.file(group[0]))
            else:
                merged += make.of_section(Section(fewest_runs(group)), target)
    return ChangelogPlan(((None, tuple(scanned)),) if scanned else (), tuple(merged))

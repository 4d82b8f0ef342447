"""Continues a compaction that lost a race only because vectors changed: finds its masked rows by key in the new files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from lakelsm.errors import CorruptTableError, VectorsChangedError
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_unit import KeySearch
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.bucket_files import BucketId
from lakelsm.plan.compaction_plan import BucketCompaction, CompactionPlan, live_entries_of
from lakelsm.plan.remap_units import moved_positions, remap_units
from lakelsm.read.key_positions import KeyPositions
from lakelsm.runner.runner import Runner
from lakelsm.runner.task_messages import MaskedPositions, TaskMessages
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True, kw_only=True)
class RemappedVectors:
    """The rows that a compaction masks, as of a newer snapshot, with the vectors of this snapshot.

    ``files`` are all files that may have a vector. ``found`` is the number of rows that have moved to other files.
    """

    snapshot: Snapshot
    vectors: DeletionVectors
    files: Sequence[ManifestEntry]
    positions: MaskedPositions
    found: int


class VectorRemapper:
    """Maps the masked rows of a compaction from its plan to a newer snapshot."""

    def __init__(
        self,
        runner: Runner,
        store: TableStore,
        *,
        plan: CompactionPlan,
        buckets: Sequence[BucketCompaction],
        written: TaskMessages,
        task_memory: int,
        names: AttemptNames,
    ) -> None:
        self._runner = runner
        self._store = store
        self._plan = plan
        self._written = written
        self._task_memory = task_memory
        self._names = names
        self._ids = frozenset((bucket.partition, bucket.bucket) for bucket in buckets)
        rewritten = (plan.entries[file.index] for bucket in buckets for file in bucket.rewritten_files)
        self._rewritten = frozenset(map(_file_key, rewritten))

    def on(self, snapshot: Snapshot, lost: VectorsChangedError) -> RemappedVectors:
        """Return the masked rows as of a snapshot.

        Raises ``lost`` if a masked row of an input is visible again, or if files of the plan have expired.
        """
        try:
            return self._remapped(snapshot, lost)
        except CorruptTableError:
            if self._store.snapshots.try_get(self._plan.snapshot.id) is None:
                raise lost from None
            raise

    def _remapped(self, snapshot: Snapshot, lost: VectorsChangedError) -> RemappedVectors:
        store = self._store
        now = live_entries_of(store, snapshot, self._ids)
        vectors = deletion_vectors(store, snapshot)
        grown = self._grown(now, vectors, lost)
        base, live, new = map(_by_bucket, (self._plan.entries, now, self._written.entries))
        moved = {
            bucket: moved_positions(
                base[bucket],
                live[bucket],
                new[bucket],
                positions=self._written.positions.get(bucket, {}),
                grown=grown.get(bucket, {}),
            )
            for bucket in sorted(self._ids)
        }
        found = self._looked_up(list(remap_units(store, moved)))
        count = sum(len(rows) for files in found.positions.values() for rows in files.values())
        staying = {bucket: dict(known.staying) for bucket, known in moved.items() if known.staying}
        found.add(TaskMessages(positions=staying))
        files = [entry for entry in now if _file_key(entry) not in self._rewritten]
        files += self._written.entries
        return RemappedVectors(snapshot=snapshot, vectors=vectors, files=files, positions=found.positions, found=count)

    def _grown(
        self, now: Sequence[ManifestEntry], vectors: DeletionVectors, lost: VectorsChangedError
    ) -> Mapping[BucketId, Mapping[str, BitMap]]:
        """Return the rows of the compaction's inputs that were masked since it was planned."""
        filesystem = self._store.file_io.filesystem()
        inputs = [entry for entry in now if _file_key(entry) in self._rewritten]
        grown: dict[BucketId, dict[str, BitMap]] = defaultdict(dict)
        for entry, *pair in zip(inputs, vectors.of(inputs), self._plan.vectors.of(inputs)):
            if pair[0] == pair[1]:
                continue
            masked, known = (
                BitMap() if vector is None else vector.read(filesystem, entry.file.row_count) for vector in pair
            )
            if not known <= masked:
                raise lost
            grown[entry.partition, entry.bucket][entry.file.file_name] = masked - known
        return grown

    def _looked_up(self, units: Sequence[KeySearch]) -> TaskMessages:
        store = self._store
        if not units:
            return TaskMessages()
        used = {file.schema_id for unit in units for file in (unit.source, *unit.targets)}
        keys = RunReader(
            store.file_io,
            store.schema,
            schemas=store.schemas_of([store.schema.id, *used]),
            columns=store.schema.trimmed_primary_keys,
            memory_bytes=self._task_memory // 2,
        )
        return self._runner.messages(units, KeyPositions(keys), store.paths, self._names)


def _file_key(entry: ManifestEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.file.file_name


def _by_bucket(entries: Sequence[ManifestEntry]) -> dict[BucketId, list[ManifestEntry]]:
    found: dict[BucketId, list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        found[entry.partition, entry.bucket].append(entry)
    return found

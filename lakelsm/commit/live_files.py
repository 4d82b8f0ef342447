"""The live files of the partitions that a commit changes. Each attempt reads them from its base snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from lakelsm.commit.commit_message import ReplacedPartitions
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, HASH_INDEX, IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry, ManifestFileMeta
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.manifest_prune import select_manifests
from lakelsm.snapshots.manifest_scan import (
    read_delta_entries,
    read_index_entries,
    read_live_entries,
    read_manifest,
    read_manifest_metas,
)
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import AtomicType


class LiveFiles:
    """Reads the entries of snapshots for one commit, always for the same buckets or partitions.

    Keeps deltas for the next attempt, and live files until another snapshot is the newest.
    """

    def __init__(self, store: TableStore) -> None:
        self._file_io, self._paths = store.file_io, store.paths
        self._partition_types = store.partition_types
        self._deltas: dict[str, list[ManifestEntry]] = {}
        self._live: tuple[str, list[ManifestEntry]] | None = None
        # Other writers encode some decimals differently than statistics do, so decimals are not filtered.
        decimals = (isinstance(kind, AtomicType) and kind.root == "DECIMAL" for kind in store.partition_types)
        self._exact_statistics = not any(decimals)

    def of_buckets(
        self, snapshot: Snapshot | None, changed: Mapping[bytes, Collection[int]]
    ) -> list[ManifestEntry]:
        """Return the live files of some buckets. ``changed`` maps stored partitions to bucket numbers."""
        if snapshot is None or not changed:
            return []
        if self._live is not None and self._live[0] == snapshot.delta_manifest_list:
            return self._live[1]
        metas = read_manifest_metas(self._file_io, self._paths, snapshot)
        near = {meta.file_name for meta in select_manifests(metas, changed, self._partition_types)}
        numbers = sorted({bucket for buckets in changed.values() for bucket in buckets})
        live = read_live_entries(
            self._file_io,
            self._paths,
            snapshot,
            keep_manifest=lambda meta: meta.file_name in near,
            keep_partitions=lambda partitions: [partition in changed for partition in partitions],
            keep_buckets=lambda buckets, totals: np.isin(buckets, numbers),
        )
        live = [entry for entry in live if entry.bucket in changed[entry.partition]]
        self._live = snapshot.delta_manifest_list, live
        return live

    def of_partitions(self, snapshot: Snapshot | None, wanted: ReplacedPartitions | None) -> list[ManifestEntry]:
        """Return the live files of the partitions that a filter accepts (None: all)."""
        if snapshot is None:
            return []
        if self._live is None or self._live[0] != snapshot.delta_manifest_list:
            self._live = snapshot.delta_manifest_list, self._of_partitions(snapshot, wanted)
        return self._live[1]

    def _of_partitions(self, snapshot: Snapshot, wanted: ReplacedPartitions | None) -> list[ManifestEntry]:
        if wanted is None:
            return read_live_entries(self._file_io, self._paths, snapshot)
        accepts = wanted

        def may_hold(meta: ManifestFileMeta) -> bool:
            return not self._exact_statistics or _may_hold(meta, accepts)

        return read_live_entries(
            self._file_io,
            self._paths,
            snapshot,
            keep_manifest=may_hold,
            keep_partitions=lambda partitions: [bool(accepts(partition)) for partition in partitions],
        )

    def entries(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return all entries of a snapshot's manifests, including those that later entries cancel."""
        metas = read_manifest_metas(self._file_io, self._paths, snapshot)
        return [entry for meta in metas for entry in read_manifest(self._file_io, self._paths, meta)]

    def delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return the entries that a snapshot added."""
        name = snapshot.delta_manifest_list
        if name not in self._deltas:
            self._deltas[name] = read_delta_entries(self._file_io, self._paths, snapshot)
        return self._deltas[name]

    def index(self, snapshot: Snapshot | None) -> list[IndexManifestEntry]:
        """Return a snapshot's live index files; an empty list for None."""
        return [] if snapshot is None else read_index_entries(self._file_io, self._paths, snapshot)


def _may_hold(meta: ManifestFileMeta, accepts: ReplacedPartitions) -> bool:
    """Return whether a manifest may have an accepted partition. Only a manifest of one partition can be excluded."""
    stats = meta.partition_stats
    known = bool(stats.null_counts) and all(count == 0 for count in stats.null_counts or ())
    return not known or stats.min_values != stats.max_values or accepts(stats.min_values)


def combine_index(
    previous: Sequence[IndexManifestEntry],
    deletes: Sequence[IndexManifestEntry],
    adds: Sequence[IndexManifestEntry],
) -> list[IndexManifestEntry]:
    """Return the complete list of index files after a commit (docs/format.md 5.4).

    A HASH or DELETION_VECTORS file replaces the one of the same partition, bucket and type. Files of other index types
    are identified by their name.
    """
    live: dict[tuple[object, ...], list[IndexManifestEntry]] = defaultdict(list)
    for entry in previous:
        live[_index_key(entry)].append(entry)
    for entry in deletes:
        live.pop(_index_key(entry), None)
    for entry in adds:
        live[_index_key(entry)] = [entry]
    return [entry for entries in live.values() for entry in entries]


def _index_key(entry: IndexManifestEntry) -> tuple[object, ...]:
    if entry.file.index_type in (HASH_INDEX, DELETION_VECTORS_INDEX):
        return entry.partition, entry.bucket, entry.file.index_type
    return (entry.file.file_name,)

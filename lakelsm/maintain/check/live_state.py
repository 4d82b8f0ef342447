"""The rules of a state that metadata alone decide: levels, sequence numbers, buckets, vectors and HASH indexes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lakelsm.errors import LakelsmError
from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.index.index_manifest import HASH_INDEX
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.rules import (
    BUCKET_COUNT,
    FILE_ENTRY,
    HASH_INDEX_PLACE,
    LEVEL_BEYOND,
    LEVEL_ORDER,
    LEVEL_OVERLAP,
    SCHEMA_UNREADABLE,
    SEQUENCE_RANGE,
    VECTOR_PLACE,
    VECTOR_WITHOUT_FILE,
    Rule,
)
from lakelsm.merge.key_order import rank_keys
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.hash_indexes import HashIndexes, hash_indexes
from lakelsm.snapshots.inheritance import recorded_total_buckets
from lakelsm.snapshots.sequence_base import recorded_max_sequence
from lakelsm.snapshots.table_store import TableStore

_Longs = npt.NDArray[np.int64]


class LiveState:
    """Checks the live files of the snapshot that ``owner`` (its path) names. ``schemas``: the ids of readable schemas."""

    def __init__(
        self, store: TableStore, snapshot: Snapshot, findings: Findings, *, owner: str, schemas: Collection[int]
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._findings = findings
        self._owner = owner
        self._schemas = schemas

    def check_files(self, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
        """Check live files. Return those with a valid entry; only these may be read."""
        sound = self._valid(entries)
        bounds = [entry.file.min_key for entry in sound] + [entry.file.max_key for entry in sound]
        ranks = rank_keys(bounds, key_types(self._store.schema))
        low, high = ranks[: len(sound)], ranks[len(sound) :]
        kept = low <= high
        for index in np.flatnonzero(~kept).tolist():
            self._add(FILE_ENTRY, self._path(sound[index]), "its smallest key is greater than its largest key")
        sound = [entry for entry, keep in zip(sound, kept.tolist()) if keep]
        self._check_levels(sound, low[kept], high[kept])
        self._check_buckets(sound)
        self._check_sequences(sound)
        return sound

    def vectors(self, entries: Sequence[ManifestEntry]) -> DeletionVectors | None:
        """Check the deletion vectors of the snapshot and return them; None if their ranges are unknown."""
        try:
            found = deletion_vectors(self._store, self._snapshot)
        except LakelsmError as error:
            self._add(VECTOR_PLACE, self._index_manifest, str(error))
            return None
        rows = {(entry.partition, entry.bucket, entry.file.file_name): entry.file.row_count for entry in entries}
        for (partition, bucket), locations in found.locations.items():
            for name, location in locations.items():
                count = rows.get((partition, bucket, name))
                if count is None and not self._is_written_by_lakelsm_alone:
                    continue  # Java leaves the vector of a file that it rewrites, and its writers keep it.
                if count is None:
                    problem = f"it has a vector of data file {name}, which is not in the bucket"
                    self._add(VECTOR_WITHOUT_FILE, location.index_path, problem)
                elif location.cardinality is not None and location.cardinality > count:
                    problem = f"data file {name} has {count} rows, but its vector masks {location.cardinality}"
                    self._add(VECTOR_PLACE, location.index_path, problem)
        return found

    def hash_indexes(self, entries: Sequence[ManifestEntry]) -> HashIndexes:
        """Check the HASH indexes of the snapshot and return them."""
        if self._store.options.bucket != -1:
            return {}
        try:
            found = hash_indexes(self._store, self._snapshot)
        except LakelsmError as error:
            self._add(HASH_INDEX_PLACE, self._index_manifest, str(error))
            return {}
        for partition, bucket in sorted({(entry.partition, entry.bucket) for entry in entries} - found.keys()):
            problem = f"{self._label(partition, bucket)} has files, but no {HASH_INDEX} index"
            self._add(HASH_INDEX_PLACE, self._index_manifest, problem)
        return found

    def _valid(self, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
        """Return the entries with valid numbers, and with keys that decode."""
        sound = []
        types = key_types(self._store.schema)
        for entry in entries:
            file = entry.file
            if file.schema_id not in self._schemas:
                path = self._store.paths.schema_file(file.schema_id)
                self._add(SCHEMA_UNREADABLE, path, f"data file {self._path(entry)} needs it, but it cannot be read")
            elif file.row_count == 0 or file.min_sequence_number < 0:
                problem = f"its entry has {file.row_count} rows and sequence numbers from {file.min_sequence_number}"
                self._add(FILE_ENTRY, self._path(entry), problem)
            else:
                sound.append(entry)
        try:
            rank_keys([key for entry in sound for key in (entry.file.min_key, entry.file.max_key)], types)
        except LakelsmError:
            return [entry for entry in sound if self._has_keys(entry)]
        return sound

    def _has_keys(self, entry: ManifestEntry) -> bool:
        try:
            rank_keys([entry.file.min_key, entry.file.max_key], key_types(self._store.schema))
        except LakelsmError as error:
            self._add(FILE_ENTRY, self._path(entry), f"its keys cannot be decoded: {error}")
            return False
        return True

    def _check_levels(self, entries: Sequence[ManifestEntry], low: _Longs, high: _Longs) -> None:
        if not entries:
            return
        codes: dict[tuple[bytes, int], int] = {}
        buckets = np.array([codes.setdefault((e.partition, e.bucket), len(codes)) for e in entries], np.int64)
        levels = np.array([entry.file.level for entry in entries], np.int64)
        beyond = np.flatnonzero(levels >= self._store.options.num_levels)
        for index in beyond.tolist():
            problem = f"it is on level {levels[index]}, but the highest level is {self._store.options.num_levels - 1}"
            self._add(LEVEL_BEYOND, self._path(entries[index]), problem)
        order = np.lexsort((low, levels, buckets))
        order = order[levels[order] > 0]
        before, after = order[:-1], order[1:]
        same = (buckets[before] == buckets[after]) & (levels[before] == levels[after])
        overlaps = same & (high[before] >= low[after])
        for one, other in zip(before[overlaps].tolist(), after[overlaps].tolist()):
            problem = f"it and {entries[other].file.file_name} overlap on level {levels[one]}"
            self._add(LEVEL_OVERLAP, self._path(entries[one]), problem)
        faulty = np.isin(buckets, buckets[np.append(beyond, before[overlaps])])
        self._check_order(entries, np.where(faulty, -1, buckets), levels, low, high)

    def _check_order(
        self, entries: Sequence[ManifestEntry], buckets: _Longs, levels: _Longs, low: _Longs, high: _Longs
    ) -> None:
        """Report files that overlap a file on a higher level and have only older rows than it.

        ``buckets`` are numbers of buckets; files with -1 are left out.
        """
        newest = np.array([entry.file.max_sequence_number for entry in entries], np.int64)
        oldest = np.array([entry.file.min_sequence_number for entry in entries], np.int64)
        order = np.argsort(buckets, kind="stable")
        for files in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
            if buckets[files[0]] < 0 or len(files) < 2 or levels[files].max() == levels[files].min():
                continue
            # Most buckets pass as a whole: the newest row of a higher level is older than all rows of lower levels.
            by_level = files[np.argsort(levels[files], kind="stable")]
            reach = np.minimum.accumulate(newest[by_level])
            for index in np.flatnonzero(oldest[by_level][1:] > reach[:-1]).tolist():
                upper = by_level[index + 1]
                lower = by_level[: index + 1]
                older = lower[
                    (levels[lower] < levels[upper])
                    & (newest[lower] < oldest[upper])
                    & (low[lower] <= high[upper])
                    & (high[lower] >= low[upper])
                ]
                for first in older[:1].tolist():
                    above = f"{entries[upper].file.file_name} on level {levels[upper]}"
                    problem = f"it is on level {levels[first]}, but all of its rows are older than those of {above}"
                    self._add(LEVEL_ORDER, self._path(entries[first]), f"{problem}, which it overlaps")

    def _check_buckets(self, entries: Sequence[ManifestEntry]) -> None:
        counts: dict[bytes, int] = {}
        recorded = self._recorded(BUCKET_COUNT, recorded_total_buckets)
        for entry in entries:
            total = entry.total_buckets
            known = counts.setdefault(entry.partition, total)
            if total != known:
                problem = f"its entry says {total} buckets, but that of another file of its partition says {known}"
            elif recorded is not None and total != recorded:
                problem = f"its entry says {total} buckets, but snapshot {self._snapshot.id} records {recorded}"
            elif entry.bucket < 0 or (total > 0 and entry.bucket >= total):
                problem = f"it is in bucket {entry.bucket} of {total}"
            else:
                continue
            self._add(BUCKET_COUNT, self._path(entry), problem)

    def _check_sequences(self, entries: Sequence[ManifestEntry]) -> None:
        recorded = self._recorded(SEQUENCE_RANGE, recorded_max_sequence)
        for entry in entries if recorded is not None else ():
            if entry.file.max_sequence_number > (recorded or 0):
                problem = f"it has sequence numbers up to {entry.file.max_sequence_number}, but snapshot "
                problem += f"{self._snapshot.id} records {recorded} as the largest"
                self._add(SEQUENCE_RANGE, self._path(entry), problem)

    @cached_property
    def _is_written_by_lakelsm_alone(self) -> bool:
        """Whether lakelsm wrote all retained snapshots, as far as they can be read."""
        try:
            return all(snapshot.is_ours for snapshot in self._store.snapshots.list())
        except LakelsmError:
            return self._snapshot.is_ours

    def _recorded(self, rule: Rule, read: Callable[[Snapshot], int | None]) -> int | None:
        try:
            return read(self._snapshot)
        except LakelsmError as error:
            self._add(rule, self._owner, str(error))
            return None

    @property
    def _index_manifest(self) -> str:
        name = self._snapshot.index_manifest
        return self._owner if name is None else self._store.paths.manifest(name)

    def _path(self, entry: ManifestEntry) -> str:
        return self._store.data_path(entry.partition, entry.bucket, entry.file.file_name)

    def _label(self, partition: bytes, bucket: int) -> str:
        label = self._store.partition_label(partition)
        return f"bucket {bucket} of partition {label}" if label else f"bucket {bucket}"

    def _add(self, rule: Rule, thing: str, problem: str) -> None:
        self._findings.add(rule, thing, problem, self._owner)

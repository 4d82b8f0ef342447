"""Conflicts of an append with the commits since its base snapshot. Pure rules.

:func:`check_append` has the rules for every append, :func:`check_rows_read` one more for a delete or update, which is
computed from rows of the base snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakelsm.commit.conflict import (
    BucketKey,
    Conflict,
    ConflictKind,
    RankKeys,
    adds,
    deletes,
    moved_names,
)
from lakelsm.format.index.index_manifest import HASH_INDEX, IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind


@dataclass(frozen=True)
class InterveningSnapshot:
    """A snapshot that was committed after the base snapshot of an append, with the entries of its delta."""

    snapshot_id: int
    kind: CommitKind
    commit_user: str
    entries: tuple[ManifestEntry, ...]

    def __str__(self) -> str:
        return f"snapshot {self.snapshot_id} of {self.commit_user}"


def check_append(
    delta: Sequence[ManifestEntry],
    index_adds: Sequence[IndexManifestEntry],
    since: Sequence[InterveningSnapshot],
    base_index: Sequence[IndexManifestEntry] | None,
    index_now: Sequence[IndexManifestEntry],
) -> list[Conflict]:
    """Return the conflicts of an append with the snapshots that were committed ``since`` its base snapshot.

    ``base_index`` is the index of the base snapshot (None: it has expired), ``index_now`` that of the newest snapshot.
    Appends to other buckets, compactions, and overwrites of tables with fixed buckets do not conflict.
    """
    conflicts: list[Conflict] = []
    for snapshot in since:
        conflicts += _check_sequences(delta, snapshot)
        conflicts += _check_counts_since(delta, snapshot)
    return conflicts + _check_assignment(delta, index_adds, since, base_index, index_now)


def check_rows_read(
    delta: Sequence[ManifestEntry], since: Sequence[InterveningSnapshot], rank_keys: RankKeys
) -> list[Conflict]:
    """Return the conflicts of a delete or update with the files that were written ``since`` in its key ranges."""
    conflicts = []
    for snapshot in since:
        file = next(iter(rewritten_in_range(delta, snapshot, rank_keys)), None)
        if file is not None:
            text = f"{snapshot} wrote to the key range of the rows that this delete or update read"
            name = file.file.file_name
            conflicts.append(Conflict(ConflictKind.ROWS_CHANGED, text, (name,), file.partition, bucket=file.bucket))
    return conflicts


def rewritten_in_range(
    delta: Sequence[ManifestEntry], snapshot: InterveningSnapshot, rank_keys: RankKeys
) -> list[ManifestEntry]:
    """Return the files that a snapshot added or deleted in the key range of a file of ``delta`` in the same bucket.

    Compactions and files that only moved to another level are left out, because they change no row.
    """
    if snapshot.kind is CommitKind.COMPACT:
        return []
    moved = moved_names(snapshot.entries)
    theirs = [entry for entry in snapshot.entries if entry.file.file_name not in moved]
    return _overlapping(adds(delta), theirs, rank_keys)


def _overlapping(
    ours: Sequence[ManifestEntry], theirs: Sequence[ManifestEntry], rank_keys: RankKeys
) -> list[ManifestEntry]:
    """Return the entries of ``theirs`` whose key range overlaps that of an entry of ``ours`` in the same bucket."""
    buckets: dict[BucketKey, list[ManifestEntry]] = defaultdict(list)
    for entry in ours:
        buckets[entry.partition, entry.bucket].append(entry)
    candidates = [(mine, entry) for entry in theirs for mine in buckets.get((entry.partition, entry.bucket), ())]
    bounds = [key for pair in candidates for entry in pair for key in (entry.file.min_key, entry.file.max_key)]
    ranks = iter(rank_keys(bounds))
    spans = zip(ranks, ranks, ranks, ranks)
    return [
        entry for (_, entry), (low, high, first, last) in zip(candidates, spans) if first <= high and low <= last
    ]


def _check_sequences(delta: Sequence[ManifestEntry], snapshot: InterveningSnapshot) -> list[Conflict]:
    """Rows that were committed since must have smaller sequence numbers: readers resolve ties differently."""
    if snapshot.kind is CommitKind.COMPACT:
        return []
    ours: dict[BucketKey, int] = {}
    for entry in adds(delta):
        key = (entry.partition, entry.bucket)
        ours[key] = min(entry.file.min_sequence_number, ours.get(key, entry.file.min_sequence_number))
    moved = {entry.file.file_name for entry in deletes(snapshot.entries)}
    for entry in adds(snapshot.entries):
        smallest = ours.get((entry.partition, entry.bucket))
        theirs, name = entry.file.max_sequence_number, entry.file.file_name
        if smallest is not None and theirs >= smallest and name not in moved:
            text = f"{snapshot} wrote sequence numbers up to {theirs}; this write begins at {smallest}"
            return [Conflict(ConflictKind.SEQUENCE, text, (name,), entry.partition, bucket=entry.bucket)]
    return []


def _check_counts_since(delta: Sequence[ManifestEntry], snapshot: InterveningSnapshot) -> list[Conflict]:
    """A partition whose number of buckets was changed since cannot take files of the old number."""
    ours = {entry.partition: entry for entry in adds(delta) if entry.total_buckets > 0}
    for entry in adds(snapshot.entries):
        mine = ours.get(entry.partition)
        if mine is not None and entry.total_buckets > 0 and entry.total_buckets != mine.total_buckets:
            text = f"{snapshot} changed the total buckets from {mine.total_buckets} to {entry.total_buckets}"
            return [Conflict(ConflictKind.BUCKET_COUNT, text, (mine.file.file_name,), entry.partition)]
    return []


def _check_assignment(
    delta: Sequence[ManifestEntry],
    index_adds: Sequence[IndexManifestEntry],
    since: Sequence[InterveningSnapshot],
    base_index: Sequence[IndexManifestEntry] | None,
    index_now: Sequence[IndexManifestEntry],
) -> list[Conflict]:
    """With dynamic buckets a key has one bucket, so only one of two concurrent writers may assign keys of a partition."""
    if not since:
        return []
    assigned = set(_hash_files(index_adds))
    written = {(e.partition, e.bucket) for e in adds(delta) if e.total_buckets == -1}
    before = None if base_index is None else _hash_files(base_index)
    now = _hash_files(index_now)
    removed = {
        entry.partition
        for snapshot in since
        if snapshot.kind is CommitKind.OVERWRITE
        for entry in deletes(snapshot.entries)
    }
    conflicts = []
    for partition in sorted(assigned | {partition for partition, _ in written}):
        buckets = {bucket for other, bucket in written if other == partition}
        if partition in removed:
            reason = "an overwrite deleted the partition's rows and their index"
        elif before is None:
            reason = "the index that this write was planned on has expired"
        elif partition in assigned and before.get(partition, {}) != now.get(partition, {}):
            reason = "its index of key hashes changed"
        elif set(before.get(partition, {})) & buckets - set(now.get(partition, {})):
            reason = "its index of key hashes was deleted"
        else:
            continue
        text = f"another commit changed the assignment of keys to dynamic buckets: {reason}"
        conflicts.append(Conflict(ConflictKind.BUCKET_ASSIGNMENT, text, partition=partition))
    return conflicts


def _hash_files(entries: Iterable[IndexManifestEntry]) -> dict[bytes, dict[int, str]]:
    """Return the names of the HASH index files, by partition and bucket."""
    found: dict[bytes, dict[int, str]] = defaultdict(dict)
    for entry in entries:
        if entry.file.index_type == HASH_INDEX:
            found[entry.partition][entry.bucket] = entry.file.file_name
    return found

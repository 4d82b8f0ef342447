"""Conflicts of an append that was planned on an older snapshot with what was committed since. Pure rules.

:func:`check_append` has the rules for every append, :func:`check_rows_read` one more for an append that was worked out
from that snapshot's rows.
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
    """A snapshot committed after the one that an append was planned on, with the entries of its delta."""

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
    """Check an append, planned on an older snapshot, against everything committed since.

    ``base_index`` is the index of the snapshot planned on (None: expired, unknown), ``index_now`` the newest.
    Appends of disjoint buckets, compactions, and overwrites under fixed buckets are no conflicts.
    """
    conflicts: list[Conflict] = []
    for snapshot in since:
        conflicts += _check_sequences(delta, snapshot)
        conflicts += _check_counts_since(delta, snapshot)
    return conflicts + _check_assignment(delta, index_adds, since, base_index, index_now)


def check_rows_read(
    delta: Sequence[ManifestEntry], since: Sequence[InterveningSnapshot], rank_keys: RankKeys
) -> list[Conflict]:
    """Check an append of rows that were read before against what was written since in the ranges of their keys."""
    conflicts = []
    for snapshot in since:
        file = next(iter(rewritten_in_range(delta, snapshot, rank_keys)), None)
        if file is not None:
            text = f"{snapshot} wrote to the key range of the rows that this work was done from"
            name = file.file.file_name
            conflicts.append(Conflict(ConflictKind.ROWS_CHANGED, text, (name,), file.partition, bucket=file.bucket))
    return conflicts


def rewritten_in_range(
    delta: Sequence[ManifestEntry], snapshot: InterveningSnapshot, rank_keys: RankKeys
) -> list[ManifestEntry]:
    """Files that a snapshot added or removed whose key range overlaps that of a file of ``delta`` in the same bucket.

    Compactions change no row, nor do files that were only moved up.
    """
    if snapshot.kind is CommitKind.COMPACT:
        return []
    moved = moved_names(snapshot.entries)
    theirs = [entry for entry in snapshot.entries if entry.file.file_name not in moved]
    return _overlapping(adds(delta), theirs, rank_keys)


def _overlapping(
    ours: Sequence[ManifestEntry], theirs: Sequence[ManifestEntry], rank_keys: RankKeys
) -> list[ManifestEntry]:
    """Those of ``theirs`` whose key range overlaps that of one of ``ours`` in the same bucket."""
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
    """Rows committed since must have smaller sequence numbers than ours: ties differ between readers."""
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
            text = f"{snapshot} wrote sequence numbers up to {theirs}, and this write begins at {smallest}"
            return [Conflict(ConflictKind.SEQUENCE, text, (name,), entry.partition, bucket=entry.bucket)]
    return []


def _check_counts_since(delta: Sequence[ManifestEntry], snapshot: InterveningSnapshot) -> list[Conflict]:
    """A partition that was rescaled since holds our rows under a count that no reader expects."""
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
    """Dynamic buckets: a key has one bucket, so only one of two assigners of a partition can win."""
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
            reason = "an overwrite removed the partition's rows and their index"
        elif before is None:
            reason = "the index that this write was planned on has expired"
        elif partition in assigned and before.get(partition, {}) != now.get(partition, {}):
            reason = "its index of key hashes changed"
        elif set(before.get(partition, {})) & buckets - set(now.get(partition, {})):
            reason = "its index of key hashes was removed"
        else:
            continue
        text = f"dynamic buckets were assigned again since: {reason}"
        conflicts.append(Conflict(ConflictKind.BUCKET_ASSIGNMENT, text, partition=partition))
    return conflicts


def _hash_files(entries: Iterable[IndexManifestEntry]) -> dict[bytes, dict[int, str]]:
    """File name of the key hashes, by partition and bucket."""
    found: dict[bytes, dict[int, str]] = defaultdict(dict)
    for entry in entries:
        if entry.file.index_type == HASH_INDEX:
            found[entry.partition][entry.bucket] = entry.file.file_name
    return found

"""What makes a commit lose: pure rules on metadata (docs/format.md 14.3, and 14.4 for lakelsm's own writers).

:func:`check_changes` holds Paimon's rules: a delta against the files that are live now. :func:`check_append`
holds the rules for an append that was planned on an older snapshot, against what was committed since, and
:func:`check_rows_read` one more for an append that was worked out from that snapshot's rows. Those for deletion vectors
stand in vector_conflict.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from lakelsm.errors import (
    BucketAssignConflictError,
    CommitConflictError,
    RowsChangedError,
    SequenceConflictError,
    VectorsChangedError,
)
from lakelsm.format.index.index_manifest import HASH_INDEX, IndexManifestEntry
from lakelsm.format.manifest import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind

#: Ranks stored keys (BinaryRow bytes with arity) so that they compare as the keys do; see key_order.rank_keys.
RankKeys = Callable[[Sequence[bytes]], Sequence[int]]
#: Text of a stored partition, for messages.
PartitionName = Callable[[bytes], str]

#: A stored partition and a bucket of it.
BucketKey = tuple[bytes, int]


class ConflictKind(Enum):
    """Why a commit cannot be published on the newest snapshot."""

    DUPLICATE_FILE = "a file is added that the table has already"
    MISSING_FILE = "a file is deleted that the table no longer has"
    BUCKET_COUNT = "a partition would hold files of two bucket counts"
    LEVEL_OVERLAP = "two files of one level would overlap"
    OLDER_SCHEMA = "rows of a newer schema were rewritten under an older one"
    SEQUENCE = "another commit used the same sequence numbers in a bucket"
    BUCKET_ASSIGNMENT = "another commit assigned keys of the partition to buckets"
    ROWS_CHANGED = "another commit wrote keys of the rows that the work was done from"
    VECTORS_CHANGED = "deletion vectors that the work was done under changed"
    VECTOR_MISPLACED = "a deletion vector is of no file that can have it, or one too many"
    VECTORS_SWITCHED = "deletion vectors of the table were switched on or off since the work was planned"
    BASE_EXPIRED = "the snapshot that the work was planned on has expired"


@dataclass(frozen=True)
class Conflict:
    """One conflict: what it is, told with names, and the data files concerned."""

    kind: ConflictKind
    message: str
    files: tuple[str, ...] = ()

    def error(self, where: str) -> CommitConflictError:
        """Return the exception for it; its class says what has to be redone."""
        text = f"{where}: {self.message}. Nothing was committed; redo the work on the newest snapshot."
        if self.kind is ConflictKind.SEQUENCE:
            return SequenceConflictError(text)
        if self.kind is ConflictKind.BUCKET_ASSIGNMENT:
            return BucketAssignConflictError(text)
        if self.kind is ConflictKind.ROWS_CHANGED:
            return RowsChangedError(text)
        if self.kind is ConflictKind.VECTORS_CHANGED:
            return VectorsChangedError(text, self.files)
        return CommitConflictError(text)


@dataclass(frozen=True)
class Intervening:
    """A snapshot committed after the one that an append was planned on, with the entries of its delta."""

    snapshot_id: int
    kind: CommitKind
    commit_user: str
    entries: tuple[ManifestEntry, ...]


def check_changes(
    kind: CommitKind,
    base: Sequence[ManifestEntry],
    delta: Sequence[ManifestEntry],
    rank_keys: RankKeys,
    partition_name: PartitionName = bytes.hex,
) -> list[Conflict]:
    """Check a delta against the live files of the partitions (or buckets) that it changes.

    REQUIRES: ``base`` holds ADD entries only, each identity once. Returns the conflicts found.
    """
    conflicts = _check_bucket_counts(kind, base, delta, partition_name)
    merged, identity_conflicts = _merge(base, delta)
    conflicts += identity_conflicts
    if not identity_conflicts:
        conflicts += _check_levels(merged, delta, rank_keys, partition_name)
    if kind is CommitKind.COMPACT:
        conflicts += _check_rewrite_schema(delta, partition_name)
    return conflicts


def check_append(
    delta: Sequence[ManifestEntry],
    index_adds: Sequence[IndexManifestEntry],
    since: Sequence[Intervening],
    base_index: Sequence[IndexManifestEntry] | None,
    index_now: Sequence[IndexManifestEntry],
    partition_name: PartitionName = bytes.hex,
) -> list[Conflict]:
    """Check an append, planned on an older snapshot, against everything committed since.

    ``base_index`` is the index of the snapshot planned on (None: expired, unknown), ``index_now`` the newest.
    Appends of disjoint buckets, compactions, and overwrites under fixed buckets are no conflicts.
    """
    conflicts: list[Conflict] = []
    for snapshot in since:
        conflicts += _check_sequences(delta, snapshot, partition_name)
        conflicts += _check_counts_since(delta, snapshot, partition_name)
    return conflicts + _check_assignment(delta, index_adds, since, base_index, index_now, partition_name)


def check_rows_read(
    delta: Sequence[ManifestEntry],
    since: Sequence[Intervening],
    rank_keys: RankKeys,
    partition_name: PartitionName = bytes.hex,
) -> list[Conflict]:
    """Check an append of rows that were read before against what was written since in the ranges of their keys."""
    conflicts = []
    for snapshot in since:
        file = next(iter(rewritten_in_range(delta, snapshot, rank_keys)), None)
        if file is not None:
            text = (
                f"snapshot {snapshot.snapshot_id} of {snapshot.commit_user} wrote to bucket {file.bucket} of partition "
                f"{partition_name(file.partition)} in the key range of the rows that this work was done from"
            )
            conflicts.append(Conflict(ConflictKind.ROWS_CHANGED, text, (file.file.file_name,)))
    return conflicts


def rewritten_in_range(
    delta: Sequence[ManifestEntry], snapshot: Intervening, rank_keys: RankKeys
) -> list[ManifestEntry]:
    """Files that a snapshot added or removed whose key range overlaps that of a file of ``delta`` in the same bucket.

    Compactions change no row, nor do files that were only moved up.
    """
    if snapshot.kind is CommitKind.COMPACT:
        return []
    moved = _moved(snapshot.entries)
    theirs = [entry for entry in snapshot.entries if entry.file.file_name not in moved]
    return _overlapping(_adds(delta), theirs, rank_keys)


def _moved(entries: Sequence[ManifestEntry]) -> set[str]:
    """Names of the files that a delta only moves to another level."""
    return {entry.file.file_name for entry in _adds(entries)} & {entry.file.file_name for entry in _deletes(entries)}


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


def _adds(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    return [entry for entry in entries if entry.kind == FileKind.ADD]


def _deletes(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    return [entry for entry in entries if entry.kind == FileKind.DELETE]


def _check_bucket_counts(
    kind: CommitKind, base: Sequence[ManifestEntry], delta: Sequence[ManifestEntry], name: PartitionName
) -> list[Conflict]:
    """One positive bucket count a partition; an OVERWRITE may change it."""
    if kind is CommitKind.OVERWRITE:
        return []
    counts: dict[bytes, int] = {}
    conflicts: dict[bytes, Conflict] = {}
    for entry in (*base, *delta):
        if entry.total_buckets <= 0:
            continue
        known = counts.setdefault(entry.partition, entry.total_buckets)
        if known != entry.total_buckets and entry.partition not in conflicts:
            conflicts[entry.partition] = Conflict(
                ConflictKind.BUCKET_COUNT,
                f"total buckets of partition {name(entry.partition)} changed from {known} to "
                f"{entry.total_buckets} without an overwrite",
                (entry.file.file_name,),
            )
    return list(conflicts.values())


def _merge(
    base: Sequence[ManifestEntry], delta: Sequence[ManifestEntry]
) -> tuple[list[ManifestEntry], list[Conflict]]:
    """Apply a delta in order; return the files live after it, and what could not be applied."""
    live: dict[EntryIdentity, ManifestEntry] = {entry.identity: entry for entry in base}
    gone: set[EntryIdentity] = set()
    twice: list[str] = []
    missing: list[str] = []
    for entry in delta:
        identity = entry.identity
        label = f"{entry.file.file_name} (bucket {entry.bucket}, level {entry.file.level})"
        if entry.kind == FileKind.ADD:
            # An identity that was ever deleted must not come back: every reader drops it (docs/format.md 11.1).
            if identity in live or identity in gone:
                twice.append(label)
            live[identity] = entry
        elif live.pop(identity, None) is None:
            missing.append(label)
        else:
            gone.add(identity)
    conflicts = []
    if twice:
        conflicts.append(_files_conflict(ConflictKind.DUPLICATE_FILE, "adding files that exist", twice))
    if missing:
        conflicts.append(
            _files_conflict(
                ConflictKind.MISSING_FILE, "deleting files that are no longer in the table", missing
            )
        )
    return list(live.values()), conflicts


def _files_conflict(kind: ConflictKind, what: str, labels: Sequence[str]) -> Conflict:
    shown = ", ".join(labels[:10]) + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
    names = tuple(label.split(" ", 1)[0] for label in labels)
    return Conflict(kind, f"file deletion conflict, {what}: {shown}", names)


def _check_levels(
    merged: Sequence[ManifestEntry],
    delta: Sequence[ManifestEntry],
    rank_keys: RankKeys,
    name: PartitionName,
) -> list[Conflict]:
    """Files of one level >= 1 of a bucket are one sorted run. Only levels that the delta adds to can fail."""
    touched = {_level(entry) for entry in _adds(delta) if entry.file.level >= 1}
    runs: Mapping[tuple[bytes, int, int], list[ManifestEntry]] = defaultdict(list)
    for entry in merged:
        if entry.file.level >= 1 and _level(entry) in touched:
            runs[_level(entry)].append(entry)
    conflicts = []
    for (partition, bucket, level), files in runs.items():
        if len(files) < 2:
            continue
        ranks = rank_keys([key for entry in files for key in (entry.file.min_key, entry.file.max_key)])
        spans = sorted((ranks[2 * i], ranks[2 * i + 1], i) for i in range(len(files)))
        for (_, high, one), (low, _, other) in pairwise(spans):
            if high >= low:
                pair = (files[one].file.file_name, files[other].file.file_name)
                conflicts.append(
                    Conflict(
                        ConflictKind.LEVEL_OVERLAP,
                        f"LSM conflict, overlapping files on level {level} of bucket {bucket}, partition "
                        f"{name(partition)}: {pair[0]} and {pair[1]}",
                        pair,
                    )
                )
                break
    return conflicts


def _level(entry: ManifestEntry) -> tuple[bytes, int, int]:
    return entry.partition, entry.bucket, entry.file.level


def _check_rewrite_schema(delta: Sequence[ManifestEntry], name: PartitionName) -> list[Conflict]:
    """A rewrite under an older schema would null the columns that were added since."""
    moved = _moved(delta)
    newest_input: dict[BucketKey, ManifestEntry] = {}
    for entry in _deletes(delta):
        if entry.file.file_name in moved:
            continue
        known = newest_input.setdefault((entry.partition, entry.bucket), entry)
        if entry.file.schema_id > known.file.schema_id:
            newest_input[entry.partition, entry.bucket] = entry
    conflicts = []
    for entry in _adds(delta):
        source = newest_input.get((entry.partition, entry.bucket))
        if source and entry.file.file_name not in moved and entry.file.schema_id < source.file.schema_id:
            conflicts.append(
                Conflict(
                    ConflictKind.OLDER_SCHEMA,
                    f"{entry.file.file_name} was written under schema {entry.file.schema_id} from files of "
                    f"schema {source.file.schema_id} (bucket {entry.bucket} of partition "
                    f"{name(entry.partition)})",
                    (entry.file.file_name, source.file.file_name),
                )
            )
    return conflicts


def _check_sequences(
    delta: Sequence[ManifestEntry], snapshot: Intervening, name: PartitionName
) -> list[Conflict]:
    """Rows committed since must have smaller sequence numbers than ours: ties differ between readers."""
    if snapshot.kind is CommitKind.COMPACT:
        return []
    ours: dict[BucketKey, int] = {}
    for entry in _adds(delta):
        key = (entry.partition, entry.bucket)
        ours[key] = min(entry.file.min_sequence_number, ours.get(key, entry.file.min_sequence_number))
    moved = {entry.file.file_name for entry in _deletes(snapshot.entries)}
    conflicts = []
    for entry in _adds(snapshot.entries):
        smallest = ours.get((entry.partition, entry.bucket))
        theirs = entry.file.max_sequence_number
        if smallest is not None and theirs >= smallest and entry.file.file_name not in moved:
            conflicts.append(
                Conflict(
                    ConflictKind.SEQUENCE,
                    f"snapshot {snapshot.snapshot_id} of {snapshot.commit_user} wrote sequence numbers up to "
                    f"{theirs} to bucket {entry.bucket} of partition {name(entry.partition)}, and this write "
                    f"begins at {smallest}",
                    (entry.file.file_name,),
                )
            )
            break
    return conflicts


def _check_counts_since(
    delta: Sequence[ManifestEntry], snapshot: Intervening, name: PartitionName
) -> list[Conflict]:
    """A partition that was rescaled since holds our rows under a count that no reader expects."""
    ours = {entry.partition: entry for entry in _adds(delta) if entry.total_buckets > 0}
    for entry in _adds(snapshot.entries):
        mine = ours.get(entry.partition)
        if mine is not None and entry.total_buckets > 0 and entry.total_buckets != mine.total_buckets:
            return [
                Conflict(
                    ConflictKind.BUCKET_COUNT,
                    f"snapshot {snapshot.snapshot_id} changed the total buckets of partition "
                    f"{name(entry.partition)} from {mine.total_buckets} to {entry.total_buckets}",
                    (mine.file.file_name,),
                )
            ]
    return []


def _hash_files(entries: Iterable[IndexManifestEntry]) -> dict[bytes, dict[int, str]]:
    """File name of the key hashes, by partition and bucket."""
    found: dict[bytes, dict[int, str]] = defaultdict(dict)
    for entry in entries:
        if entry.file.index_type == HASH_INDEX:
            found[entry.partition][entry.bucket] = entry.file.file_name
    return found


def _check_assignment(
    delta: Sequence[ManifestEntry],
    index_adds: Sequence[IndexManifestEntry],
    since: Sequence[Intervening],
    base_index: Sequence[IndexManifestEntry] | None,
    index_now: Sequence[IndexManifestEntry],
    name: PartitionName,
) -> list[Conflict]:
    """Dynamic buckets: a key has one bucket, so only one of two assigners of a partition can win."""
    if not since:
        return []
    assigned = set(_hash_files(index_adds))
    written = {(e.partition, e.bucket) for e in _adds(delta) if e.total_buckets == -1}
    before = None if base_index is None else _hash_files(base_index)
    now = _hash_files(index_now)
    removed = {
        entry.partition
        for snapshot in since
        if snapshot.kind is CommitKind.OVERWRITE
        for entry in _deletes(snapshot.entries)
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
        text = f"dynamic buckets of partition {name(partition)} were assigned again since: {reason}"
        conflicts.append(Conflict(ConflictKind.BUCKET_ASSIGNMENT, text))
    return conflicts

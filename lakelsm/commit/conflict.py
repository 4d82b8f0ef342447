"""Conflicts of commits: pure rules on metadata (docs/format.md 14.3, and 14.4 for lakelsm's own writers).

:func:`check_changes` has Paimon's rules, which compare a delta with the live files. append_conflict.py has the rules for
an append that was planned on an older snapshot, vector_conflict.py those for deletion vectors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from itertools import pairwise

from lakelsm.errors import (
    BucketAssignConflictError,
    CommitConflictError,
    RowsChangedError,
    SequenceConflictError,
    VectorsChangedError,
)
from lakelsm.format.manifest import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot

#: Maps stored keys (BinaryRow bytes with arity) to numbers in the order of the keys; see key_order.rank_keys.
RankKeys = Callable[[Sequence[bytes]], Sequence[int]]
#: A stored partition and a bucket number.
BucketKey = tuple[bytes, int]


class ConflictKind(Enum):
    """The reasons why a commit cannot be published on the newest snapshot."""

    DUPLICATE_FILE = "an added file is in the table already"
    MISSING_FILE = "a deleted file is no longer in the table"
    BUCKET_COUNT = "a partition would have files of two bucket counts"
    LEVEL_OVERLAP = "two files of one level would overlap"
    OLDER_SCHEMA = "rows of a newer schema were rewritten under an older one"
    SEQUENCE = "another commit used the same sequence numbers in a bucket"
    BUCKET_ASSIGNMENT = "another commit assigned keys of the partition to buckets"
    ROWS_CHANGED = "another commit wrote keys of rows that the delete, update or overwrite read"
    VECTORS_CHANGED = "another commit changed deletion vectors that the compaction applied"
    INVALID_VECTOR = "a deletion vector names a file that cannot have one, or the file has another one"
    VECTORS_SWITCHED = "deletion vectors of the table were enabled or disabled since the compaction was planned"
    BASE_EXPIRED = "the base snapshot has expired"


_ERRORS = {
    ConflictKind.SEQUENCE: SequenceConflictError,
    ConflictKind.BUCKET_ASSIGNMENT: BucketAssignConflictError,
    ConflictKind.ROWS_CHANGED: RowsChangedError,
}


@dataclass(frozen=True)
class Conflict:
    """One conflict: its kind and text, the data files concerned, and their stored partition and bucket."""

    kind: ConflictKind
    message: str
    files: tuple[str, ...] = ()
    partition: bytes | None = None
    _: KW_ONLY
    bucket: int | None = None

    def error(
        self, table: str, newest: Snapshot | None = None, partition_name: Callable[[bytes], str] = bytes.hex
    ) -> CommitConflictError:
        """Return the error of this conflict; its class says what must be repeated.

        ``newest`` is the snapshot that it conflicts with.
        """
        where, by = f"Table {table}", ""
        if self.partition is not None:
            bucket = "" if self.bucket is None else f"bucket {self.bucket} of "
            where += f", {bucket}partition {partition_name(self.partition)}"
        if newest is not None:
            by = f" (the newest snapshot is {newest.id}, {newest.commit_kind.value} by commit user {newest.commit_user})"
        text = f"{where}: {self.message}{by}. Nothing is committed; run it again."
        if self.kind is ConflictKind.VECTORS_CHANGED:
            return VectorsChangedError(text, self.files)
        return _ERRORS.get(self.kind, CommitConflictError)(text)


def check_changes(
    kind: CommitKind,
    base: Sequence[ManifestEntry],
    delta: Sequence[ManifestEntry],
    rank_keys: RankKeys,
) -> list[Conflict]:
    """Return the conflicts of a delta with the live files of the partitions or buckets that it changes.

    REQUIRES: ``base`` has ADD entries only, each identity once.
    """
    conflicts = [] if kind is CommitKind.OVERWRITE else _check_bucket_counts([*base, *delta])
    merged, identity_conflicts = _merge(base, delta)
    conflicts += identity_conflicts
    if not identity_conflicts:
        conflicts += _check_levels(merged, delta, rank_keys)
    if kind is CommitKind.COMPACT:
        conflicts += _check_rewrite_schema(delta)
    return conflicts


def moved_names(entries: Sequence[ManifestEntry]) -> set[str]:
    """Return the names of the files that a delta only moves to another level."""
    return {entry.file.file_name for entry in adds(entries)} & {entry.file.file_name for entry in deletes(entries)}


def adds(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries that add files."""
    return [entry for entry in entries if entry.kind == FileKind.ADD]


def deletes(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries that delete files."""
    return [entry for entry in entries if entry.kind == FileKind.DELETE]


def _check_bucket_counts(entries: Iterable[ManifestEntry]) -> list[Conflict]:
    """A partition has one positive bucket count; only an OVERWRITE may change it."""
    counts: dict[bytes, int] = {}
    conflicts: dict[bytes, Conflict] = {}
    for entry in (each for each in entries if each.total_buckets > 0):
        known = counts.setdefault(entry.partition, entry.total_buckets)
        if known != entry.total_buckets and entry.partition not in conflicts:
            text = f"total buckets changed from {known} to {entry.total_buckets} without an overwrite"
            conflicts[entry.partition] = Conflict(
                ConflictKind.BUCKET_COUNT, text, (entry.file.file_name,), entry.partition
            )
    return list(conflicts.values())


def _merge(
    base: Sequence[ManifestEntry], delta: Sequence[ManifestEntry]
) -> tuple[list[ManifestEntry], list[Conflict]]:
    """Apply a delta in order. Returns the live files after it, and the conflicts of entries that cannot be applied."""
    live: dict[EntryIdentity, ManifestEntry] = {entry.identity: entry for entry in base}
    deleted: set[EntryIdentity] = set()
    twice: list[ManifestEntry] = []
    missing: list[ManifestEntry] = []
    for entry in delta:
        identity = entry.identity
        if entry.kind == FileKind.ADD:
            # Readers drop an identity that was ever deleted, so it must not be added again (docs/format.md 11.1).
            if identity in live or identity in deleted:
                twice.append(entry)
            live[identity] = entry
        elif live.pop(identity, None) is None:
            missing.append(entry)
        else:
            deleted.add(identity)
    found = (
        (ConflictKind.DUPLICATE_FILE, "the commit adds files that the table already has", twice),
        (ConflictKind.MISSING_FILE, "the commit deletes files that are no longer in the table", missing),
    )
    return list(live.values()), [
        Conflict(
            kind,
            f"{what}: {shown_names(_label(entry) for entry in entries)}",
            tuple(entry.file.file_name for entry in entries),
        )
        for kind, what, entries in found
        if entries
    ]


def _label(entry: ManifestEntry) -> str:
    return f"{entry.file.file_name} (bucket {entry.bucket}, level {entry.file.level})"


def shown_names(names: Iterable[str]) -> str:
    """Return the first ten names and the number of the others, for a message."""
    listed = list(names)
    more = len(listed) - 10
    return ", ".join(listed[:10]) + (f" and {more} more" if more > 0 else "")


def _check_levels(
    merged: Sequence[ManifestEntry], delta: Sequence[ManifestEntry], rank_keys: RankKeys
) -> list[Conflict]:
    """The files of a level >= 1 of a bucket must not overlap. Only levels with added files are compared."""
    touched = {_level(entry) for entry in adds(delta) if entry.file.level >= 1}
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
                text = f"files on level {level} would overlap: {pair[0]} and {pair[1]}"
                conflicts.append(Conflict(ConflictKind.LEVEL_OVERLAP, text, pair, partition, bucket=bucket))
                break
    return conflicts


def _level(entry: ManifestEntry) -> tuple[bytes, int, int]:
    return entry.partition, entry.bucket, entry.file.level


def _check_rewrite_schema(delta: Sequence[ManifestEntry]) -> list[Conflict]:
    """A rewrite under an older schema would set columns that were added since to NULL."""
    moved = moved_names(delta)
    newest_input: dict[BucketKey, ManifestEntry] = {}
    for entry in deletes(delta):
        if entry.file.file_name in moved:
            continue
        known = newest_input.setdefault((entry.partition, entry.bucket), entry)
        if entry.file.schema_id > known.file.schema_id:
            newest_input[entry.partition, entry.bucket] = entry
    conflicts = []
    for entry in adds(delta):
        source = newest_input.get((entry.partition, entry.bucket))
        if source and entry.file.file_name not in moved and entry.file.schema_id < source.file.schema_id:
            new, old = entry.file, source.file
            text = f"{new.file_name} was written under schema {new.schema_id} from files of schema {old.schema_id}"
            files = (new.file_name, old.file_name)
            conflicts.append(Conflict(ConflictKind.OLDER_SCHEMA, text, files, entry.partition, bucket=entry.bucket))
    return conflicts

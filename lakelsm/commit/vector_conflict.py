"""Deletion vectors in commits: their conflicts, and the removal of vectors with their files. Pure rules.

A vector is a pair (data file, range in an index file). If the range differs, the bytes may still be the same: an index
file is rewritten if any vector of its bucket changes. The commit that lost compares the bytes (docs/format.md 14.4).

New files need no rule: a compaction that takes level 0 takes all of it (`lsm/universal_compaction.py`). So if two
compactions write a key above level 0 and neither sees the other's row, one of them finds an input deleted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lakelsm.commit.conflict import BucketKey, Conflict, ConflictKind, deletes, moved_names, shown_names
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry

#: The name of a data file; index file, byte offset and length of its vector.
_Vector = tuple[str, str, int, int]
#: The levels of the live files of each bucket, by file name.
LiveLevels = Mapping[BucketKey, Mapping[str, int]]


def check_vectors(
    delta: Sequence[ManifestEntry],
    index_adds: Sequence[IndexManifestEntry],
    index_deletes: Sequence[IndexManifestEntry],
    live: Sequence[ManifestEntry],
    *,
    base_index: Sequence[IndexManifestEntry] | None,
    index_now: Sequence[IndexManifestEntry],
) -> list[Conflict]:
    """Return the conflicts of a commit that applied the vectors of its base with the vectors of the newest snapshot.

    ``base_index`` is the index of the base snapshot (None: it has expired), ``index_now`` that of the newest, ``live``
    the live files of the newest in all changed buckets. A file that only moves to another level keeps its vector.
    Conflicts that remapping can resolve come last: if the first conflict is of kind VECTORS_CHANGED, so are all others.
    """
    rewritten = _rewritten(delta)
    changed_indexes = {(e.partition, e.bucket) for e in (*index_adds, *index_deletes) if _is_vectors(e)}
    buckets = changed_indexes | set(rewritten)
    before = None if base_index is None else _vectors(base_index, buckets)
    now = _vectors(index_now, buckets)
    conflicts = []
    for bucket in sorted(buckets):
        concerned = None if bucket in changed_indexes else rewritten[bucket]
        conflict = _changed_since(bucket, concerned, before, now)
        if conflict is not None:
            conflicts.append(conflict)
    return sorted([*conflicts, *check_vector_files(delta, index_adds, live)], key=_can_be_remapped)


def check_vector_files(
    delta: Sequence[ManifestEntry], index_adds: Sequence[IndexManifestEntry], live: Sequence[ManifestEntry]
) -> list[Conflict]:
    """Return the conflicts of new vectors: each must name another file that is live after the delta, above level 0."""
    files: dict[BucketKey, list[str]] = defaultdict(list)
    for entry in index_adds:
        if _is_vectors(entry):
            files[entry.partition, entry.bucket].append(entry.file.file_name)
    before, after = live_levels(live, ()), live_levels(live, delta)
    conflicts = []
    for bucket in sorted(files):
        names = Counter(_names(entry for entry in index_adds if (entry.partition, entry.bucket) == bucket))
        unknown = sorted(name for name in names if name not in after.get(bucket, {}))
        lost = [name for name in unknown if name not in before.get(bucket, {})]
        invalid = [
            ("the bucket would have two index files", files[bucket][1:] and files[bucket]),
            ("the commit deletes their data files", [name for name in unknown if name not in lost]),
            ("data files have two vectors", sorted(name for name, count in names.items() if count > 1)),
            ("data files are on level 0", sorted(name for name in names if after.get(bucket, {}).get(name) == 0)),
        ]
        for why, wrong in invalid:
            if wrong:
                text = f"the new deletion vectors are invalid, {why}: {shown_names(wrong)}"
                conflicts.append(Conflict(ConflictKind.INVALID_VECTOR, text, tuple(wrong), bucket[0], bucket=bucket[1]))
        if lost:
            text = f"data files with new deletion vectors are no longer in the table: {shown_names(lost)}"
            conflicts.append(Conflict(ConflictKind.VECTORS_CHANGED, text, tuple(lost), bucket[0], bucket=bucket[1]))
    return conflicts


def _can_be_remapped(conflict: Conflict) -> bool:
    return conflict.kind is ConflictKind.VECTORS_CHANGED


def live_levels(live: Iterable[ManifestEntry], delta: Iterable[ManifestEntry]) -> LiveLevels:
    """Return the levels of the live files after a delta, in each bucket of ``live`` or ``delta``."""
    levels: dict[BucketKey, dict[str, int]] = defaultdict(dict)
    for entry in (*live, *delta):
        files = levels[entry.partition, entry.bucket]
        if entry.kind == FileKind.ADD:
            files[entry.file.file_name] = entry.file.level
        elif files.get(entry.file.file_name) == entry.file.level:
            del files[entry.file.file_name]
    return levels


def vectors_of_live_files(index: Sequence[IndexManifestEntry], live: LiveLevels) -> list[IndexManifestEntry]:
    """Return the index without vectors of files that are not live, in the buckets whose live files are known.

    The bytes stay in the index file with its other vectors; only the manifest drops the ranges. An index file without
    other vectors is dropped.
    """
    kept = []
    for entry in index:
        files = live.get((entry.partition, entry.bucket))
        ranges = entry.file.dv_ranges
        if not _is_vectors(entry) or files is None or ranges is None:
            kept.append(entry)
            continue
        left = tuple(item for item in ranges if item.data_file_name in files)
        if len(left) == len(ranges):
            kept.append(entry)
        elif left:
            kept.append(replace(entry, file=replace(entry.file, dv_ranges=left, row_count=len(left))))
    return kept


def _changed_since(
    bucket: BucketKey,
    concerned: set[str] | None,
    before: Mapping[BucketKey, set[_Vector]] | None,
    now: Mapping[BucketKey, set[_Vector]],
) -> Conflict | None:
    """Return a conflict if vectors of a bucket changed, of the files ``concerned`` (None: of any file)."""
    then = set() if before is None else before.get(bucket, set())
    names = {vector[0] for vector in then ^ now.get(bucket, set())}
    changed = sorted(names if concerned is None else names & concerned)
    if before is None and (changed or concerned is None):
        text = "the snapshot whose deletion vectors were applied has expired"
        return Conflict(ConflictKind.BASE_EXPIRED, text, tuple(changed), bucket[0], bucket=bucket[1])
    if not changed:
        return None
    text = f"another commit changed the deletion vectors of {shown_names(changed)}"
    return Conflict(ConflictKind.VECTORS_CHANGED, text, tuple(changed), bucket[0], bucket=bucket[1])


def _rewritten(delta: Sequence[ManifestEntry]) -> dict[BucketKey, set[str]]:
    """Return the names of the files that a delta deletes and does not add on another level, by bucket."""
    moved = moved_names(delta)
    found: dict[BucketKey, set[str]] = defaultdict(set)
    for entry in deletes(delta):
        if entry.file.file_name not in moved:
            found[entry.partition, entry.bucket].add(entry.file.file_name)
    return found


def _vectors(index: Iterable[IndexManifestEntry], buckets: Collection[BucketKey]) -> dict[BucketKey, set[_Vector]]:
    """Return the vectors of some buckets."""
    found: dict[BucketKey, set[_Vector]] = defaultdict(set)
    for entry in index:
        if (entry.partition, entry.bucket) in buckets and _is_vectors(entry):
            found[entry.partition, entry.bucket].update(
                (item.data_file_name, entry.file.file_name, item.offset, item.length)
                for item in entry.file.dv_ranges or ()
            )
    return found


def _names(index: Iterable[IndexManifestEntry]) -> list[str]:
    """Return the data file name of each vector, with repetitions."""
    return [item.data_file_name for entry in index if _is_vectors(entry) for item in entry.file.dv_ranges or ()]


def _is_vectors(entry: IndexManifestEntry) -> bool:
    return entry.file.index_type == DELETION_VECTORS_INDEX

"""The maximum sequence number of a table, after which writers continue.

Paimon keeps it in the snapshot property ``sequence.generation.max-sequence-number`` if an option enables it; lakelsm
always does. A snapshot of another engine may lack it, or have the copy of an older one, which may be too low. Then it is
computed, and the next commit of lakelsm records it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_manifest, read_manifest_metas
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.storage import FileIO

#: Key of the snapshot property. Persisted: do not change.
MAX_SEQUENCE_PROPERTY = "sequence.generation.max-sequence-number"
#: The maximum of a table without rows.
NO_SEQUENCE = -1
_NUMBER = re.compile(r"-?[0-9]{1,19}")
#: The highest valid maximum: higher ones would soon not fit 64 bits.
_LAST_SEQUENCE = (1 << 62) - 1
#: The maximum number of snapshots that are read backwards; after them, all manifests are read.
_LONGEST_WALK = 30


def recorded_max_sequence(snapshot: Snapshot) -> int | None:
    """Return the maximum that a snapshot of lakelsm records, or None."""
    return _stored_max_sequence(snapshot) if snapshot.is_ours else None


def _stored_max_sequence(snapshot: Snapshot) -> int | None:
    """Return the value of the property in a snapshot of any engine, or None."""
    text = (snapshot.properties or {}).get(MAX_SEQUENCE_PROPERTY)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or not NO_SEQUENCE <= int(text) <= _LAST_SEQUENCE:
        raise CorruptTableError(
            f"Snapshot {snapshot.id}: property {MAX_SEQUENCE_PROPERTY!r}: {text[:50]!r} is not a number up to "
            f"{_LAST_SEQUENCE}."
        )
    return int(text)


def table_max_sequence(file_io: FileIO, paths: TablePaths, snapshot: Snapshot | None) -> int:
    """Return a number that no sequence number of the snapshot's live rows exceeds; -1 for a table without rows.

    Reads nothing if the snapshot records it, otherwise the deltas back to a snapshot that does, otherwise all manifests.
    All manifests are also read after an overwrite of another engine: Java's replacement of a manifest list has files
    that no delta adds.
    """
    if snapshot is None:
        return NO_SEQUENCE
    manager = SnapshotManager(file_io, paths)
    highest = NO_SEQUENCE
    current: Snapshot | None = snapshot
    for _ in range(_LONGEST_WALK):
        if current is None:
            break
        stored = _stored_max_sequence(current)
        highest = highest if stored is None else max(highest, stored)
        if stored is not None and current.is_ours:
            return highest
        if current.commit_kind is CommitKind.OVERWRITE and not current.is_ours:
            break
        highest = max(highest, max_added_sequence(read_delta_entries(file_io, paths, current)))
        if current.id == 1:
            return highest
        current = manager.try_get(current.id - 1)
    metas = read_manifest_metas(file_io, paths, snapshot)
    added = (max_added_sequence(read_manifest(file_io, paths, meta)) for meta in metas if meta.num_added_files > 0)
    return max(added, default=highest)


def max_added_sequence(entries: Iterable[ManifestEntry]) -> int:
    """Return the largest sequence number of the files that the entries add; -1 if they add none."""
    return max((e.file.max_sequence_number for e in entries if e.kind == FileKind.ADD), default=NO_SEQUENCE)


def with_max_sequence(
    properties: Mapping[str, str], previous: int, delta: Iterable[ManifestEntry]
) -> dict[str, str]:
    """Return ``properties`` for the next snapshot, with the maximum of ``previous`` and the delta."""
    highest = max(previous, max_added_sequence(delta))
    if highest == NO_SEQUENCE:
        return dict(properties)
    return {**properties, MAX_SEQUENCE_PROPERTY: str(highest)}

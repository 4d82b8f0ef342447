"""The record of the last rollback. It distinguishes a LATEST hint that is too high from a missing snapshot."""

from __future__ import annotations

import json

from lakelsm.errors import CorruptTableError
from lakelsm.format.file_names import MANIFEST_LIST_PREFIX
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.storage import FileIO

_MAX_BYTES = 4096


def record_rollback(file_io: FileIO, paths: TablePaths, target: Snapshot) -> None:
    """Record that all snapshots above ``target`` were deleted."""
    file_io.write(paths.last_rollback, json.dumps({"snapshot": target.id, "mark": target.fingerprint}).encode())


def is_left_by_rollback(file_io: FileIO, paths: TablePaths, newest: Snapshot | None) -> bool:
    """Return whether LATEST, which names a snapshot above the newest one, names one that a rollback deleted.

    True if the newest snapshot is the target of the last rollback, and no manifest list was written between its record
    and the write of LATEST, so that no snapshot was published. The times are those of the store.
    """
    if newest is None or not _is_last_rollback_to(file_io, paths, newest):
        return False
    folders = (paths.service_dir, paths.snapshot_dir, paths.manifest_dir)
    records, hints, manifests = (_modified(file_io, folder) for folder in folders)
    recorded, hinted = records.get(paths.last_rollback), hints.get(paths.latest_hint)
    if recorded is None or hinted is None:
        return False
    prefix = f"{paths.manifest_dir}/{MANIFEST_LIST_PREFIX}"
    lists = (time for path, time in manifests.items() if path.startswith(prefix))
    return not any(recorded <= time <= hinted for time in lists)


def _is_last_rollback_to(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> bool:
    """Return whether the record of the last rollback names a snapshot. A damaged record names none."""
    path = paths.last_rollback
    try:
        values = parse_object(file_io.read(path, _MAX_BYTES), path)
    except (FileNotFoundError, CorruptTableError):
        return False
    return (values.get("snapshot"), values.get("mark")) == (snapshot.id, snapshot.fingerprint)


def _modified(file_io: FileIO, directory: str) -> dict[str, int]:
    """Return the modification times of the files of a directory (epoch milliseconds), by path."""
    return {f"{directory}/{entry.name}": entry.modified for entry in file_io.entries(directory) if not entry.is_directory}

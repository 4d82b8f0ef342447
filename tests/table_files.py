"""The data files of a table: those of its newest snapshot, and those in its directory."""

from __future__ import annotations

from pathlib import Path

from lakelsm import Table
from lakelsm.format.manifest import ManifestEntry
from lakelsm.snapshots.manifest_scan import read_live_entries


def root_of(table: Table) -> Path:
    return Path(table._opened.paths.root)


def live_entries(table: Table) -> list[ManifestEntry]:
    store = table._store()
    latest = store.snapshots.latest()
    return [] if latest is None else read_live_entries(store.file_io, store.paths, latest)


def live_files(table: Table) -> set[str]:
    return {entry.file.file_name for entry in live_entries(table)}


def stored_files(table: Table, pattern: str = "data-*") -> set[str]:
    return {path.name for path in root_of(table).rglob(pattern)}

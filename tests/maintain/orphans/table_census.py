"""The files in a table's directory and the names in its states, found in the simplest way, to compare removals with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.manifest_scan import (
    read_changelog_entries,
    read_index_entries,
    read_manifest,
    read_manifest_list,
    read_manifest_metas,
)
from lakelsm.snapshots.table_store import TableStore

_STATE = re.compile(r"(snapshot|schema|tag|changelog|consumer|service)/(?!\.)[^/]+$|_SUCCESS$|\.txt$")


def census(root: Path) -> set[str]:
    """Return the files below a table's directory, as paths relative to it."""
    return {os.path.relpath(f"{folder}/{name}", root) for folder, _, names in os.walk(root) for name in names}


def stored(store: TableStore) -> set[str]:
    """Return the files below a table's directory, as paths relative to it, as the store lists them."""
    root = store.paths.root

    def below(path: str) -> Iterator[str]:
        for entry in store.file_io.entries(path):
            inner = f"{path}/{entry.name}"
            if entry.is_directory:
                yield from below(inner)
            else:
                yield inner.removeprefix(f"{root}/")

    return set(below(root))


def named(store: TableStore) -> set[str]:
    """Return the names of the files that retained states name."""
    found: set[str] = set()
    for branch in store.branches.retained():
        for snapshot in (*branch.snapshots, *(tag.snapshot for tag in branch.tags.values())):
            found |= _named_by(store, snapshot)
        for snapshot in branch.changelogs:
            found |= _changelog_of(store, snapshot) or _delta_of(store, snapshot)
    return found


def unnamed(root: Path) -> set[str]:
    """Return the paths of the table's own files that no retained state names."""
    return unnamed_of(TableStore.open(str(root)), census(root))


def unnamed_of(store: TableStore, paths: set[str]) -> set[str]:
    """Return those of some paths that are the table's own files and that no retained state names."""
    names = named(store)
    return {path for path in paths if Path(path).name not in names and not _STATE.search(path)}


def _named_by(store: TableStore, snapshot: Snapshot) -> set[str]:
    file_io, paths = store.file_io, store.paths
    metas = read_manifest_metas(file_io, paths, snapshot)
    entries = [entry for meta in metas for entry in read_manifest(file_io, paths, meta)]
    names = {snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.index_manifest, snapshot.statistics}
    names |= {meta.file_name for meta in metas}
    names |= {name for entry in entries for name in (entry.file.file_name, *entry.file.extra_files)}
    names |= {entry.file.file_name for entry in read_index_entries(file_io, paths, snapshot)}
    return {name for name in names if name} | _changelog_of(store, snapshot)


def _delta_of(store: TableStore, snapshot: Snapshot) -> set[str]:
    """Return the existing files in the delta and base lists of a long-lived changelog without a changelog list."""
    found: set[str] = set()
    for name in (snapshot.delta_manifest_list, snapshot.base_manifest_list):
        found.add(name)
        if store.file_io.exists(store.paths.manifest(name)):
            for meta in read_manifest_list(store.file_io, store.paths, snapshot, name, None):
                found.add(meta.file_name)
                if store.file_io.exists(store.paths.manifest(meta.file_name)):
                    entries = read_manifest(store.file_io, store.paths, meta)
                    found |= {each for entry in entries for each in (entry.file.file_name, *entry.file.extra_files)}
    return found


def _changelog_of(store: TableStore, snapshot: Snapshot) -> set[str]:
    """Return the changelog list of a snapshot with its manifests and files; nothing without a list, or if it expired."""
    name = snapshot.changelog_manifest_list
    if name is None:
        return set()
    try:
        metas = read_manifest_list(store.file_io, store.paths, snapshot, name, snapshot.changelog_manifest_list_size)
    except CorruptTableError:
        return {name}
    files = read_changelog_entries(store.file_io, store.paths, snapshot)
    return {name, *(meta.file_name for meta in metas), *(entry.file.file_name for entry in files)}

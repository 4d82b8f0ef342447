"""Tables of synthetic metadata with a history, for expiry, orphan removal and check()."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.config import BenchConfig
from benchmarks.metadata import PARTITION_TYPES, TIME_MILLIS, make_entries, write_table
from benchmarks.workspace import build
from lakelsm.format.file_names import CommitFileNames
from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta, encode_manifest
from lakelsm.format.manifest.manifest_list import encode_manifest_list, summarize
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.table_store import TableStore

SNAPSHOTS = 1_000
LISTED_A_FILE = 10
"""The number of listed files for each live one in an orphan scan."""
_MERGED = 30
"""The number of commits whose manifests are merged into one, as with `manifest.merge-min-count`."""
_UUID = "5f0d8a52-6c5e-4b42-9f3e-000000000002"
_METADATA = ("manifest", "schema", "snapshot")


def prepare_kept(config: BenchConfig) -> Path:
    """Return a table with a history of 1,000 snapshots and ``config.files`` live files, which exist and are empty.

    Each commit replaces one file in ten thousand, as compactions do.
    """
    target = config.root / f"metadata{config.files}" / "bench.db" / "kept"

    def make(root: Path) -> None:
        _lay_files(root, _write_history(root, config.files))

    build(target, make)
    return target


def prepare_searched(config: BenchConfig) -> Path:
    """Return the same table with ten files for each live one: the others are orphans, and all are old."""
    target = config.root / f"metadata{config.files}" / "bench.db" / "searched"

    def make(root: Path) -> None:
        copy_metadata(prepare_kept(config), root)
        wanted = np.arange(LISTED_A_FILE * config.files)
        for start in range(0, len(wanted), config.files):
            _lay_files(root, make_entries(wanted[start : start + config.files], top_level=True), sized=False)

    build(target, make)
    return target


def copy_metadata(source: Path, target: Path) -> None:
    """Replace ``target`` by the metadata of the table at ``source``, without its data files."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for folder in _METADATA:
        shutil.copytree(source / folder, target / folder)


def replaced_each_time(files: int) -> int:
    """Return the number of files that each commit of the history replaces."""
    return max(1, files // (10 * SNAPSHOTS))


def _write_history(root: Path, files: int) -> list[ManifestEntry]:
    """Write the metadata of a table and its snapshots; return the entries of all its files."""
    merged = write_table(root, files)
    paths, names = TablePaths(str(root)), CommitFileNames(_UUID)
    first = TableStore.open(str(root)).snapshots.get(1)
    each = replaced_each_time(files)
    old = make_entries(np.arange(files), top_level=True)
    new = make_entries(np.arange(files, files + each * (SNAPSHOTS - 1)), top_level=True)

    def manifest(entries: list[ManifestEntry]) -> ManifestFileMeta:
        name, data = names.manifest(), encode_manifest(entries)
        Path(paths.manifest(name)).write_bytes(data)
        return summarize(name, len(data), entries, PARTITION_TYPES)

    def manifest_list(metas: Sequence[ManifestFileMeta]) -> str:
        name = names.manifest_list()
        Path(paths.manifest(name)).write_bytes(encode_manifest_list(metas))
        return name

    small: list[ManifestFileMeta] = []
    waiting: list[ManifestEntry] = []
    for number in range(2, SNAPSHOTS + 1):
        at = slice((number - 2) * each, (number - 1) * each)
        entries = [replace(entry, kind=FileKind.DELETE) for entry in old[at]] + new[at]
        if len(small) == _MERGED:
            merged, small, waiting = [*merged, manifest(waiting)], [], []
        base, own = manifest_list([*merged, *small]), manifest(entries)
        small.append(own)
        waiting += entries
        snapshot = replace(
            first,
            id=number,
            base_manifest_list=base,
            delta_manifest_list=manifest_list([own]),
            commit_identifier=number,
            commit_kind=CommitKind.COMPACT,
            time_millis=TIME_MILLIS + number * 1000,
        )
        Path(paths.snapshot_file(number)).write_text(snapshot.to_json(), encoding="utf-8")
    Path(paths.latest_hint).write_text(str(SNAPSHOTS), encoding="utf-8")
    return old + new


def _lay_files(root: Path, entries: Iterable[ManifestEntry], sized: bool = True) -> None:
    """Create the files of entries, old and without content; with their sizes if ``sized``."""
    store = TableStore.open(str(root))
    folders: dict[tuple[bytes, int], str] = {}
    for entry in entries:
        key = (entry.partition, entry.bucket)
        if key not in folders:
            folders[key] = os.path.dirname(store.data_path(*key, "x"))
            os.makedirs(folders[key], exist_ok=True)
        path = Path(folders[key], entry.file.file_name)
        with path.open("wb") as file:
            if sized:
                file.truncate(entry.file.file_size)
        os.utime(path, (TIME_MILLIS // 1000, TIME_MILLIS // 1000))

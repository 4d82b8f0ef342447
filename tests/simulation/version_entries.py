"""The live files of snapshots, as the checks read them. Each metadata file is decoded once per run."""

from __future__ import annotations

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.manifest_scan import read_manifest, read_manifest_metas
from lakelsm.snapshots.table_store import TableStore


class VersionEntries:
    """Reads with the FileIO of the checks."""

    def __init__(self, table: TableStore) -> None:
        self._table = table
        self._decoded: dict[str, list[ManifestEntry]] = {}

    def of(self, snapshot: Snapshot) -> tuple[dict[str, ManifestEntry], set[str]]:
        """Return the live files by name, and the names of all metadata files. Raises the errors of the reader."""
        file_io, paths = self._table.file_io, self._table.paths
        metas = read_manifest_metas(file_io, paths, snapshot)
        entries = self.named(snapshot)
        deleted = {entry.identity for entry in entries if entry.kind == FileKind.DELETE}
        live: dict[str, ManifestEntry] = {}
        for entry in entries:
            if entry.kind == FileKind.ADD and entry.identity not in deleted:
                if entry.file.file_name in live:
                    raise CorruptTableError(f"snapshot {snapshot.id} has {entry.file.file_name} twice")
                live[entry.file.file_name] = entry
        return live, {*snapshot.metadata_files, *(meta.file_name for meta in metas)}

    def named(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return all entries of its manifests, including those of deleted files."""
        metas = read_manifest_metas(self._table.file_io, self._table.paths, snapshot)
        return [entry for meta in metas for entry in self._entries(meta)]

    def _entries(self, meta: ManifestFileMeta) -> list[ManifestEntry]:
        known = self._decoded.get(meta.file_name)
        if known is None:
            table = self._table
            known = self._decoded[meta.file_name] = read_manifest(table.file_io, table.paths, meta)
        return known

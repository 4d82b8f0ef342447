"""A sound table with edited metadata, as after damage or a bug of another writer, and the findings of a check."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelsm.format.index.index_manifest import IndexManifestEntry, decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import FileKind, ManifestEntry, decode_manifest_list, encode_manifest_list
from lakelsm.format.manifest.manifest_file import decode_manifest, encode_manifest
from lakelsm.format.manifest.manifest_list import ManifestFileMeta, summarize
from lakelsm.maintain.check.table_check import CheckScope, check_table
from lakelsm.results import CheckResult
from lakelsm.runner.local_runner import LocalRunner
from tests.damage.samples import SAMPLES, SampleTable, build
from tests.hostile.hostile_table import forget_checksums

Entries = Callable[[list[ManifestEntry]], Sequence[ManifestEntry]]
Metas = Callable[[list[ManifestFileMeta]], Sequence[ManifestFileMeta]]


class EditedTable(SampleTable):
    """A table without checksums of metadata, so that edited metadata can be read."""

    def check(self, **scope: Any) -> CheckResult:
        return check_table(self.store, CheckScope(**scope), LocalRunner())

    @property
    def manifest_dir(self) -> Path:
        return self.root / "manifest"

    def edit_snapshot(self, **changes: object) -> None:
        """Change keys in the JSON of the newest snapshot."""
        path = self.root / "snapshot" / f"snapshot-{self.latest.id}"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    def edit_list(self, change: Metas) -> None:
        """Change the delta manifest list of the newest snapshot."""
        name = self.latest.delta_manifest_list
        path = self.manifest_dir / name
        path.write_bytes(encode_manifest_list(list(change(decode_manifest_list(path.read_bytes(), name)))))

    def edit_entries(self, change: Entries) -> None:
        """Change the delta entries of the newest snapshot, and the counts of its list and snapshot accordingly."""
        types = self.store.partition_types
        more = 0

        def changed(metas: list[ManifestFileMeta]) -> list[ManifestFileMeta]:
            nonlocal more
            (meta,) = metas
            path = self.manifest_dir / meta.file_name
            before = decode_manifest(path.read_bytes(), path.name)
            entries = list(change(list(before)))
            more = _rows(entries) - _rows(before)
            data = encode_manifest(entries)
            path.write_bytes(data)
            return [summarize(meta.file_name, len(data), entries, types)]

        self.edit_list(changed)
        latest = self.latest
        self.edit_snapshot(
            totalRecordCount=latest.total_record_count + more, deltaRecordCount=latest.delta_record_count + more
        )

    def edit_file(self, **changes: Any) -> None:
        """Change the entry of the first file in the newest snapshot's delta."""
        whole = {name: changes[name] for name in changes.keys() & {"bucket", "total_buckets", "partition"}}
        of_file = {name: value for name, value in changes.items() if name not in whole}

        def changed(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            at = next(at for at, entry in enumerate(entries) if entry.kind == FileKind.ADD)
            entries[at] = replace(entries[at], file=replace(entries[at].file, **of_file), **whole)
            return entries

        self.edit_entries(changed)

    def rewrite_file(self, change: Callable[[pa.Table], pa.Table] = lambda rows: rows, **changes: Any) -> None:
        """Change the rows of the first file in the newest snapshot's delta, and its entry. Statistics are dropped."""
        path = self.newest_file
        pq.write_table(change(pq.ParquetFile(path).read()), path, write_statistics=False, store_schema=False)
        self.edit_file(file_size=path.stat().st_size, footer_checksum=None, **changes)

    def edit_index(self, change: Callable[[list[IndexManifestEntry]], Sequence[IndexManifestEntry]]) -> None:
        """Change the newest index manifest."""
        path = self.manifest_dir / str(self.latest.index_manifest)
        path.write_bytes(encode_index_manifest(list(change(decode_index_manifest(path.read_bytes(), path.name)))))

    @property
    def delta_manifest(self) -> Path:
        """The manifest of the newest snapshot's delta."""
        name = self.latest.delta_manifest_list
        (meta,) = decode_manifest_list((self.manifest_dir / name).read_bytes(), name)
        return self.manifest_dir / meta.file_name

    @property
    def newest_file(self) -> Path:
        """The first data file that the newest snapshot adds."""
        entries = decode_manifest(self.delta_manifest.read_bytes(), "")
        return self.path_of(next(entry for entry in entries if entry.kind == FileKind.ADD))


def _rows(entries: Sequence[ManifestEntry]) -> int:
    return sum(e.file.row_count if e.kind == FileKind.ADD else -e.file.row_count for e in entries)


@cache
def _template(folder: Path, name: str) -> Path:
    root = folder / name.replace(" ", "-")
    build(root, SAMPLES[name])
    forget_checksums(root)
    return root


def edited_table(folder: Path, templates: Path, name: str) -> EditedTable:
    """Return a new copy of a sample (tests/damage/samples.py) in ``folder``."""
    root = folder / "t"
    shutil.copytree(_template(templates, name), root)
    return EditedTable(root)

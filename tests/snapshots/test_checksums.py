"""Checksums of metadata files: of manifests in their list, of lists in their snapshot, of the snapshot in itself."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import CHECKSUMS_KEY
from lakelsm.snapshots.manifest_scan import read_manifest_metas
from tests.commit.commit_table import CommitTable, add, file, hash_index


@pytest.mark.parametrize("which", ["base_manifest_list", "delta_manifest_list", "manifest"])
def test_a_replaced_metadata_file_of_the_same_size_is_detected_by_its_checksum(tmp_path: Path, which: str) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(file("a")))
    snapshot = table.append(add(file("b")))
    name = getattr(snapshot, which, None) or read_manifest_metas(table.file_io, table.paths, snapshot)[-1].file_name
    path = Path(table.paths.manifest(name))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptTableError, match=f"^{path} is damaged: its checksum differs"):
        table.live()


def test_the_checksum_of_a_manifest_is_inherited_by_later_commits(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(file("a")))
    snapshot = table.append(add(file("b")))
    metas = read_manifest_metas(table.file_io, table.paths, snapshot)
    sums = [zlib.crc32(Path(table.paths.manifest(meta.file_name)).read_bytes()) for meta in metas]
    assert [meta.checksum for meta in metas] == sums and len(sums) == 2


@pytest.mark.parametrize("key", ["schemaId", "totalRecordCount", "commitIdentifier", "indexManifest"])
def test_a_changed_snapshot_file_is_refused(tmp_path: Path, key: str) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(file("a")), index_adds=[hash_index("i")])
    path = Path(table.paths.snapshot_file(1))
    document = json.loads(path.read_bytes())
    document[key] = document[key] ^ 1 if isinstance(document[key], int) else None
    path.write_text(json.dumps({name: value for name, value in document.items() if value is not None}))
    with pytest.raises(CorruptTableError, match=f"^{path} is damaged: (its checksum differs|it has no key)"):
        table.snapshots.latest()


def test_a_snapshot_without_checksums_is_accepted(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(file("a")))
    path = Path(table.paths.snapshot_file(1))
    document = json.loads(path.read_bytes())
    del document[CHECKSUMS_KEY]
    path.write_text(json.dumps({**document, "commitUser": "another"}))
    assert table.snapshots.get(1).commit_user == "another" and table.live_names() == {"a@0"}

"""Manifests as a check reads them."""

from __future__ import annotations

from pathlib import Path

from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.manifests import Manifests, StoredFiles, live_files
from lakelsm.snapshots.manifest_scan import read_manifest_metas
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, ReadingFileIO, add, delete, file, partition


def test_a_manifest_is_read_once_and_its_digest_gives_the_live_files(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    kept, removed = add(file("kept")), add(file("gone", seq=(10, 19)))
    table.append(kept, removed)
    table.compact([delete(removed)])
    store, file_io = TableStore.open(str(table.root)), ReadingFileIO()
    findings = Findings()
    manifests = Manifests(TableStore(**{**vars(store), "file_io": file_io}), StoredFiles(store), findings)
    digests = []
    for snapshot in table.snapshots.list():
        metas = read_manifest_metas(store.file_io, store.paths, snapshot)
        digests = [found for meta in metas if (found := manifests.digest(meta, "owner")) is not None]
    assert len(file_io.reads) == len(set(file_io.reads)) == manifests.count == len(digests) == 2
    assert [digest.rows for digest in digests] == [20, -10] and len(live_files(digests)) == 1
    manifests.report_suspects(digests, live_files(digests), str(table.root))
    assert [found.thing.rsplit("/", 1)[-1] for found in findings.reported(store.file_io)[0]] == ["kept"]


def test_a_directory_is_listed_once_for_the_sizes_of_its_files(tmp_path: Path) -> None:
    stored = StoredFiles(TableStore.open(str(CommitTable(tmp_path / "t").root)))
    directory = stored.bucket_dir(partition("a"), 1)
    assert directory == str(tmp_path / "t" / "dt=a" / "bucket-1")
    (tmp_path / "t" / "dt=a" / "bucket-1" / "folder").mkdir(parents=True)
    (tmp_path / "t" / "dt=a" / "bucket-1" / "x").write_bytes(b"123")
    assert [stored.size(directory, name) for name in ("x", "folder", "y")] == [3, None, None]
    (tmp_path / "t" / "dt=a" / "bucket-1" / "y").write_bytes(b"1")
    assert stored.size(directory, "y") is None
    assert stored.size(str(tmp_path / "t" / "dt=b"), "x") is None

"""Which files lie in a table's directories."""

from __future__ import annotations

from pathlib import Path

from lakelsm.maintain.check.stored_files import StoredFiles
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, partition


def test_a_directory_is_listed_once_and_tells_the_sizes_of_its_files(tmp_path: Path) -> None:
    stored = StoredFiles(TableStore.open(str(CommitTable(tmp_path / "t").root)))
    directory = stored.bucket_dir(partition("a"), 1)
    assert directory == str(tmp_path / "t" / "dt=a" / "bucket-1")
    (tmp_path / "t" / "dt=a" / "bucket-1" / "folder").mkdir(parents=True)
    (tmp_path / "t" / "dt=a" / "bucket-1" / "x").write_bytes(b"123")
    assert [stored.size(directory, name) for name in ("x", "folder", "y")] == [3, None, None]
    (tmp_path / "t" / "dt=a" / "bucket-1" / "y").write_bytes(b"1")
    assert stored.size(directory, "y") is None
    assert stored.size(str(tmp_path / "t" / "dt=b"), "x") is None

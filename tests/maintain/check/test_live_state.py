"""The rules that metadata alone decide, on tables without data."""

from __future__ import annotations

from pathlib import Path

from lakelsm.format.manifest import ManifestEntry
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.live_state import LiveState
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file


def checked(folder: Path, *entries: ManifestEntry, **options: str) -> list[str]:
    """Return the rules that files break which are appended in this order."""
    table = CommitTable(folder / "t", options=options)
    table.append(add(file(seq=(0, 1 << 20)), bucket=1))
    snapshot = table.snapshots.latest()
    assert snapshot is not None
    findings, store = Findings(), TableStore.open(str(table.root))
    LiveState(store, snapshot, findings, owner=str(table.root), schemas={0}).check_files(entries)
    return [found.rule for found in findings.reported(store.file_io)[0]]


def test_files_of_a_level_do_not_overlap(tmp_path: Path) -> None:
    first = add(file(level=3, keys=(1, 4)))
    assert checked(tmp_path / "a", first, add(file(level=3, keys=(5, 9)))) == []
    assert checked(tmp_path / "b", first, add(file(level=3, keys=(4, 9)))) == ["level-overlap"]
    assert checked(tmp_path / "c", first, add(file(level=3, keys=(4, 9)), dt="b")) == []
    assert checked(tmp_path / "d", add(file(level=0, keys=(1, 4))), add(file(level=0, keys=(4, 9)))) == []


def test_newer_rows_are_on_lower_levels_if_key_ranges_overlap(tmp_path: Path) -> None:
    old = add(file(level=1, keys=(1, 4), seq=(0, 9)))
    assert checked(tmp_path / "a", old, add(file(level=5, keys=(4, 9), seq=(10, 19)))) == ["level-order"]
    assert checked(tmp_path / "b", old, add(file(level=5, keys=(5, 9), seq=(10, 19)))) == []
    assert checked(tmp_path / "c", old, add(file(level=5, keys=(4, 9), seq=(9, 19)))) == []
    assert checked(tmp_path / "d", old, add(file(level=1, keys=(5, 9), seq=(10, 19)))) == []


def test_a_partition_has_one_number_of_buckets_and_bucket_ids_are_below_it(tmp_path: Path) -> None:
    assert checked(tmp_path / "a", add(bucket=1), add(bucket=1, dt="b")) == []
    assert checked(tmp_path / "b", add(bucket=2)) == ["bucket-count"]
    assert checked(tmp_path / "c", add(bucket=0, total=3)) == ["bucket-count"]
    assert checked(tmp_path / "d", add(bucket=-1)) == ["bucket-count"]

"""Listed directories: which names belong to the table, and the kinds of their files."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.format.file_kinds import DirectoryRole
from lakelsm.maintain.orphans import listing_task
from lakelsm.maintain.orphans import listing_task as directories
from lakelsm.maintain.orphans.listing_task import (
    KINDS,
    LISTED_SCHEMA,
    DirectoryToList,
    ListFiles,
    directories_to_list,
    kinds_of,
)
from lakelsm.storage import LocalFileIO
from lakelsm.storage.file_io import FileEntry
from tests.compact.local_table import LocalTable

UUID = "01234567-89ab-cdef-0123-456789abcdef"
DATA = f"data-{UUID}-0.parquet"

KNOWN = {
    DirectoryRole.BUCKET: {
        DATA: "data",
        f"mine{UUID}-12.zstd.parquet": "data",
        f"data-u-1-s-2-w-{UUID}-3.avro": "data",
        f"changelog-{UUID}-1.orc": "changelog",
        f"{DATA}.index": "file-index",
        f"{DATA}-1.index": "file-index",
        f"{DATA}.1024.position.v1.lookup": "lookup",
        f".{DATA}.{UUID}.tmp": "temporary",
    },
    DirectoryRole.MANIFEST: {
        f"manifest-{UUID}-0": "manifest",
        f"manifest-{UUID}-changelog": "manifest",
        f"manifest-list-{UUID}-2": "manifest-list",
        f"index-manifest-{UUID}": "index-manifest",
    },
    DirectoryRole.INDEX: {f"index-{UUID}-7": "index"},
    DirectoryRole.STATISTICS: {f"stat-{UUID}-0": "statistics"},
    DirectoryRole.OTHER: {f".snapshot-7.{UUID}.tmp": "temporary", f".EARLIEST.{UUID}.tmp": "temporary"},
}
UNKNOWN = ("_SUCCESS", "mine.txt", f"{DATA}.bak", f"{DATA}\n", f"{UUID}.parquet", "snapshot-1", "LATEST", "EARLIEST",
           "tag-x", "schema-0", f"snapshot-1.{UUID}.tmp", f".{UUID}.tmp", "data-1-0.parquet", ".lakelsm-servers-x")


@pytest.mark.parametrize("role", DirectoryRole)
def test_a_name_has_a_kind_only_in_its_own_directory(role: DirectoryRole) -> None:
    names = [name for known in KNOWN.values() for name in known] + list(UNKNOWN)
    found = dict(zip(names, kinds_of(pa.array(names), role).tolist()))
    kinds = {name: str(KINDS[kind]) for name, kind in found.items() if kind >= 0}
    temporary = {name: kind for known in KNOWN.values() for name, kind in known.items() if kind == "temporary"}
    assert kinds == {**KNOWN[role], **temporary}


def listed(root: Path, before: int, *parts: DirectoryToList) -> list[tuple[str, str, int, bool]]:
    batches = list(ListFiles(LocalFileIO(), before)(parts or [DirectoryToList(str(root), DirectoryRole.BUCKET)]))
    assert all(batch.schema == LISTED_SCHEMA for batch in batches)
    return sorted(
        (name, str(KINDS[kind]), size, old)
        for batch in batches
        for row in batch.to_pylist()
        for name, kind, size, old in zip(row["names"], row["kinds"], row["sizes"], row["old"], strict=True)
    )


def test_files_are_listed_with_size_and_age_without_foreign_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / DATA).write_bytes(b"four")
    (tmp_path / f"{DATA}.index").touch()
    (tmp_path / "mine.txt").touch()
    (tmp_path / f"data-{UUID}-1.parquet").mkdir()
    (tmp_path / f"data-{UUID}-2.parquet").symlink_to(tmp_path / "nowhere")
    os.utime(tmp_path / DATA, ns=(0, 5_000_999_999))
    os.utime(tmp_path / f"{DATA}.index", ns=(0, 5_001_000_000))
    found = [row for row in listed(tmp_path, 5_001) if "-2.parquet" not in row[0]]
    assert found == [(DATA, "data", 4, True), (f"{DATA}.index", "file-index", 0, False)]


def test_buckets_below_partitions_are_found_by_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_task, "_BATCH_FILES", 1)
    for path in ("a=1/bucket-0", "a=1/bucket-1", "b=1/bucket-0"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / DATA).touch()
    task = ListFiles(LocalFileIO(), 0)
    batches = list(task([DirectoryToList(str(tmp_path), DirectoryRole.OTHER, ("a",))]))
    directories = sorted(row["directory"] for batch in batches for row in batch.to_pylist())
    assert directories == [f"{tmp_path}/a=1/bucket-0", f"{tmp_path}/a=1/bucket-1"]


def test_a_missing_directory_has_no_files(tmp_path: Path) -> None:
    assert listed(tmp_path, 0, DirectoryToList(f"{tmp_path}/none", DirectoryRole.BUCKET)) == []


def made(root: Path) -> LocalTable:
    table = LocalTable(root, columns="a INT NOT NULL, b INT NOT NULL, id INT NOT NULL", primary_key=("a", "b", "id"),
                       partition_by=("a", "b"))
    table.write((1, 1, 1), (1, 2, 1), (2, 1, 1))
    return table


def below(table: LocalTable) -> dict[str, DirectoryRole]:
    root = f"{table.root}/"
    return {each.path.removeprefix(root): each.role for each in directories_to_list(table.store)}


def test_only_the_tables_own_directories_are_listed(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for other in ("a=1/b=1/mine", "a=1/other", "mine/bucket-0", "b=1/a=1/bucket-0"):
        (table.root / other).mkdir(parents=True)
    (table.root / "a=1" / "b=9").touch()
    found = below(table)
    buckets = {path for path, role in found.items() if role is DirectoryRole.BUCKET}
    assert buckets == {"a=1/b=1/bucket-0", "a=1/b=2/bucket-0", "a=2/b=1/bucket-0"}
    partitions = {"a=1", "a=2", "a=1/b=1", "a=1/b=2", "a=2/b=1", str(table.root)}
    states = {"snapshot", "schema", "changelog", "tag", "consumer", "service"}
    assert set(found) == buckets | partitions | states | {"manifest", "index", "statistics"}


def test_branches_have_their_own_directories_except_for_data(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (table.root / "branch" / "branch-x" / "snapshot").mkdir(parents=True)
    assert "branch/branch-x/snapshot" in below(table) and "branch/branch-x/manifest" not in below(table)


def test_with_many_partitions_the_tasks_find_the_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "_MIN_DIRECTORIES", 2)
    table = made(tmp_path / "t")
    inner = {each.path: each.columns for each in directories_to_list(table.store) if each.columns is not None}
    assert inner == {f"{table.root}/a=1": ("b",), f"{table.root}/a=2": ("b",)}


def test_below_a_directory_are_the_partitions_of_its_column() -> None:
    entries = [FileEntry(name, True) for name in ("b=1", "a=1", "bucket-0")] + [FileEntry("b=2", False)]
    assert [each.path for each in DirectoryToList("/t/a=1", DirectoryRole.OTHER, ("b",)).below(entries)] == ["/t/a=1/b=1"]
    assert [each.path for each in DirectoryToList("/t", DirectoryRole.OTHER, ()).below(entries)] == ["/t/bucket-0"]
    assert not list(DirectoryToList("/t", DirectoryRole.OTHER).below(entries))

"""Which directories a search for orphans looks into."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.format.file_kinds import DirectoryRole
from lakelsm.maintain.orphans import directories
from lakelsm.maintain.orphans.directories import Searched, searched_directories
from lakelsm.storage.file_io import FileEntry
from tests.compact.local_table import LocalTable


def made(root: Path) -> LocalTable:
    table = LocalTable(root, columns="a INT NOT NULL, b INT NOT NULL, id INT NOT NULL", primary_key=("a", "b", "id"),
                       partition_by=("a", "b"))
    table.write((1, 1, 1), (1, 2, 1), (2, 1, 1))
    return table


def below(table: LocalTable) -> dict[str, DirectoryRole]:
    root = f"{table.root}/"
    return {each.path.removeprefix(root): each.role for each in searched_directories(table.store)}


def test_the_tables_own_directories_are_looked_into_and_no_others(tmp_path: Path) -> None:
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


def test_branches_have_directories_of_their_own_for_all_but_data(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (table.root / "branch" / "branch-x" / "snapshot").mkdir(parents=True)
    assert "branch/branch-x/snapshot" in below(table) and "branch/branch-x/manifest" not in below(table)


def test_of_many_partitions_tasks_find_the_buckets_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "_ENOUGH", 2)
    table = made(tmp_path / "t")
    inner = {each.path: each.columns for each in searched_directories(table.store) if each.columns is not None}
    assert inner == {f"{table.root}/a=1": ("b",), f"{table.root}/a=2": ("b",)}


def test_below_a_directory_of_partitions_lie_those_of_its_column() -> None:
    entries = [FileEntry(name, True) for name in ("b=1", "a=1", "bucket-0")] + [FileEntry("b=2", False)]
    assert [each.path for each in Searched("/t/a=1", DirectoryRole.OTHER, ("b",)).below(entries)] == ["/t/a=1/b=1"]
    assert [each.path for each in Searched("/t", DirectoryRole.OTHER, ()).below(entries)] == ["/t/bucket-0"]
    assert not list(Searched("/t", DirectoryRole.OTHER).below(entries))

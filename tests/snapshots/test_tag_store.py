"""The stored tags of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.format.snapshot import Tag
from lakelsm.snapshots.tag_store import TagStore
from tests.commit.commit_table import CommitTable, add, file


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    """A table with three snapshots, and the tags v1 and v2 of the last one."""
    table = CommitTable(tmp_path / "t")
    for number in range(3):
        table.append(add(file(seq=(number, number))))
    for name in ("v2", "v1"):
        table.file_io.write(table.paths.tag(name), Tag(table.snapshots.get(3)).to_json().encode())
    return table


def test_a_tag_is_its_snapshot_and_an_unknown_one_lists_the_tags(table: CommitTable) -> None:
    tags = TagStore(table.file_io, table.paths)
    assert tags.get("v1").snapshot.id == 3
    assert tags.names() == ["v1", "v2"] and list(tags.all()) == ["v1", "v2"]
    with pytest.raises(SnapshotNotFoundError, match=r"tag 'v3' does not exist\. Tags: v1, v2"):
        tags.get("v3")


def test_an_unreadable_tag_is_not_a_missing_one(table: CommitTable) -> None:
    table.file_io.write(table.paths.tag("v2"), b"{")
    with pytest.raises(CorruptTableError, match="tag-v2"):
        TagStore(table.file_io, table.paths).all()

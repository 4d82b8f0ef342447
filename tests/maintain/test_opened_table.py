"""What the faces of a table share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file


def test_a_table_is_made_of_a_store_alone() -> None:
    with pytest.raises(InvalidInputError, match="store is 'x'"):
        OpenedTable("x")  # type: ignore[arg-type]


def test_its_snapshot_is_the_newest_or_the_one_that_is_asked_for(tmp_path: Path) -> None:
    made = CommitTable(tmp_path / "t")
    made.append(add(file(seq=(0, 0))))
    made.append(add(file(seq=(1, 1))))
    table = OpenedTable(TableStore.open(str(made.root)))
    assert [found.id for found in (table._at(None)[1], table._at(1)[1]) if found] == [2, 1]

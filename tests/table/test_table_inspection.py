"""What a table tells of itself without a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file


def test_the_status_is_that_of_the_newest_snapshot(tmp_path: Path) -> None:
    made = CommitTable(tmp_path / "t")
    made.append(add(file(seq=(0, 0))))
    table = Table(TableStore.open(str(made.root)))
    status = table.inspect.status(most_buckets=0)
    assert (status.snapshot_id, status.files, status.worst_buckets) == (1, 1, ())
    with pytest.raises(InvalidInputError, match="most_buckets"):
        table.inspect.status(most_buckets=-1)

"""Metadata of a table, without a session."""

from __future__ import annotations

import subprocess
import sys
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
    status = table.inspect.status(max_buckets=0)
    assert (status.snapshot_id, status.files, status.worst_buckets) == (1, 1, ())
    with pytest.raises(InvalidInputError, match="max_buckets"):
        table.inspect.status(max_buckets=-1)


def test_the_tables_of_metadata_load_neither_pandas_nor_spark(tmp_path: Path) -> None:
    made = CommitTable(tmp_path / "t")
    made.append(add(file(seq=(0, 0))))
    names = ("snapshots", "schemas", "options", "tags", "branches", "consumers")
    program = (
        "import sys; from lakelsm import Table; look = Table.for_path(sys.argv[1]).inspect\n"
        "shown = [look.snapshots(), look.history(), look.schemas(), look.options(), *map(look.system, sys.argv[2:])]\n"
        "print(len(shown[0]), sorted({'pandas', 'pyspark'} & {*sys.modules}))"
    )
    command = [sys.executable, "-c", program, str(made.root), *names]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("1 []\n", "")

"""``lakelsm explain``."""

from __future__ import annotations

import pytest

from lakelsm import Catalog, Table
from tests.cli.called import Called


@pytest.fixture
def table(called: Called) -> Table:
    catalog = Catalog(str(called.warehouse))
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("db.t", "id INT, p INT", primary_key=["id", "p"], partition_by=["p"], options=options)
    for rows in ({"id": [1, 2], "p": [1, 1]}, {"id": [1], "p": [1]}, {"id": [1], "p": [2]}):
        table.write(rows)
    return table


def test_the_files_of_a_read_are_counted(called: Called, table: Table) -> None:
    found = called.json("explain")
    assert {key: found[key] for key in ("table", "status", "snapshot_id", "files_live", "files_scanned")} == {
        "table": "db.t", "status": "done", "snapshot_id": 3, "files_live": 3, "files_scanned": 3
    }  # fmt: skip
    assert (found["unmerged_files"], found["merged_files"], found["units"]) == (1, 2, 1)
    assert called.text("explain", "--where", "p = 2").splitlines() == [
        "db.t: snapshot 3, 3 data files",
        "  read       1 file, 2 left out",
        "  unmerged   1 file",
        "  merged     no files in no units",
    ]
    assert called.json("explain", "--snapshot", "1", "--fresh")["files_scanned"] == 1


def test_a_table_without_snapshots_has_no_plan(called: Called) -> None:
    Catalog(str(called.warehouse)).create_table("db.t", "id INT", primary_key="id")
    assert called.text("explain") == "db.t: no snapshot to read\n"
    assert called.json("explain")["snapshot_id"] is None


def test_a_wrong_condition_is_one_line(called: Called, table: Table) -> None:
    assert "'no'" in called.error("explain", "--where", "no = 1")
    assert "not allowed with" in called.usage("explain", "--snapshot", "1", "--tag", "a")

"""What a SQL statement returns: rows, or a report."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.sql_results import rows_of, statement_report
from lakelsm.results import CommitResult
from tests.cli.fake_table import DONE


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key="id")


def test_queries_and_listings_have_rows_and_other_results_have_none(table: Table, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    for text, rows in (("SELECT 1 AS a", {"a": [1]}), ("SHOW COLUMNS IN db.t", {"col_name": ["id"]})):
        reader = rows_of(catalog.sql(text, "local"))
        assert reader is not None
        assert reader.read_all().to_pydict() == rows
    assert [rows_of(each) for each in (DONE, table, None, [])] == [None] * 4


def test_a_result_is_reported_as_by_its_verb(table: Table) -> None:
    report = statement_report(DONE)
    assert report.text.startswith("d.t: ") and report.values == {**DONE.as_dict(), "status": "done"}
    report = statement_report(table)
    assert (report.text, report.values["table"], report.status) == ("db.t: schema 0", "db.t", ExitStatus.DONE)
    assert statement_report(None).values == {"status": "done"}
    several = statement_report([DONE, DONE])
    assert isinstance(several.values["results"], list) and len(several.values["results"]) == 2
    assert statement_report([]).status is ExitStatus.NOTHING_TO_DO
    assert statement_report(table.write(pa.table({"id": [1, 2]}))).text.startswith("snapshot 1: 2 rows in ")
    assert statement_report(table.delete("id = 1")).text.splitlines()[1] == "  matched    1 row"
    assert statement_report(CommitResult(snapshot_id=None)).status is ExitStatus.NOTHING_TO_DO
    table.tags.create("a", 1)
    assert statement_report(table.tags.list()[0]).text.startswith("TagInfo(name='a'")

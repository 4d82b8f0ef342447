"""The forms of the result of a query: Arrow, pandas, a stream, and a text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.sql.local.query_result import QueryResult


def result(count: int) -> QueryResult:
    rows = pa.table({"n": range(count), "text": [f"row {at}\nx" for at in range(count)]})

    def run(limit: int | None = None) -> pa.RecordBatchReader:
        return rows.slice(0, limit).to_reader()

    return QueryResult(run, rows.schema)


def test_rows_in_each_form() -> None:
    found = result(3)
    assert found.columns == ["n", "text"]
    assert found.to_arrow().num_rows == found.to_reader().read_all().num_rows == len(found.to_pandas()) == 3


def test_it_prints_as_a_table_and_says_when_there_is_more(capsys: pytest.CaptureFixture[str]) -> None:
    result(3).show(2)
    assert capsys.readouterr().out.splitlines() == ["n  text", "0  row 0 x", "1  row 1 x", "… and more rows"]
    assert repr(result(1)).splitlines() == ["n  text", "0  row 0 x"]
    assert "<table" in result(41)._repr_html_() and "more rows" in result(41)._repr_html_()

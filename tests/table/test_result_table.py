"""A result prints as a table, renders as HTML, and is converted without a session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.table import ResultTable


def result(rows: pa.Table) -> ResultTable:
    return ResultTable("files", rows, lambda spark: spark.createDataFrame(rows), None)


def test_rows_print_as_a_table_and_render_as_html() -> None:
    found = result(pa.table({"name": ["a\nb", None, "<x>"], "size": [1, 2, 3]}))
    assert repr(found).splitlines() == ["name  size", "a b   1", "-     2", "<x>   3"]
    assert "<td>&lt;x&gt;</td>" in found._repr_html_() and found._repr_html_().count("<tr>") == 4
    assert len(found) == 3 and found.to_pandas()["size"].tolist() == [1, 2, 3]


def test_long_results_are_cut() -> None:
    text = repr(result(pa.table({"name": ["y" * 100] * 50})))
    assert text.splitlines()[-1] == "… and 10 more rows" and len(text.splitlines()) == 42
    assert max(map(len, text.splitlines())) == 60


def test_each_conversion_reads_the_rows_of_the_table() -> None:
    requested: list[str] = []

    def rows(timestamps: str) -> pa.Table:
        requested.append(timestamps)
        return pa.table({"k": [1]})

    found = ResultTable("audit_log", rows, lambda spark: spark.range(1), None)
    assert "to_arrow()" in repr(found) and "to_arrow()" in found._repr_html_() and requested == []
    assert found.to_arrow(timestamps="us").num_rows == 1 and requested == ["us"]
    with pytest.raises(InvalidInputError, match="timestamps"):
        found.to_arrow(timestamps="s")


def test_show_prints_the_first_rows(capsys: pytest.CaptureFixture[str]) -> None:
    result(pa.table({"name": ["a", "b", None]})).show(2)
    assert capsys.readouterr().out == "name\na\nb\n… and 1 more rows\n"
    result(pa.table({"name": [None]})).show()
    assert capsys.readouterr().out == "name\n-\n"
    with pytest.raises(InvalidInputError, match="rows: -1 is less than 0"):
        result(pa.table({"name": ["a"]})).show(-1)

"""Rows of a query as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.cli.row_output import check_output, format_of, print_rows, write_file
from lakelsm.errors import InvalidInputError

TEXTS = ["x", None, "", 'q"u', "l\nf", " s", "a,b", "\r", "é\x1b"]
ROWS = pa.table({"t": TEXTS, "n,m": pa.array([1, None, *range(7)]), "b": [b"\xff"] * 9})


def printed(rows: pa.Table, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert print_rows(rows.to_reader(2), form) == len(rows)
    return capsys.readouterr().out


def test_csv_is_read_as_it_was_written_and_null_is_not_an_empty_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(ROWS, "csv", capsys)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["t", "n,m", "b"]
    assert [row[0] for row in rows[1:]] == [each or "" for each in TEXTS]
    assert text.startswith('t,"n,m",b\nx,1,ff\n,,ff\n"",0,ff\n"q""u",1,ff\n')
    assert printed(ROWS.select(["t"]).slice(1, 2), "csv", capsys) == 't\n\n""\n'
    assert printed(ROWS.slice(0, 0), "csv", capsys) == 't,"n,m",b\n'


def test_json_has_an_object_in_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in printed(ROWS, "json", capsys).split("\n")[:-1]]
    assert [row["t"] for row in rows] == TEXTS
    assert rows[0] == {"t": "x", "n,m": 1, "b": "ff"}
    assert printed(ROWS.slice(0, 0), "json", capsys) == ""


def test_a_table_is_aligned_and_shows_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(ROWS.slice(0, 5), "table", capsys).splitlines()
    assert lines[:3] == ["t     n,m  b", "x     1    ff", "-     -    ff"]
    assert lines[5:] == ["l\\nf  2    ff", "(5 rows)"]
    assert "é\\x1b" in printed(ROWS.slice(8), "table", capsys)
    assert printed(ROWS.slice(0, 0), "table", capsys) == "t  n,m  b\n(no rows)\n"
    long = pa.table({"t": ["y" * 100, "a\n"], "n": [1, 2]})
    assert printed(long, "table", capsys).splitlines()[1] == "y" * 59 + "…  1"
    assert printed(long.select(["t"]), "table", capsys).splitlines()[1:3] == ["y" * 100, "a\\n"]
    assert printed(pa.table({"t": ["CREATE\n" + "y" * 100]}), "table", capsys) == f"t\nCREATE\n{'y' * 100}\n(1 row)\n"


def test_a_long_table_has_one_header_and_columns_that_only_get_wider(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pa.table({"t": ["y" * (number // 100) for number in range(2500)], "n": range(2500)})
    print_rows(rows.to_reader(), "table")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2502 and sum(line.startswith("t ") for line in lines) == 1
    assert [line.split()[-1] for line in lines[1:-1]] == list(map(str, range(2500)))
    assert [line.index(line.split()[-1]) for line in (lines[900], lines[1100], lines[2400])] == [11, 21, 26]


def test_columns_of_one_name_are_refused_where_a_reader_would_lose_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table([[1], [2]], names=["a", "a"])
    assert printed(rows, "csv", capsys) == "a,a\n1,2\n"
    assert printed(rows, "table", capsys).startswith("a  a\n1  2\n")
    with pytest.raises(InvalidInputError, match="--format json: two columns have the name 'a'"):
        print_rows(rows.to_reader(), "json")
    with pytest.raises(InvalidInputError, match="--format parquet: two columns have the name 'a'"):
        write_file(rows.to_reader(), "parquet", str(tmp_path / "f"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_a_file_is_replaced_after_the_last_row_and_stays_if_a_row_fails(form: str, tmp_path: Path) -> None:
    target, link = tmp_path / "rows", tmp_path / "link"
    link.symlink_to(target)

    def failing() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise OSError("the read failed")

    for before in (False, True):
        if before:
            assert write_file(ROWS.to_reader(), form, str(link)) == len(ROWS)
        with pytest.raises(OSError, match="the read failed"):
            write_file(pa.RecordBatchReader.from_batches(ROWS.schema, failing()), form, str(link))
        assert target.exists() == before and link.is_symlink()
        assert {path.name for path in tmp_path.iterdir()} - {"rows"} == {"link"}
    if form == "parquet":
        assert pq.read_table(target).equals(ROWS)
    else:
        assert "é" in target.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="output: directory"):
        check_output(str(tmp_path / "no" / "f"))
    with pytest.raises(InvalidInputError, match="is not a regular file"):
        check_output(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "output", "form"),
    [
        (None, None, "table"), (None, "a.CSV", "csv"), (None, "a.jsonl", "json"), (None, "a.parquet", "parquet"),
        (None, "a.txt", "table"), ("json", "a.csv", "json"), ("csv", None, "csv"),
    ],
)  # fmt: skip
def test_the_ending_of_a_file_selects_the_form(name: str | None, output: str | None, form: str) -> None:
    assert format_of(name, output) == form

"""Arguments that every verb has."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

import pytest

from lakelsm.arguments import checked_seconds
from lakelsm.catalog import Catalog
from lakelsm.cli.arguments import (
    Tables,
    add_report,
    add_table,
    age,
    check_table,
    checked,
    duration,
    for_each_table,
    open_table,
    positive,
)
from lakelsm.cli.logs import verbosity
from lakelsm.errors import InvalidInputError, TableNotFoundError


def parsed(*arguments: str, tables: Tables = Tables.SEVERAL) -> Namespace:
    parser = ArgumentParser(prog="verb")
    add_table(parser, tables)
    add_report(parser)
    found = parser.parse_args(arguments)
    check_table(parser, found)
    return found


@pytest.mark.parametrize("arguments", [["--warehouse", "/wh", "--table", "d.t"], ["--path", "/wh/d.db/t"]])
def test_a_table_is_named_in_one_of_two_ways(arguments: list[str]) -> None:
    found = parsed(*arguments)
    assert (found.report, verbosity(found), found.distinct_exit_status) == ("text", 0, False)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--table", "d.t"],
        ["--warehouse", "/wh"],
        ["--database", "d"],
        ["--path", "/wh/d.db/t", "--table", "d.t"],
        ["--path", "/wh/d.db/t", "--database", "d"],
        ["--warehouse", "/wh", "--table", "d.t", "--database", "d"],
    ],
)
def test_any_other_way_is_a_wrong_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(*arguments)
    assert ended.value.code == 2
    wanted = "verb: error: name the table with --warehouse and --table or --database, or with --path"
    assert wanted in capsys.readouterr().err


def test_a_table_is_opened_by_name_or_path(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=r"d\.t"):
        open_table(*for_each_table(parsed("--warehouse", str(tmp_path), "--table", "d.t")))
    with pytest.raises(TableNotFoundError, match=str(tmp_path)):
        open_table(*for_each_table(parsed("--path", str(tmp_path))))


def test_several_tables_are_named_one_by_one_or_by_their_database(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    for name in ("d.u", "d.t", "e.t"):
        catalog.create_table(name, "id INT NOT NULL", primary_key=["id"])
    warehouse = ["--warehouse", str(tmp_path)]
    named = [*warehouse, "--table", "e.t", "--table", "d.t", "--table", "e.t"]
    assert [each.table for each in for_each_table(parsed(*named))] == ["e.t", "d.t"]
    assert [each.table for each in for_each_table(parsed(*warehouse, "--database", "d"))] == ["d.t", "d.u"]
    assert [each.table for each in for_each_table(parsed(*warehouse, tables=Tables.ALL))] == ["d.t", "d.u", "e.t"]
    with pytest.raises(InvalidInputError, match="has no tables in database f"):
        for_each_table(parsed(*warehouse, "--database", "f"))


def test_a_branch_is_opened_instead_of_the_table(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("d.t", "id INT NOT NULL", primary_key=["id"])
    table.branches.create("b")
    named = ["--warehouse", str(tmp_path), "--table", "d.t", "--branch", "b"]
    assert open_table(*for_each_table(parsed(*named))).name == "d.t$branch_b"


def test_storage_options_reach_the_store_and_a_wrong_one_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = parsed("--path", "/t", "--storage-option", "s3.secret-key=a=b", "--storage-option", "s3.region=here")
    assert dict(found.storage_option) == {"s3.secret-key": "a=b", "s3.region": "here"}
    with pytest.raises(InvalidInputError, match="storage_options"):
        open_table(parsed("--path", "s3://bucket/t", "--storage-option", "s3.nothing=hidden"))
    with pytest.raises(SystemExit) as ended:
        parsed("--path", "/t", "--storage-option", "hidden")
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert "--storage-option: expected KEY=VALUE" in output and "hidden" not in output


@pytest.mark.parametrize("text", ["7 days", "90", "2025-12-31 10:00:00"])
def test_an_age_is_a_duration_or_a_moment_and_stays_text(text: str) -> None:
    assert age(text) == text


def test_a_wrong_age_or_duration_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="'-1' is not a duration"):
        age("-1")
    assert duration("365 d") == "365 d"
    with pytest.raises(ArgumentTypeError, match="2025-12-31"):
        duration("2025-12-31")


def test_argparse_uses_the_checks_of_the_python_api() -> None:
    assert checked(checked_seconds)("30 min") == 1800.0
    with pytest.raises(ArgumentTypeError, match="'soon' is not a duration"):
        checked(checked_seconds)("soon")


def test_a_positive_number_is_read_from_its_text() -> None:
    assert positive("--n", " 12 ") == 12
    for wrong in ("0", "-1", "1.5", "x", ""):
        with pytest.raises(InvalidInputError, match=r"--n: (expected a whole number, got|-?\d is less than 1)"):
            positive("--n", wrong)

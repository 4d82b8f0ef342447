"""Arguments that every verb has."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

import pytest

from lakelsm.arguments import checked_seconds
from lakelsm.cli.arguments import add_report, add_table, check_table, checked, open_table, positive
from lakelsm.errors import InvalidInputError, TableNotFoundError


def parsed(*arguments: str) -> Namespace:
    parser = ArgumentParser(prog="verb")
    add_table(parser)
    add_report(parser)
    found = parser.parse_args(arguments)
    check_table(parser, found)
    return found


@pytest.mark.parametrize("arguments", [["--warehouse", "/wh", "--table", "d.t"], ["--path", "/wh/d.db/t"]])
def test_a_table_is_named_in_one_of_two_ways(arguments: list[str]) -> None:
    found = parsed(*arguments)
    assert (found.report, found.verbose, found.distinct_exit_status) == ("text", False, False)


@pytest.mark.parametrize(
    "arguments", [[], ["--table", "d.t"], ["--warehouse", "/wh"], ["--path", "/wh/d.db/t", "--table", "d.t"]]
)
def test_any_other_way_is_a_wrong_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(*arguments)
    assert ended.value.code == 2
    assert "verb: error: name the table by --warehouse and --table, or by --path" in capsys.readouterr().err


def test_a_table_is_opened_by_name_or_path(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=r"d\.t"):
        open_table(parsed("--warehouse", str(tmp_path), "--table", "d.t"))
    with pytest.raises(TableNotFoundError, match=str(tmp_path)):
        open_table(parsed("--path", str(tmp_path)))


def test_a_check_of_the_python_method_is_argparses_too() -> None:
    assert checked(checked_seconds)("30 min") == 1800.0
    with pytest.raises(ArgumentTypeError, match="it is 'soon'; it must be seconds, or a duration"):
        checked(checked_seconds)("soon")


def test_a_positive_number_is_read_from_its_text() -> None:
    assert positive("--n", " 12 ") == 12
    for wrong in ("0", "-1", "1.5", "x", ""):
        with pytest.raises(InvalidInputError, match="a whole number of 1 or more"):
            positive("--n", wrong)

"""Errors of a wrong command line."""

from __future__ import annotations

import pytest

from lakelsm.cli.command_parser import CommandParser


@pytest.mark.parametrize(
    "words",
    [
        ["--storage-options", "s3.secret-key=hidden"],
        ["s3.SECRET.key=hidden"],
        ["--storage-opt=azure.sas.token=hidden"],
        ["azure.account.oauth2.client.secret=hidden", "s3.region=here"],
    ],
)
def test_a_mistyped_option_does_not_show_a_secret(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        CommandParser(prog="verb", description="", epilog="").parse_args(words)
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert "unrecognized arguments" in output and "hidden" not in output


def test_abbreviated_options_are_refused() -> None:
    parser = CommandParser(prog="verb", description="", epilog="")
    parser.add_argument("--deadline")
    with pytest.raises(SystemExit):
        parser.parse_args(["--dead", "1"])


@pytest.mark.parametrize("words", [["--deadline=--"], ["below", "--name=--"]])
def test_two_dashes_are_not_a_value(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = CommandParser(prog="verb", description="", epilog="")
    parser.add_argument("--deadline")
    parser.add_subparsers().add_parser("below", description="", epilog="").add_argument("--name", action="append")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2 and "'--' is not a value" in capsys.readouterr().err
    assert parser.parse_args(["--deadline=-", "below", "--name=---"]).name == ["---"]

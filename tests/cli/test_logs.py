"""``-v``, ``--log-level`` and ``--log-format``: lines on standard error, without credentials."""

from __future__ import annotations

import json
import logging
import warnings
from argparse import ArgumentParser, Namespace
from typing import Any

import pytest

from lakelsm import Catalog
from lakelsm.cli.logs import add_log_arguments, logs_on_stderr, verbosity
from lakelsm.cli.main import main
from lakelsm.failures import after_commit_step
from lakelsm.table import Table

LOG = logging.getLogger("lakelsm.anything")


def logged(capsys: pytest.CaptureFixture[str], *words: str, **more: Any) -> list[str]:
    """Log one line at each level."""
    parser = ArgumentParser()
    add_log_arguments(parser)
    with logs_on_stderr(Namespace(**vars(parser.parse_args(words)), **more)):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            LOG.log(level, "at %s", logging.getLevelName(level))
        logging.getLogger("another").error("not ours")
    LOG.error("after it")
    return [line for line in capsys.readouterr().err.splitlines() if "lakelsm.anything" in line]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([], 2),
        (["-v"], 3),
        (["-vv"], 4),
        (["-v", "--verbose", "-v"], 4),
        (["--log-level", "error"], 1),
        (["-vv", "--log-level", "WARNING"], 2),
    ],
)
def test_the_level_is_that_of_the_flags(capsys: pytest.CaptureFixture[str], words: list[str], lines: int) -> None:
    found = logged(capsys, *words)
    expected = [f"at {level}" for level in ("DEBUG", "INFO", "WARNING", "ERROR")]
    assert [line.split("lakelsm.anything: ")[1] for line in found] == expected[-lines:]
    assert logging.getLogger("lakelsm").handlers == [] and logging.getLogger("lakelsm").level == logging.NOTSET


def test_each_line_is_one_object_with_the_fields_of_its_statement(capsys: pytest.CaptureFixture[str]) -> None:
    with logs_on_stderr(Namespace(log_format="json", verbose=1)):
        LOG.info("a\nb %s", 1, extra={"table": "db.t", "snapshot": 3, "files": ("a",), "other": {1: None}})
        try:
            raise ValueError("why")
        except ValueError:
            LOG.exception("failed")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "INFO", "logger": "lakelsm.anything", "message": "a\nb 1",
        "table": "db.t", "snapshot": 3, "files": ["a"], "other": {"1": None},
    }  # fmt: skip
    assert second["level"] == "ERROR" and "ValueError: why" in second["traceback"]


def test_a_message_is_one_line_and_control_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with logs_on_stderr(Namespace()):
        LOG.warning("a\n2026-01-01 FORGED\x1b[2J")
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_credentials_are_in_no_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", 'of"environment')
    given = [("s3.secret-key", "hid/den+1"), ("s3.endpoint", "http://here:1")]
    with logs_on_stderr(Namespace(log_format=form, storage_option=given)):
        LOG.warning("GET http://here:1 with hid/den+1, of\"environment and hid/den+12", extra={"with": ["hid/den+1"]})
        try:
            raise ValueError("refused hid/den+1")
        except ValueError:
            LOG.exception("failed with %s", "hid/den+1")
    output = capsys.readouterr().err
    assert "http://here:1" in output and output.count("hid/den+1") == output.count("hid/den+12") == 1
    assert "environment" not in output


@pytest.mark.parametrize("words", [[], ["-v"], ["-vv", "--log-format", "json"], ["--report", "json"]])
def test_credentials_are_in_no_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        LOG.warning("GET with hid/den+1")
        raise OSError("refused hid/den+1") from ValueError("hid/den+1")

    monkeypatch.setattr(Table, "for_path", refuse)
    assert main(["status", "--path", "s3://b/t", "--storage-option", "s3.secret-key=hid/den+1", *words]) == 1
    output = capsys.readouterr()
    assert "refused" in output.err and "hid/den+1" not in output.out + output.err


def test_the_flags_are_accepted_before_and_after_the_verb(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Catalog(str(tmp_path)).create_table("d.t", "id INT", primary_key="id")

    def compact(*_: Any, **__: Any) -> None:
        LOG.info("here")
        raise OSError("broken")

    monkeypatch.setattr(Table, "compact", compact)
    named = ["compact", "--warehouse", str(tmp_path), "--table", "d.t"]
    for words in (["-v", *named], [*named, "-v"], [*named, "--verbose", "--log-format", "text"]):
        assert main(words) == 1
        output = capsys.readouterr().err
        assert "INFO lakelsm.anything: here" in output and "Traceback" in output
    assert main(named) == 1
    assert capsys.readouterr().err.splitlines() == ["lakelsm compact: OSError: broken (--verbose shows the full text)"]
    assert verbosity(Namespace()) == 0


def test_a_failure_after_a_commit_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with after_commit_step("d.t", "the hint", "Nothing to do."):
            raise ZeroDivisionError("no")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with logs_on_stderr(Namespace()):
            fail()
            assert warned == []
        fail()
    assert capsys.readouterr().err.count("WARNING lakelsm.commit: Table d.t: the commit succeeded") == len(warned) == 1

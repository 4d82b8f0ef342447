"""What a command prints, as text and as JSON."""

from __future__ import annotations

import pytest

from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, print_failure, print_report
from lakelsm.errors import CommitConflictError, CorruptTableError, LookupServiceError
from tests.cli.fake_table import last_object

REPORT = Report(ExitStatus.NOTHING_TO_DO, "d.t: nothing", {"table": "d.t", "status": "nothing"})


def test_a_report_is_its_text_or_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(REPORT, ExitStatus.DONE, "text")
    assert capsys.readouterr().out == "d.t: nothing\n"
    print_report(REPORT, ExitStatus.DONE, "json")
    assert capsys.readouterr().out == '{"table": "d.t", "status": "nothing", "exit_status": 0}\n'


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (CorruptTableError("a file\nis gone"), "failed", "corrupt", 1),
        (CommitConflictError("others came first"), "conflict", "retry", 4),
        (LookupServiceError("the stage has ended"), "failed", "retry", 4),
        (OSError(28, "No space left on device"), "failed", None, 1),
    ],
)
def test_a_failure_says_what_kind_of_error_it_is(
    capsys: pytest.CaptureFixture[str], error: Exception, status: str, kind: str | None, code: int
) -> None:
    assert print_failure(error, "lakelsm compact", "d.t", "json") == code
    printed = capsys.readouterr()
    found = last_object(printed.out)
    assert (found["table"], found["status"], found["error_kind"], found["exit_status"]) == ("d.t", status, kind, code)
    assert printed.err == f"lakelsm compact: {found['error']}\n"


def test_a_failure_as_text_leaves_standard_output_empty(capsys: pytest.CaptureFixture[str]) -> None:
    print_failure(CorruptTableError("gone"), "lakelsm compact", "d.t", "text")
    assert capsys.readouterr().out == ""

"""Reports of a command, as text and as JSON."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import (
    Report,
    failure_lines,
    failure_report,
    joined_report,
    outcome_report,
    print_failure,
    print_report,
    result_report,
)
from lakelsm.errors import CommitConflictError, CorruptTableError, LookupServiceError
from lakelsm.results import (
    CheckFinding,
    CheckResult,
    CompactionResult,
    CompactionStatus,
    ExpiryResult,
    Failure,
    PartitionExpiryResult,
)
from lakelsm.results.result import OperationResult

REPORT = Report(ExitStatus.NOTHING_TO_DO, "d.t: nothing", {"table": "d.t", "status": "nothing"})


def test_a_report_is_its_text_or_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(REPORT, ExitStatus.DONE, "text")
    assert capsys.readouterr().out == "d.t: nothing\n"
    print_report(REPORT, ExitStatus.DONE, "json")
    assert capsys.readouterr().out == '{"table": "d.t", "status": "nothing", "exit_status": 0}\n'


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (CorruptTableError("a file\nis missing"), "failed", "corrupt", 5),
        (CommitConflictError("others came first"), "conflict", "retry", 4),
        (LookupServiceError("the stage has ended"), "failed", "retry", 4),
        (OSError(28, "No space left on device"), "failed", None, 1),
    ],
)
def test_a_failure_has_the_kind_of_its_error(
    capsys: pytest.CaptureFixture[str], error: Exception, status: str, kind: str | None, code: int
) -> None:
    report = failure_report(error, "d.t")
    assert report.status == code
    found = report.values
    assert (found["table"], found["status"], found["error_kind"]) == ("d.t", status, kind)
    assert (found["error_class"], report.raised) == (type(error).__name__, True)
    print_failure(report, "lakelsm compact")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"lakelsm compact: {found['error']}\n")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "status", "code"),
    [
        ({"changed": True}, "done", 0),
        ({"changed": False}, "nothing", 3),
        ({"changed": False, "dry_run": True}, "nothing", 3),
        ({"changed": True, "dry_run": True}, "planned", 0),
        ({"changed": True, "complete": False}, "deadline", 0),
        ({"changed": False, "complete": False}, "deadline", 0),
    ],
)
def test_an_outcome_has_a_status_and_its_exit_status(flags: dict[str, bool], status: str, code: int) -> None:
    report = outcome_report("text", {"table": "d.t"}, **flags)
    assert (report.values, report.status) == ({"table": "d.t", "status": status}, code)


DAMAGE = CheckFinding(severity="error", rule="r", thing="t", problem="p", remedy="m")
LOST = Failure(step="a commit", error="CorruptTableError", kind="corrupt", text="lost", remedy="restore it")
BOUND = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("result", "changed", "status", "code"),
    [
        (CompactionResult(table="t", status=CompactionStatus.NOTHING), False, "nothing", 3),
        (CompactionResult(table="t", status=CompactionStatus.PLANNED), True, "planned", 0),
        (CompactionResult(table="t", status=CompactionStatus.FAILED, error=LOST), True, "failed", 5),
        (CompactionResult(table="t", status=CompactionStatus.CONFLICT, error=LOST), True, "conflict", 4),
        (CheckResult(table="t"), False, "done", 0),
        (CheckResult(table="t", complete=False), False, "deadline", 0),
        (CheckResult(table="t", findings=(replace(DAMAGE, severity="warning"),)), False, "warnings", 0),
        (CheckResult(table="t", findings=(DAMAGE,)), False, "findings", 5),
        (ExpiryResult(table="t", snapshots=1, dry_run=True), True, "planned", 0),
        (ExpiryResult(table="t", snapshots=1, complete=False), True, "deadline", 0),
        (PartitionExpiryResult(table="t", older_than=BOUND), False, "nothing", 3),
        (PartitionExpiryResult(table="t", older_than=BOUND, complete=False, error=LOST), False, "failed", 5),
    ],
)
def test_a_result_is_reported_with_its_outcome(result: OperationResult, changed: bool, status: str, code: int) -> None:
    report = result_report("text", result)
    assert (result.changed, result.outcome, report.status) == (changed, status, code)
    assert report.values == {**result.as_dict(), "status": status}


def test_the_report_of_several_tables_has_the_worst_status() -> None:
    reports = [REPORT, failure_report(CorruptTableError("missing"), "d.u")]
    joined = joined_report(reports)
    assert joined.status is ExitStatus.FINDINGS
    tables = joined.values["tables"]
    assert isinstance(tables, list)
    assert [(each["table"], each["exit_status"]) for each in tables] == [("d.t", 3), ("d.u", 5)]


def test_characters_that_standard_output_cannot_encode_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr("sys.stdout", shown)
    print_report(Report(ExitStatus.DONE, "tag 'é\udcff'", {}), ExitStatus.DONE, "text")
    assert shown.buffer.getvalue() == b"tag '\\xe9\\udcff'\n"  # type: ignore[attr-defined]


def test_the_lines_of_a_failure_have_error_remedy_and_failed_steps_after_the_commit() -> None:
    failure = Failure(step="the LATEST hint", error="OSError", kind=None, text="OSError: full.", remedy="Free space.")
    assert failure_lines(None, ()) == []
    assert failure_lines(failure, [failure]) == [
        "  error      OSError: full.",
        "  remedy     Free space.",
        "  warning    the LATEST hint failed: OSError: full. Free space.",
    ]


def test_control_characters_of_names_never_reach_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Partition values and messages may have any character; each line of a report is one line."""
    name = "p=\x1b]0;x\x07\r\x9b2J\té"
    shown = "p=\\x1b]0;x\\x07\\r\\x9b2J\\té"
    print_report(Report(ExitStatus.DONE, f"{name}\nnext", {}), ExitStatus.DONE, "text")
    assert capsys.readouterr().out == f"{shown}\nnext\n"
    print_failure(Report(ExitStatus.FAILED, name, {}), "lakelsm")
    assert capsys.readouterr().err == f"lakelsm: {shown}\n"
    print_report(Report(ExitStatus.DONE, "", {"p": name}), ExitStatus.DONE, "json")
    assert "\x9b" not in capsys.readouterr().out

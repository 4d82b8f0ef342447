"""Output of a command: its result as text or as one JSON object, its failure as one line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelsm.cli.exit_status import ExitStatus, status_of, status_of_kind, worst
from lakelsm.errors import CommitConflictError, LakelsmError
from lakelsm.results import Failure
from lakelsm.results.failure import error_values
from lakelsm.results.result import OperationResult, outcome_of
from lakelsm.secret_values import shown_uri

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
#: The exit status of each outcome. 'deadline' is a success: the work that is done is committed.
_OUTCOME_STATUS = {
    "done": ExitStatus.DONE,
    "planned": ExitStatus.DONE,
    "deadline": ExitStatus.DONE,
    "warnings": ExitStatus.DONE,
    "nothing": ExitStatus.NOTHING_TO_DO,
    "conflict": ExitStatus.CONFLICT,
    "findings": ExitStatus.FINDINGS,
}


@dataclass(frozen=True)
class Report:
    """The outcome of a verb: its exit status, its text, and the values of its JSON object.

    ``raised``: an error ended the verb, and is already printed on standard error.
    """

    status: ExitStatus
    text: str
    values: Mapping[str, object]
    raised: bool = False


def result_report(text: str, result: OperationResult) -> Report:
    """Return the report of a result, with its outcome as ``status``. The kind of its error decides the exit status."""
    outcome, error = result.outcome, getattr(result, "error", None)
    status = status_of_kind(error and error.kind) if outcome == "failed" else _OUTCOME_STATUS[outcome]
    return Report(status, text, {**result.as_dict(), "status": outcome})


def outcome_report(
    text: str, values: Mapping[str, object], *, changed: bool, dry_run: bool = False, complete: bool = True
) -> Report:
    """Return the report of a call without a result object; ``status`` is defined as for `OperationResult.outcome`."""
    outcome = outcome_of(changed=changed, dry_run=dry_run, complete=complete)
    return Report(_OUTCOME_STATUS[outcome], text, {**values, "status": outcome})


def failure_lines(error: Failure | None, after_commit: Sequence[Failure]) -> list[str]:
    """Return the lines of a text report for the error of a result, and for failed steps after its commits."""
    lines = [] if error is None else [f"  error      {error.text}", f"  remedy     {error.remedy}"]
    return lines + [f"  warning    {each.step} failed: {each.text.rstrip('.')}. {each.remedy}" for each in after_commit]


def failure_report(error: Exception, table: str | None) -> Report:
    """Return the report of an error, with a text of one line. ``table`` is the name or location of the table."""
    message = _one_line(error)
    kind = error.kind.value if isinstance(error, LakelsmError) else None
    outcome = "conflict" if isinstance(error, CommitConflictError) else "failed"
    values = {
        "table": None if table is None else shown_uri(table),
        "status": outcome,
        "error": message,
        "error_class": type(error).__name__,
        "error_kind": kind,
    }
    return Report(status_of(error), message, values, raised=True)


def step_failure_report(table: str, outcome: str, error: Failure) -> Report:
    """Return the report of a failed step of `TableMaintenance.run_all`."""
    values = {"table": table, "status": outcome, **error_values(error)}
    return Report(status_of_kind(error.kind), error.text, values, raised=True)


def joined_report(reports: Sequence[Report], key: str = "tables") -> Report:
    """Return one report for several tables, or for other parts whose JSON has the key ``key``."""
    status = worst(report.status for report in reports)
    values = [{**report.values, "exit_status": int(report.status)} for report in reports]
    return Report(status, "\n".join(report.text for report in reports), {key: values})


def print_report(report: Report, status: ExitStatus, form: str) -> None:
    """Print a result on standard output. ``json`` prints one line, which has the exit status of the command.

    An empty text prints nothing.
    """
    if form == "json" or report.text:
        print(_json(report.values, status) if form == "json" else printable(report.text), flush=True)


def print_failure(report: Report, program: str) -> None:
    """Print a failure on standard error, in one line."""
    print(f"{program}: {printable(report.text)}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Return a text with control characters and characters that standard output cannot encode escaped.

    Names of files may have any character, and control characters can change a terminal.
    """
    encoding = sys.stdout.encoding or "utf-8"
    text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _json(values: Mapping[str, object], status: ExitStatus) -> str:
    return json.dumps({**values, "exit_status": int(status)})


def _one_line(error: Exception) -> str:
    """Return the message of an error in one line; of another library's error its class and its first line."""
    text = str(error).strip()
    if isinstance(error, LakelsmError):
        return " ".join(text.split())
    first = text.splitlines()[0] if text else "no message"
    return f"{type(error).__name__}: {first} (--verbose shows the full text)"

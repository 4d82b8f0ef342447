"""What a command prints: its result as text or as one JSON object, its failure as one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from lakelsm.cli.exit_status import ExitStatus, status_of
from lakelsm.errors import CommitConflictError, LakelsmError


@dataclass(frozen=True)
class Report:
    """A verb's outcome: its exit status, the text for people, and the values of the JSON object."""

    status: ExitStatus
    text: str
    values: Mapping[str, object]


def print_report(report: Report, status: ExitStatus, form: str) -> None:
    """Print a result on standard output; as ``json`` it is one line with the exit status that the command ends with."""
    print(_json(report.values, status) if form == "json" else report.text, flush=True)


def print_failure(error: Exception, program: str, table: str, form: str) -> ExitStatus:
    """Print one line on standard error, and the JSON object where one is asked for; the exit status."""
    message, status = _one_line(error), status_of(error)
    print(f"{program}: {message}", file=sys.stderr, flush=True)
    if form == "json":
        kind = error.kind.value if isinstance(error, LakelsmError) else None
        outcome = "conflict" if isinstance(error, CommitConflictError) else "failed"
        values = {"table": table, "status": outcome, "error": message, "error_kind": kind}
        print(_json(values, status), flush=True)
    return status


def _json(values: Mapping[str, object], status: ExitStatus) -> str:
    return json.dumps({**values, "exit_status": int(status)})


def _one_line(error: Exception) -> str:
    """The message of an error; errors that are not lakelsm's own are cut at their first line and named."""
    text = str(error).strip()
    if isinstance(error, LakelsmError):
        return " ".join(text.split())
    first = text.splitlines()[0] if text else "no message"
    return f"{type(error).__name__}: {first} (--verbose shows the whole of it)"

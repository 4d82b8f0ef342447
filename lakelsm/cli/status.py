"""``lakelsm status`` and ``lakelsm history``: what a table is like now, and what was done to it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import checked, positive
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.text_table import aligned, moment, size
from lakelsm.cli.verb import Verb
from lakelsm.table import Table


def _add_status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--most-buckets",
        metavar="N",
        type=checked(positive),
        default=10,
        help="so many of the buckets that need a compaction most are shown one by one (default: 10)",
    )


def _run_status(table: Table, arguments: Namespace) -> Report:
    status = table.status(most_buckets=arguments.most_buckets)
    return Report(ExitStatus.DONE, status.as_text(), {**status.as_dict(), "status": "done"})


def _add_history_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=checked(positive), default=20, help="so many of the newest runs (default: 20)"
    )


def _run_history(table: Table, arguments: Namespace) -> Report:
    runs = table.history(arguments.limit)
    rows = [
        (*(moment(run.started), run.operation, run.outcome, f"{run.seconds:.1f}"),
         *(run.files, size(run.bytes), run.user, run.host))
        for run in runs
    ]
    header = ("started (UTC)", "operation", "outcome", "seconds", "files", "bytes", "by", "on")
    text = f"{table.name}: {len(runs) or 'no'} runs of maintenance" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "runs": [run.as_dict() for run in runs]}
    return Report(ExitStatus.DONE, text, values)


STATUS = Verb(
    name="status",
    summary="Show what waits for a compaction or an expiry, on one screen.",
    add_arguments=_add_status_arguments,
    run=_run_status,
)

HISTORY = Verb(
    name="history",
    summary="Show the newest runs of maintenance: who did what, when, and what came of it.",
    add_arguments=_add_history_arguments,
    run=_run_history,
)

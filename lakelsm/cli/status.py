"""``lakelsm status`` and ``lakelsm history``: what a table is like now, and what was done to it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, checked, positive
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import Verb
from lakelsm.table import Table
from lakelsm.text_table import aligned, moment, size


def _add_status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-buckets",
        metavar="N",
        type=checked(positive),
        default=10,
        help="so many of the buckets that need a compaction most are shown one by one (default: 10)",
    )


def _run_status(table: Table, arguments: Namespace) -> Report:
    status = table.inspect.status(max_buckets=arguments.max_buckets)
    return Report(ExitStatus.DONE, status.as_text(), {**status.as_dict(), "status": "done"})


def _add_history_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=checked(positive),
        default=20,
        help="so many of the newest commits and runs (default: 20)",
    )


def _run_history(table: Table, arguments: Namespace) -> Report:
    runs = table.inspect.history(arguments.limit).to_arrow().to_pylist()
    rows = [
        (
            moment(run["started"]),
            run["operation"],
            run["outcome"],
            ",".join(map(str, run["snapshot_ids"])) or None,
            *(run["rows"], run["files"], None if run["bytes"] is None else size(run["bytes"])),
            None if run["seconds"] is None else f"{run['seconds']:.1f}",
            *(run["user"], run["host"]),
        )
        for run in runs
    ]
    header = ("started (UTC)", "operation", "outcome", "snapshots", "rows", "files", "bytes", "seconds", "by", "on")
    text = f"{table.name}: {len(runs) or 'no'} commits and runs of maintenance"
    text += f"\n{aligned(header, rows)}" if rows else ""
    runs = [{**run, "started": run["started"].isoformat()} for run in runs]
    values = {"table": table.name, "status": "done", "runs": runs}
    return Report(ExitStatus.DONE, text, values)


STATUS = Verb(
    name="status",
    summary="Show what waits for a compaction or an expiry, on one screen.",
    add_arguments=_add_status_arguments,
    run=_run_status,
    tables=Tables.ALL,
)

HISTORY = Verb(
    name="history",
    summary="Show the newest commits and runs of maintenance: who did what, when, and the outcome.",
    add_arguments=_add_history_arguments,
    run=_run_history,
    tables=Tables.ALL,
)

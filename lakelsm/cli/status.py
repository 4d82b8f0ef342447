"""``lakelsm status`` and ``lakelsm history``: show the state of tables and the operations on them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, checked, positive
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import Verb
from lakelsm.table import Table
from lakelsm.text_table import aligned, amount, moment, shown_values, size


def _add_status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-buckets",
        metavar="N",
        type=checked(positive),
        default=10,
        help="number of listed buckets, those that most need a compaction first (default: 10)",
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
        help="maximum number of commits and runs (default: 20)",
    )


def _run_history(table: Table, arguments: Namespace) -> Report:
    found = table.inspect.history(arguments.limit).to_arrow()
    runs = [dict(zip(found.column_names, values)) for values in zip(*map(shown_values, found.columns))]
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
    text = f"{table.name}: {amount(len(runs), 'commit or maintenance run', 'commits and maintenance runs')}"
    text += f"\n{aligned(header, rows)}" if rows else ""
    runs = [{**run, "started": run["started"].isoformat()} for run in runs]
    values = {"table": table.name, "status": "done", "runs": runs}
    return Report(ExitStatus.DONE, text, values)


STATUS = Verb(
    name="status",
    summary="Show the state of tables: files, pending compaction, retained snapshots, consumers.",
    add_arguments=_add_status_arguments,
    run=_run_status,
    tables=Tables.ALL,
)

HISTORY = Verb(
    name="history",
    summary="List the newest commits and maintenance runs: time, operation, outcome, user and host.",
    add_arguments=_add_history_arguments,
    run=_run_history,
    tables=Tables.ALL,
)

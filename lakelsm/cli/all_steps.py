"""``lakelsm all``: all upkeep of a table, step by step, under one deadline."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from lakelsm.arguments import checked_choice
from lakelsm.cli.arguments import Tables, add_deadline, add_dry_run, add_engine, age, checked
from lakelsm.cli.check import check_report
from lakelsm.cli.compact import compact_report
from lakelsm.cli.consumers import expired_consumers_report
from lakelsm.cli.exit_status import worst
from lakelsm.cli.expire import expiry_report
from lakelsm.cli.orphans import orphans_report
from lakelsm.cli.partitions import expired_report
from lakelsm.cli.report import Report, outcome_report, step_failure_report
from lakelsm.cli.tag import deletion_report
from lakelsm.cli.verb import EXIT_STATUSES, Verb, failed
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.results import UpkeepStep
from lakelsm.table import Table
from lakelsm.table.table_maintenance import ORPHANS_OLDER_THAN, UPKEEP_STEPS

_DETAILS = f"""\
Steps, in this order, by the options of the table:
  tags        delete tags whose retention time has passed
  consumers   delete inactive consumers, if consumer.expiration-time is set
  partitions  drop old partitions, if partition.expiration-time is set
  compact     run an ordinary compaction, for at most half of the time that is left
  expire      expire at most 10,000 snapshots (snapshot.expire.limit has no effect), and delete the
              files that only they need
  orphans     delete unreferenced files older than --orphans-older-than
  check       check references, manifest entries and file footers
If a step fails, the other steps still run. No step starts after --deadline.

{EXIT_STATUSES}
The exit status is that of the worst step: 1, else 5, 4, 0; 3 if no step had anything to do.
The JSON has each step with its status and its result.
"""


#: The function that reports the result of a step, by the name of the step.
_REPORTS: Mapping[str, Callable[[Any], Report]] = {
    "tags": deletion_report,
    "consumers": expired_consumers_report,
    "partitions": expired_report,
    "compact": compact_report,
    "expire": expiry_report,
    "orphans": orphans_report,
    "check": check_report,
}


def _step_names(argument: str, text: str) -> list[str]:
    return [checked_choice(argument, part.strip(), UPKEEP_STEPS) for part in text.split(",")]


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--steps",
        metavar="STEP,STEP…",
        type=checked(_step_names),
        default=list(UPKEEP_STEPS),
        help="steps to run, such as expire,orphans (default: all, in the order of the list below)",
    )
    parser.add_argument(
        "--orphans-older-than",
        metavar="AGE",
        type=age,
        default=ORPHANS_OLDER_THAN,
        help=f"minimum age of deleted orphan files (default: {ORPHANS_OLDER_THAN})",
    )
    parser.add_argument(
        "--data",
        choices=[each.value for each in CheckedData],
        default=CheckedData.FOOTERS.value,
        help="part of the data files that the check reads (default: footers)",
    )
    add_dry_run(parser)
    add_deadline(parser, "no step starts after it, and the running step stops early")
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    result = table.maintenance.run_all(
        arguments.steps,
        orphans_older_than=arguments.orphans_older_than,
        data=arguments.data,
        dry_run=arguments.dry_run,
        deadline=arguments.deadline,
        engine=arguments.engine,
    )
    reports = {step.name: _step_report(result.table, step, arguments) for step in result.steps}
    steps = [
        {"step": name, **report.values, "exit_status": int(report.status)} for name, report in reports.items()
    ]
    lines = [f"{result.table}: {len(reports)} steps of upkeep ({result.seconds:.1f} s)"]
    lines += [f"[{name}] {report.text}" for name, report in reports.items()]
    values = {"table": result.table, "status": result.outcome, "steps": steps}
    return Report(worst(report.status for report in reports.values()), "\n".join(lines), values)


def _step_report(table: str, step: UpkeepStep, arguments: Namespace) -> Report:
    if step.error is not None:
        return failed(step_failure_report(table, step.outcome, step.error), arguments)
    if step.result is not None:
        return _REPORTS[step.name](step.result)
    values = {"table": table}
    return outcome_report(f"{table}: {step.reason}", values, changed=False, complete=step.outcome != "deadline")


ALL = Verb(
    name="all",
    summary="Run all upkeep of tables: expiry, compaction, orphan removal and a check.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ALL,
)

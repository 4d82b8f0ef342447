"""``lakelsm all``: all the upkeep of a table, step by step, under one deadline."""

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
The steps, in this order, each as the table's options say:
  tags        tags that are past their time go
  consumers   consumers that stopped are forgotten, where consumer.expiration-time is set
  partitions  partitions that are too old are dropped, where partition.expiration-time is set
  compact     an ordinary compaction, in half of the time at most
  expire      old snapshots go, with the files that nothing needs then; 10,000 at most, whatever
              snapshot.expire.limit says
  orphans     files go that nothing names and that are older than --orphans-older-than
  check       references, entries and footers are checked
A step that fails does not stop the others. After --deadline no step begins.

{EXIT_STATUSES}
The exit status is that of the worst step: 1, else 5, 4, 0; 3 where none had anything to do.
The JSON has each step with its status and its result.
"""


#: The report of what a step returned, by the step's name.
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
        help=f"only these, in the order below, of {', '.join(UPKEEP_STEPS)}",
    )
    parser.add_argument(
        "--orphans-older-than",
        metavar="AGE",
        type=age,
        default=ORPHANS_OLDER_THAN,
        help=f"orphans that were last changed before (default: {ORPHANS_OLDER_THAN})",
    )
    parser.add_argument(
        "--data",
        choices=[each.value for each in CheckedData],
        default=CheckedData.FOOTERS.value,
        help="what the check opens of data files (default: footers)",
    )
    add_dry_run(parser)
    add_deadline(parser, "begin no further step, and stop in one,")
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
    summary="Do all the upkeep of a table, step by step, under one deadline.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ALL,
)

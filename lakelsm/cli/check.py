"""``lakelsm check``: check a table for missing, damaged and inconsistent files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_deadline, add_engine
from lakelsm.cli.report import Report, result_report
from lakelsm.cli.verb import EXIT_STATUSES, Verb
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.results import CheckResult
from lakelsm.table import Table

_DETAILS = f"""\
Nothing is changed. docs/check.md lists the rules, docs/maintenance.md the remedy of each finding.

{EXIT_STATUSES}
The JSON's status is "done" (no findings), "findings" (errors: exit status 5), "warnings" (exit status
0), or "deadline" (exit status 0: no errors were found before the deadline).
"""


def _add_arguments(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("scope")
    what.add_argument(
        "--data",
        choices=[each.value for each in CheckedData],
        default=CheckedData.SAMPLE.value,
        help="part of the live data files to read: none, their footers, footers and all rows of a sample of files, or "
        "full (default: sample)",
    )
    what.add_argument(
        "--where", metavar="SQL", help="condition on partition columns: check data files of these partitions only"
    )
    add_deadline(parser, "then the check ends and reports its findings so far")
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    return check_report(
        table.maintenance.check(
            data=arguments.data, where=arguments.where, engine=arguments.engine, deadline=arguments.deadline
        )
    )


def check_report(result: CheckResult) -> Report:
    """Return the report of a check."""
    return result_report(result.as_text(), result)


CHECK = Verb(
    name="check",
    summary="Check that every referenced file exists and every rule of the format holds.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ALL,
)

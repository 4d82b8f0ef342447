"""``lakelsm check``: whether a table is sound."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_deadline, add_engine
from lakelsm.cli.report import Report, result_report
from lakelsm.cli.verb import EXIT_STATUSES, Verb
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.results import CheckResult
from lakelsm.table import Table

_DETAILS = f"""\
Nothing is changed. docs/check.md has each rule, docs/maintenance.md what to do at each finding.

{EXIT_STATUSES}
The JSON's status is "done" (sound), "findings" (errors: the exit status is 5), "warnings" (0), or
"deadline" (0: nothing wrong was found until then).
"""


def _add_arguments(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("what to look at")
    what.add_argument(
        "--data",
        choices=[each.value for each in CheckedData],
        default=CheckedData.SAMPLE.value,
        help="what to open of live data files: nothing, their footers, all rows of some of them too, or of all "
        "(default: sample)",
    )
    what.add_argument(
        "--where", metavar="SQL", help="data files of partitions that match a condition on partition columns"
    )
    add_deadline(parser, "end")
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    return check_report(
        table.maintenance.check(
            data=arguments.data, where=arguments.where, engine=arguments.engine, deadline=arguments.deadline
        )
    )


def check_report(result: CheckResult) -> Report:
    """The report of a check: errors have an exit status of their own."""
    return result_report(result.as_text(), result)


CHECK = Verb(
    name="check",
    summary="Check that every reference resolves and every rule of the format holds.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ALL,
)

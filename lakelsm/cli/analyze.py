"""``lakelsm analyze``: write statistics of the rows of a table, which other engines use for their plans."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.arguments import checked_names
from lakelsm.cli.arguments import add_commit_user, add_dry_run, add_engine, checked
from lakelsm.cli.report import Report, failure_lines, result_report
from lakelsm.cli.verb import Verb
from lakelsm.results import AnalyzeResult
from lakelsm.table import Table
from lakelsm.text_table import amount, size


def _names(argument: str, text: str) -> list[str]:
    return checked_names(argument, [part.strip() for part in text.split(",")])


def _add_arguments(parser: ArgumentParser) -> None:
    columns = parser.add_mutually_exclusive_group()
    columns.add_argument(
        "--columns", metavar="NAME,NAME…", type=checked(_names), help="analyzed columns (default: all except nested ones)"
    )
    columns.add_argument("--rows-alone", action="store_true", help="count rows and bytes only, no column statistics")
    add_commit_user(parser)
    add_dry_run(parser)
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    result = table.maintenance.analyze(
        [] if arguments.rows_alone else arguments.columns,
        dry_run=arguments.dry_run,
        commit_user=arguments.commit_user,
        engine=arguments.engine,
    )
    return analyze_report(result)


def analyze_report(result: AnalyzeResult) -> Report:
    """Return the report of an analysis."""
    if result.analyzed_snapshot_id is None:
        text = f"{result.table}: no snapshot to analyze"
    else:
        published = "not written (dry run)" if result.dry_run else f"written as snapshot {result.snapshot_id}"
        columns = amount(len(result.columns), "column")
        text = (
            f"{result.table}: {amount(result.rows, 'row')}, {size(result.bytes)} in snapshot "
            f"{result.analyzed_snapshot_id}; statistics of {columns} {published} ({result.seconds:.1f} s)"
        )
    text = "\n".join([text, *failure_lines(None, result.after_commit_failures)])
    return result_report(text, result)


ANALYZE = Verb(
    name="analyze",
    summary="Write statistics of the rows of tables, like Paimon's ANALYZE.",
    add_arguments=_add_arguments,
    run=_run,
)

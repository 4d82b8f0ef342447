"""``lakelsm orphans``: remove orphan files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import add_deadline, add_dry_run, add_engine, add_older_than
from lakelsm.cli.report import Report, result_report
from lakelsm.cli.verb import Verb
from lakelsm.results import OrphanResult
from lakelsm.table import Table
from lakelsm.table.table_maintenance import ORPHANS_OLDER_THAN
from lakelsm.text_table import amount, failures_text, size


def orphans_text(result: OrphanResult) -> str:
    """Return the result as text."""
    did = "would be removed" if result.dry_run else "removed"
    ended = "" if result.complete else "; stopped at the deadline, run it again for the rest"
    files = amount(result.files, "orphan file")
    lines = [f"{result.table}: {files} {did}, {size(result.bytes)} ({result.seconds:.1f} s){ended}"]
    if result.kinds:
        lines.append(f"  kinds      {', '.join(f'{count} {kind}' for kind, count in result.kinds.items())}")
        lines.append(f"  example    {result.examples[0]}")
    young = f"{result.files_too_young} unreferenced but not older than {result.older_than.isoformat()}"
    lines.append(f"  listed     {amount(result.files_listed, 'file')}; {young}")
    if result.directories:
        lines.append(f"  removed    {amount(result.directories, 'empty directory', 'empty directories')}")
    return "\n".join(lines + failures_text(result.failures))


def _add_arguments(parser: ArgumentParser) -> None:
    add_older_than(
        parser,
        "minimum age of removed files, several times the duration of the slowest job, because younger files may belong "
        "to a commit in progress",
        ORPHANS_OLDER_THAN,
    )
    parser.add_argument("--force", action="store_true", help="allow an age of less than an hour")
    add_dry_run(parser)
    add_deadline(parser, "the run stops at it")
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    return orphans_report(
        table.maintenance.remove_orphans(
            arguments.older_than or ORPHANS_OLDER_THAN,
            dry_run=arguments.dry_run,
            force=arguments.force,
            engine=arguments.engine,
            deadline=arguments.deadline,
        )
    )


def orphans_report(result: OrphanResult) -> Report:
    """Return the report of a removal."""
    return result_report(orphans_text(result), result)


ORPHANS = Verb(
    name="orphans",
    summary="Remove orphan files: files that no snapshot, tag or changelog of any branch references.",
    add_arguments=_add_arguments,
    run=_run,
)

"""``lakelsm orphans``: remove files that nothing retained names."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import add_deadline, add_dry_run, add_engine, add_older_than
from lakelsm.cli.report import Report, result_report
from lakelsm.cli.verb import Verb
from lakelsm.results import OrphanResult
from lakelsm.table import Table
from lakelsm.table.table_maintenance import ORPHANS_OLDER_THAN
from lakelsm.text_table import failures_text, size


def orphans_text(result: OrphanResult) -> str:
    """The result as text for people."""
    did = "to be removed" if result.dry_run else "removed"
    ended = "" if result.complete else "; the deadline stopped it, run it again for the rest"
    lines = [f"{result.table}: {result.files} orphans {did}, {size(result.bytes)} ({result.seconds:.1f} s){ended}"]
    if result.kinds:
        lines.append(f"  kinds      {', '.join(f'{count} {kind}' for kind, count in result.kinds.items())}")
        lines.append(f"  such as    {result.examples[0]}")
    young = f"{result.files_too_young} unreferenced files are younger than {result.older_than.isoformat()}"
    lines.append(f"  looked at  {result.files_listed} files; {young}")
    if result.directories:
        lines.append(f"  emptied    {result.directories} directories")
    return "\n".join(lines + failures_text(result.failures))


def _add_arguments(parser: ArgumentParser) -> None:
    add_older_than(
        parser,
        f"files that were last changed before (default: {ORPHANS_OLDER_THAN}). Leave the slowest job several times its "
        "time: younger files may be of a commit that is under way",
    )
    parser.add_argument("--force", action="store_true", help="allow a bound of less than an hour")
    add_dry_run(parser)
    add_deadline(parser, "end")
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
    """The report of a removal."""
    return result_report(orphans_text(result), result)


ORPHANS = Verb(
    name="orphans",
    summary="Remove files that no snapshot, tag or changelog of any branch names: leftovers of writers that died.",
    add_arguments=_add_arguments,
    run=_run,
)

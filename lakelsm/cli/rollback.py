"""``lakelsm rollback``: roll a table back to an earlier snapshot."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_dry_run, add_timestamp, checked, chosen_point, positive
from lakelsm.cli.report import Report, result_report
from lakelsm.cli.verb import Verb
from lakelsm.results import RollbackResult
from lakelsm.table import Table
from lakelsm.text_table import failures_text, size


def rollback_text(result: RollbackResult) -> str:
    """Return the result as text."""
    did = "would be rolled back" if result.dry_run else "rolled back"
    lines = [f"{result.table}: {did} to snapshot {result.snapshot_id} ({result.seconds:.1f} s)"]
    if result.timestamp is not None:
        lines.append(f"  as of      {result.timestamp.isoformat()}")
    deleted = {"snapshots": result.snapshots, "tags": result.tags, "changelogs": result.changelogs}
    lines += [f"  {what:10} {', '.join(map(str, ids))} deleted" for what, ids in deleted.items() if ids]
    if result.consumers:
        lines.append(f"  consumers  {', '.join(result.consumers)} continue after it")
    lines.append(f"  files      {result.files} deleted, {size(result.bytes)}")
    return "\n".join(lines + failures_text(result.failures))


def _add_arguments(parser: ArgumentParser) -> None:
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--snapshot", metavar="ID", type=checked(positive), help="id of the snapshot")
    to.add_argument("--tag", metavar="NAME", help="tag of the snapshot")
    add_timestamp(to, "newest snapshot that is not later than a time")
    add_dry_run(parser)


def _check_one(parser: ArgumentParser, arguments: Namespace) -> None:
    if arguments.snapshot is not None and arguments.path is None and len(arguments.table or ()) != 1:
        parser.error("--snapshot is for one table: name one table, or use --tag or --timestamp")


def _run(table: Table, arguments: Namespace) -> Report:
    return rollback_report(table.rollback(chosen_point(arguments), dry_run=arguments.dry_run))


def rollback_report(result: RollbackResult) -> Report:
    """Return the report of a rollback."""
    return result_report(rollback_text(result), result)


ROLLBACK = Verb(
    name="rollback",
    summary="Roll back to a snapshot, a tag or a time. Deletes later snapshots and tags.",
    add_arguments=_add_arguments,
    check=_check_one,
    run=_run,
    tables=Tables.BY_FORCE,
)

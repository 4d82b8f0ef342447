"""``lakelsm branch``: create, rename, fast-forward, delete and list branches."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_dry_run
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, outcome_report, result_report
from lakelsm.cli.verb import Verb, VerbGroup
from lakelsm.results import FastForwardResult
from lakelsm.table import Table
from lakelsm.text_table import aligned, amount, moment


def _changed(table: Table, arguments: Namespace, what: str, **values: object) -> Report:
    did = "would be " if arguments.dry_run else ""
    text = f"{table.name}: branch {arguments.name} {did}{what}"
    reported = {"table": table.name, "dry_run": arguments.dry_run, "branch": arguments.name, **values}
    return outcome_report(text, reported, changed=True, dry_run=arguments.dry_run)


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the branch")
    add_dry_run(parser)


def _add_created(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("--tag", metavar="NAME", help="tag whose rows the branch begins with (default: an empty branch)")
    parser.add_argument("--ignore-if-exists", action="store_true", help="keep an existing branch and succeed")


def _create(table: Table, arguments: Namespace) -> Report:
    table.branches.create(
        arguments.name, arguments.tag, ignore_if_exists=arguments.ignore_if_exists, dry_run=arguments.dry_run
    )
    return _changed(table, arguments, "created", tag=arguments.tag)


def _add_renamed(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("new_name", metavar="NEW_NAME", help="new name of the branch")


def _rename(table: Table, arguments: Namespace) -> Report:
    table.branches.rename(arguments.name, arguments.new_name, dry_run=arguments.dry_run)
    return _changed(table, arguments, f"renamed to {arguments.new_name}", new_name=arguments.new_name)


def _delete(table: Table, arguments: Namespace) -> Report:
    table.branches.delete(arguments.name, dry_run=arguments.dry_run)
    return _changed(table, arguments, "deleted")


def _fast_forward(table: Table, arguments: Namespace) -> Report:
    return fast_forward_report(table.branches.fast_forward(arguments.name, dry_run=arguments.dry_run))


def fast_forward_report(result: FastForwardResult) -> Report:
    """Return the report of a fast-forward."""
    did = "would be fast-forwarded" if result.dry_run else "fast-forwarded"
    lines = [
        f"{result.table}: {did} to branch {result.branch} at snapshot {result.snapshot_id}",
        f"  snapshots  {result.snapshots_added} added, {result.snapshots_removed} deleted",
        f"  tags       {len(result.tags_added)} added, {len(result.tags_removed)} deleted",
    ]
    return result_report("\n".join(lines), result)


def _list(table: Table, arguments: Namespace) -> Report:
    branches = table.branches.list()
    rows = [(each.name, moment(each.created), each.schema_id, each.snapshot_id) for each in branches]
    header = ("branch", "created (UTC)", "schema", "snapshot")
    text = f"{table.name}: {amount(len(rows), 'branch', 'branches')}" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "branches": [each.as_dict() for each in branches]}
    return Report(ExitStatus.DONE, text, values)


BRANCH = VerbGroup(
    name="branch",
    summary="Manage branches: lines of snapshots apart from the main one.",
    verbs=(
        Verb(name="create", summary="Create a branch.", add_arguments=_add_created, run=_create),
        Verb(
            name="fast-forward",
            summary="Make the main branch equal to another branch. Stop writers of the table first.",
            add_arguments=_add_name,
            run=_fast_forward,
        ),
        Verb(name="rename", summary="Rename a branch. Stop its writers first.", add_arguments=_add_renamed, run=_rename),
        Verb(name="delete", summary="Delete a branch.", add_arguments=_add_name, run=_delete),
        Verb(name="list", summary="List the branches.", add_arguments=lambda parser: None, run=_list, tables=Tables.ALL),
    ),
)

"""``lakelsm branch``: create, rename, fast-forward, delete and list branches."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_dry_run
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, outcome_report, result_report
from lakelsm.cli.verb import Verb, VerbGroup
from lakelsm.table import Table
from lakelsm.text_table import aligned, moment


def _changed(table: Table, arguments: Namespace, what: str, **values: object) -> Report:
    did = "would be " if arguments.dry_run else ""
    text = f"{table.name}: branch {arguments.name} {did}{what}"
    told = {"table": table.name, "dry_run": arguments.dry_run, "branch": arguments.name, **values}
    return outcome_report(text, told, changed=True, dry_run=arguments.dry_run)


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the branch's name")
    add_dry_run(parser)


def _add_created(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("--tag", metavar="NAME", help="with the rows of this tag (default: empty)")
    parser.add_argument("--ignore-if-exists", action="store_true", help="one that is there stays, and nothing is wrong")


def _create(table: Table, arguments: Namespace) -> Report:
    table.branches.create(
        arguments.name, arguments.tag, ignore_if_exists=arguments.ignore_if_exists, dry_run=arguments.dry_run
    )
    return _changed(table, arguments, "created", tag=arguments.tag)


def _add_renamed(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("new_name", metavar="NEW_NAME", help="its new name")


def _rename(table: Table, arguments: Namespace) -> Report:
    table.branches.rename(arguments.name, arguments.new_name, dry_run=arguments.dry_run)
    return _changed(table, arguments, f"renamed to {arguments.new_name}", new_name=arguments.new_name)


def _delete(table: Table, arguments: Namespace) -> Report:
    table.branches.delete(arguments.name, dry_run=arguments.dry_run)
    return _changed(table, arguments, "deleted")


def _fast_forward(table: Table, arguments: Namespace) -> Report:
    result = table.branches.fast_forward(arguments.name, dry_run=arguments.dry_run)
    did = "would be" if result.dry_run else "is"
    lines = [
        f"{result.table}: {did} as branch {result.branch} at snapshot {result.snapshot_id}",
        f"  snapshots  {result.snapshots_added} taken over, {result.snapshots_removed} of its own gone",
        f"  tags       {len(result.tags_added)} taken over, {len(result.tags_removed)} of its own gone",
    ]
    return result_report("\n".join(lines), result)


def _list(table: Table, arguments: Namespace) -> Report:
    branches = table.branches.list()
    rows = [(each.name, moment(each.created), each.schema_id, each.snapshot_id) for each in branches]
    header = ("branch", "created (UTC)", "schema", "snapshot")
    text = f"{table.name}: {len(rows) or 'no'} branches" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "branches": [each.as_dict() for each in branches]}
    return Report(ExitStatus.DONE, text, values)


BRANCH = VerbGroup(
    name="branch",
    summary="Branches: states of a table that are written apart from it.",
    verbs=(
        Verb(name="create", summary="Make a branch.", add_arguments=_add_created, run=_create),
        Verb(
            name="fast-forward",
            summary="Make the table what a branch is. Let nobody write to it meanwhile.",
            add_arguments=_add_name,
            run=_fast_forward,
        ),
        Verb(name="rename", summary="Give a branch another name.", add_arguments=_add_renamed, run=_rename),
        Verb(name="delete", summary="Delete a branch.", add_arguments=_add_name, run=_delete),
        Verb(name="list", summary="Show the branches.", add_arguments=lambda parser: None, run=_list, tables=Tables.ALL),
    ),
)

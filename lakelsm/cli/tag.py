"""``lakelsm tag``: create, rename, replace, delete, expire and list tags."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import (
    Tables,
    add_dry_run,
    add_older_than,
    add_timestamp,
    checked,
    chosen_point,
    duration,
    positive,
)
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, outcome_report, result_report
from lakelsm.cli.verb import Verb, VerbGroup
from lakelsm.results import TagDeletionResult, TagInfo
from lakelsm.table import Table
from lakelsm.text_table import aligned, amount, failures_text, moment, older_than_text, size


def deletion_text(result: TagDeletionResult) -> str:
    """Return the result of a deletion as text."""
    bound = older_than_text(result.older_than)
    if not result.tags:
        return "\n".join([f"{result.table}: no tags to delete", *bound])
    did = "would be deleted" if result.dry_run else "deleted"
    names, files = ', '.join(result.tags), amount(result.files, "file")
    lines = [f"{result.table}: tags {names} {did}, with {files}, {size(result.bytes)}"]
    return "\n".join(lines + bound + failures_text(result.failures))


def deletion_report(result: TagDeletionResult) -> Report:
    """Return the report of a deletion."""
    return result_report(deletion_text(result), result)


def _tag_report(table: Table, what: str, info: TagInfo, dry_run: bool) -> Report:
    did = "would be " if dry_run else ""
    text = f"{table.name}: tag {info.name} {did}{what}, of snapshot {info.snapshot_id} ({info.rows:,} rows)"
    values = {"table": table.name, "dry_run": dry_run, "tag": info.as_dict()}
    return outcome_report(text, values, changed=True, dry_run=dry_run)


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the tag")


def _add_snapshot(parser: ArgumentParser) -> None:
    _add_name(parser)
    point = parser.add_mutually_exclusive_group()
    point.add_argument("--snapshot", metavar="ID", type=checked(positive), help="snapshot id (default: the newest)")
    add_timestamp(point, "newest snapshot that is not later than a time")
    parser.add_argument(
        "--time-retained",
        metavar="TIME",
        type=duration,
        help="retention time, such as '365 d' (default: tag.default-time-retained, else no limit)",
    )
    add_dry_run(parser)


def _add_created(parser: ArgumentParser) -> None:
    _add_snapshot(parser)
    parser.add_argument("--if-not-exists", action="store_true", help="keep an existing tag and succeed")


def _create(table: Table, arguments: Namespace) -> Report:
    info = table.tags.create(
        arguments.name,
        chosen_point(arguments),
        time_retained=arguments.time_retained,
        if_not_exists=arguments.if_not_exists,
        dry_run=arguments.dry_run,
    )
    return _tag_report(table, "created", info, arguments.dry_run)


def _replace(table: Table, arguments: Namespace) -> Report:
    info = table.tags.replace(
        arguments.name,
        chosen_point(arguments),
        time_retained=arguments.time_retained,
        dry_run=arguments.dry_run,
    )
    return _tag_report(table, "replaced", info, arguments.dry_run)


def _add_renamed(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("new_name", metavar="NEW_NAME", help="new name of the tag")
    add_dry_run(parser)


def _rename(table: Table, arguments: Namespace) -> Report:
    info = table.tags.rename(arguments.name, arguments.new_name, dry_run=arguments.dry_run)
    return _tag_report(table, f"renamed from {arguments.name}", info, arguments.dry_run)


def _add_deleted(parser: ArgumentParser) -> None:
    _add_name(parser)
    add_dry_run(parser)


def _delete(table: Table, arguments: Namespace) -> Report:
    return deletion_report(table.tags.delete(arguments.name, dry_run=arguments.dry_run))


def _add_expired(parser: ArgumentParser) -> None:
    add_older_than(parser, "minimum age of tags that are deleted before their retention time ends", "none")
    add_dry_run(parser)


def _expire(table: Table, arguments: Namespace) -> Report:
    return deletion_report(table.tags.expire(arguments.older_than, dry_run=arguments.dry_run))


def _list(table: Table, arguments: Namespace) -> Report:
    tags = table.tags.list()
    header = ("tag", "snapshot", "committed (UTC)", "rows", "created", "retained")
    rows = [
        (tag.name, tag.snapshot_id, moment(tag.committed_at), tag.rows, moment(tag.created_at), tag.time_retained)
        for tag in tags
    ]
    text = f"{table.name}: {amount(len(tags), 'tag')}" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "tags": [tag.as_dict() for tag in tags]}
    return Report(ExitStatus.DONE, text, values)


TAG = VerbGroup(
    name="tag",
    summary="Manage tags: names of snapshots, which expiry keeps.",
    verbs=(
        Verb(name="create", summary="Create a tag of a snapshot.", add_arguments=_add_created, run=_create),
        Verb(name="replace", summary="Move a tag to another snapshot.", add_arguments=_add_snapshot, run=_replace),
        Verb(name="rename", summary="Rename a tag.", add_arguments=_add_renamed, run=_rename),
        Verb(
            name="delete",
            summary="Delete a tag, and the files that only it needs.",
            add_arguments=_add_deleted,
            run=_delete,
        ),
        Verb(name="expire", summary="Delete tags after their retention time.", add_arguments=_add_expired, run=_expire),
        Verb(name="list", summary="List the tags.", add_arguments=lambda parser: None, run=_list, tables=Tables.ALL),
    ),
)

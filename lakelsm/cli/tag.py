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
from lakelsm.text_table import aligned, failures_text, moment, older_than_text, size


def deletion_text(result: TagDeletionResult) -> str:
    """The result of a deletion as text for people."""
    bound = older_than_text(result.older_than)
    if not result.tags:
        return "\n".join([f"{result.table}: no tags to delete", *bound])
    did = "would be deleted" if result.dry_run else "deleted"
    lines = [f"{result.table}: tags {', '.join(result.tags)} {did}, with {result.files} files, {size(result.bytes)}"]
    return "\n".join(lines + bound + failures_text(result.failures))


def deletion_report(result: TagDeletionResult) -> Report:
    """The report of a deletion."""
    return result_report(deletion_text(result), result)


def _made(table: Table, what: str, info: TagInfo, dry_run: bool) -> Report:
    did = "would be " if dry_run else ""
    text = f"{table.name}: tag {info.name} {did}{what}, of snapshot {info.snapshot_id} ({info.rows:,} rows)"
    values = {"table": table.name, "dry_run": dry_run, "tag": info.as_dict()}
    return outcome_report(text, values, changed=True, dry_run=dry_run)


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the tag's name")


def _add_snapshot(parser: ArgumentParser) -> None:
    _add_name(parser)
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--snapshot", metavar="ID", type=checked(positive), help="of this snapshot (default: the newest)")
    add_timestamp(of, "of the newest snapshot that is not later than this time,")
    parser.add_argument(
        "--time-retained",
        metavar="TIME",
        type=duration,
        help="how long it lives, such as '365 d' (default: tag.default-time-retained, or for ever)",
    )
    add_dry_run(parser)


def _add_created(parser: ArgumentParser) -> None:
    _add_snapshot(parser)
    parser.add_argument("--if-not-exists", action="store_true", help="one that is there stays, and nothing is wrong")


def _create(table: Table, arguments: Namespace) -> Report:
    info = table.tags.create(
        arguments.name,
        chosen_point(arguments),
        time_retained=arguments.time_retained,
        if_not_exists=arguments.if_not_exists,
        dry_run=arguments.dry_run,
    )
    return _made(table, "created", info, arguments.dry_run)


def _replace(table: Table, arguments: Namespace) -> Report:
    info = table.tags.replace(
        arguments.name,
        chosen_point(arguments),
        time_retained=arguments.time_retained,
        dry_run=arguments.dry_run,
    )
    return _made(table, "replaced", info, arguments.dry_run)


def _add_renamed(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("new_name", metavar="NEW_NAME", help="its new name")
    add_dry_run(parser)


def _rename(table: Table, arguments: Namespace) -> Report:
    info = table.tags.rename(arguments.name, arguments.new_name, dry_run=arguments.dry_run)
    return _made(table, f"renamed from {arguments.name}", info, arguments.dry_run)


def _add_deleted(parser: ArgumentParser) -> None:
    _add_name(parser)
    add_dry_run(parser)


def _delete(table: Table, arguments: Namespace) -> Report:
    return deletion_report(table.tags.delete(arguments.name, dry_run=arguments.dry_run))


def _add_expired(parser: ArgumentParser) -> None:
    add_older_than(parser, "also those that were made before, whatever their time")
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
    text = f"{table.name}: {len(tags) or 'no'} tags" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "tags": [tag.as_dict() for tag in tags]}
    return Report(ExitStatus.DONE, text, values)


TAG = VerbGroup(
    name="tag",
    summary="Tags: names for snapshots, which then stay and can be read by them.",
    verbs=(
        Verb(name="create", summary="Name a snapshot.", add_arguments=_add_created, run=_create),
        Verb(name="replace", summary="Let a tag name another snapshot.", add_arguments=_add_snapshot, run=_replace),
        Verb(name="rename", summary="Give a tag another name.", add_arguments=_add_renamed, run=_rename),
        Verb(
            name="delete", summary="Delete a tag, and files that only it kept.", add_arguments=_add_deleted, run=_delete
        ),
        Verb(name="expire", summary="Delete tags that are past their time.", add_arguments=_add_expired, run=_expire),
        Verb(name="list", summary="Show the tags.", add_arguments=lambda parser: None, run=_list, tables=Tables.ALL),
    ),
)

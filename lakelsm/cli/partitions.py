"""``lakelsm partitions``: list, drop and expire partitions, or mark them as done."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from lakelsm.cli.arguments import Tables, add_commit_user, add_deadline, add_dry_run, add_older_than
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, failure_lines, outcome_report, result_report
from lakelsm.cli.verb import Verb, VerbGroup
from lakelsm.options.partition_options import EXPIRATION_STRATEGIES
from lakelsm.results import PartitionDropResult, PartitionExpiryResult
from lakelsm.table import Table
from lakelsm.text_table import aligned, amount, moment, older_than_text, size

#: Maximum number of partitions that a text report names.
_MAX_NAMED = 10


def dropped_text(result: PartitionDropResult | PartitionExpiryResult) -> str:
    """Return the dropped partitions as text."""
    did = "would be dropped" if result.dry_run else "dropped"
    names = ", ".join(result.partitions[:_MAX_NAMED]) + (", …" if len(result.partitions) > _MAX_NAMED else "")
    lines = [f"{result.table}: {amount(len(result.partitions), 'partition')} {did}"]
    if result.partitions:
        lines.append(f"  partitions {names}")
        lines.append(f"  files      {result.files}, {size(result.bytes)}, deleted when the earlier snapshots expire")
    return "\n".join(lines)


def expired_report(result: PartitionExpiryResult) -> Report:
    """Return the report of an expiry of partitions."""
    lines = [dropped_text(result), *older_than_text(result.older_than)]
    if result.waiting:
        lines.append(f"  waiting    {result.waiting} more have expired: run it again")
    if result.unread:
        unread = amount(len(result.unread), "partition")
        lines.append(f"  unread     {unread} with values that are not times, such as {result.unread[0]}")
    lines += failure_lines(result.error, result.after_commit_failures)
    return result_report("\n".join(lines), result)


def _add_where(parser: ArgumentParser) -> None:
    parser.add_argument("--where", metavar="SQL", help="condition on partition columns (default: all partitions)")


def _list(table: Table, arguments: Namespace) -> Report:
    found = table.inspect.partitions(arguments.where).to_arrow().to_pylist()
    rows = [
        (each["partition"] or "-", each["rows"], each["files"], size(each["bytes"]), moment(each["updated_at"]))
        for each in found
    ]
    header = ("partition", "rows", "files", "bytes", "updated")
    text = f"{table.name}: {amount(len(rows), 'partition')}" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "partitions": [_plain(each) for each in found]}
    return Report(ExitStatus.DONE, text, values)


def _plain(partition: dict[str, Any]) -> dict[str, Any]:
    updated = partition["updated_at"]
    return {**partition, "updated_at": None if updated is None else updated.isoformat()}


def _add_dropped(parser: ArgumentParser) -> None:
    parser.add_argument("--where", metavar="SQL", required=True, help="condition on partition columns")
    add_commit_user(parser)
    add_dry_run(parser)


def _drop(table: Table, arguments: Namespace) -> Report:
    result = table.maintenance.drop_partitions(
        arguments.where, dry_run=arguments.dry_run, commit_user=arguments.commit_user
    )
    return dropped_report(result)


def dropped_report(result: PartitionDropResult) -> Report:
    """Return the report of dropped partitions."""
    text = "\n".join([dropped_text(result), *failure_lines(None, result.after_commit_failures)])
    return result_report(text, result)


def _add_expired(parser: ArgumentParser) -> None:
    add_older_than(parser, "minimum age of dropped partitions", "partition.expiration-time")
    parser.add_argument(
        "--strategy",
        choices=EXPIRATION_STRATEGIES,
        help="source of a partition's age (default: partition.expiration-strategy)",
    )
    add_dry_run(parser)
    add_deadline(parser, "no commit (of partition.expiration-batch-size) starts after it")


def _expire(table: Table, arguments: Namespace) -> Report:
    return expired_report(
        table.maintenance.expire_partitions(
            arguments.older_than,
            strategy=arguments.strategy,
            dry_run=arguments.dry_run,
            deadline=arguments.deadline,
        )
    )


def _add_marked(parser: ArgumentParser) -> None:
    _add_where(parser)
    parser.add_argument(
        "--idle-only", action="store_true", help="only partitions that are done by partition.idle-time-to-done"
    )
    add_dry_run(parser)


def _mark_done(table: Table, arguments: Namespace) -> Report:
    names = table.maintenance.mark_partitions_done(
        arguments.where, idle_only=arguments.idle_only, dry_run=arguments.dry_run
    )
    did = "would be marked" if arguments.dry_run else "marked"
    values = {"table": table.name, "dry_run": arguments.dry_run, "partitions": names}
    text = f"{table.name}: {amount(len(names), 'partition')} {did} as done"
    return outcome_report(text, values, changed=bool(names), dry_run=arguments.dry_run)


PARTITIONS = VerbGroup(
    name="partitions",
    summary="Manage partitions: list, drop, expire them, or mark them as done.",
    verbs=(
        Verb(name="list", summary="List the partitions.", add_arguments=_add_where, run=_list, tables=Tables.ALL),
        Verb(name="drop", summary="Drop whole partitions.", add_arguments=_add_dropped, run=_drop),
        Verb(name="expire", summary="Drop old partitions.", add_arguments=_add_expired, run=_expire),
        Verb(
            name="mark-done",
            summary="Mark partitions as done with a file _SUCCESS.",
            add_arguments=_add_marked,
            run=_mark_done,
        ),
    ),
)

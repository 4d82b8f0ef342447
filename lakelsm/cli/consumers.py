"""``lakelsm consumers``: list, record, delete and expire consumers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_dry_run, add_older_than, checked, positive
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, outcome_report, result_report
from lakelsm.cli.verb import Verb, VerbGroup
from lakelsm.results import ConsumerExpiryResult
from lakelsm.table import Table
from lakelsm.text_table import aligned, amount, moment, older_than_text


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("consumer", metavar="CONSUMER", help="id of the consumer")
    add_dry_run(parser)


def _add_recorded(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument(
        "--next-snapshot", metavar="ID", type=checked(positive), required=True, help="id of the next snapshot to read"
    )


def _record(table: Table, arguments: Namespace) -> Report:
    table.consumers.record(arguments.consumer, arguments.next_snapshot, dry_run=arguments.dry_run)
    verb = "would read" if arguments.dry_run else "reads"
    text = f"{table.name}: consumer {arguments.consumer} {verb} snapshot {arguments.next_snapshot} next"
    values = {
        "table": table.name,
        "dry_run": arguments.dry_run,
        "consumer": arguments.consumer,
        "next_snapshot_id": arguments.next_snapshot,
    }
    return outcome_report(text, values, changed=True, dry_run=arguments.dry_run)


def _delete(table: Table, arguments: Namespace) -> Report:
    table.consumers.delete(arguments.consumer, dry_run=arguments.dry_run)
    did = "would be deleted" if arguments.dry_run else "deleted"
    values = {"table": table.name, "dry_run": arguments.dry_run, "consumer": arguments.consumer}
    text = f"{table.name}: consumer {arguments.consumer} {did}"
    return outcome_report(text, values, changed=True, dry_run=arguments.dry_run)


def _add_expired(parser: ArgumentParser) -> None:
    add_older_than(parser, "minimum time since the last record", "consumer.expiration-time")
    add_dry_run(parser)


def _expire(table: Table, arguments: Namespace) -> Report:
    return expired_consumers_report(table.consumers.expire(arguments.older_than, dry_run=arguments.dry_run))


def expired_consumers_report(result: ConsumerExpiryResult) -> Report:
    """Return the report of an expiry of consumers."""
    did = "would be deleted" if result.dry_run else "deleted"
    text = f"{result.table}: {', '.join(result.consumers) or 'no consumers'} {did}"
    text = "\n".join([text, *older_than_text(result.older_than)])
    return result_report(text, result)


def _list(table: Table, arguments: Namespace) -> Report:
    consumers = table.consumers.list()
    rows = [
        (each.name, each.next_snapshot_id, each.lag_snapshots, f"{each.lag_seconds:.0f}", moment(each.recorded_at))
        for each in consumers
    ]
    header = ("consumer", "next snapshot", "lag (snapshots)", "lag (seconds)", "recorded (UTC)")
    text = f"{table.name}: {amount(len(rows), 'consumer')}" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "consumers": [each.as_dict() for each in consumers]}
    return Report(ExitStatus.DONE, text, values)


CONSUMERS = VerbGroup(
    name="consumers",
    summary="Manage consumers: readers of changes, whose next snapshot expiry keeps.",
    verbs=(
        Verb(name="list", summary="List the consumers.", add_arguments=lambda parser: None, run=_list, tables=Tables.ALL),
        Verb(name="record", summary="Record the next snapshot of a consumer.", add_arguments=_add_recorded, run=_record),
        Verb(name="delete", summary="Delete a consumer.", add_arguments=_add_name, run=_delete),
        Verb(name="expire", summary="Delete inactive consumers.", add_arguments=_add_expired, run=_expire),
    ),
)

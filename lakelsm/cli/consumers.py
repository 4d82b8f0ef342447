"""``lakelsm consumers``: list, record, delete and expire consumers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_dry_run, add_older_than, checked, positive
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, outcome_report, result_report
from lakelsm.cli.verb import Verb, VerbGroup
from lakelsm.results import ConsumerExpiryResult
from lakelsm.table import Table
from lakelsm.text_table import aligned, moment, older_than_text


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("consumer", metavar="CONSUMER", help="the consumer's id")
    add_dry_run(parser)


def _add_recorded(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument(
        "--next-snapshot", metavar="ID", type=checked(positive), required=True, help="the snapshot that it reads next"
    )


def _record(table: Table, arguments: Namespace) -> Report:
    table.consumers.record(arguments.consumer, arguments.next_snapshot, dry_run=arguments.dry_run)
    would = "would read" if arguments.dry_run else "reads"
    text = f"{table.name}: consumer {arguments.consumer} {would} snapshot {arguments.next_snapshot} next"
    values = {
        "table": table.name,
        "dry_run": arguments.dry_run,
        "consumer": arguments.consumer,
        "next_snapshot_id": arguments.next_snapshot,
    }
    return outcome_report(text, values, changed=True, dry_run=arguments.dry_run)


def _delete(table: Table, arguments: Namespace) -> Report:
    table.consumers.delete(arguments.consumer, dry_run=arguments.dry_run)
    did = "would be forgotten" if arguments.dry_run else "forgotten"
    values = {"table": table.name, "dry_run": arguments.dry_run, "consumer": arguments.consumer}
    text = f"{table.name}: consumer {arguments.consumer} {did}"
    return outcome_report(text, values, changed=True, dry_run=arguments.dry_run)


def _add_expired(parser: ArgumentParser) -> None:
    add_older_than(parser, "those whose progress was last recorded before (default: consumer.expiration-time)")
    add_dry_run(parser)


def _expire(table: Table, arguments: Namespace) -> Report:
    return expired_consumers_report(table.consumers.expire(arguments.older_than, dry_run=arguments.dry_run))


def expired_consumers_report(result: ConsumerExpiryResult) -> Report:
    """The report of an expiry."""
    did = "would be forgotten" if result.dry_run else "forgotten"
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
    text = f"{table.name}: {len(rows) or 'no'} consumers" + (f"\n{aligned(header, rows)}" if rows else "")
    values = {"table": table.name, "status": "done", "consumers": [each.as_dict() for each in consumers]}
    return Report(ExitStatus.DONE, text, values)


CONSUMERS = VerbGroup(
    name="consumers",
    summary="Consumers: readers of changes, for which expiry keeps what they read next.",
    verbs=(
        Verb(name="list", summary="Show the consumers.", add_arguments=lambda parser: None, run=_list, tables=Tables.ALL),
        Verb(name="record", summary="Say what a consumer reads next.", add_arguments=_add_recorded, run=_record),
        Verb(name="delete", summary="Forget a consumer.", add_arguments=_add_name, run=_delete),
        Verb(name="expire", summary="Forget consumers that stopped.", add_arguments=_add_expired, run=_expire),
    ),
)

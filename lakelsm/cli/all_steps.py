"""``lakelsm all``: all the upkeep of a table, step by step, under one deadline."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakelsm.arguments import checked_choice
from lakelsm.cli.arguments import Tables, add_deadline, add_dry_run, add_engine, age, checked
from lakelsm.cli.check import check_report
from lakelsm.cli.compact import compact_report
from lakelsm.cli.consumers import expired_consumers_report
from lakelsm.cli.exit_status import ExitStatus, gravest
from lakelsm.cli.expire import expiry_report
from lakelsm.cli.orphans import ORPHANS_OLDER_THAN, orphans_report
from lakelsm.cli.partitions import expired_report
from lakelsm.cli.report import Report, outcome_report
from lakelsm.cli.tag import deletion_report
from lakelsm.cli.verb import EXIT_STATUSES, Verb, failing_safely
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.surroundings import SYSTEM
from lakelsm.table import Table

#: Snapshots that one run lets go: more than `snapshot.expire.limit`, which is for what follows each commit.
_MOST_EXPIRED = 10_000
#: Compaction is the step that may take any time: so much of what is left of a deadline is its own.
_OF_COMPACTION = 0.5

_DETAILS = f"""\
The steps, in this order, each as the table's options say:
  tags        tags that are past their time go
  consumers   consumers that stopped are forgotten, where consumer.expiration-time is set
  partitions  partitions that are too old are dropped, where partition.expiration-time is set
  compact     an ordinary compaction, in half of the time at most
  expire      old snapshots go, with the files that nothing needs then; 10,000 at most, whatever
              snapshot.expire.limit says
  orphans     files go that nothing names and that are older than --orphans-older-than
  check       references, entries and footers are checked
A step that fails does not keep the others from their turn. After --deadline no step begins.

{EXIT_STATUSES}
The exit status is that of the gravest step: 1, else 5, 4, 0; 3 where none had anything to do.
The JSON has each step with its status and its result.
"""


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """What a step may do. ``deadline`` are the seconds that are left."""

    dry_run: bool
    engine: str | None
    orphans_older_than: str
    data: str
    deadline: float | None


def _tags(table: Table, limits: _Limits) -> Report:
    return deletion_report(table.tags.expire(dry_run=limits.dry_run))


def _consumers(table: Table, limits: _Limits) -> Report:
    if "consumer.expiration-time" not in table.schema.options:
        return _not_set(table, "consumer.expiration-time")
    return expired_consumers_report(table.consumers.expire(dry_run=limits.dry_run))


def _partitions(table: Table, limits: _Limits) -> Report:
    if "partition.expiration-time" not in table.schema.options:
        return _not_set(table, "partition.expiration-time")
    return expired_report(table.maintenance.expire_partitions(dry_run=limits.dry_run, deadline=limits.deadline))


def _compact(table: Table, limits: _Limits) -> Report:
    own = None if limits.deadline is None else limits.deadline * _OF_COMPACTION
    return compact_report(table.compact(dry_run=limits.dry_run, deadline=own, engine=limits.engine))


def _expire(table: Table, limits: _Limits) -> Report:
    return expiry_report(
        table.maintenance.expire_snapshots(max_deletes=_MOST_EXPIRED, dry_run=limits.dry_run, deadline=limits.deadline)
    )


def _orphans(table: Table, limits: _Limits) -> Report:
    return orphans_report(
        table.maintenance.remove_orphans(
            limits.orphans_older_than, dry_run=limits.dry_run, engine=limits.engine, deadline=limits.deadline
        )
    )


def _check(table: Table, limits: _Limits) -> Report:
    return check_report(table.maintenance.check(data=limits.data, engine=limits.engine, deadline=limits.deadline))


#: In their order: what goes is not compacted before, and what a step lets go is deleted by a later one.
_STEPS: Mapping[str, Callable[[Table, _Limits], Report]] = {
    "tags": _tags,
    "consumers": _consumers,
    "partitions": _partitions,
    "compact": _compact,
    "expire": _expire,
    "orphans": _orphans,
    "check": _check,
}


def _not_set(table: Table, option: str) -> Report:
    return outcome_report(f"{table.name}: {option} is not set", {"table": table.name}, changed=False)


def _step_names(argument: str, text: str) -> list[str]:
    names = [checked_choice(argument, part.strip(), list(_STEPS)) for part in text.split(",")]
    return [name for name in _STEPS if name in names]


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--steps",
        metavar="STEP,STEP…",
        type=checked(_step_names),
        default=list(_STEPS),
        help=f"only these, in the order below, of {', '.join(_STEPS)}",
    )
    parser.add_argument(
        "--orphans-older-than",
        metavar="AGE",
        type=age,
        default=ORPHANS_OLDER_THAN,
        help=f"orphans that were last changed before (default: {ORPHANS_OLDER_THAN})",
    )
    parser.add_argument(
        "--data",
        choices=[each.value for each in CheckedData],
        default=CheckedData.FOOTERS.value,
        help="what the check opens of data files (default: footers)",
    )
    add_dry_run(parser)
    add_deadline(parser, "begin no further step, and stop in one,")
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    started = SYSTEM.monotonic()
    reports: dict[str, Report] = {}
    for name in arguments.steps:
        left = None if arguments.deadline is None else arguments.deadline - (SYSTEM.monotonic() - started)
        reports[name] = _step(table, name, arguments, left)
    status = gravest(report.status for report in reports.values())
    steps = [
        {"step": name, **report.values, "exit_status": int(report.status)} for name, report in reports.items()
    ]
    lines = [f"{table.name}: {len(reports)} steps of upkeep ({SYSTEM.monotonic() - started:.1f} s)"]
    lines += [f"[{name}] {report.text}" for name, report in reports.items()]
    values = {"table": table.name, "status": _outcome(reports, status), "steps": steps}
    return Report(status, "\n".join(lines), values)


def _step(table: Table, name: str, arguments: Namespace, left: float | None) -> Report:
    if left is not None and left < 0:
        text = f"{table.name}: not begun, the deadline had passed"
        return outcome_report(text, {"table": table.name}, changed=False, complete=False)
    limits = _Limits(
        dry_run=arguments.dry_run,
        engine=arguments.engine,
        orphans_older_than=arguments.orphans_older_than,
        data=arguments.data,
        deadline=left,
    )
    return failing_safely(lambda: _STEPS[name](table, limits), arguments)


def _outcome(reports: Mapping[str, Report], status: ExitStatus) -> object:
    """The status of the gravest step; of those that have one exit status the first of these."""
    found = {report.values["status"] for report in reports.values() if report.status is status}
    return next((each for each in ("deadline", "warnings", "planned", "done") if each in found), min(map(str, found)))


ALL = Verb(
    name="all",
    summary="Do all the upkeep of a table, step by step, under one deadline.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ALL,
)

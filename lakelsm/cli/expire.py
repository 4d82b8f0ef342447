"""``lakelsm expire``: expire old snapshots, and delete the files that only they need."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import add_deadline, add_dry_run, add_older_than, checked, positive
from lakelsm.cli.report import Report, result_report
from lakelsm.cli.verb import Verb
from lakelsm.results import ExpiryResult
from lakelsm.table import Table
from lakelsm.text_table import amount, failures_text, older_than_text, size


def expiry_text(result: ExpiryResult) -> str:
    """Return the result as text."""
    did = "would expire" if result.dry_run else "expired"
    ended = "" if result.complete else "; stopped at the deadline, run it again for the rest"
    lines = [f"{result.table}: {amount(result.snapshots, 'snapshot')} {did} ({result.seconds:.1f} s){ended}"]
    if result.snapshots or result.changelogs_expired:
        files = f"{result.data_files} data, {result.changelog_files} changelog, {result.metadata_files} metadata files"
        lines.append(f"  files      {files}, {size(result.bytes)}")
    if result.changelogs_kept or result.changelogs_expired:
        kept = f"{result.changelogs_kept} kept as long-lived changelogs"
        lines.append(f"  changelogs {kept}, {result.changelogs_expired} expired")
    lines += older_than_text(result.older_than)
    lines.append(f"  earliest   snapshot {result.earliest_snapshot_id}")
    if result.held_by:
        lines.append(f"  held by    {', '.join(result.held_by)}")
    return "\n".join(lines + failures_text(result.failures))


def _add_arguments(parser: ArgumentParser) -> None:
    scope = parser.add_argument_group("scope (default: the options snapshot.* of the table)")
    scope.add_argument("--retain-last", metavar="N", type=checked(positive), help="minimum number of kept snapshots")
    add_older_than(parser, "minimum age of expired snapshots, beyond --retain-last", "snapshot.time-retained")
    scope.add_argument(
        "--retain-max", metavar="N", type=checked(positive), help="maximum number of kept snapshots, of any age"
    )
    scope.add_argument(
        "--max-deletes",
        metavar="N",
        type=checked(positive),
        help="maximum number of expired snapshots (default: snapshot.expire.limit)",
    )
    add_dry_run(parser)
    add_deadline(parser, "no snapshot expires after it")


def _run(table: Table, arguments: Namespace) -> Report:
    return expiry_report(
        table.maintenance.expire_snapshots(
            arguments.retain_last,
            arguments.older_than,
            retain_max=arguments.retain_max,
            max_deletes=arguments.max_deletes,
            dry_run=arguments.dry_run,
            deadline=arguments.deadline,
        )
    )


def expiry_report(result: ExpiryResult) -> Report:
    """Return the report of an expiry."""
    return result_report(expiry_text(result), result)


EXPIRE = Verb(
    name="expire",
    summary="Expire old snapshots, and delete the files that only they need.",
    add_arguments=_add_arguments,
    run=_run,
)

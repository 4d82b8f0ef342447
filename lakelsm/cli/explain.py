"""``lakelsm explain``: show which files a read would open."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.cli.arguments import Tables, add_point, view_of
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import Verb
from lakelsm.table import Table
from lakelsm.text_table import amount


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--where", metavar="SQL", help="condition of the read (default: all rows)")
    parser.add_argument("--fresh", action="store_true", help="also read level 0 if reads of the table leave it out")
    add_point(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    plan = view_of(table, arguments).explain(arguments.where, fresh=arguments.fresh)
    raw, merged, units = len(plan.raw_files), len(plan.merged_files), len(plan.units)
    if plan.snapshot_id is None:
        text = f"{table.name}: no snapshot to read"
    else:
        text = "\n".join([
            f"{table.name}: snapshot {plan.snapshot_id}, {amount(plan.files_live, 'data file')}",
            f"  read       {amount(plan.files_scanned, 'file')}, {plan.files_live - plan.files_scanned} left out",
            f"  unmerged   {amount(raw, 'file')}",
            f"  merged     {amount(merged, 'file')} in {amount(units, 'unit')}",
        ])
    values = {
        "table": table.name,
        "status": "done",
        "snapshot_id": plan.snapshot_id,
        "files_live": plan.files_live,
        "files_scanned": plan.files_scanned,
        "unmerged_files": raw,
        "merged_files": merged,
        "units": units,
    }
    return Report(ExitStatus.DONE, text, values)


EXPLAIN = Verb(
    name="explain",
    summary="Show how many data files a read of tables would open and merge.",
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ALL,
)

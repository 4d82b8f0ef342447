"""The verb `compact`: arguments in, a typed result printed, an exit status out. ``jobs/compact.py`` only calls it."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

from py4j.protocol import Py4JError
from pyarrow import ArrowException
from pyspark.errors import PySparkException

from lakelsm.arguments import checked_buckets, checked_number, checked_seconds, checked_task_memory
from lakelsm.catalog import Catalog
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY
from lakelsm.errors import CommitConflictError, InvalidInputError, LakelsmError
from lakelsm.results import CompactionResult, CompactionStatus
from lakelsm.table import Table

Value = TypeVar("Value")

_MIB = 1 << 20


class ExitStatus(IntEnum):
    """What a job's exit status says. Schedulers depend on the numbers: do not change."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # argparse's own
    NOTHING_TO_DO = 3
    CONFLICT = 4


_STATUS = {
    CompactionStatus.DONE: ExitStatus.DONE,
    CompactionStatus.PLANNED: ExitStatus.DONE,
    CompactionStatus.DEADLINE: ExitStatus.DONE,
    CompactionStatus.NOTHING: ExitStatus.NOTHING_TO_DO,
    CompactionStatus.CONFLICT: ExitStatus.CONFLICT,
}

_COMPACT_EPILOG = """\
exit status:
  0  done, or nothing to do (the report tells: status "done" or "nothing"). Also: a dry run; a run
     that --deadline stopped after some commits (status "deadline": run it again for the rest)
  1  failed; one line on standard error says why and what to do (--verbose adds the traceback;
     spark-submit joins the job's standard error to its standard output, the JSON report stays last)
  2  the command line is wrong
  3  nothing to do, with --distinct-exit-status only
  4  another commit came first: what lost was discarded, nothing of the other commit is lost
     (commits of --commit-every that were made before stay). Run it again

example:
  spark-submit --properties-file spark-defaults.conf jobs/compact.py \\
      --warehouse file:///tmp/wh --table nyc.flights --full --where "dt < '2013-06-01'" \\
      --commit-every 16 --deadline '30 min' --report json
"""


def compact_main(argv: Sequence[str] | None = None) -> int:
    """Run ``jobs/compact.py`` and return its exit status; the arguments are those of the process by default.

    Raises SystemExit for ``--help`` and for a wrong command line, as argparse does.
    """
    parser = compact_parser()
    arguments = parser.parse_args(argv)
    by_path = arguments.path is not None
    if by_path == (arguments.warehouse is not None) or by_path == (arguments.table is not None):
        parser.error("name the table by --warehouse and --table, or by --path")
    try:
        result = _compact(_open_table(arguments), arguments)
    except (LakelsmError, PySparkException, Py4JError, ArrowException, OSError) as error:
        return _failed(error, arguments)
    status = _STATUS[result.status]
    if status is ExitStatus.NOTHING_TO_DO and not arguments.distinct_exit_status:
        status = ExitStatus.DONE  # Schedulers take any other number for a failure.
    if arguments.report == "json":
        print(json.dumps({**result.as_dict(), "exit_status": int(status)}), flush=True)
    else:
        print(compact_report(result), flush=True)
    return status


def compact_parser() -> argparse.ArgumentParser:
    """The command line of ``jobs/compact.py``."""
    parser = argparse.ArgumentParser(
        prog="compact.py",
        description="Compact a table: merge its sorted runs, also of a write-only table.",
        epilog=_COMPACT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    table = parser.add_argument_group("the table: --warehouse and --table, or --path")
    table.add_argument("--warehouse", metavar="URI", help="the warehouse directory, such as file:///tmp/wh")
    table.add_argument("--table", metavar="DB.TABLE", help="the table's name in the warehouse")
    table.add_argument("--path", metavar="URI", help="the table's own directory")
    what = parser.add_argument_group("what to compact (by default what the table's options pick, in every bucket)")
    what.add_argument("--full", action="store_true", help="everything to the top level; drops deleted rows")
    what.add_argument("--where", metavar="SQL", help="only partitions that match a condition on partition columns")
    buckets = _argument(checked_buckets)
    what.add_argument("--buckets", metavar="N,N…", type=buckets, help="only these buckets, such as 0,1,2")
    how = parser.add_argument_group("how")
    how.add_argument("--dry-run", action="store_true", help="plan and report, change nothing")
    how.add_argument(
        "--commit-every",
        metavar="N",
        type=_argument(_positive),
        help="commit after so many buckets (default: all in one commit, or with --deadline as many as there are cores)",
    )
    how.add_argument(
        "--deadline",
        metavar="TIME",
        type=_argument(checked_seconds),
        help="begin no further commit after so long: seconds, or a duration such as '30 min'",
    )
    how.add_argument(
        "--max-task-memory",
        metavar="SIZE",
        type=_argument(checked_task_memory),
        default=DEFAULT_TASK_MEMORY,
        help=f"what the rows of one task may take in memory, whatever the bucket's size (default: "
        f"{DEFAULT_TASK_MEMORY // _MIB}mb)",
    )
    how.add_argument("--commit-user", metavar="NAME", help="the commit user that snapshots name (default: a new uuid)")
    how.add_argument(
        "--report",
        choices=("text", "json"),
        default="text",
        help="json: one JSON object as the last line of standard output",
    )
    how.add_argument(
        "--distinct-exit-status", action="store_true", help="end with 3 instead of 0 where there is nothing to do"
    )
    how.add_argument("--verbose", action="store_true", help="show the traceback of a failure")
    return parser


def compact_report(result: CompactionResult) -> str:
    """The result as text for people."""
    name, seconds = result.table, f"{result.seconds:.1f} s"
    if result.status is CompactionStatus.NOTHING:
        return f"{name}: nothing to compact ({seconds})"
    would = "would be " if result.status is CompactionStatus.PLANNED else ""
    moved = f", {result.files_upgraded} moved up without a rewrite" if result.files_upgraded else ""
    lines = [
        f"{name}: {_HEADLINES[result.status]} ({seconds})",
        f"  buckets    {result.buckets}",
        f"  files      {result.files_rewritten} {would}rewritten{moved}",
        f"  read       {result.rows_read:,} rows, {result.bytes_read / _MIB:.1f} MiB",
    ]
    if result.status is not CompactionStatus.PLANNED:
        written = f"{result.rows_written:,} rows, {result.bytes_written / _MIB:.1f} MiB, {result.files_written} files"
        lines.append(f"  written    {written}")
        lines.append(f"  snapshots  {', '.join(map(str, result.snapshot_ids)) or 'none'}")
    return "\n".join(lines)


_HEADLINES = {
    CompactionStatus.DONE: "compacted",
    CompactionStatus.PLANNED: "a dry run, nothing was changed",
    CompactionStatus.DEADLINE: "the deadline stopped it between commits; run it again for the rest",
    CompactionStatus.CONFLICT: "another commit came first; what lost to it was discarded, run it again",
}


def _open_table(arguments: argparse.Namespace) -> Table:
    if arguments.path is not None:
        return Table.for_path(arguments.path)
    return Catalog(arguments.warehouse).table(arguments.table)


def _compact(table: Table, arguments: argparse.Namespace) -> CompactionResult:
    return table.compact(
        arguments.full,
        arguments.where,
        buckets=arguments.buckets,
        dry_run=arguments.dry_run,
        commit_every=arguments.commit_every,
        deadline=arguments.deadline,
        max_task_memory=arguments.max_task_memory,
        commit_user=arguments.commit_user,
    )


def _failed(error: Exception, arguments: argparse.Namespace) -> int:
    """Report a failure: one line on standard error, and the JSON object where one is asked for."""
    if arguments.verbose:
        traceback.print_exc()
    message = _one_line(error)
    print(f"compact.py: {message}", file=sys.stderr, flush=True)
    status = ExitStatus.CONFLICT if isinstance(error, CommitConflictError) else ExitStatus.FAILED
    if arguments.report == "json":
        table = arguments.path or arguments.table
        kind = "conflict" if status is ExitStatus.CONFLICT else "failed"
        print(json.dumps({"table": table, "status": kind, "error": message, "exit_status": int(status)}), flush=True)
    return status


def _one_line(error: Exception) -> str:
    """The message of an error; errors that are not lakelsm's own are cut at their first line and named."""
    text = str(error).strip()
    if isinstance(error, LakelsmError):
        return " ".join(text.split())
    first = text.splitlines()[0] if text else "no message"
    return f"{type(error).__name__}: {first} (--verbose shows the whole of it)"


def _positive(argument: str, text: str) -> int:
    return checked_number(argument, int(text) if text.strip().isdecimal() else text, least=1)


def _argument(check: Callable[[str, str], Value]) -> Callable[[str], Value]:
    """A check of an argument's text as argparse takes it: the same one as of the Python method."""

    def parse(text: str) -> Value:
        try:
            return check("it", text)
        except InvalidInputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse

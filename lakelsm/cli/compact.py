"""``lakelsm compact``: compact a table."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.arguments import checked_buckets, checked_task_memory
from lakelsm.cli.arguments import add_commit_user, add_deadline, add_dry_run, add_engine, checked, positive
from lakelsm.cli.report import Report, failure_lines, result_report
from lakelsm.cli.verb import Verb
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY
from lakelsm.results import CompactionResult, CompactionStatus
from lakelsm.table import Table

_MIB = 1 << 20

_HEADLINES = {
    CompactionStatus.DONE: "compacted",
    CompactionStatus.PLANNED: "dry run, nothing is changed",
    CompactionStatus.DEADLINE: "stopped at the deadline between commits; run it again for the rest",
    CompactionStatus.CONFLICT: "conflict with another commit, conflicting work is discarded; run it again",
    CompactionStatus.FAILED: "failed after some commits, which remain",
}

_DETAILS = """\
exit status:
  0  done, or nothing to do (status "done" or "nothing" in the report); also a dry run, and a run that
     --deadline stopped after some commits (status "deadline": run it again for the rest)
  1  failed; one line on standard error has the reason and the remedy (--verbose adds the traceback;
     spark-submit joins standard error to standard output, the JSON report stays last). Earlier
     commits of --commit-every remain: the report lists them and the error
  2  wrong command line
  3  nothing to do (only with --distinct-exit-status)
  4  conflict with another commit: the conflicting work is discarded, the other commit is not affected,
     earlier commits of --commit-every remain, and the report has the reason of each conflict; or no
     answer from the storage. Run it again
  5  a file of the table is missing or damaged
  130  interrupted by Ctrl-C

examples:
  lakelsm compact --path file:///tmp/wh/nyc.db/flights --dry-run

  spark-submit "$(python -c 'import lakelsm.__main__ as job; print(job.__file__)')" compact \\
      --warehouse file:///tmp/wh --table nyc.flights --full --where "dt < '2013-06-01'" \\
      --commit-every 16 --deadline '30 min' --report json
"""


def compact_text(result: CompactionResult) -> str:
    """Return the result as text."""
    name, seconds = result.table, f"{result.seconds:.1f} s"
    if result.status is CompactionStatus.NOTHING:
        return f"{name}: nothing to compact ({seconds})"
    would = "would be " if result.status is CompactionStatus.PLANNED else ""
    moved = f", {result.files_upgraded} moved to a higher level without a rewrite" if result.files_upgraded else ""
    lines = [
        f"{name}: {_HEADLINES[result.status]} ({seconds})",
        f"  buckets    {result.buckets}",
        f"  files      {result.files_rewritten} {would}rewritten{moved}",
        f"  read       {result.rows_read:,} rows, {result.bytes_read / _MIB:.1f} MiB",
    ]
    if result.status is not CompactionStatus.PLANNED:
        written = f"{result.rows_written:,} rows, {result.bytes_written / _MIB:.1f} MiB, {result.files_written} files"
        lines.append(f"  written    {written}")
        if result.rows_masked:
            again = f", {result.rows_remapped:,} located again after another commit" if result.rows_remapped else ""
            lines.append(f"  masked     {result.rows_masked:,} rows of files that are not rewritten{again}")
        lines.append(f"  snapshots  {', '.join(map(str, result.snapshot_ids)) or 'none'}")
    lines += [f"  conflict   {conflict.text}" for conflict in result.conflicts]
    error = result.error if result.status is CompactionStatus.FAILED else None
    lines += failure_lines(error, result.after_commit_failures)
    return "\n".join(lines)


def _add_arguments(parser: ArgumentParser) -> None:
    scope = parser.add_argument_group("scope (default: the files that the options of the table select, in every bucket)")
    scope.add_argument("--full", action="store_true", help="compaction of all files to the top level; drops deleted rows")
    scope.add_argument("--where", metavar="SQL", help="condition on partition columns: compact these partitions only")
    buckets = checked(checked_buckets)
    scope.add_argument("--buckets", metavar="N,N…", type=buckets, help="buckets to compact, such as 0,1,2 (default: all)")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--commit-every",
        metavar="N",
        type=checked(positive),
        help="number of buckets in one commit (default: all; with --deadline the number of cores)",
    )
    limits.add_argument(
        "--max-task-memory",
        metavar="SIZE",
        type=checked(checked_task_memory),
        default=DEFAULT_TASK_MEMORY,
        help=f"memory for the rows of one task, for buckets of any size (default: {DEFAULT_TASK_MEMORY // _MIB}mb)",
    )
    add_commit_user(parser)
    add_dry_run(parser)
    add_deadline(parser, "no commit starts after it")
    add_engine(parser)


def _run(table: Table, arguments: Namespace) -> Report:
    result = table.compact(
        arguments.full,
        arguments.where,
        buckets=arguments.buckets,
        dry_run=arguments.dry_run,
        commit_every=arguments.commit_every,
        deadline=arguments.deadline,
        max_task_memory=arguments.max_task_memory,
        commit_user=arguments.commit_user,
        engine=arguments.engine,
    )
    return compact_report(result)


def compact_report(result: CompactionResult) -> Report:
    """Return the report of a compaction."""
    return result_report(compact_text(result), result)


COMPACT = Verb(
    name="compact",
    summary="Compact tables: merge the sorted runs of their buckets. Also for write-only tables.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
)

"""``lakelsm compact``: compact a table and report the result."""

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
    CompactionStatus.PLANNED: "a dry run, nothing was changed",
    CompactionStatus.DEADLINE: "the deadline stopped it between commits; run it again for the rest",
    CompactionStatus.CONFLICT: "another commit came first; what lost to it was discarded, run it again",
    CompactionStatus.FAILED: "an error ended it after some commits, which stay",
}

_DETAILS = """\
exit status:
  0  done, or nothing to do (the report tells: status "done" or "nothing"). Also: a dry run; a run
     that --deadline stopped after some commits (status "deadline": run it again for the rest)
  1  failed; one line on standard error says why and what to do (--verbose adds the traceback;
     spark-submit joins the job's standard error to its standard output, the JSON report stays last).
     Where commits of --commit-every were made before, they stay: the report has them and the error
  2  the command line is wrong
  3  nothing to do, with --distinct-exit-status only
  4  another commit came first: what lost was discarded, nothing of the other commit is lost
     (commits of --commit-every that were made before stay); or the storage did not answer. The
     report has the reason of each conflict. Run it again
  5  a file of the table is missing or damaged

examples:
  lakelsm compact --path file:///tmp/wh/nyc.db/flights --dry-run

  spark-submit "$(python -c 'import lakelsm.__main__ as job; print(job.__file__)')" compact \\
      --warehouse file:///tmp/wh --table nyc.flights --full --where "dt < '2013-06-01'" \\
      --commit-every 16 --deadline '30 min' --report json
"""


def compact_text(result: CompactionResult) -> str:
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
        if result.rows_masked:
            again = f", {result.rows_remapped:,} found again after another commit" if result.rows_remapped else ""
            lines.append(f"  masked     {result.rows_masked:,} rows of files that stay as they are{again}")
        lines.append(f"  snapshots  {', '.join(map(str, result.snapshot_ids)) or 'none'}")
    lines += [f"  conflict   {conflict.text}" for conflict in result.conflicts]
    error = result.error if result.status is CompactionStatus.FAILED else None
    lines += failure_lines(error, result.after_commit_failures)
    return "\n".join(lines)


def _add_arguments(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("what to compact (by default what the table's options pick, in every bucket)")
    what.add_argument("--full", action="store_true", help="everything to the top level; drops deleted rows")
    what.add_argument("--where", metavar="SQL", help="only partitions that match a condition on partition columns")
    buckets = checked(checked_buckets)
    what.add_argument("--buckets", metavar="N,N…", type=buckets, help="only these buckets, such as 0,1,2")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--commit-every",
        metavar="N",
        type=checked(positive),
        help="commit after so many buckets (default: all in one commit, or with --deadline as many as there are cores)",
    )
    how.add_argument(
        "--max-task-memory",
        metavar="SIZE",
        type=checked(checked_task_memory),
        default=DEFAULT_TASK_MEMORY,
        help=f"what the rows of one task may take in memory, whatever the bucket's size (default: "
        f"{DEFAULT_TASK_MEMORY // _MIB}mb)",
    )
    add_commit_user(parser)
    add_dry_run(parser)
    add_deadline(parser, "begin no further commit")
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
    """The report of a compaction."""
    return result_report(compact_text(result), result)


COMPACT = Verb(
    name="compact",
    summary="Compact a table: merge its sorted runs, also of a write-only table.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
)

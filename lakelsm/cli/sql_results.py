"""What a SQL statement returns: rows, or the report of an operation in the form of the verb for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelsm.cli.analyze import analyze_report
from lakelsm.cli.branch import fast_forward_report
from lakelsm.cli.check import check_report
from lakelsm.cli.compact import compact_report
from lakelsm.cli.consumers import expired_consumers_report
from lakelsm.cli.describe import schema_values
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.expire import expiry_report
from lakelsm.cli.orphans import orphans_report
from lakelsm.cli.partitions import dropped_report, expired_report
from lakelsm.cli.report import Report, failure_lines, joined_report, outcome_report, result_report
from lakelsm.cli.rollback import rollback_report
from lakelsm.cli.tag import deletion_report
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.results import (
    AnalyzeResult,
    CheckResult,
    CommitResult,
    CompactionResult,
    ConsumerExpiryResult,
    ExpiryResult,
    FastForwardResult,
    OrphanResult,
    PartitionDropResult,
    PartitionExpiryResult,
    RollbackResult,
    TagDeletionResult,
)
from lakelsm.results.result import OperationResult, Result
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.syntax import statements as sql
from lakelsm.table import Table
from lakelsm.table.result_table import ResultTable
from lakelsm.text_table import amount, size

#: Statements that return rows.
ROW_STATEMENTS = (sql.Query, sql.Explain, sql.Show, sql.Describe, sql.DescribeHistory)


def rows_of(found: Any) -> pa.RecordBatchReader | None:
    """Return the rows of a statement as a stream; None for a statement without rows."""
    if isinstance(found, QueryResult):
        return found.to_reader()
    if isinstance(found, ResultTable):
        return found.to_arrow().to_reader()
    if is_spark_frame(found):
        from lakelsm.frames.frame_reader import frame_reader

        return frame_reader(found)
    return None


def statement_report(found: Any) -> Report:
    """Return the report of a statement without rows."""
    if isinstance(found, (list, tuple)):
        return _several(found)
    if isinstance(found, Table):
        text = f"{found.name}: schema {found.schema.id}"
        return outcome_report(text, {"table": found.name, "schema": schema_values(found.schema)}, changed=True)
    if isinstance(found, OperationResult):
        report = _REPORTS.get(type(found))
        return result_report(repr(found), found) if report is None else report(found)
    if isinstance(found, Result):
        return outcome_report(repr(found), found.as_dict(), changed=True)
    return outcome_report("done" if found is None else str(found), {}, changed=True)


def _several(found: Sequence[Any]) -> Report:
    reports = [statement_report(each) for each in found]
    if not reports:
        return outcome_report("nothing to do", {}, changed=False)
    return joined_report(reports, "results")


def _commit_report(result: CommitResult) -> Report:
    if result.snapshot_id is None:
        text = "no row changed"
    else:
        text = f"snapshot {result.snapshot_id}: {amount(result.rows, 'row')} in {amount(result.files, 'file')}, "
        text += size(result.bytes)
    lines = [text]
    if result.matched_rows is not None:
        lines.append(f"  matched    {amount(result.matched_rows, 'row')}")
    if result.compaction is not None and result.compaction.error is not None:
        lines += failure_lines(result.compaction.error, ())
    return result_report("\n".join([*lines, *failure_lines(None, result.after_commit_failures)]), result)


#: The function that reports a result, by its class.
_REPORTS: Mapping[type, Callable[[Any], Report]] = {
    AnalyzeResult: analyze_report,
    CheckResult: check_report,
    CommitResult: _commit_report,
    CompactionResult: compact_report,
    ConsumerExpiryResult: expired_consumers_report,
    ExpiryResult: expiry_report,
    FastForwardResult: fast_forward_report,
    OrphanResult: orphans_report,
    PartitionDropResult: dropped_report,
    PartitionExpiryResult: expired_report,
    RollbackResult: rollback_report,
    TagDeletionResult: deletion_report,
}

#: The report of a script without statements.
NO_STATEMENTS = Report(ExitStatus.NOTHING_TO_DO, "no statements", {"status": "nothing", "statements": []})

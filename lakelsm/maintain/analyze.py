"""Statistics of a table's rows, computed and published like Paimon's ANALYZE.

Counts, bounds, lengths and their defaults are those of Spark's ANALYZE TABLE ... FOR COLUMNS, which Paimon's connector
runs. The number of distinct values is estimated by a HyperLogLog as in Spark, with 2,048 registers instead of 512.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakelsm.arguments import invalid_argument
from lakelsm.commit.attempt_files import AttemptFiles
from lakelsm.commit.commit_message import CommitMessage, CommitOutcome
from lakelsm.commit.committer import Committer
from lakelsm.engine import Engine
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.file_names import AttemptNames, statistics_name
from lakelsm.format.partition_path import value_text
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.format.statistics_file import ColumnStatistics, TableStatistics
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.lsm.splits import pack_in_order
from lakelsm.maintain.history import maintenance_record
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.count_plan import metadata_count
from lakelsm.plan.read_plan import plan_read
from lakelsm.read.column_summary import SUMMARY_SCHEMA, ColumnSummary, RowSummary, SummaryTask
from lakelsm.results import AnalyzeResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.file_tables import live_bytes
from lakelsm.system_tables.system_table import TableState
from lakelsm.types import AtomicType, DataField

#: The size of a value in bytes, as Spark assumes it: fixed-width types, and texts if all are NULL. Persisted: do not
#: change.
_DEFAULT_BYTES = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "SMALLINT": 2,
    "INT": 4,
    "BIGINT": 8,
    "FLOAT": 4,
    "DOUBLE": 8,
    "DECIMAL": 8,
    "DATE": 4,
    "TIME": 4,
    "TIMESTAMP": 8,
    "TIMESTAMP_LTZ": 8,
    "CHAR": 20,
    "VARCHAR": 20,
    "BINARY": 100,
    "VARBINARY": 100,
}
_WIDE_DECIMAL, _WIDE_BYTES = 18, 16
#: Tasks for each core. Few for any table size, because each task returns 2 KB for each column.
_TASKS_A_CORE = 4


def analyzed_columns(store: TableStore, names: Sequence[str] | None) -> tuple[DataField, ...]:
    """Return the columns with these names, in any case, in the order of the table. None means all that can be analyzed.

    Raises InvalidInputError if a column does not exist, or if its type cannot be analyzed.
    """
    if names is None:
        return tuple(field for field in store.schema.fields if field.type.root in _DEFAULT_BYTES)
    wanted = {store.schema.column_name(name) for name in names}
    found = tuple(field for field in store.schema.fields if field.name in wanted)
    for field in found:
        if field.type.root not in _DEFAULT_BYTES:
            known = ", ".join(each.name for each in analyzed_columns(store, None))
            raise invalid_argument(
                "columns", f"column '{field.name}' of type {field.type.sql()} cannot be analyzed.", f"Use {known}."
            )
    return found


def analyze(
    engine: Engine,
    store: TableStore,
    columns: tuple[DataField, ...],
    commit_user: str,
    *,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> AnalyzeResult:
    """Compute statistics of the newest snapshot and commit them, unless it is a dry run. An empty table gets none.

    Raises the errors of a read and of `Committer.commit`. After a failure, `AttemptFiles` decides whether the statistics
    file is deleted.
    """
    started, began, snapshot = environment.clock(), environment.monotonic(), store.snapshots.latest()
    result = AnalyzeResult(table=store.name, dry_run=dry_run, columns=tuple(column.name for column in columns))
    if snapshot is None:
        return result
    with store.while_changed(snapshot):
        statistics = _collected(engine, store, snapshot, columns)
    outcome = None if dry_run else _publish(store, statistics, commit_user, started, environment)
    return replace(
        result,
        analyzed_snapshot_id=snapshot.id,
        snapshot_id=None if outcome is None or outcome.snapshot is None else outcome.snapshot.id,
        after_commit_failures=() if outcome is None else outcome.failures,
        rows=statistics.merged_record_count or 0,
        bytes=statistics.merged_record_size or 0,
        seconds=environment.monotonic() - began,
    )


def _collected(
    engine: Engine, store: TableStore, snapshot: Snapshot, columns: tuple[DataField, ...]
) -> TableStatistics:
    if columns:
        summary = _summary(engine, store, snapshot, columns)
    else:
        known = metadata_count(store, snapshot, None, fresh=False)
        rows = engine.count_rows(store, snapshot, None, fresh=False).rows if known is None else known
        summary = RowSummary((), rows=rows)
    total, size = snapshot.total_record_count, live_bytes(TableState(store, snapshot))
    found = {column.name: _statistics(column, each, summary.rows) for column, each in zip(columns, summary.summaries)}
    return TableStatistics(
        snapshot_id=snapshot.id,
        schema_id=store.schema.id,  # The schema of the columns: Java looks them up in it and fails if one is missing.
        merged_record_count=summary.rows,
        merged_record_size=int(size * summary.rows / total) if total > 0 else 0,
        columns=found,
    )


def _summary(engine: Engine, store: TableStore, snapshot: Snapshot, columns: tuple[DataField, ...]) -> RowSummary:
    """Return the summary of the columns of the merged rows, combined from the results of the tasks."""
    names = tuple(column.name for column in columns)
    scan = ArrowScan(store, plan_read(store, snapshot, None), names)
    rows = scan.stored_task()
    sizes = [_bytes(unit) for unit in scan.units]
    min_bytes = math.ceil(sum(sizes) / (_TASKS_A_CORE * engine.runner.cores))
    packed = pack_in_order(scan.units, _bytes, max(min_bytes, store.options.source_split_target_size))
    summary = RowSummary(columns)
    task = SummaryTask(rows, columns, rows.memory_bytes)
    if packed:
        for batch in engine.runner.batches(packed, task, SUMMARY_SCHEMA, store.paths):
            summary.merge(batch)
    return summary


def _bytes(unit: RunFile | MergeUnit) -> int:
    return unit.file_size if isinstance(unit, RunFile) else sum(file.file_size for file in unit.files)


def _statistics(column: DataField, found: ColumnSummary, rows: int) -> ColumnStatistics:
    kind = column.type
    assert isinstance(kind, AtomicType)
    default = _DEFAULT_BYTES[kind.root]
    if kind.root == "DECIMAL" and (kind.precision or 0) > _WIDE_DECIMAL:
        default = _WIDE_BYTES
    present = rows - found.nulls
    statistics = ColumnStatistics(
        col_id=column.id,
        distinct_count=min(found.distinct.estimate(), present),
        null_count=found.nulls,
        avg_len=math.ceil(found.length / present) if found.has_lengths and present else default,
        max_len=found.longest if found.has_lengths and present else default,
    )
    if found.bounds is None:
        return statistics
    try:
        low, high = (_bound_text(value, kind) for value in found.bounds)
    except UnsupportedFeatureError:  # A time before year 0, for which Paimon has no text. A bound may be unknown.
        return statistics
    return replace(statistics, min=low, max=high)


def _bound_text(value: pa.Scalar, kind: AtomicType) -> str:
    """Return the text from which Paimon reads a bound: a time in UTC; a date as its number of days."""
    if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return value_text(value, AtomicType("TIMESTAMP", precision=kind.precision), legacy=False)
    return value_text(value, kind, legacy=True)


def _publish(
    store: TableStore, statistics: TableStatistics, user: str, started: int, environment: Environment
) -> CommitOutcome:
    """Write the statistics file and commit it. ``started``: the start of the run, in epoch millis."""
    names = AttemptNames.new(environment.new_uuid)
    with AttemptFiles(store, names, lambda: [store.paths.statistics_dir]) as attempt:
        name = statistics_name(names.uuid())
        data = statistics.to_json().encode()
        store.file_io.write(store.paths.statistics(name), data)
        committer = Committer(store, environment=environment)
        run = maintenance_record("analyze", user, started, environment, files=1, bytes=len(data)).as_property()
        return attempt.commit(
            lambda: committer.commit(CommitKind.ANALYZE, CommitMessage(), user, statistics=name, properties=run)
        )

"""The rows that a delete writes: -D rows of the keys that match, as a snapshot has them."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.format.row_kinds import DELETE, ROW_KINDS
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.prepare import prepare
from lakelsm.frames.scan_frame import scan_frame
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.read_plan import plan_read
from lakelsm.plan.update_plan import check_delete_exact
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.system_columns import CHANGED_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.columns import quoted
from lakelsm.spark.conditions import filtered, predicate_of
from lakelsm.spark.task_errors import CHECK_MARK, translated

_NO_SEQUENCE = (
    "a row that matches has no sequence in any group of 'partial-update.remove-record-on-sequence-group', so that the "
    "delete would be lost"
)


def retractions(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """The prepared -D rows of what matches the condition in a snapshot (None: an empty table).

    Raises InvalidInputError or UnsupportedFeatureError where they would not remove the rows.
    """
    check_deletable(store.name, store.options)
    check_delete_exact(store)
    kind = F.lit(ROW_KINDS[DELETE])
    lost = _removes_nothing(MergeSpec.of(store.schema, store.options))
    if lost is not None:
        kind = F.when(lost, F.raise_error(F.lit(CHECK_MARK + _NO_SEQUENCE))).otherwise(kind)
    return prepared_changes(store, matching_rows(spark, store, where, snapshot), kind)


def _removes_nothing(spec: MergeSpec) -> Column | None:
    """Whether a -D of a row leaves it as it is: sequence groups remove it, and each of them is NULL there."""
    listed = [group.sequence for group in spec.groups if spec.remove_on_groups & {*group.sequence}]
    empty = [quoted(name).isNull() for sequence in listed for name in sequence]
    return reduce(Column.__and__, empty) if empty else None


def matching_rows(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """The rows of a snapshot that match, as those who change them judge them: the merged rows of all levels."""
    predicate = predicate_of(spark, store.schema.fields, where)
    with translated(store.paths.root):
        return filtered(scan_frame(spark, store, plan_read(store, snapshot, predicate, fresh=True)), where)


def prepared_changes(store: TableStore, rows: DataFrame, kind: Column) -> DataFrame:
    """Rows of the table that are written again, prepared as rows of a kind (the text of it)."""
    own = store.options.rowkind_field
    marked = rows.withColumn(own or CHANGED_KIND, kind)
    return prepare(marked, store.schema, store.options, None if own else CHANGED_KIND, stored=True)

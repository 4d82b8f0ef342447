"""The rows that a merge writes on Spark: +I, +U and -D rows of the query that joins the target with the source."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.format.row_kinds import DELETE as DELETED
from lakelsm.format.row_kinds import INSERT as INSERTED
from lakelsm.format.row_kinds import ROW_KINDS, UPDATE_AFTER
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.delete_frame import prepared_changes
from lakelsm.frames.prepare import as_key
from lakelsm.frames.scan_frame import scan_frame
from lakelsm.frames.sql_frame import query_frame
from lakelsm.frames.update import assigned, checked_values
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.merge_plan import (
    ACTION,
    COPIES,
    DELETE,
    INSERT,
    IS_KNOWN,
    SOURCE,
    TARGET,
    MergePlan,
    PlannedClause,
    changed_key_fault,
    duplicate_fault,
    known_fault,
)
from lakelsm.plan.read_plan import plan_read
from lakelsm.plan.update_plan import NO_SEQUENCE_FAULT, check_microseconds
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.expressions import quoted
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import CHECK_PREFIX, translated_errors

_KEY = "{key}"


def merged(
    spark: SparkSession, store: TableStore, plan: MergePlan, source: DataFrame, snapshot: Snapshot | None
) -> DataFrame:
    """Return the prepared rows of a merge with a snapshot (None: an empty table)."""
    check_microseconds(store, store.schema.field_names, "a merge")
    with translated_errors(store.paths.root):
        target = scan_frame(spark, store, plan_read(store, snapshot, None, fresh=True))
    found = query_frame(spark, plan.text, {TARGET: target, SOURCE: source})
    types = {field.name: field.dataType for field in found.schema.fields}
    rows = found.select("*", *(F.col(old).alias(name) for name, old in plan.old.items()))
    new: dict[str, Column] = {name: quoted(name) for name in plan.old}
    for each in plan.clauses:
        for name, value in _values(store, each, types).items():
            new[name] = F.when(F.col(ACTION) == each.number, value).otherwise(new[name])
    return prepared_changes(store, rows, new, _kind(store, plan))


def _values(store: TableStore, clause: PlannedClause, types: dict[str, T.DataType]) -> dict[str, Column]:
    """The new values of the columns that a clause sets; an insert sets all columns."""
    schema, found = store.schema, {}
    for name in clause.values:
        column = clause.column(name)
        found[name] = assigned(schema.field(name), F.col(column), types[column])
    if clause.update is not None:
        return checked_values(clause.update, found)
    if clause.clause.action == INSERT:
        for field in schema.fields:
            found.setdefault(field.name, F.lit(None).cast(to_spark(field.type)))
            if field.name in schema.primary_keys or field.name in schema.partition_keys:
                found[field.name] = as_key(found[field.name], field, schema)
    return found


def _kind(store: TableStore, plan: MergePlan) -> Column:
    """The kind of a row. It fails for a row that the merge must not write."""
    kind = F.lit(ROW_KINDS[UPDATE_AFTER])
    deletes, inserts = plan.numbers(DELETE), plan.numbers(INSERT)
    action = F.col(ACTION)
    if deletes:
        kind = F.when(action.isin(deletes), _deleted(store)).otherwise(kind)
    if inserts:
        kind = F.when(action.isin(inserts), F.lit(ROW_KINDS[INSERTED])).otherwise(kind)
    for each in plan.clauses:
        if each.same:
            kind = _refused(F.coalesce(F.col(each.changes_key), F.lit(False)), changed_key_fault(list(each.same)), kind)
    names = store.schema.primary_keys
    key = _shown([F.col(plan.old[name]) for name in names])
    for each in plan.clauses:
        if each.clause.action == INSERT:
            key = F.when(action == each.number, _shown([F.col(each.column(name)) for name in names])).otherwise(key)
    if plan.finds_known:
        kind = _refused(F.col(IS_KNOWN).isNotNull(), known_fault(_KEY), kind, key)
    return _refused(F.col(COPIES) > 1, duplicate_fault(_KEY), kind, key)


def _deleted(store: TableStore) -> Column:
    kind = F.lit(ROW_KINDS[DELETED])
    empty = [quoted(name).isNull() for name in MergeSpec.of(store.schema, store.options).removing_sequences]
    return _refused(reduce(Column.__and__, empty), NO_SEQUENCE_FAULT, kind) if empty else kind


def _shown(values: list[Column]) -> Column:
    """A key as text, for messages."""
    texts = [F.coalesce(value.cast("string"), F.lit("NULL")) for value in values]
    return F.concat_ws(", ", *texts)


def _refused(fault: Column, text: str, otherwise: Column, key: Column | None = None) -> Column:
    before, _, after = text.partition(_KEY)
    message = F.lit(CHECK_PREFIX + text) if key is None else F.concat(F.lit(CHECK_PREFIX + before), key, F.lit(after))
    return F.when(fault, F.raise_error(message)).otherwise(otherwise)

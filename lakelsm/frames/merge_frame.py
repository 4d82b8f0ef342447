"""The rows that a merge writes on Spark: +I, +U and -D rows of the query that joins the target with the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from lakelsm.format.row_kinds import DELETE as DELETED
from lakelsm.format.row_kinds import INSERT as INSERTED
from lakelsm.format.row_kinds import ROW_KINDS, UPDATE_AFTER
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.delete_frame import prepared_changes
from lakelsm.frames.merge_source import computed_once, source_values
from lakelsm.frames.prepare import as_key, value_type
from lakelsm.frames.scan_frame import scan_frame
from lakelsm.frames.sql_frame import query_frame
from lakelsm.frames.update import assigned, checked_values
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.merge_plan import (
    MergePlan,
    changed_key_fault,
    check_inserted_key,
    duplicate_fault,
    known_fault,
)
from lakelsm.plan.merge_pruning import SourceValues, prunable_pairs, pruning_columns
from lakelsm.plan.merge_query import ACTION, COPIES, IS_KNOWN, KNOWN, SOURCE, TARGET
from lakelsm.plan.merge_request import DELETE, INSERT, PlannedClause
from lakelsm.plan.read_plan import plan_read
from lakelsm.plan.update_plan import NO_SEQUENCE_FAULT, check_microseconds
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted
from lakelsm.spark.functions import functions_of
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import CHECK_PREFIX, translated_errors

_KEY = "{key}"
#: The columns of the source's keys, beside the target's columns.
_PAIR = "_KEY__MERGE_P{}"
#: Up to this number of rows of the source, each task gets its keys.
_MAX_BROADCAST_ROWS = 250_000


class FrameMerge:
    """A merge on Spark: computes its rows from a snapshot. It may read ``source`` more than once."""

    def __init__(self, store: TableStore, plan: MergePlan, source: DataFrame) -> None:
        self._store = store
        self._plan = plan
        with functions_of(source):
            self._source = source.select(*map(quoted, plan.source))

    def __call__(self, snapshot: Snapshot | None) -> DataFrame:
        """Return the prepared rows of a merge with a snapshot (None: an empty table)."""
        with functions_of(self._source):
            return self._rows(snapshot)

    def _rows(self, snapshot: Snapshot | None) -> DataFrame:
        store, plan = self._store, self._plan
        check_microseconds(store, store.schema.field_names, "a merge")
        frames = {TARGET: self._target(snapshot, plan.target, plan.pairs), SOURCE: self._source}
        if plan.finds_known:
            frames[KNOWN] = self._target(snapshot, store.schema.primary_keys, plan.known_pairs)
        pruned = snapshot is not None and prunable_pairs(store.schema, plan.pairs)
        text = plan.text(self._values.unique_columns() if pruned else ())
        found = query_frame(self._source.sparkSession, text, frames)
        types = {field.name: field.dataType for field in found.schema.fields}
        rows = found.select("*", *(F.col(old).alias(name) for name, old in plan.old.items()))
        new: dict[str, Column] = {
            field.name: quoted(field.name) if field.name in plan.old else F.lit(None).cast(to_spark(field.type))
            for field in store.schema.fields
        }
        for each in plan.clauses:
            for name, value in _values(store, each, types).items():
                new[name] = F.when(F.col(ACTION) == each.number, value).otherwise(new[name])
        return prepared_changes(store, rows, new, _kind(store, plan))

    @contextmanager
    def with_fixed_source(self) -> Iterator[FrameMerge]:
        """Yield the merge for a source whose rows can change, unless its rows are read only once.

        The keys of the source decide which files of the target are opened, and then its rows are joined with these.
        """
        if not prunable_pairs(self._store.schema, {**self._plan.pairs, **self._plan.known_pairs}):
            yield self
            return
        with computed_once(self._source) as fixed:
            yield FrameMerge(self._store, self._plan, fixed)

    def _target(self, snapshot: Snapshot | None, names: Sequence[str], pairs: Mapping[str, str]) -> DataFrame:
        """Return columns of the target's rows that can equal rows of the source in the columns ``pairs``."""
        store, spark = self._store, self._source.sparkSession
        known = prunable_pairs(store.schema, pairs)
        condition = self._values.condition(store.schema, known) if known and snapshot is not None else None
        with translated_errors(store.paths.root):
            plan = plan_read(store, snapshot, condition, fresh=True)
            target = scan_frame(spark, store, plan, names).select(*map(quoted, names))
        if condition is None or self._values.rows > _MAX_BROADCAST_ROWS:
            return target
        # The join that follows keeps all rows of the source, so that Spark would shuffle the target instead of sending
        # the source to each task.
        keys = self._source.select(*(quoted(name).alias(_PAIR.format(at)) for at, name in enumerate(pairs.values())))
        same = [self._same(column, F.col(_PAIR.format(at))) for at, column in enumerate(pairs)]
        return target.join(F.broadcast(keys), reduce(and_, same), "left_semi")

    def _same(self, column: str, key: Column) -> Column:
        # A comparison that is safe for NULL makes two columns of the join's key, for which Spark's hash table is slower.
        is_nullable = self._store.schema.field(column).type.nullable
        return quoted(column).eqNullSafe(key) if is_nullable else quoted(column) == key

    @cached_property
    def _values(self) -> SourceValues:
        """The source's values in the columns that the target's keys equal."""
        names = pruning_columns(self._store.schema, {**self._plan.pairs, **self._plan.known_pairs})
        return source_values(self._source, names, self._store.paths.root)


def _values(store: TableStore, clause: PlannedClause, types: dict[str, T.DataType]) -> dict[str, Column]:
    """The new values of the columns that a clause sets; an insert sets all columns."""
    schema, found = store.schema, {}
    for name in clause.values:
        column, field = clause.column(name), schema.field(name)
        found[name] = assigned(field, F.col(column), types[column])
        if clause.clause.action == INSERT and name in schema.primary_keys:
            check_inserted_key(field, value_type(types[column]))
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
    return _refused(reduce(and_, empty), NO_SEQUENCE_FAULT, kind) if empty else kind


def _shown(values: list[Column]) -> Column:
    """A key as text, for messages."""
    texts = [F.coalesce(value.cast("string"), F.lit("NULL")) for value in values]
    return F.concat_ws(", ", *texts)


def _refused(fault: Column, text: str, otherwise: Column, key: Column | None = None) -> Column:
    before, _, after = text.partition(_KEY)
    message = F.lit(CHECK_PREFIX + text) if key is None else F.concat(F.lit(CHECK_PREFIX + before), key, F.lit(after))
    return F.when(fault, F.raise_error(message)).otherwise(otherwise)

"""The rows that a merge writes in this process: +I, +U and -D rows of the query that joins the target with the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.row_kinds import DELETE as DELETED
from lakelsm.format.row_kinds import INSERT as INSERTED
from lakelsm.format.row_kinds import ROW_KINDS, UPDATE_AFTER
from lakelsm.local.arrow_delete import prepared_changes, removable
from lakelsm.local.arrow_faults import refuse_any
from lakelsm.local.arrow_scan import stored_schema
from lakelsm.local.arrow_update import check_assignable, check_rows, fitted
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.merge_plan import (
    MergePlan,
    changed_key_fault,
    check_inserted_key,
    duplicate_fault,
    known_fault,
)
from lakelsm.plan.merge_query import ACTION, COPIES, IS_KNOWN
from lakelsm.plan.merge_request import DELETE, INSERT, PlannedClause
from lakelsm.schema.row_rules import refused_rows
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import from_arrow, has_nanoseconds


def merged(store: TableStore, plan: MergePlan, found: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Return the prepared rows of a merge; ``found`` are the rows of the plan's query."""
    for field in store.schema.fields:
        if has_nanoseconds(field.type) and field.type.root != "TIMESTAMP":
            raise UnsupportedFeatureError(
                f"Table {store.name}: a merge in this process would cut the nanoseconds of column '{field.name}' "
                f"({field.type.sql()}). Use update, delete or write."
            )
    for each in plan.clauses:
        for name in each.values:
            kind = found.schema.field(each.column(name)).type
            if pa.types.is_null(kind):
                continue
            check_assignable(store.schema.field(name), from_arrow(kind))
            if each.clause.action == INSERT and name in store.schema.primary_keys:
                check_inserted_key(store.schema.field(name), from_arrow(kind))
    return _numbered(_prepared(store, plan, found))


def _prepared(store: TableStore, plan: MergePlan, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in found:
        _check_keys(store, plan, batch)
        for each in plan.clauses:
            rows = batch.filter(pc.equal(batch.column(ACTION), each.number))
            if not len(rows):
                continue
            if each.clause.action == DELETE:
                yield from _deleted(store, plan, rows)
            elif each.clause.action == INSERT:
                yield from prepared_changes(store, [_inserted(store, each, rows)], ROW_KINDS[INSERTED], is_new=True)
            else:
                yield from prepared_changes(store, [_updated(store, plan, each, rows)], ROW_KINDS[UPDATE_AFTER])


def _numbered(prepared: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number the rows of all batches, as each batch is prepared by itself."""
    start = 0
    for batch in prepared:
        numbers = pa.array(np.arange(start, start + len(batch)), batch.schema.field(0).type)
        yield pa.RecordBatch.from_arrays([numbers, *batch.columns[1:]], schema=batch.schema)
        start += len(batch)


def _check_keys(store: TableStore, plan: MergePlan, batch: pa.RecordBatch) -> None:
    """Raise InvalidInputError for a row that the merge must not write."""
    copies = pc.greater(batch.column(COPIES), 1)
    if copies.true_count:
        raise refused_rows(duplicate_fault(_key(store, plan, batch.filter(copies))))
    if plan.finds_known and batch.column(IS_KNOWN).true_count:
        known = batch.filter(batch.column(IS_KNOWN).is_valid())
        raise refused_rows(known_fault(_key(store, plan, known)))
    for each in plan.clauses:
        if each.same:
            refuse_any(batch.column(each.changes_key), changed_key_fault(list(each.same)))


def _key(store: TableStore, plan: MergePlan, rows: pa.RecordBatch) -> str:
    """The key of the first row, as text."""
    number = rows.column(ACTION)[0].as_py()
    clause = plan.clauses[number - 1]
    columns = [clause.column(k) if clause.clause.action == INSERT else plan.old[k] for k in store.schema.primary_keys]
    values: list[Any] = [rows.column(name)[0].as_py() for name in columns]
    return ", ".join("NULL" if value is None else str(value) for value in values)


def _old(store: TableStore, plan: MergePlan, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The kept columns of the target's rows, in stored form."""
    schema = stored_schema(store, plan.old)
    columns = [cast_column(rows.column(old), field.type) for old, field in zip(plan.old.values(), schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _deleted(store: TableStore, plan: MergePlan, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    old: Iterable[pa.RecordBatch] = [_old(store, plan, rows)]
    sequences = MergeSpec.of(store.schema, store.options).removing_sequences
    return prepared_changes(store, removable(old, sequences) if sequences else old, ROW_KINDS[DELETED])


def _updated(store: TableStore, plan: MergePlan, clause: PlannedClause, rows: pa.RecordBatch) -> pa.RecordBatch:
    old = _old(store, plan, rows)
    new = {**dict(zip(old.schema.names, old.columns)), **_values(store, clause, rows)}
    assert clause.update is not None
    check_rows(clause.update, old, new)
    schema = stored_schema(store, store.schema.field_names)
    return pa.RecordBatch.from_arrays([new[name] for name in schema.names], schema=schema)


def _inserted(store: TableStore, clause: PlannedClause, rows: pa.RecordBatch) -> pa.RecordBatch:
    values = _values(store, clause, rows)
    schema = stored_schema(store, store.schema.field_names)
    columns = [values[field.name] if field.name in values else pa.nulls(len(rows), field.type) for field in schema]
    fields = [field.with_nullable(True) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _values(store: TableStore, clause: PlannedClause, rows: pa.RecordBatch) -> dict[str, pa.Array]:
    found = {}
    for name in clause.values:
        values, field = rows.column(clause.column(name)), store.schema.field(name)
        found[name] = fitted(field, values, is_null=pa.types.is_null(values.type))
    return found

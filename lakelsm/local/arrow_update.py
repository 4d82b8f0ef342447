"""The rows that an update in this process writes: +U rows for the keys of matching rows, with new values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import error_context
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.row_kinds import ROW_KINDS, UPDATE_AFTER
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_delete import prepared_changes
from lakelsm.local.arrow_faults import refuse_any
from lakelsm.local.arrow_scan import matching_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.plan.update_plan import RowCheck, RowFault, UpdatePlan, other_type, out_of_range, plan_update
from lakelsm.predicate.exact_numbers import number_cast
from lakelsm.predicate.expression import NULL_TYPE, Expression, is_number, reduced
from lakelsm.predicate.expression_evaluation import evaluated
from lakelsm.predicate.predicate import Predicate
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.runner.runner import Runner
from lakelsm.schema.row_rules import is_assignable
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, DataType, to_arrow


def updates(
    runner: Runner,
    store: TableStore,
    matches: Predicate,
    values: Mapping[str, str],
    snapshot: Snapshot | None,
    session_time_zone: str | None,
) -> Iterator[pa.RecordBatch]:
    """Return prepared +U rows for the rows of a snapshot that match (None: an empty table); ``values`` by column.

    Raises UnsupportedFeatureError for an expression that this engine cannot evaluate.
    """
    plan = plan_update(store, values)
    assigned = [_Assignment.of(store, name, value, session_time_zone) for name, value in plan.values.items()]
    rows = matching_rows(runner, store, snapshot, matches, store.schema.field_names)
    return prepared_changes(store, _updated(rows, plan, assigned), ROW_KINDS[UPDATE_AFTER])


@dataclass(frozen=True)
class _Assignment:
    """A column and the expression of its new value."""

    field: DataField
    expression: Expression

    @staticmethod
    def of(store: TableStore, name: str, value: str, session_time_zone: str | None) -> _Assignment:
        """Parse the expression. Raises InvalidInputError if the column does not accept its type."""
        from lakelsm.expressions.evaluable import evaluable_expression

        field = store.schema.field(name)
        with error_context(f"set[{name!r}] = {shown_condition(value)}"):
            expression = evaluable_expression(value, store.schema.fields, session_time_zone)
        check_assignable(field, expression.type)
        return _Assignment(field, expression)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the values in the column's type: numbers are rounded, and refused if they do not fit."""
        found = evaluated(self.expression, rows)
        return fitted(self.field, found, is_null=self.expression.type == NULL_TYPE)


def check_assignable(field: DataField, kind: DataType) -> None:
    """Raise InvalidInputError if a column does not accept the values of an expression of a type."""
    numbers = is_number(kind) and is_number(reduced(field.type))
    if not numbers and not is_assignable(kind, field.type):
        raise other_type(field, kind.sql(), field.type.with_nullable(True).sql())


def fitted(field: DataField, values: pa.Array, *, is_null: bool = False) -> pa.Array:
    """Return values of an expression in the column's type: numbers are rounded, and refused if they do not fit.

    ``is_null``: the expression has no type, because it is NULL.
    """
    target = reduced(field.type)
    if not is_null and is_number(target):
        cast = number_cast(values, target)
        refuse_any(pc.and_(values.is_valid(), cast.is_null()), out_of_range(field))
        values = cast
    return cast_column(values, to_arrow(field.type))


def check_rows(plan: UpdatePlan, old: pa.RecordBatch, new: Mapping[str, pa.Array]) -> None:
    """Raise InvalidInputError if the merge would not apply a new row as intended."""
    for check in plan.checks():
        refuse_any(_fault(check, old, new), check.text)


def _updated(
    rows: Iterable[pa.RecordBatch], plan: UpdatePlan, assigned: list[_Assignment]
) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        new = dict(zip(batch.schema.names, batch.columns))
        new.update({each.field.name: each.values(batch) for each in assigned})
        check_rows(plan, batch, new)
        yield pa.RecordBatch.from_arrays([new[name] for name in batch.schema.names], schema=batch.schema)


def _fault(check: RowCheck, old: pa.RecordBatch, new: Mapping[str, pa.Array]) -> pa.Array:
    """Return which rows have a fault."""
    match check.fault:
        case RowFault.NULL_OVER_VALUE:
            (name,) = check.columns
            return pc.and_(new[name].is_null(), old.column(name).is_valid())
        case RowFault.WEAKER:
            return _is_weaker(check, old, new)
        case RowFault.NULL | RowFault.ALL_NULL:
            return reduce(pc.and_, (new[name].is_null() for name in check.columns))


def _is_weaker(check: RowCheck, old: pa.RecordBatch, new: Mapping[str, pa.Array]) -> pa.Array:
    """Return which new values are weaker than the present ones in merge order; NULL is the weakest."""
    weaker = np.zeros(len(old), dtype=bool)
    for name in reversed(check.columns):
        both = pa.chunked_array([old.column(name), new[name]])
        ranks = np.unique(order_keys([both]), return_inverse=True)[1].reshape(-1)
        if check.descending:
            ranks = np.where(both.is_null().to_numpy(), -1, -ranks + len(ranks))
        before, now = ranks[: len(old)], ranks[len(old) :]
        weaker = (now < before) | ((now == before) & weaker)
    return pa.array(weaker)

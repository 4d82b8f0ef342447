"""The rows that an update writes: +U rows for the keys of matching rows, with new values of some columns.

The values are SQL expressions over the present row. The update fails if the merge would not apply a row as intended: if
its sequence would be older than that of the present row, or if a NULL would keep the old value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.errors import InvalidInputError
from lakelsm.format.row_kinds import ROW_KINDS, UPDATE_AFTER
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.delete_frame import matching_rows, prepared_changes
from lakelsm.frames.prepare import is_spark_assignable
from lakelsm.plan.update_plan import (
    RowCheck,
    RowFault,
    UpdatePlan,
    check_microseconds,
    other_type,
    out_of_range,
    plan_update,
)
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.schema.system_columns import NEW_VALUE
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.connect import raise_lost_server
from lakelsm.spark.expressions import quoted
from lakelsm.spark.functions import of_session
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import ANALYSIS_ERRORS, CHECK_PREFIX, first_line
from lakelsm.types import DataField


@of_session
def updates(
    spark: SparkSession, store: TableStore, where: str, values: Mapping[str, str], snapshot: Snapshot | None
) -> DataFrame:
    """Return prepared +U rows for the rows of a snapshot that match (None: an empty table); ``values`` by column."""
    plan = plan_update(store, values)
    sequences = {name for sequence in plan.sequences for name in sequence.columns}
    check_microseconds(store, sequences & {*plan.values}, "an update of a sequence")
    rows = matching_rows(spark, store, where, snapshot)
    kinds = _types_of(rows, plan.values)
    # Each expression is evaluated once for each row, so that the checked and the written value are the same.
    expressions = [F.expr(value).alias(NEW_VALUE.format(at)) for at, value in enumerate(plan.values.values())]
    valued = rows.select("*", *expressions)
    new = {
        name: assigned(store.schema.field(name), F.col(NEW_VALUE.format(at)), kind)
        for at, (name, kind) in enumerate(kinds.items())
    }
    return prepared_changes(store, valued, checked_values(plan, new), F.lit(ROW_KINDS[UPDATE_AFTER]))


def _types_of(rows: DataFrame, values: Mapping[str, str]) -> dict[str, T.DataType]:
    """Return the types of expressions over the rows, by column. Spark analyzes all of them together.

    Raises InvalidInputError for an expression that is not one value for each row.
    """
    try:
        # Within a struct, Spark refuses generators of rows; beside the row, it refuses aggregates of all rows.
        found = rows.select("*", *(F.struct(F.expr(value)) for value in values.values())).schema.fields[-len(values) :]
    except ANALYSIS_ERRORS as error:
        raise_lost_server(error)
        if len(values) > 1:  # The error does not tell which of them it is.
            return {name: _types_of(rows, {name: value})[name] for name, value in values.items()}
        ((name, value),) = values.items()
        raise InvalidInputError(f"set[{name!r}] = {shown_condition(value)} is not valid: {first_line(error)}") from error
    kinds = {}
    for (name, value), field in zip(values.items(), found, strict=True):
        held = field.dataType
        assert isinstance(held, T.StructType)
        if len(held.fields) != 1:
            raise InvalidInputError(
                f"set[{name!r}] = {shown_condition(value)} gives {len(held.fields)} values instead of one."
            )
        kinds[name] = held.fields[0].dataType
    return kinds


def assigned(field: DataField, value: Column, kind: T.DataType) -> Column:
    """Return the value in the column's type: numbers are rounded, and refused if they do not fit."""
    target = to_spark(field.type)
    if isinstance(kind, T.NumericType) and isinstance(target, T.NumericType) and kind != target:
        cast = value.try_cast(target)
        return _refused(value.isNotNull() & cast.isNull(), out_of_range(field), cast)
    if not is_spark_assignable(kind, field.type):
        raise other_type(field, kind.simpleString(), target.simpleString())
    return value if kind == target else value.cast(target)


def checked_values(plan: UpdatePlan, new: Mapping[str, Column]) -> dict[str, Column]:
    """Return the new values. A value that the merge would not apply fails the update when it is read."""
    checked = dict(new)
    for check in plan.checks():
        now = {name: new.get(name, quoted(name)) for name in check.columns}
        # A check must be part of the expression of a written column.
        carrier = next((name for name in check.columns if name in new), next(iter(new)))
        checked[carrier] = _refused(_fault(check, now), check.text, checked[carrier])
    return checked


def _fault(check: RowCheck, now: Mapping[str, Column]) -> Column:
    """Return whether a row has a fault; ``now`` are the new values of the columns."""
    match check.fault:
        case RowFault.NULL_OVER_VALUE:
            (name,) = check.columns
            return now[name].isNull() & quoted(name).isNotNull()
        case RowFault.WEAKER:
            return _is_weaker(check, now)
        case RowFault.NULL | RowFault.ALL_NULL:
            return reduce(and_, (value.isNull() for value in now.values()))


def _is_weaker(check: RowCheck, now: Mapping[str, Column]) -> Column:
    """Return whether new values are weaker than the present ones: NULL is weakest, the first difference decides."""
    weaker = F.lit(False)
    for name in reversed(check.columns):
        old, value = quoted(name), now[name]
        loses = (value > old) if check.descending else (value < old)
        here = (value.isNull() & old.isNotNull()) | F.coalesce(loses, F.lit(False))
        weaker = here | (value.eqNullSafe(old) & weaker)
    return weaker


def _refused(fault: Column, text: str, otherwise: Column) -> Column:
    return F.when(fault, F.raise_error(F.lit(CHECK_PREFIX + text))).otherwise(otherwise)

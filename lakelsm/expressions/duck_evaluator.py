"""The evaluator of one expression for rows in Arrow, on DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.duckdb_types import expression_type
from lakelsm.expressions.row_queries import values_of
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.predicate.evaluation import Rows, outcomes
from lakelsm.predicate.expression import reduced
from lakelsm.predicate.predicate import In
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.types import AtomicType, DataField, DataType, contiguous, to_arrow


@dataclass(frozen=True)
class RowColumn:
    """A column that an expression on rows names, and its name in DuckDB's SQL."""

    name: str
    field: DataField


@dataclass(frozen=True)
class DuckEvaluator:
    """An expression in DuckDB's SQL on at least one column.

    ``text`` is what the user wrote, and ``what`` its kind, for messages.
    """

    sql: str
    inputs: tuple[RowColumn, ...]
    type: DataType
    _: KW_ONLY
    text: str
    what: str = "condition"

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the values depend on."""
        return frozenset(each.field.name for each in self.inputs)

    def __call__(self, rows: Rows) -> pa.Array:
        """Return the value for each row, in the order of the rows. Raises InvalidInputError for a wrong value."""
        given = {
            each.name: cast_column(rows.column(each.field.name), to_arrow(evaluated_type(each.field.type)))
            for each in self.inputs
        }
        found = values_of(self.sql, pa.table(given), f"{self.what} {shown_condition(self.text)}")
        return contiguous(cast_column(found, to_arrow(self.type)))

    def of_values(self, values: Mapping[str, Sequence[Any]]) -> list[Any] | None:
        """Return the values for rows that are given as lists of Python values; None if they cannot be evaluated."""
        try:
            fields = [each.field for each in self.inputs]
            rows = pa.table({field.name: _array(values[field.name], field.type) for field in fields})
            found: list[Any] = self(rows).to_pylist()
            return found
        except (pa.ArrowException, TypeError, ValueError, OverflowError, InvalidInputError):
            return None


def _array(values: Sequence[Any], kind: DataType) -> pa.Array:
    given = [each.replace(tzinfo=None) if isinstance(each, datetime) else each for each in values]
    target = to_arrow(evaluated_type(kind))
    if pa.types.is_timestamp(target):
        return pa.array(given, pa.timestamp("us")).cast(pa.int64()).cast(pa.timestamp("us", target.tz))
    return pa.array(given, to_arrow(kind)).cast(target)


def evaluated_type(kind: DataType) -> DataType:
    """Return the type of a column for evaluators: times have at most microseconds, as in other conditions."""
    return expression_type(kind, _with_micros)


def _with_micros(kind: DataType) -> DataType:
    found = reduced(kind)
    if isinstance(found, AtomicType) and found.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return AtomicType(found.root, precision=6)
    return found


@dataclass(frozen=True)
class ListEvaluator:
    """Whether the value of an expression is in a long list, or not in it (``negated``); NULL if the value is NULL."""

    value: DuckEvaluator
    values: tuple[Any, ...]
    negated: bool

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the value depends on."""
        return self.value.columns

    def __call__(self, rows: Rows) -> pa.Array:
        """Return the outcome for each row."""
        found = self.value(rows)
        return outcomes(In("value", self.values, self.negated), pa.table({"value": found})).combine_chunks()

    def of_values(self, values: Mapping[str, Sequence[Any]]) -> list[Any] | None:
        """Return the outcomes for rows that are given as lists of Python values."""
        found, known = self.value.of_values(values), frozenset(self.values)
        return found and [None if each is None else (each in known) != self.negated for each in found]


__all__ = ["DuckEvaluator", "ListEvaluator", "RowColumn", "evaluated_type"]

"""Aggregate functions and window functions of Spark in DuckDB's SQL, with the types of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from lakelsm.expressions.decimal_arithmetic import BIGINT, quotient
from lakelsm.expressions.duckdb_casts import IN_THIS_PROCESS, cast, failure, text_of
from lakelsm.expressions.duckdb_functions import accepted
from lakelsm.expressions.duckdb_types import type_text
from lakelsm.predicate.expression import (
    BOOLEAN,
    DOUBLE,
    INT,
    NULL_TYPE,
    Expression,
    Value,
    decimal,
    is_ordered,
)
from lakelsm.types import INTEGER_ROOTS, MAX_DECIMAL_DIGITS, ArrayType, AtomicType, DataType

_FLOATS = ("FLOAT", "DOUBLE")

@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate function. ``call`` can have FILTER and OVER after it; ``wrap`` makes the result of it.

    ``{0}`` in ``wrap`` is the call, and ``{1}`` that of ``second``.
    """

    type: DataType
    call: str
    wrap: str = "{0}"
    second: str | None = None

    def text(self, suffix: str) -> str:
        """Return the result in DuckDB's SQL, with FILTER and OVER after each call."""
        calls = [self.call] if self.second is None else [self.call, self.second]
        return self.wrap.format(*(f"{call}{suffix}" for call in calls))


#: Makes the call from the arguments and the text 'DISTINCT ' or ''; None where the types are refused.
Aggregate: TypeAlias = Callable[[Sequence[Expression], str], AggregateCall | None]


def _count(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    if len(arguments) < 2:
        return AggregateCall(BIGINT, f"count({distinct}{text_of(arguments[0])})") if arguments else None
    texts = [text_of(argument) for argument in arguments]
    known = " AND ".join(f"{text} IS NOT NULL" for text in texts)
    return AggregateCall(BIGINT, f"count({distinct}CASE WHEN {known} THEN ({', '.join(texts)}) END)")


def _sum(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, AtomicType):
        return None
    kind, text = arguments[0].type, text_of(arguments[0])
    if kind.root in INTEGER_ROOTS:
        return AggregateCall(BIGINT, f"sum({distinct}{text})", "CAST({0} AS BIGINT)")
    if kind.root in _FLOATS:
        return AggregateCall(DOUBLE, f"sum({distinct}CAST({text} AS DOUBLE))")
    if kind.root != "DECIMAL":
        return None
    result = _sum_type(kind)
    # A sum is a DECIMAL(38) that can have 39 digits; the cast of its text finds them.
    return AggregateCall(result, f"sum({distinct}{text})", f"CAST(CAST({{0}} AS VARCHAR) AS {type_text(result)})")


def _sum_type(kind: AtomicType) -> AtomicType:
    return decimal(min((kind.precision or 0) + 10, MAX_DECIMAL_DIGITS), kind.scale or 0)


def _average(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    if len(arguments) != 1:
        return None
    kind, text = arguments[0].type, text_of(arguments[0])
    if isinstance(kind, AtomicType) and kind.root == "DECIMAL":
        return _decimal_average(kind, f"{distinct}{text}")
    if kind.root not in (*INTEGER_ROOTS, *_FLOATS):
        return None
    return AggregateCall(DOUBLE, f"avg({distinct}CAST({text} AS DOUBLE))")


def _decimal_average(kind: AtomicType, argument: str) -> AggregateCall:
    """Return the sum divided by the count, with four digits more after the point."""
    precision, scale = kind.precision or 0, kind.scale or 0
    result = decimal(min(precision + 4, MAX_DECIMAL_DIGITS), min(scale + 4, MAX_DECIMAL_DIGITS))
    total, count = _sum_type(kind), decimal(20, 0)
    # The braces of structs in the quotient are no fields of the format.
    sums = ("\0" + "0", "\0" + "1")
    sum_text = f"CAST(CAST({sums[0]} AS VARCHAR) AS {type_text(total)})"
    found = quotient(sum_text, f"nullif({sums[1]}, 0)", total, count, kind=result)
    wrap = found.sql.replace("{", "{{").replace("}", "}}").replace(sums[0], "{0}").replace(sums[1], "{1}")
    return AggregateCall(result, f"sum({argument})", wrap, f"count({argument})")


def _collected(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    """Bind collect_list and collect_set: without NULLs, and never NULL. Their order is not defined."""
    if len(arguments) != 1 or arguments[0].type == NULL_TYPE:
        return None
    kind = ArrayType(arguments[0].type)
    empty = f"CAST([] AS {type_text(kind)})".replace("{", "{{").replace("}", "}}")
    known = "list_filter({0}, lambda e: e IS NOT NULL)"
    return AggregateCall(kind, f"list({distinct}{text_of(arguments[0])})", f"coalesce({known}, {empty})")


def _collected_set(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    """Bind collect_set. Sets of FLOAT and DOUBLE differ in -0.0."""
    if len(arguments) != 1 or not is_ordered(arguments[0].type) or arguments[0].type.root in _FLOATS:
        return None
    return _collected(arguments, "DISTINCT ")


def _extremum(name: str) -> Aggregate:
    def call(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
        if len(arguments) != 1 or not is_ordered(arguments[0].type) or arguments[0].type == NULL_TYPE:
            return None
        return AggregateCall(arguments[0].type, f"{name}({text_of(arguments[0])})")

    return call


def _spread(name: str) -> Aggregate:
    """Return the maker of standard deviations and variances: NaN if a value is not finite, which DuckDB refuses."""

    def call(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
        number = accepted(arguments[0], "n") if len(arguments) == 1 else None
        if number is None:
            return None
        text = text_of(number)
        finite = f"CASE WHEN NOT isfinite({text}) THEN 0 ELSE {text} END"
        wrap = "CASE WHEN {0} IS NOT NULL AND {1} > 0 THEN CAST('NaN' AS DOUBLE) ELSE {0} END"
        return AggregateCall(DOUBLE, f"{name}({distinct}{finite})", wrap, _count_infinite(text))

    return call


def _percentile(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    """Bind percentile(number, literal from 0 to 1): the interpolated value."""
    number = accepted(arguments[0], "n") if len(arguments) == 2 else None
    share = arguments[1].value if number is not None and isinstance(arguments[1], Value) else None
    if number is None or isinstance(share, bool) or not isinstance(share, int | float | Decimal) or not 0 <= share <= 1:
        return None
    text = text_of(number)
    failed = failure(f"a percentile of numbers that are not finite is not evaluated {IN_THIS_PROCESS}", DOUBLE)
    wrap = f"CASE WHEN {{1}} > 0 THEN {failed} ELSE {{0}} END"
    return AggregateCall(DOUBLE, f"quantile_cont({distinct}{text}, {float(share)})", wrap, _count_infinite(text))


def _median(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    return _percentile([*arguments, Value(DOUBLE, 0.5)], distinct)


def _count_infinite(text: str) -> str:
    return f"count(CASE WHEN NOT isfinite({text}) THEN 1 END)"


def _value_at(name: str) -> Aggregate:
    """Return the maker of max_by and min_by: the value, which may be NULL, of the row with the extreme order."""

    def call(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
        if len(arguments) != 2 or distinct or NULL_TYPE in (arguments[0].type, arguments[1].type):
            return None
        if not is_ordered(arguments[1].type):
            return None
        return AggregateCall(arguments[0].type, f"{name}({text_of(arguments[0])}, {text_of(arguments[1])})")

    return call


def _bits(name: str) -> Aggregate:
    def call(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
        if len(arguments) != 1 or arguments[0].type.root not in INTEGER_ROOTS:
            return None
        return AggregateCall(arguments[0].type, f"{name}({distinct}{text_of(arguments[0])})")

    return call


def _any_value(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    """Bind any_value(x): the value of one of the rows, which may be NULL."""
    if len(arguments) != 1 or distinct or arguments[0].type == NULL_TYPE:
        return None
    return AggregateCall(arguments[0].type, f"first({text_of(arguments[0])})")


def _logical(name: str) -> Aggregate:
    def call(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
        if len(arguments) != 1 or arguments[0].type != BOOLEAN:
            return None
        return AggregateCall(BOOLEAN, f"{name}({text_of(arguments[0])})")

    return call


def _count_if(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    if len(arguments) != 1 or arguments[0].type != BOOLEAN or distinct:
        return None
    return AggregateCall(BIGINT, f"count(CASE WHEN {text_of(arguments[0])} THEN 1 END)")


AGGREGATES: Mapping[str, Aggregate] = {
    "count": _count,
    "count_if": _count_if,
    "collect_list": _collected,
    "array_agg": _collected,
    "collect_set": _collected_set,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _extremum("min"),
    "max": _extremum("max"),
    "bool_and": _logical("bool_and"),
    "every": _logical("bool_and"),
    "bool_or": _logical("bool_or"),
    "some": _logical("bool_or"),
    "any": _logical("bool_or"),
    **dict.fromkeys(("stddev", "stddev_samp", "std"), _spread("stddev_samp")),
    "stddev_pop": _spread("stddev_pop"),
    **dict.fromkeys(("variance", "var_samp"), _spread("var_samp")),
    "var_pop": _spread("var_pop"),
    "percentile": _percentile,
    "median": _median,
    "max_by": _value_at("arg_max_null"),
    "min_by": _value_at("arg_min_null"),
    "bit_and": _bits("bit_and"),
    "bit_or": _bits("bit_or"),
    "bit_xor": _bits("bit_xor"),
    "any_value": _any_value,
}

#: Window functions without arguments, and the types of their results.
RANKS: Mapping[str, DataType] = {
    "row_number": INT,
    "rank": INT,
    "dense_rank": INT,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
}
#: Window functions with arguments that are not aggregates.
NEIGHBOURS = ("lag", "lead", "ntile", "nth_value", "first_value", "last_value", "first", "last")


def neighbour(name: str, arguments: Sequence[Expression]) -> AggregateCall | None:
    """Bind lag and lead with an offset and a default, ntile, nth_value, first_value and last_value.

    None for others and for wrong types.
    """
    if name in ("ntile", "nth_value"):
        return _numbered(name, arguments)
    if name in ("first_value", "last_value", "first", "last") and len(arguments) == 1:
        return AggregateCall(arguments[0].type, f"{name.removesuffix('_value')}_value({text_of(arguments[0])})")
    if name not in ("lag", "lead") or not 1 <= len(arguments) <= 3:
        return None
    value, offset = arguments[0], arguments[1] if len(arguments) > 1 else Value(INT, 1)
    if not isinstance(offset, Value) or offset.type.root not in INTEGER_ROOTS:
        return None
    default = cast(arguments[2] if len(arguments) > 2 else Value(NULL_TYPE, None), value.type)
    if default is None:
        return None
    return AggregateCall(value.type, f"{name}({text_of(value)}, {offset.value}, {text_of(default)})")



def _numbered(name: str, arguments: Sequence[Expression]) -> AggregateCall | None:
    """Bind ntile(n) and nth_value(x, n), for a literal n."""
    number = arguments[-1] if len(arguments) == (1 if name == "ntile" else 2) else None
    if not isinstance(number, Value) or number.type != INT or number.value is None or number.value < 1:
        return None
    if name == "ntile":
        return AggregateCall(INT, f"ntile({number.value})", "CAST({0} AS INTEGER)")
    return AggregateCall(arguments[0].type, f"nth_value({text_of(arguments[0])}, {number.value})")

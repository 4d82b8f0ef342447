"""Functions of Spark in DuckDB's SQL: the types that they take, the type of the result, and how they are written.

A function that is not here is refused by name. `tests/sql/test_expressions_beside_spark.py` compares each with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakelsm.expressions.decimal_arithmetic import BIGINT, quotient
from lakelsm.expressions.duckdb_casts import DuckExpression, cast, text_of
from lakelsm.expressions.duckdb_types import type_text
from lakelsm.predicate.expression import (
    BOOLEAN,
    DOUBLE,
    INT,
    NULL_TYPE,
    STRING,
    Expression,
    Value,
    common_type,
    decimal,
    is_number,
    is_ordered,
)
from lakelsm.types import INTEGER_ROOTS, ArrayType, AtomicType, DataType

_FLOATS = ("FLOAT", "DOUBLE")
#: Digits of decimals whose sum has 10 more of them.
_SUMMED_DIGITS = 28
DATE, TIMESTAMP = AtomicType("DATE"), AtomicType("TIMESTAMP", precision=6)

#: Makes the expression of a call from its arguments; None where their types are refused.
Call: TypeAlias = Callable[[Sequence[Expression]], Expression | None]


def fixed(template: str, parameters: str, result: DataType) -> Call:
    """Return a function with fixed types: ``parameters`` has a letter for each.

    s: text, i: INT, b: BIGINT, d: DATE, t: DATE or TIMESTAMP, n: any number as DOUBLE, z: BOOLEAN. A ``?`` ends the
    parameters that must be given.
    """
    required = len(parameters.partition("?")[0])
    kinds = parameters.replace("?", "")

    def call(arguments: Sequence[Expression]) -> Expression | None:
        if not required <= len(arguments) <= len(kinds):
            return None
        given = [accepted(argument, kind) for argument, kind in zip(arguments, kinds)]
        texts = [text_of(argument) for argument in given if argument is not None]
        if len(texts) < len(arguments):
            return None
        return DuckExpression(result, template.format(*texts, *[""] * (len(kinds) - len(texts))))

    return call


def accepted(argument: Expression, kind: str) -> Expression | None:
    """Return an argument as a parameter takes it: numbers are widened, and NULL has any type."""
    root = argument.type.root
    if kind == "s":
        return cast(argument, STRING) if root == "VARCHAR" or argument.type == NULL_TYPE else None
    if kind in "ib":
        target = INT if kind == "i" else BIGINT
        wide = ("TINYINT", "SMALLINT", "INT") if kind == "i" else tuple(INTEGER_ROOTS)
        return cast(argument, target) if root in wide or argument.type == NULL_TYPE else None
    if kind == "n":
        return cast(argument, DOUBLE) if is_number(argument.type) else None
    if kind == "z":
        return cast(argument, BOOLEAN) if argument.type in (BOOLEAN, NULL_TYPE) else None
    if kind == "d":
        return cast(argument, DATE) if root in ("DATE", "TIMESTAMP") or argument.type == NULL_TYPE else None
    if argument.type == NULL_TYPE:
        return Value(TIMESTAMP, None)
    return argument if root == "DATE" or argument.type == TIMESTAMP else None


def _field(name: str) -> Call:
    return fixed(f"CAST({name}({{0}}) AS INTEGER)", "t", INT)


def _same_type(template: str, accepts: Callable[[DataType], bool]) -> Call:
    """Return a function of one argument whose result has its type."""

    def call(arguments: Sequence[Expression]) -> Expression | None:
        if len(arguments) != 1 or not accepts(arguments[0].type) or arguments[0].type == NULL_TYPE:
            return None
        return DuckExpression(arguments[0].type, template.format(text_of(arguments[0])))

    return call


def _extreme(name: str) -> Call:
    """Return the maker of greatest and least: NULL is left out, and NaN is the greatest, as on both engines."""

    def call(arguments: Sequence[Expression]) -> Expression | None:
        kind = common_type(argument.type for argument in arguments)
        if len(arguments) < 2 or kind is None or kind == NULL_TYPE or not is_ordered(kind):
            return None
        sides = [cast(argument, kind) for argument in arguments]
        known = [text_of(side) for side in sides if side is not None]
        return DuckExpression(kind, f"{name}({', '.join(known)})") if len(known) == len(sides) else None

    return call


def _rounded(arguments: Sequence[Expression]) -> Expression | None:
    """Bind round(decimal or integer [, digits]): half up. Digits of a double are rounded by its decimal text in Spark."""
    if not 1 <= len(arguments) <= 2:
        return None
    kind, digits = arguments[0].type, arguments[1] if len(arguments) == 2 else Value(INT, 0)
    if not isinstance(digits, Value) or not isinstance(digits.value, int) or not isinstance(kind, AtomicType):
        return None
    if kind.root in INTEGER_ROOTS and digits.value >= 0:
        return arguments[0]
    if kind.root != "DECIMAL" or digits.value < 0:
        return None
    scale = min(digits.value, kind.scale or 0)
    whole = (kind.precision or 0) - (kind.scale or 0) + 1
    if whole + scale > 38:
        return None
    return cast(arguments[0], AtomicType("DECIMAL", precision=whole + scale, scale=scale))


def _whole(name: str) -> Call:
    """Return the maker of ceil and floor."""

    def call(arguments: Sequence[Expression]) -> Expression | None:
        if len(arguments) != 1:
            return None
        kind = arguments[0].type
        if kind.root in INTEGER_ROOTS:
            return cast(arguments[0], BIGINT)
        if isinstance(kind, AtomicType) and kind.root == "DECIMAL":
            whole = AtomicType("DECIMAL", precision=min((kind.precision or 0) - (kind.scale or 0) + 1, 38), scale=0)
            return DuckExpression(whole, f"CAST({name}({text_of(arguments[0])}) AS {type_text(whole)})")
        if kind.root == "DOUBLE":
            text = text_of(arguments[0])
            return DuckExpression(BIGINT, f"CASE WHEN isnan({text}) THEN 0 ELSE CAST({name}({text}) AS BIGINT) END")
        return None

    return call


SCALAR: Mapping[str, Call] = {
    "length": fixed("CAST(length({0}) AS INTEGER)", "s", INT),
    "char_length": fixed("CAST(length({0}) AS INTEGER)", "s", INT),
    "character_length": fixed("CAST(length({0}) AS INTEGER)", "s", INT),
    "octet_length": fixed("CAST(strlen({0}) AS INTEGER)", "s", INT),
    "ltrim": fixed("ltrim({0}, ' ')", "s", STRING),
    "rtrim": fixed("rtrim({0}, ' ')", "s", STRING),
    "reverse": fixed("array_to_string(list_reverse(string_split({0}, '')), '')", "s", STRING),
    "replace": fixed(
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END", "sss", STRING
    ),
    "startswith": fixed("starts_with({0}, {1})", "ss", BOOLEAN),
    "endswith": fixed("ends_with({0}, {1})", "ss", BOOLEAN),
    "contains": fixed("contains({0}, {1})", "ss", BOOLEAN),
    "instr": fixed("CAST(instr({0}, {1}) AS INTEGER)", "ss", INT),
    "md5": fixed("md5({0})", "s", STRING),
    "year": _field("year"),
    "quarter": _field("quarter"),
    "month": _field("month"),
    "day": _field("day"),
    "dayofmonth": _field("day"),
    "dayofyear": _field("dayofyear"),
    "weekofyear": _field("week"),
    "dayofweek": fixed("CAST(dayofweek({0}) + 1 AS INTEGER)", "t", INT),
    "weekday": fixed("CAST(isodow({0}) - 1 AS INTEGER)", "t", INT),
    "hour": _field("hour"),
    "minute": _field("minute"),
    "second": _field("second"),
    "date": fixed("{0}", "d", DATE),
    "last_day": fixed("last_day({0})", "d", DATE),
    "date_add": fixed("({0} + {1})", "di", DATE),
    "dateadd": fixed("({0} + {1})", "di", DATE),
    "date_sub": fixed("({0} - {1})", "di", DATE),
    "datediff": fixed("CAST({0} - {1} AS INTEGER)", "dd", INT),
    "date_diff": fixed("CAST({0} - {1} AS INTEGER)", "dd", INT),
    "add_months": fixed("CAST({0} + to_months({1}) AS DATE)", "di", DATE),
    "abs": lambda arguments: _absolute(arguments),
    "sign": fixed("CASE WHEN {0} = 0 OR isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END", "n", DOUBLE),
    "signum": fixed("CASE WHEN {0} = 0 OR isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END", "n", DOUBLE),
    "sqrt": fixed("sqrt({0})", "n", DOUBLE),
    "isnan": fixed("coalesce(isnan({0}), FALSE)", "n", BOOLEAN),
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _rounded,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}


def _absolute(arguments: Sequence[Expression]) -> Expression | None:
    return _same_type("abs({0})", lambda kind: is_number(kind))(arguments)


# -- aggregates --------------------------------------------------------------------------------------------------------


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
    if kind.root != "DECIMAL" or (kind.precision or 0) > _SUMMED_DIGITS:
        return None
    result = AtomicType("DECIMAL", precision=(kind.precision or 0) + 10, scale=kind.scale)
    return AggregateCall(result, f"sum({distinct}{text})", f"CAST({{0}} AS {type_text(result)})")


def _average(arguments: Sequence[Expression], distinct: str) -> AggregateCall | None:
    if len(arguments) != 1:
        return None
    kind, text = arguments[0].type, text_of(arguments[0])
    if isinstance(kind, AtomicType) and kind.root == "DECIMAL" and (kind.precision or 0) <= _SUMMED_DIGITS:
        return _decimal_average(kind, f"{distinct}{text}")
    if kind.root not in (*INTEGER_ROOTS, *_FLOATS):
        return None
    return AggregateCall(DOUBLE, f"avg({distinct}CAST({text} AS DOUBLE))")


def _decimal_average(kind: AtomicType, argument: str) -> AggregateCall | None:
    """Return the sum divided by the count, with four digits more after the point."""
    precision, scale = kind.precision or 0, kind.scale or 0
    result = AtomicType("DECIMAL", precision=min(precision + 4, 38), scale=min(scale + 4, 38))
    total, count = decimal(precision + 10, scale), AtomicType("DECIMAL", precision=20, scale=0)
    # The braces of structs in the quotient are no fields of the format.
    sums = ("\0" + "0", "\0" + "1")
    found = quotient(f"CAST({sums[0]} AS {type_text(total)})", f"nullif({sums[1]}, 0)", total, count, kind=result)
    if not isinstance(found, DuckExpression):
        return None
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
}

#: Window functions without arguments, and the types of their results.
RANKS: Mapping[str, DataType] = {
    "row_number": INT,
    "rank": INT,
    "dense_rank": INT,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
}


def neighbour(name: str, arguments: Sequence[Expression]) -> AggregateCall | None:
    """Bind lag and lead with an offset and a default, first_value and last_value; None for others and for wrong types."""
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


__all__ = ["AGGREGATES", "BIGINT", "RANKS", "SCALAR", "Aggregate", "AggregateCall", "Call", "neighbour"]

"""Functions of Spark in DuckDB's SQL: the types that they take, the type of the result, and how they are written.

A function that is not here is refused by name. `tests/sql/test_expressions_beside_spark.py` compares each with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lakelsm.expressions.decimal_arithmetic import BIGINT
from lakelsm.expressions.duckdb_casts import TIMESTAMP, TIMESTAMP_LTZ, DuckExpression, cast, text_of
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
    is_number,
    is_ordered,
)
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataType

_FLOATS = ("FLOAT", "DOUBLE")
#: Digits after the point for which a DECIMAL(38) has 18 digits before it.
_ROUNDED_DIGITS = 20
DATE = AtomicType("DATE")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")

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
        return cast(argument, DATE) if root in _TIMES or argument.type == NULL_TYPE else None
    if argument.type == NULL_TYPE:
        return Value(TIMESTAMP, None)
    if argument.type == TIMESTAMP_LTZ:
        return cast(argument, TIMESTAMP)
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
    """Bind round(number [, digits]): half up. The decimal text of a DOUBLE is rounded."""
    if not 1 <= len(arguments) <= 2:
        return None
    kind, digits = arguments[0].type, arguments[1] if len(arguments) == 2 else Value(INT, 0)
    if not isinstance(digits, Value) or not isinstance(digits.value, int) or not isinstance(kind, AtomicType):
        return None
    if kind.root in INTEGER_ROOTS and digits.value >= 0:
        return arguments[0]
    if kind.root in _FLOATS and 0 <= digits.value <= _ROUNDED_DIGITS:
        return DuckExpression(kind, _rounded_text(text_of(arguments[0]), kind, digits.value))
    if kind.root != "DECIMAL" or digits.value < 0:
        return None
    scale = min(digits.value, kind.scale or 0)
    whole = (kind.precision or 0) - (kind.scale or 0) + 1
    if whole + scale > 38:
        return None
    return cast(arguments[0], AtomicType("DECIMAL", precision=whole + scale, scale=scale))


def _rounded_text(text: str, kind: AtomicType, digits: int) -> str:
    rounded = f"CAST(CAST(CAST({text} AS DOUBLE) AS VARCHAR) AS DECIMAL(38, {digits}))"
    # Numbers above 2**53 have no digits after the point.
    is_whole = f"NOT isfinite({text}) OR abs({text}) > 1e17"
    return f"CASE WHEN {is_whole} THEN {text} ELSE CAST(CAST({rounded} AS VARCHAR) AS {kind.root}) END"


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
        if kind.root in _FLOATS:
            text = f"CAST({text_of(arguments[0])} AS DOUBLE)"
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

"""Operators of queries in DuckDB's SQL: arithmetic, comparisons, conditions, CASE, casts, elements of arrays and maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.collection_functions import value_at
from lakelsm.expressions.decimal_arithmetic import BIGINT, decimal_arithmetic, whole_quotient
from lakelsm.expressions.duckdb_casts import DuckExpression, alike, cast, failure, text_of
from lakelsm.expressions.duckdb_functions import SCALAR
from lakelsm.expressions.expression_binder import ExpressionBinder, Handlers, Node, shown
from lakelsm.expressions.regular_expressions import matched
from lakelsm.expressions.text_functions import ESCAPE, like_pattern, lowered
from lakelsm.expressions.time_functions import Interval, interval, moved
from lakelsm.predicate.expression import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    NULL_TYPE,
    STRING,
    Expression,
    Value,
    arithmetic_type,
    common_type,
    is_number,
    is_ordered,
    reduced,
)
from lakelsm.predicate.sqlglot_tree import is_plain
from lakelsm.types import INTEGER_ROOTS, ArrayType, DataType, MapType

_ARITHMETIC: dict[Any, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_COMPARISONS: dict[Any, str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_BITS: dict[Any, str] = {
    exp.BitwiseAnd: "({} & {})",
    exp.BitwiseNot: "(~{})",
    exp.BitwiseOr: "({} | {})",
    exp.BitwiseXor: "xor({}, {})",
}


def arithmetic(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``+ - * / %``, and days added to a date."""
    op = _ARITHMETIC[type(node)]
    steps = [interval(node.this), interval(node.expression)]
    if any(step is not None for step in steps):
        return _moved(binder, node, op, steps)
    left, right = binder.bind(node.this), binder.bind(node.expression)
    if left.type.root == "DATE" and op in "+-":
        if right.type.root == "DATE":
            return None  # An interval, which is no type of columns.
        return SCALAR["date_add" if op == "+" else "date_sub"]([left, right])
    if not (is_number(left.type) and is_number(right.type)):
        return None
    kind = arithmetic_type(op, left, right)
    if kind.root == "DECIMAL":
        return decimal_arithmetic(op, left, right, kind)
    sides = [cast(left, kind), cast(right, kind)]
    if sides[0] is None or sides[1] is None:
        return None
    one, other = text_of(sides[0]), text_of(sides[1])
    if op in "/%":
        return DuckExpression(kind, _divided(one, op, other, kind))
    return DuckExpression(kind, f"({one} {op} {other})")


def _moved(
    binder: ExpressionBinder, node: Node, op: str, steps: Sequence[Interval | None]
) -> Expression | None:
    """Bind a date or time plus or minus an interval, and an interval plus a date or time."""
    if op == "+" and steps[1] is None and steps[0] is not None:
        return moved(binder.bind(node.expression), steps[0])
    if op not in "+-" or steps[0] is not None or steps[1] is None:
        return None
    return moved(binder.bind(node.this), steps[1] if op == "+" else steps[1].negated())


def integer_division(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a DIV b``: BIGINT."""
    left, right = binder.bind(node.this), binder.bind(node.expression)
    roots = {left.type.root, right.type.root}
    if not roots <= {*INTEGER_ROOTS}:
        return whole_quotient(left, right) if roots <= {"DECIMAL", *INTEGER_ROOTS} else None
    one, other = (text_of(side) for side in (cast(left, BIGINT), cast(right, BIGINT)) if side is not None)
    return DuckExpression(BIGINT, _divided(one, "//", other, BIGINT))


def _divided(one: str, op: str, other: str, kind: DataType) -> str:
    """Return a quotient or remainder that fails for 0, unless the dividend is NULL."""
    failed = failure("division by zero", kind)
    return f"CASE WHEN {other} = 0 AND {one} IS NOT NULL THEN {failed} ELSE {one} {op} {other} END"


def negative(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``-x``."""
    child = binder.bind(node.this)
    if child.type == NULL_TYPE:
        return Value(DOUBLE, None)
    return DuckExpression(child.type, f"(-{text_of(child)})") if is_number(child.type) else None


def comparison(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``= <> < <= > >=``."""
    return compared(_COMPARISONS[type(node)], binder.bind(node.this), binder.bind(node.expression))


def compared(op: str, left: Expression, right: Expression) -> Expression | None:
    """Return a comparison of two expressions of one common type; None where they have none, or it has no order."""
    sides = alike(with_times([_checked(left), _checked(right)]))
    if sides is None or not is_ordered(sides[0].type):
        return None
    return DuckExpression(BOOLEAN, f"({text_of(sides[0])} {op} {text_of(sides[1])})")


def _checked(side: Expression) -> Expression:
    """Return a side of a comparison. DuckDB compares ``a + 1 > 2`` as ``a > 1``, which hides an overflow of the sum."""
    is_computed = isinstance(side, DuckExpression) and side.type.root in INTEGER_ROOTS and "(" in side.sql
    return DuckExpression(side.type, f"({text_of(side)} | 0)") if is_computed else side


def with_times(compared: Sequence[Expression]) -> list[Expression]:
    """Return expressions that are compared: texts are cast to BIGINT or DOUBLE beside a number.

    Literals of text are cast to the type of a date or time beside them.
    """
    numbers = [each.type.root for each in compared if is_number(each.type) and each.type != NULL_TYPE]
    if numbers:
        kind: DataType = BIGINT if all(root in INTEGER_ROOTS for root in numbers) else DOUBLE
        casts = [cast(each, kind) if each.type == STRING else None for each in compared]
        return [each if found is None else found for each, found in zip(compared, casts)]
    kinds = {each.type for each in compared if each.type.root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")}
    if len(kinds) != 1:
        return list(compared)
    (kind,) = kinds
    casts = [cast(each, kind) if isinstance(each, Value) and each.type == STRING else None for each in compared]
    return [each if found is None else found for each, found in zip(compared, casts)]


def bits(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a & b``, ``a | b``, ``a ^ b`` and ``~a`` of integers."""
    parts = [binder.bind(each) for each in (node.this, node.expression) if each is not None]
    sides = alike(parts)
    if sides is None or any(each.type.root not in INTEGER_ROOTS for each in parts):
        return None
    texts = [text_of(side) for side in sides]
    return DuckExpression(sides[0].type, _BITS[type(node)].format(*texts))


def null_safe_equal(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a <=> b``."""
    return compared("IS NOT DISTINCT FROM", binder.bind(node.this), binder.bind(node.expression))


def distinct_from(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a IS DISTINCT FROM b``."""
    return compared("IS DISTINCT FROM", binder.bind(node.this), binder.bind(node.expression))


def connected(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind AND and OR; a long chain is deep on its left."""
    kind, word = type(node), "AND" if isinstance(node, exp.And) else "OR"
    parts, pending = [], [node]
    while pending:
        one = pending.pop()
        if type(one) is kind:
            pending += [one.expression, one.this]
        else:
            parts.append(binder.condition(one))
    return DuckExpression(BOOLEAN, "(" + f" {word} ".join(parts) + ")")


def inverted(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``NOT a``."""
    return DuckExpression(BOOLEAN, f"(NOT {binder.condition(node.this)})")


def is_test(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a IS NULL``, ``a IS TRUE``."""
    if isinstance(node.expression, exp.Null):
        return DuckExpression(BOOLEAN, f"({text_of(binder.bind(node.this))} IS NULL)")
    if isinstance(node.expression, exp.Boolean):
        word = "TRUE" if node.expression.this else "FALSE"
        return DuckExpression(BOOLEAN, f"({binder.condition(node.this)} IS NOT DISTINCT FROM {word})")
    return None


def between(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a BETWEEN b AND c``."""
    value, low, high = binder.bind(node.this), binder.bind(node.args["low"]), binder.bind(node.args["high"])
    tests = [compared(">=", value, low), compared("<=", value, high)]
    if tests[0] is None or tests[1] is None or node.args.get("symmetric"):
        return None
    return DuckExpression(BOOLEAN, f"({text_of(tests[0])} AND {text_of(tests[1])})")


def within(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a IN (values)`` and ``a IN (query)``."""
    value = binder.bind(node.this)
    query = node.args.get("query")
    if query is not None:
        sql, columns = binder.bind_query(query.this if isinstance(query, exp.Subquery) else query, binder.scope)
        if len(columns) != 1:
            raise InvalidInputError(f"SQL: the query of {shown(node)!r} has {len(columns)} columns instead of 1.")
        sides = alike([value, DuckExpression(columns[0].type, "q.c0")])
        if sides is None or not is_ordered(sides[0].type):
            return None
        if sides[0].type != columns[0].type:
            sql = f"SELECT {text_of(sides[1])} AS c0 FROM ({sql}) AS q"
        return DuckExpression(BOOLEAN, f"({text_of(sides[0])} IN ({sql}))")
    found = alike(with_times([_checked(each) for each in (value, *map(binder.bind, node.expressions))]))
    if found is None or len(found) < 2 or not is_ordered(found[0].type):
        return None
    return DuckExpression(BOOLEAN, f"({text_of(found[0])} IN ({', '.join(map(text_of, found[1:]))}))")


def exists(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``EXISTS (query)``."""
    return DuckExpression(BOOLEAN, f"EXISTS ({binder.bind_query(node.this, binder.scope)[0]})")


def scalar_query(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind a query in parentheses with one column, as a value."""
    sql, columns = binder.bind_query(node.this, binder.scope)
    if len(columns) != 1:
        raise InvalidInputError(f"SQL: {shown(node)!r} has {len(columns)} columns, but a value has one.")
    return DuckExpression(columns[0].type, f"({sql})")


def like(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a [NOT] LIKE 'pattern'``, and ILIKE, of lower-case texts. Some versions of sqlglot have NOT in the node."""
    return _like(binder, node, ESCAPE)


def _like(binder: ExpressionBinder, node: Node, escape: str) -> Expression | None:
    value, pattern = binder.bind(node.this), binder.bind(node.expression)
    if value.type not in (STRING, NULL_TYPE) or not isinstance(pattern, Value) or pattern.type != STRING:
        return None
    if pattern.value is None:
        return Value(BOOLEAN, None)
    plain = like_pattern(pattern.value, escape)
    if plain is None:
        raise InvalidInputError(f"SQL: pattern {pattern.value!r}: {escape!r} precedes neither '%', '_' nor itself.")
    sides: list[Expression | None] = [cast(value, STRING), Value(STRING, plain)]
    if isinstance(node, exp.ILike):
        sides = [None if side is None else lowered(side) for side in sides]
    if sides[0] is None or sides[1] is None:
        return None
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return DuckExpression(BOOLEAN, f"({text_of(sides[0])} {word} {text_of(sides[1])} ESCAPE '{ESCAPE}')")


def rlike(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a RLIKE pattern``."""
    return matched([binder.bind(node.this), binder.bind(node.expression)])


def escaped(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a LIKE 'pattern' ESCAPE 'c'``."""
    inner, escape = node.this, binder.literal(node.expression)
    negated = isinstance(inner, exp.Not)
    inner = inner.this if negated else inner
    if not isinstance(inner, exp.Like | exp.ILike) or not is_plain(inner, "this", "expression", "negate"):
        return None
    if escape is None or escape.type != STRING or len(escape.value) != 1:
        raise InvalidInputError(f"SQL: {shown(node)!r}: ESCAPE takes one character.")
    found = _like(binder, inner, escape.value)
    return DuckExpression(BOOLEAN, f"(NOT {text_of(found)})") if negated and found is not None else found


def trimmed(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``trim(a)`` and ``TRIM(BOTH 'characters' FROM a)``."""
    functions = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    name = functions.get(str(node.args.get("position") or "").upper())
    text = cast(binder.bind(node.this), STRING)
    characters = cast(Value(STRING, " ") if node.expression is None else binder.bind(node.expression), STRING)
    if name is None or text is None or characters is None:
        return None
    return DuckExpression(STRING, f"{name}({text_of(text)}, {text_of(characters)})")


def joined(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``a || b``."""
    return concatenated([binder.bind(node.this), binder.bind(node.expression)])


def concatenated(parts: Sequence[Expression]) -> Expression | None:
    """Return texts, or bytes, one after the other; None for a part that is not text."""
    kinds = {part.type for part in parts}
    kind = BYTES if kinds == {BYTES} else STRING
    if BYTES in kinds and kind == STRING:
        return Value(STRING, None) if kinds == {BYTES, NULL_TYPE} else None
    found = [cast(part, kind) for part in parts]
    texts = [text_of(part) for part in found if part is not None]
    return DuckExpression(kind, f"({' || '.join(texts)})") if len(texts) == len(parts) > 0 else None


def case(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``CASE WHEN c THEN a ELSE b END``, and CASE of a value."""
    tests, values = [], []
    for each in node.args["ifs"]:
        test = each.this if node.this is None else exp.EQ(this=node.this.copy(), expression=each.this.copy())
        if isinstance(test, exp.Null):
            raise InvalidInputError("SQL: CASE WHEN NULL: NULL is not a condition.")
        tests.append(binder.condition(test))
        values.append(binder.bind(each.args["true"]))
    default = node.args.get("default")
    return chosen(tests, [*values, Value(NULL_TYPE, None) if default is None else binder.bind(default)])


def chosen(tests: Sequence[str], values: Sequence[Expression]) -> Expression | None:
    """Return the value of the first test that is TRUE, else the last value; None where they have no common type."""
    sides = alike(values)
    if sides is None:
        return None
    kind = common_type(each.type for each in values)
    if kind == NULL_TYPE:
        return Value(NULL_TYPE, None)
    branches = " ".join(f"WHEN {test} THEN {text_of(value)}" for test, value in zip(tests, sides))
    return DuckExpression(sides[0].type, f"CASE {branches} ELSE {text_of(sides[-1])} END")


def extract(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``EXTRACT(field FROM a)``."""
    name = str(node.this.name).lower()
    names = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}
    call = SCALAR.get(names.get(name, name))
    known = ("year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute")
    return call([binder.bind(node.expression)]) if call is not None and name in known else None


def element(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``array[index]`` from 0, and ``map[key]``."""
    holder, index = binder.bind(node.this), binder.bind(node.expressions[0])
    if isinstance(holder.type, MapType):
        return value_at(holder, index)
    if not isinstance(holder.type, ArrayType) or index.type.root not in INTEGER_ROOTS:
        return None
    array, at = text_of(holder), text_of(index)
    outside = f"({at} < 0 OR {at} >= len({array}))"
    value = f"{array}[CAST({at} AS BIGINT) + 1]"
    kind = reduced(holder.type.element)
    failed = failure("array index out of bounds", kind)
    return DuckExpression(kind, f"CASE WHEN {outside} THEN {failed} ELSE {value} END")


def member(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind a field of a row that is not a column alone: ``array[0].name``."""
    if not isinstance(node.expression, exp.Identifier):
        return None
    return binder.member(binder.bind(node.this), node.expression.name, node)


#: The handlers of this module, by the class of the node.
OPERATORS: Handlers = {
    **dict.fromkeys(_ARITHMETIC, arithmetic),
    **dict.fromkeys(_COMPARISONS, comparison),
    exp.And: connected,
    exp.Or: connected,
    exp.Between: between,
    **dict.fromkeys(_BITS, bits),
    exp.Bracket: element,
    exp.Case: case,
    exp.Dot: member,
    exp.DPipe: joined,
    exp.Escape: escaped,
    exp.Exists: exists,
    exp.Extract: extract,
    exp.ILike: like,
    exp.In: within,
    exp.IntDiv: integer_division,
    exp.Is: is_test,
    exp.Like: like,
    exp.RegexpLike: rlike,
    exp.Neg: negative,
    exp.Not: inverted,
    exp.NullSafeEQ: null_safe_equal,
    exp.NullSafeNEQ: distinct_from,
    exp.Subquery: scalar_query,
    exp.Trim: trimmed,
}

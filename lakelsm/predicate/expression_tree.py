"""Conversion of an SQL expression, parsed by sqlglot, to an Expression, by the rules of Spark's ANSI mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from sqlglot import exp

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.predicate.evaluation import check_supported
from lakelsm.predicate.expression import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    NULL_TYPE,
    STRING,
    Arithmetic,
    Case,
    Cast,
    Coalesced,
    ColumnValue,
    Comparison,
    Condition,
    Connected,
    Expression,
    Joined,
    Negative,
    Not,
    NullTest,
    Value,
    arithmetic_type,
    common_type,
    decimal_of,
    is_number,
    is_ordered,
    reduced,
)
from lakelsm.predicate.literals import Literal, time_value
from lakelsm.predicate.predicate import unknown_part
from lakelsm.predicate.sqlglot_tree import COMPARISONS, Node, Scope, cast_type, is_plain, operands, unknown
from lakelsm.types import INTEGER_BITS, INTEGER_ROOTS, MAX_DECIMAL_DIGITS, AtomicType, DataField, DataType

_ARITHMETIC: dict[Any, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_CASTS: dict[str, AtomicType] = {
    **{root: AtomicType(root) for root in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE")},
    "TEXT": STRING,
    "TIMESTAMPNTZ": AtomicType("TIMESTAMP"),
}
#: The types that are cast to text as in Spark, in addition to text.
_TO_TEXT = frozenset(["BOOLEAN", "DECIMAL", "DATE"]) | INTEGER_ROOTS
#: The maximum levels of an expression: each level needs some of Python's stack.
_MAX_LEVELS = 100

# Texts, numbers with a suffix for their type (5L, 1.5BD), and the tokens in which they are not searched: names, comments.
_TOKENS = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
    r"""|(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([lLsSyYdDfF]|[bB][dD])(?!\w)"""
    r"""|`[^`]*`|--[^\n]*|/\*.*?\*/""",
    re.DOTALL,
)
_SUFFIXES = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT", "BD": "DECIMAL"}


def converted_expression(sql: str, fields: Sequence[DataField], session_time_zone: str | None) -> Expression:
    """Convert an SQL expression (`parser.parse_expression`)."""
    scope, shortened = Scope.of(sql, fields, session_time_zone, "expression")
    shortened, cut = _cut_literals(shortened)
    scope.texts = {name: None if value is None else _as_literal(value) for name, value in cut.items()}
    try:
        return _Converter(scope, sql, cut).convert(scope.tree(sql, shortened))
    except RecursionError as error:
        raise _too_deep() from error


def _too_deep() -> InvalidInputError:
    return InvalidInputError("the expression is nested too deeply.")


def _cut_literals(sql: str) -> tuple[str, Mapping[str, Value | None]]:
    """Replace each literal that sqlglot reads differently from Spark by a plain text.

    Returns the expression, and the literals by these texts. In Spark 4 a quote within a text is doubled, which sqlglot
    reads as two texts; and sqlglot reads 5L as a cast. A number that does not fit its type is None.
    """
    prefix = "literal"
    while prefix in sql:
        prefix += "-"
    cut: dict[str, Value | None] = {}

    def plain(token: re.Match[str]) -> str:
        quoted, number, suffix = token.groups()
        name = f"{prefix}{len(cut)}"
        if number is not None:
            # The sign is part of the number: -128Y is one.
            cut[name], cut[f"-{name}"] = (_suffixed(sign + number, suffix.upper()) for sign in ("", "-"))
        elif quoted is None or "\\" in quoted or not ("'" in quoted[1:-1] or quoted[0] in quoted[1:-1]):
            return token[0]
        else:
            cut[name] = Value(STRING, quoted[1:-1].replace(2 * quoted[0], quoted[0]))
        return f"'{name}'"

    return _TOKENS.sub(plain, sql), cut


def _suffixed(number: str, suffix: str) -> Value | None:
    """Return a number with a suffix for its type; None if it does not fit the type."""
    root = _SUFFIXES[suffix]
    if root == "DECIMAL":
        return _decimal(number)
    if root in INTEGER_ROOTS:
        return _integer(int(number), AtomicType(root)) if number.lstrip("-").isdigit() else None
    return Value(AtomicType(root), float(number)) if isfinite(float(number)) else None


def _as_literal(value: Value) -> Literal | None:
    """Return the value as a literal of conditions, which have no FLOAT: None."""
    kinds = {"VARCHAR": "string", "DECIMAL": "decimal", "DOUBLE": "double"}
    kind = "integer" if value.type.root in INTEGER_ROOTS else kinds.get(value.type.root)
    return None if kind is None else Literal(kind, value.value)


class _Converter:
    """The converter of one tree. Raises UnsupportedFeatureError for a part that the local engine cannot evaluate."""

    def __init__(self, scope: Scope, sql: str, cut: Mapping[str, Value | None]) -> None:
        self._scope = scope
        self._sql = sql
        self._cut = cut
        self._level = 0

    def convert(self, node: Node) -> Expression:
        """Convert a node to an expression."""
        self._level += 1
        if self._level > _MAX_LEVELS:
            raise _too_deep()
        try:
            found = self._convert(node)
        finally:
            self._level -= 1
        if found is None:
            raise self._refused(node)
        return found

    def _convert(self, node: Node) -> Expression | None:
        if isinstance(node, exp.Paren):
            return self.convert(node.this)
        if isinstance(node, exp.Column):
            column = self._scope.column(node)
            return None if column is None else ColumnValue(reduced(column.type), column.name)
        literal = self._literal(node)
        if literal is not None:
            return literal
        convert = _BY_NODE.get(type(node))
        return self._condition(node) if convert is None else convert(self, node)

    def _refused(self, node: Node) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"the local engine cannot evaluate {unknown(node).reason!r}. Pass engine='spark' to evaluate it on Spark."
        )

    # -- literals ----------------------------------------------------------------------------------------------------

    def _literal(self, node: Node) -> Value | None:
        negative = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
        cast = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string
        cast = cast and node.this.this not in self._cut  # Here a text replaces a number with a suffix.
        if not (negative or cast or isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.HexString)):
            return None
        inner = node.this if negative else node
        if isinstance(inner, exp.Literal) and inner.this in self._cut:
            return self._cut.get(f"-{inner.this}" if negative else inner.this)
        literal = self._scope.literal(node)
        return None if literal is None else _value(literal, self._scope.zone)

    # -- numbers -----------------------------------------------------------------------------------------------------

    def arithmetic(self, node: Node) -> Expression | None:
        """Convert ``+ - * / %``."""
        if not is_plain(node, "this", "expression", "typed", "safe"):
            return None
        op, left, right = _ARITHMETIC[type(node)], self.convert(node.this), self.convert(node.expression)
        if not (is_number(left.type) and is_number(right.type)):
            return None
        kind = arithmetic_type(op, left, right)
        if kind.root != "DECIMAL":
            return Arithmetic(kind, op, self._as(left, kind, node), self._as(right, kind, node))
        sides = [Value(kind, None) if side.type == NULL_TYPE else side for side in (left, right)]
        return Arithmetic(kind, op, *(self._as(side, decimal_of(side), node) for side in sides))

    def negative(self, node: Node) -> Expression | None:
        """Convert ``-x``."""
        child = self.convert(node.this)
        if child.type == NULL_TYPE:
            return Value(DOUBLE, None)
        return Negative(child.type, child) if is_number(child.type) else None

    def cast(self, node: Node) -> Expression | None:
        """Convert ``CAST(x AS type)``."""
        if not is_plain(node, "this", "to"):
            return None
        name = cast_type(node)
        digits = [int(one.this.this) for one in node.to.expressions] if name == "DECIMAL" else []
        target = AtomicType("DECIMAL", precision=(digits or [10])[0], scale=(digits[1:] or [0])[0])
        kind = target if name == "DECIMAL" else _CASTS.get(name)
        if kind is None:
            return None
        child = self.convert(node.this)
        cast = self._as(child, kind, node)
        # A literal cast to its own type must not stay a literal: its digits would make a narrower decimal.
        return Cast(kind, child) if cast is child else cast

    # -- texts -------------------------------------------------------------------------------------------------------

    def joined(self, node: Node) -> Expression | None:
        """Convert ``a || b``, ``concat(a, b)`` and adjacent texts."""
        children = [self.convert(part) for part in _parts(node)]
        known = {child.type for child in children} - {NULL_TYPE}
        kind = BYTES if known == {BYTES} else STRING
        if not children or (kind == STRING and BYTES in known):
            return None
        return Joined(kind, tuple(self._as(child, kind, node) for child in children))

    # -- choices -----------------------------------------------------------------------------------------------------

    def case(self, node: Node) -> Expression | None:
        """Convert ``CASE WHEN c THEN a ELSE b END``, and CASE of a value."""
        branches = []
        for each in node.args["ifs"]:
            test = each.this if node.this is None else exp.EQ(this=node.this.copy(), expression=each.this.copy())
            branches.append((self.condition(test), self.convert(each.args["true"])))
        default = node.args.get("default")
        return self._case(branches, None if default is None else self.convert(default), node)

    def either(self, node: Node) -> Expression | None:
        """Convert ``if(c, a, b)``."""
        default = node.args.get("false")
        branch = self.condition(node.this), self.convert(node.args["true"])
        return self._case([branch], None if default is None else self.convert(default), node)

    def coalesced(self, node: Node) -> Expression | None:
        """Convert ``coalesce(a, b)``, nvl and ifnull."""
        children = [self.convert(part) for part in (node.this, *node.expressions)]
        kind = common_type(child.type for child in children)
        return None if kind is None else Coalesced(kind, tuple(self._as(child, kind, node) for child in children))

    def null_if(self, node: Node) -> Expression | None:
        """Convert ``nullif(a, b)``."""
        value = self.convert(node.this)
        equal = self._compared("=", value, self.convert(node.expression), node)
        return None if equal is None else self._case([(equal, Value(NULL_TYPE, None))], value, node)

    def _case(
        self, branches: list[tuple[Expression, Expression]], otherwise: Expression | None, node: Node
    ) -> Expression | None:
        otherwise = otherwise or Value(NULL_TYPE, None)
        kind = common_type(value.type for value in (*(value for _, value in branches), otherwise))
        if kind is None:
            return None
        cast = tuple((test, self._as(value, kind, node)) for test, value in branches)
        return Case(kind, cast, self._as(otherwise, kind, node))

    # -- conditions --------------------------------------------------------------------------------------------------

    def condition(self, node: Node) -> Expression:
        """Convert a condition. Raises UnsupportedFeatureError for another expression."""
        found = self.convert(node)
        if found.type == NULL_TYPE:
            return Value(BOOLEAN, None)
        if found.type != BOOLEAN:
            raise self._refused(node)
        return found

    def _condition(self, node: Node) -> Expression | None:
        """Convert a condition that WHERE supports, or a comparison of two expressions."""
        predicate = self._scope.convert(node)
        if unknown_part(predicate) is None:
            check_supported(predicate, self._sql)
            return Condition(BOOLEAN, predicate)
        if isinstance(node, exp.And | exp.Or):
            op = "and" if isinstance(node, exp.And) else "or"
            return Connected(BOOLEAN, op, self.condition(node.this), self.condition(node.expression))
        if isinstance(node, exp.Not):
            return Not(BOOLEAN, self.condition(node.this))
        if type(node) in COMPARISONS and is_plain(node, "this", "expression"):
            left, right = self.convert(node.this), self.convert(node.expression)
            return self._compared(COMPARISONS[type(node)], left, right, node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return NullTest(BOOLEAN, self.convert(node.this))
        return None

    def _compared(self, op: str, left: Expression, right: Expression, node: Node) -> Expression | None:
        kind = common_type(side.type for side in (left, right))
        if kind is None or not is_ordered(kind):
            return None
        if kind == NULL_TYPE:
            return Value(BOOLEAN, None)
        return Comparison(BOOLEAN, op, self._as(left, kind, node), self._as(right, kind, node))

    def _as(self, child: Expression, kind: DataType, node: Node) -> Expression:
        """Cast an expression. Raises UnsupportedFeatureError for a cast that the local engine cannot evaluate."""
        source = child.type
        if source == kind:
            return child
        if source == NULL_TYPE:
            return Value(kind, None)
        known = is_number(kind) and (is_number(source) or source.root == "BOOLEAN")
        known |= kind == STRING and source.root in _TO_TEXT
        known |= {source.root, kind.root} <= {"DATE", "TIMESTAMP"} or source.root == kind.root == "TIMESTAMP_LTZ"
        if not known:
            raise self._refused(node)
        return Cast(kind, child)


_BY_NODE: dict[Any, Callable[[_Converter, Node], Expression | None]] = {
    **dict.fromkeys(_ARITHMETIC, _Converter.arithmetic),
    exp.Neg: _Converter.negative,
    exp.Cast: _Converter.cast,
    exp.TryCast: _Converter.cast,
    exp.DPipe: _Converter.joined,
    exp.Concat: _Converter.joined,
    exp.Case: _Converter.case,
    exp.If: _Converter.either,
    exp.Coalesce: _Converter.coalesced,
    exp.Nullif: _Converter.null_if,
}


def _parts(node: Node) -> Iterator[Node]:
    """Return the operands of a chain of ``||``, from left to right, or of concat."""
    return iter(node.expressions) if isinstance(node, exp.Concat) else operands(node, exp.DPipe)


def _value(literal: Literal, zone: str | None) -> Value | None:
    """Return a literal with its type in Spark; None if Spark refuses it or its value depends on the session."""
    kind, value = literal.kind, literal.value
    if kind == "integer":
        return _integer(value, INT) or _integer(value, AtomicType("BIGINT")) or _decimal(str(value))
    if kind == "decimal":
        return _decimal(str(value))
    plain = {"null": NULL_TYPE, "boolean": BOOLEAN, "double": DOUBLE, "string": STRING, "binary": BYTES}
    if kind in plain:
        return Value(plain[kind], value)
    found = time_value(literal, zone)
    return None if found is None else Value(*found)


def _integer(value: int | None, kind: DataType) -> Value | None:
    """Return an integer of a type; None if it does not fit."""
    bound = 1 << (INTEGER_BITS[kind.root] - 1)
    return Value(kind, value) if value is None or -bound <= value < bound else None


def _decimal(text: str) -> Value | None:
    """Return a decimal number with the digits of its text; None if they are too many."""
    value = Decimal(text)
    parts = value.as_tuple()
    scale = max(0, -int(parts.exponent))
    digits = max(len(parts.digits) + max(0, int(parts.exponent)), scale)
    fits = digits <= MAX_DECIMAL_DIGITS
    return Value(AtomicType("DECIMAL", precision=digits, scale=scale), value) if fits else None

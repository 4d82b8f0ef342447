"""Conversion of a query's expressions to DuckDB's SQL, with their types in Spark's ANSI mode: names and literals.

Each expression is bound to the columns that are in scope, and typed. If DuckDB evaluates one differently, it is written
in another form, or refused by name. No text of the user reaches DuckDB: names are quoted, and literals are written by
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from sqlglot import exp

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.duckdb_casts import DuckExpression, computed, text_of
from lakelsm.expressions.duckdb_types import text_literal
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.predicate.expression import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    NULL_TYPE,
    STRING,
    Expression,
    Value,
    decimal,
    is_number,
    reduced,
)
from lakelsm.predicate.sqlglot_tree import is_plain
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX
from lakelsm.types import INTEGER_BITS, ArrayType, AtomicType, DataType, RowType

Node = Any  # An expression of sqlglot, whose base class has other names in other versions.
#: Levels of an expression: each takes some of Python's stack.
_MAX_LEVELS = 100
#: Characters of an expression in DuckDB's SQL, where some functions repeat their arguments.
_MAX_CHARACTERS = 4_000_000
#: Arguments of nodes that handlers read; a node with others, such as a modifier, is refused.
_ARGUMENTS = ("this", "expression", "expressions")
_MORE_ARGUMENTS = {
    "Between": ("low", "high"),
    "Case": ("ifs", "default"),
    "Cast": ("to",),
    "Div": ("safe", "typed"),
    "DPipe": ("safe",),
    "ILike": ("negate",),
    "In": ("query",),
    "Like": ("negate",),
    "Trim": ("position",),
    "TryCast": ("to", "safe"),
    "Window": ("partition_by", "order", "spec", "over", "alias", "first"),
}
#: Functions that need no parentheses.
CURRENT_TIMES = ("current_date", "current_timestamp", "localtimestamp")
#: Characters of a part of a query that messages show.
_SHOWN = 200


@dataclass(frozen=True)
class ScopeColumn:
    """A column in scope: its name, the relation that it is of, its type, and its name in DuckDB's SQL.

    ``hidden``: it is found with the relation's name only, as USING merged it with another column.
    """

    name: str
    qualifier: str | None
    type: DataType
    sql: str
    _: KW_ONLY
    hidden: bool = False


@dataclass
class QueryScope:
    """The columns that an expression may name, from the innermost query outwards.

    ``groups``: the query has groups; then the columns of the query itself are visible within aggregates only, and
    expressions of ``groups`` everywhere. ``has_sets``: a row is in several groups, as with ROLLUP. ``aliases`` are
    expressions of the SELECT list by name, in lower case.
    """

    columns: Sequence[ScopeColumn] = ()
    parent: QueryScope | None = None
    groups: Mapping[str, Expression] | None = None
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    _: KW_ONLY
    has_sets: bool = False


#: Binds a node; None where it is refused.
Handler: TypeAlias = "Callable[[ExpressionBinder, Node], Expression | None]"
Handlers: TypeAlias = Mapping[Any, Handler]
#: Binds a subquery within a scope: its SQL, and its columns with their types.
BindQuery: TypeAlias = "Callable[[Node, QueryScope], tuple[str, Sequence[Any]]]"


class ExpressionBinder:
    """Binds the expressions of one SELECT."""

    def __init__(self, tree: QueryTree, scope: QueryScope, bind_query: BindQuery, handlers: Handlers) -> None:
        """``bind_query`` binds a subquery; ``handlers`` bind the nodes that are neither names nor literals."""
        self.scope = scope
        self.bind_query = bind_query
        self._tree = tree
        self._handlers = handlers
        self.in_aggregate = False
        self._level = 0

    @property
    def time(self) -> datetime:
        """The current time of the query."""
        return self._tree.time

    def bind(self, node: Node) -> Expression:
        """Return the expression of a node. Raises UnsupportedFeatureError for a part that is refused."""
        self._level += 1
        if self._level > _MAX_LEVELS:
            raise InvalidInputError("SQL: an expression is nested too deeply.")
        try:
            found = self._bound(node)
        finally:
            self._level -= 1
        if found is None:
            self.refuse(node)
        if isinstance(found, DuckExpression) and len(found.sql) > _MAX_CHARACTERS:
            raise InvalidInputError(f"SQL: {self._tree.as_written(shown(node))!r} is too complex for this process.")
        groups = self.scope.groups
        if groups and not self.in_aggregate and isinstance(found, DuckExpression) and found.sql in groups:
            return groups[found.sql]
        return found

    def condition(self, node: Node) -> str:
        """Return a condition in DuckDB's SQL."""
        found = self.bind(node)
        if found.type == NULL_TYPE:
            return "CAST(NULL AS BOOLEAN)"
        if found.type != BOOLEAN:
            raise InvalidInputError(f"SQL: {shown(node)!r} is {found.type.sql()}, not a condition.")
        return text_of(found)

    def refuse(self, node: Node) -> NoReturn:
        """Raise UnsupportedFeatureError for a node."""
        raise refusal(node, self._tree.as_written(shown(node)))

    def _bound(self, node: Node) -> Expression | None:
        if isinstance(node, exp.Paren | exp.Alias):
            return self.bind(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        literal = self.literal(node)
        if literal is not None:
            return literal
        bind, kind = self._handlers.get(type(node)), type(node).__name__
        if bind is None or not is_plain(node, *_ARGUMENTS, *_MORE_ARGUMENTS.get(kind, ())):
            return None
        return bind(self, node)

    # -- names -------------------------------------------------------------------------------------------------------

    def _column(self, node: Node) -> Expression | None:
        """Return a column by its name, with a relation's name before it, and fields of rows after it."""
        names = [part.name for part in node.parts]
        scope: QueryScope | None = self.scope
        while scope is not None:
            found = self._in_scope(scope, names, node)
            if found is not None:
                return found
            scope = scope.parent
        lowered = names[0].lower()
        if len(names) == 1 and lowered in self.scope.aliases:
            return computed(self.scope.aliases[lowered])
        if len(names) == 1 and lowered in CURRENT_TIMES and not node.this.quoted:
            return self.bind(exp.Anonymous(this=lowered, expressions=[]))
        columns = {column.name for column in self.scope.columns}
        known = sorted(name for name in columns if not name.startswith(KEY_FIELD_PREFIX))
        raise InvalidInputError(
            f"SQL: column {'.'.join(names)!r} does not exist. Columns: {', '.join(known[:20]) or 'none'}."
        )

    def _in_scope(self, scope: QueryScope, names: Sequence[str], node: Node) -> Expression | None:
        for qualified in (True, False):
            if qualified and len(names) < 2:
                continue
            qualifier, name, fields = (names[0], names[1], names[2:]) if qualified else (None, names[0], names[1:])
            found = [
                column
                for column in scope.columns
                if column.name.lower() == name.lower()
                and ((column.qualifier or "").lower() == qualifier.lower() if qualifier else not column.hidden)
            ]
            if len(found) > 1:
                shown_names = ", ".join(".".join(filter(None, [column.qualifier, column.name])) for column in found)
                raise InvalidInputError(f"SQL: column {name!r} is ambiguous: {shown_names}.")
            if found:
                bound = self._visible(scope, found[0], node)
                for each in fields:
                    bound = self.member(bound, each, node)
                return bound
        return None

    def _visible(self, scope: QueryScope, column: ScopeColumn, node: Node) -> Expression:
        found = DuckExpression(column.type, column.sql)
        if scope is self.scope and scope.groups is not None and not self.in_aggregate:
            if column.sql in scope.groups:
                return scope.groups[column.sql]
            if not self._within_group(node):
                raise InvalidInputError(
                    f"SQL: column {column.name!r} is neither in GROUP BY nor in an aggregate function. "
                    "Add it to GROUP BY, or use an aggregate such as max."
                )
        return found

    def _within_group(self, node: Node) -> bool:
        """Return whether an enclosing expression is one of the groups."""
        groups = self.scope.groups or {}
        scope = QueryScope(self.scope.columns, self.scope.parent, None, self.scope.aliases)
        ungrouped = ExpressionBinder(self._tree, scope, self.bind_query, self._handlers)
        parent = node.parent
        while parent is not None and not isinstance(parent, exp.Select):
            if isinstance(parent, exp.Expression) and type(parent) in self._handlers and not parent.find(exp.Select):
                try:
                    found = ungrouped.bind(parent)
                except (InvalidInputError, UnsupportedFeatureError):
                    return False
                if isinstance(found, DuckExpression) and found.sql in groups:
                    return True
            parent = parent.parent
        return False

    def member(self, row: Expression, name: str, node: Node) -> Expression:
        """Return a field of a row, or the array of this field of an array's rows."""
        of_array = isinstance(row.type, ArrayType)
        kind = row.type.element if isinstance(row.type, ArrayType) else row.type
        for each in kind.fields if isinstance(kind, RowType) else ():
            if each.name.lower() == name.lower():
                sql = f"struct_extract({'e' if of_array else text_of(row)}, {text_literal(each.name)})"
                if not of_array:
                    return DuckExpression(reduced(each.type), sql)
                return DuckExpression(ArrayType(reduced(each.type)), f"list_transform({text_of(row)}, lambda e: {sql})")
        raise InvalidInputError(f"SQL: {shown(node)!r}: {row.type.sql()} has no field {name!r}.")

    # -- literals ----------------------------------------------------------------------------------------------------

    def literal(self, node: Node) -> Value | None:
        if isinstance(node, exp.Null):
            return Value(NULL_TYPE, None)
        if isinstance(node, exp.Boolean):
            return Value(BOOLEAN, bool(node.this))
        if isinstance(node, exp.HexString):
            digits = str(node.this)
            return Value(BYTES, bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))
        if isinstance(node, exp.Neg):
            inner = self.literal(node.this) if isinstance(node.this, exp.Literal) else None
            return None if inner is None or not is_number(inner.type) else _negated(inner)
        if isinstance(node, exp.Concat) and all(isinstance(part, exp.Literal) for part in node.expressions):
            texts = [self.literal(part) for part in node.expressions]
            return Value(STRING, "".join(str(text.value) for text in texts if text is not None))
        if not isinstance(node, exp.Literal):
            return None
        if node.is_string:
            return self._tree.values.get(node.this) or Value(STRING, node.this)
        return _number(node.this)


def shown(node: Node) -> str:
    """Return a part of the query, for messages."""
    try:
        return str(node.sql(dialect="spark"))[:_SHOWN]
    except RecursionError:
        return "a deeply nested expression"


def refusal(node: Node, text: str | None = None) -> UnsupportedFeatureError:
    """Return the error for a part of a query that is not evaluated; ``text`` is the part as the user wrote it."""
    return UnsupportedFeatureError(
        f"SQL: {(shown(node) if text is None else text)!r} is not evaluated in this process. "
        "Pass engine='spark' to evaluate it on Spark."
    )


def _number(text: str) -> Value | None:
    """Return a number without a letter for its type, with Spark's type."""
    if text.isdigit():
        value = int(text)
        for root in ("INT", "BIGINT"):
            if value < 1 << (INTEGER_BITS[root] - 1):
                return Value(AtomicType(root), value)
        return Value(decimal(len(str(value)), 0), Decimal(value)) if len(str(value)) <= 38 else None
    if "e" in text.lower():
        return Value(DOUBLE, finite(text))
    number = Decimal(text)
    scale = -int(number.as_tuple().exponent)
    precision = max(len(number.as_tuple().digits), scale)
    return Value(AtomicType("DECIMAL", precision=precision, scale=scale), number) if precision <= 38 else None


def finite(text: str) -> float:
    """The value of a DOUBLE literal. Raises InvalidInputError for one that is out of range."""
    value = float(text)
    if math.isinf(value):
        raise InvalidInputError(f"SQL: {text[:40]} does not fit DOUBLE.")
    return value


def _negated(number: Value) -> Value:
    value = number.value.copy_negate() if isinstance(number.value, Decimal) else -number.value
    if isinstance(value, int) and number.type.root == "DECIMAL":
        value = Decimal(value)
    return Value(number.type, value)

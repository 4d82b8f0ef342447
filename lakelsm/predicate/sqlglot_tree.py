"""Conversion of a condition, parsed by sqlglot, to a Predicate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from lakelsm.errors import InvalidInputError
from lakelsm.predicate import literals
from lakelsm.predicate.literals import Literal, compares_directly, number_literal
from lakelsm.predicate.long_lists import check_size, cut_long_lists
from lakelsm.predicate.predicate import (
    Compare,
    CompareColumns,
    Constant,
    IsNotNull,
    IsNull,
    IsTrue,
    Like,
    Predicate,
    StartsWith,
    Unknown,
    all_of,
    any_of,
    holds,
    negate,
)
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.types import INTEGER_BITS, DataField, MapType, RowType

#: The operators of comparisons, by class of node.
COMPARISONS: dict[Any, str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
Node = Any  # An expression of sqlglot, whose base class has different names in its versions.
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Functions that Spark calls without parentheses, and time units that some functions accept without quotes.
_BARE_FUNCTIONS = "current_date current_timestamp current_time current_user session_user user localtimestamp"
_UNITS = "year quarter month week day dayofyear hour minute second millisecond microsecond"
_NOT_COLUMNS = frozenset([*_BARE_FUNCTIONS.split(), *_UNITS.split()])
#: The maximum number of characters of a part of a condition in a message.
_SHOWN = 300
_TIME_CASTS = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "TIMESTAMPLTZ": "timestamp_ltz",
}


def converted(sql: str, fields: Sequence[DataField], session_time_zone: str | None) -> Predicate:
    """Convert a condition to a predicate (`parser.parse_where`)."""
    try:
        scope, tree, _ = condition_tree(sql, fields, session_time_zone)
        return scope.convert(tree)
    except RecursionError as error:
        raise too_deep() from error


def condition_tree(
    sql: str, fields: Sequence[DataField], session_time_zone: str | None
) -> tuple[Scope, Node, str]:
    """Parse a condition and check its columns. Returns the scope, the tree, and the text without its long lists."""
    scope, shortened = Scope.of(sql, fields, session_time_zone)
    tree = scope.tree(sql, shortened)
    if any(not any(value for name, value in node.args.items() if name != "this") for node in tree.find_all(exp.In)):
        raise InvalidInputError(
            f"condition {shown_condition(sql)} has an empty IN list. Write FALSE, or add a value."
        )
    if isinstance(tree, exp.Literal):
        raise InvalidInputError(f"condition {shown_condition(sql)} is only a value. Compare it with a column.")
    return scope, tree, shortened


def too_deep() -> InvalidInputError:
    """Return the error for a condition that the parser cannot take."""
    return InvalidInputError("the condition is nested too deeply. Use IN lists.")


def parsed(sql: str, shortened: str, what: str = "condition") -> Node:
    """Parse a condition or another expression; ``shortened`` is the text without its long lists.

    Raises InvalidInputError for an invalid text, with positions in ``sql``; ``what`` names the text in errors.
    """
    failed: SqlglotError | None = None
    try:
        tree = sqlglot.parse_one(shortened, dialect="spark", into=exp.Condition)
    except SqlglotError as error:
        failed = error
    if failed is not None:
        if shortened != sql:
            return parsed(sql, sql, what)
        raise _syntax_error(sql, failed, what)  # Not chained to sqlglot's error, which has the whole text.
    if type(tree).__name__ in ("Block", "Command", "Semicolon"):
        position = sql.find(";") + 1
        raise InvalidInputError(
            f"cannot parse {what} {shown_condition(sql)}: column {position}: more than one {what}."
        )
    return tree


def _syntax_error(sql: str, error: SqlglotError, what: str) -> InvalidInputError:
    if isinstance(error, ParseError):
        where = "it is empty"
        if error.errors:
            first = error.errors[0]
            near = first.get("highlight") or first.get("start_context") or ""
            column = max(1, int(first.get("col") or 0) - len(near) + 1)  # sqlglot returns the end of the token.
            where = f"line {first.get('line')}, column {column}, near {near[-_SHOWN:]!r}"
    else:
        where = f"column {len(sql.rstrip())}: a text, a name or a comment is not closed"
    return InvalidInputError(f"cannot parse {what} {shown_condition(sql)}: {where}.")


@dataclass
class Scope:
    """The meaning of the names and texts of a tree.

    ``lists`` and ``texts`` are parts that were cut out of the SQL text, by the texts that replace them. ``what`` names
    the SQL text in errors.
    """

    fields: Sequence[DataField]
    zone: str | None
    _: KW_ONLY
    texts_are_plain: bool
    lists: Mapping[str, Sequence[Literal | None]] = field(default_factory=dict)
    texts: Mapping[str, Literal | None] = field(default_factory=dict)
    what: str = "condition"
    _by_name: dict[str, DataField] = field(init=False)

    def __post_init__(self) -> None:
        self._by_name = {}
        for one in reversed(self.fields):
            self._by_name[one.name.lower()] = one
        self._by_name.update({one.name: one for one in self.fields})

    @staticmethod
    def of(
        sql: str, fields: Sequence[DataField], zone: str | None, what: str = "condition"
    ) -> tuple[Scope, str]:
        """Return the scope of a text, and the text without its long lists. Raises InvalidInputError if it is too long."""
        shortened, lists = cut_long_lists(sql)
        check_size(sql, shortened)
        # Spark substitutes variables for `${x}`, also within texts.
        plain = "\\" not in sql and "${" not in sql
        return Scope(fields, zone, texts_are_plain=plain, lists=lists, what=what), shortened

    def tree(self, sql: str, shortened: str) -> Node:
        """Parse the shortened text and check its columns. Raises like `parsed` and `check_columns`."""
        tree = parsed(sql, shortened, self.what)
        self.check_columns(tree)
        return tree

    def find(self, name: str) -> DataField | None:
        """Return the column of a name, which may be in another case."""
        return self._by_name.get(name) or self._by_name.get(name.lower())

    def check_columns(self, tree: Node) -> None:
        """Raise InvalidInputError for an unknown column."""
        for column in _own_columns(tree):
            parts = [part.name for part in column.parts]
            found = self.find(parts[0])
            if found is None or (len(parts) > 1 and not isinstance(found.type, RowType | MapType)):
                if len(parts) == 1 and parts[0].lower() in _NOT_COLUMNS:
                    continue
                known = ", ".join(one.name for one in self.fields)
                raise InvalidInputError(
                    f"{self.what}: column '{'.'.join(parts)[:_SHOWN]}' does not exist. Columns: {known}."
                )

    def convert(self, node: Node) -> Predicate:
        """Convert a condition; parts that are not supported become Unknown."""
        if isinstance(node, exp.Paren):
            return self.convert(node.this)
        if isinstance(node, exp.And):
            return all_of(self.convert(child) for child in operands(node, exp.And))
        if isinstance(node, exp.Or):
            return any_of(self.convert(child) for child in operands(node, exp.Or))
        if isinstance(node, exp.Not):
            return negate(self.convert(node.this))
        if isinstance(node, exp.Boolean):
            return Constant(bool(node.this))
        if isinstance(node, exp.Null):
            return Constant(None)
        if isinstance(node, exp.Column):
            column = self.column(node)
            is_flag = column is not None and column.type.root == "BOOLEAN"
            return Compare(column.name, "=", True) if column is not None and is_flag else unknown(node)
        return self._convert_leaf(node)

    def _convert_leaf(self, node: Node) -> Predicate:
        if type(node) in COMPARISONS and is_plain(node, "this", "expression"):
            return self._comparison(COMPARISONS[type(node)], node.this, node.expression)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ) and is_plain(node, "this", "expression"):
            equal = self._null_safe(node.this, node.expression)
            return equal if isinstance(node, exp.NullSafeEQ) else negate(equal)
        if isinstance(node, exp.Is) and is_plain(node, "this", "expression"):
            return self._is(node)
        if isinstance(node, exp.In) and is_plain(node, "this", "expressions") and node.expressions:
            column = self.column(node.this)
            values = self._list(node.expressions)
            known = [value for value in values if value is not None]
            if column is not None and len(known) == len(values):
                return literals.is_in(column, known, self.zone)
            if len(values) > _SHOWN:
                return unknown(node.this, f"IN a list of {len(values)} expressions")
        if isinstance(node, exp.Between) and is_plain(node, "this", "low", "high"):
            return all_of(
                [
                    self._comparison(">=", node.this, node.args["low"]),
                    self._comparison("<=", node.this, node.args["high"]),
                ]
            )
        if isinstance(node, exp.Like | exp.StartsWith) and is_plain(node, "this", "expression", "negate"):
            found = self._text_match(node)  # In some versions of sqlglot, NOT LIKE is an argument of LIKE.
            return negate(found) if node.args.get("negate") else found
        return unknown(node)

    def _list(self, nodes: Sequence[Node]) -> Sequence[Literal | None]:
        """Return the literals of an IN list, with None for each other expression."""
        first = nodes[0]
        cut = self.lists.get(first.this) if isinstance(first, exp.Literal) and first.is_string else None
        return [self.literal(node) for node in nodes] if cut is None else cut

    def _comparison(self, op: str, left: Node, right: Node) -> Predicate:
        column, literal = self.column(left), self.literal(right)
        if column is None and literal is None:
            column, literal, op = self.column(right), self.literal(left), _FLIPPED[op]
        if column is not None and literal is not None:
            return literals.compare(column, op, literal, self.zone)
        both = self.literal(left), self.literal(right)
        if both[0] is not None and both[1] is not None:
            return _compare_literals(op, both[0], both[1]) or unknown(left, op, right)
        return self._two_columns(op, left, right)

    def _two_columns(self, op: str, left: Node, right: Node) -> Predicate:
        one, other = self.column(left), self.column(right)
        if one is None or other is None or not compares_directly(one.type, other.type):
            return unknown(left, op, right)
        return CompareColumns(one.name, op, other.name)

    def _null_safe(self, left: Node, right: Node) -> Predicate:
        equal = self._two_columns("=", left, right)
        if isinstance(equal, CompareColumns):
            both = [IsNotNull(equal.left), IsNotNull(equal.right), equal]
            return any_of([all_of(both), all_of([IsNull(equal.left), IsNull(equal.right)])])
        column, literal = self.column(left), self.literal(right)
        if column is None:
            column, literal = self.column(right), self.literal(left)
        if column is None or literal is None:
            return unknown(left, "<=>", right)
        return literals.null_safe_equal(column, literal, self.zone)

    def _is(self, node: exp.Is) -> Predicate:
        column = self.column(node.this)
        if isinstance(node.expression, exp.Null):
            return unknown(node) if column is None else IsNull(column.name)
        if not isinstance(node.expression, exp.Boolean):
            return unknown(node)
        inner = self.convert(node.this)
        wanted = inner if node.expression.this else negate(inner)
        if column is not None:
            return all_of([IsNotNull(column.name), wanted])
        # TRUE if the inner condition has the wanted value; FALSE, not NULL, if it is NULL.
        return all_of([wanted, IsTrue(wanted)])

    def _text_match(self, node: Node) -> Predicate:
        column, literal = self.column(node.this), self.literal(node.expression)
        if column is None or literal is None or column.type.root != "VARCHAR":
            return unknown(node)
        if literal.kind == "null":
            return Constant(None)
        if literal.kind != "string":
            return unknown(node)
        text: str = literal.value
        if isinstance(node, exp.StartsWith):
            return StartsWith(column.name, text)
        prefix = re.split("[%_]", text, maxsplit=1)[0]
        if prefix == text:
            return Compare(column.name, "=", text)
        found = StartsWith(column.name, prefix)
        return found if text == prefix + "%" else all_of([found, Like(column.name, text)])

    def column(self, node: Node) -> DataField | None:
        """Return the column of a column expression; None for other expressions and for parts of a column."""
        node = node.unnest()
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            return None
        return self.find(node.name)

    def literal(self, node: Node) -> Literal | None:
        """Return the literal of an expression; None for other expressions, and for text that may have escapes."""
        node = node.unnest()
        if isinstance(node, exp.Null):
            return Literal("null")
        if isinstance(node, exp.Boolean):
            return Literal("boolean", bool(node.this))
        if isinstance(node, exp.Literal):
            return self._text(node.this) if node.is_string else number_literal(node.this)
        if isinstance(node, exp.Neg):
            inner = self.literal(node.this)
            if inner is None or inner.kind not in ("integer", "decimal", "double"):
                return None
            negated = inner.value.copy_negate() if inner.kind == "decimal" else -inner.value
            return Literal(inner.kind, negated)
        if isinstance(node, exp.HexString):
            digits = str(node.this)
            return Literal("binary", bytes.fromhex(digits)) if len(digits) % 2 == 0 else None
        if isinstance(node, exp.Cast) and is_plain(node, "this", "to"):
            return self._cast(node)
        return None

    def _text(self, text: str) -> Literal | None:
        """Return a text literal; None if it has a quote or backslash, which versions of Spark read differently."""
        if text in self.texts:
            return self.texts[text]
        return Literal("string", text) if self.texts_are_plain and "'" not in text else None

    def _cast(self, node: exp.Cast) -> Literal | None:
        """Return a typed literal (DATE '...', 10L), or a cast of a literal that only changes the type."""
        inner = self.literal(node.this)
        target = cast_type(node)
        if inner is None:
            return None
        if target in _TIME_CASTS and inner.kind == "string" and not node.to.expressions:
            return Literal(_TIME_CASTS[target], inner.value)
        if target in INTEGER_BITS and inner.kind == "integer":
            bound = 1 << (INTEGER_BITS[target] - 1)
            return inner if -bound <= inner.value < bound else None
        if target == "DOUBLE" and inner.kind in ("integer", "decimal", "double"):
            return Literal("double", float(inner.value))
        return inner if target == "TEXT" and inner.kind == "string" else None


def unknown(*parts: Node | str) -> Unknown:
    """Return the Unknown predicate for a part, with its text."""
    try:
        texts = [part if isinstance(part, str) else part.sql(dialect="spark") for part in parts]
    except RecursionError:  # sqlglot parses deeper expressions than it can print.
        texts = ["a deeply nested expression"]
    return Unknown(" ".join(texts)[:_SHOWN])


def cast_type(node: Node) -> str:
    """Return the name of the target type of a cast, without its parameters."""
    return str(getattr(node.to.this, "value", node.to.this))


def operands(node: Node, kind: Any) -> Iterator[Node]:
    """Yield the operands of a chain of one connective, from left to right. The tree of a chain is deep on the left."""
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, kind):
            pending += [one.args["expression"], one.this]
        else:
            yield one


def _own_columns(tree: Node) -> Iterator[exp.Column]:
    """Yield the columns of the condition itself, without those of subqueries and the parameters of lambdas."""
    bound = {parameter.name for scope in tree.find_all(exp.Lambda) for parameter in scope.expressions}
    has_query = tree.find(exp.Query) is not None
    for column in tree.find_all(exp.Column):
        inner = has_query and column.find_ancestor(exp.Query) is not None
        inner = inner or isinstance(column.this, exp.Star)
        if not inner and column.parts[0].name not in bound:
            yield column


def is_plain(node: Node, *arguments: str) -> bool:
    """Return whether the node has only the given arguments, without others such as a negation or a modifier."""
    return not any(value for name, value in node.args.items() if name not in arguments and name != "_type")


def _compare_literals(op: str, left: Literal, right: Literal) -> Predicate | None:
    """Compare two literals, such as 1 = 0; None if this needs a cast."""
    if "null" in (left.kind, right.kind):
        return Constant(None)
    if left.kind != right.kind or left.kind not in ("integer", "string", "boolean"):
        return None
    return Constant(holds(op, int(left.value > right.value) - int(left.value < right.value)))

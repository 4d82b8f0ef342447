"""Conversion of a condition or an expression on the columns of a table to DuckDB's SQL.

AND, OR, CASE and COALESCE evaluate a part only for the rows that need it, as in Spark. So a division that another part
guards does not fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.calls import CALLS
from lakelsm.expressions.cast_binder import CASTS
from lakelsm.expressions.duck_evaluator import RowColumn, evaluated_type
from lakelsm.expressions.duckdb_casts import DuckExpression
from lakelsm.expressions.expression_binder import ExpressionBinder, Handlers, Node, QueryScope, ScopeColumn
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.expressions.operators import OPERATORS, connected
from lakelsm.predicate.expression import BOOLEAN, Expression
from lakelsm.predicate.sqlglot_tree import operands
from lakelsm.types import DataField

#: Nodes whose evaluation can fail for a value.
_FAILING = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Cast, exp.TryCast, exp.Bracket, exp.Anonymous,
)  # fmt: skip


def guarded(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind AND and OR: a part that can fail is evaluated for the rows that the parts before it do not decide."""
    found = connected(binder, node)
    parts = list(operands(node, type(node)))
    if found is None or not any(part.find(*_FAILING) for part in parts[1:]):
        return found
    is_and = isinstance(node, exp.And)
    word, outcome = ("NOT ", "FALSE") if is_and else ("", "TRUE")
    branches = " ".join(f"WHEN {word}{binder.condition(part)} THEN {outcome}" for part in parts)
    assert isinstance(found, DuckExpression)
    return DuckExpression(BOOLEAN, f"(CASE {branches} ELSE {found.sql} END)")


def every_true(parts: Sequence[str]) -> str:
    """Return the condition that is TRUE if all parts are, else FALSE; a part is evaluated if those before it are TRUE."""
    if len(parts) == 1:
        return parts[0]
    return "(CASE " + " ".join(f"WHEN ({part}) IS DISTINCT FROM TRUE THEN FALSE" for part in parts) + " ELSE TRUE END)"


def any_true(parts: Sequence[str]) -> str:
    """Return the condition that is TRUE if a part is TRUE, else FALSE; a part is evaluated if none before is TRUE."""
    if len(parts) == 1:
        return parts[0]
    return "(CASE " + " ".join(f"WHEN {part} THEN TRUE" for part in parts) + " ELSE FALSE END)"


#: An expression has no queries and no windows: it has the values of one row.
_HANDLERS: Handlers = {
    kind: handler
    for kind, handler in {**OPERATORS, **CASTS, **CALLS, exp.And: guarded, exp.Or: guarded}.items()
    if kind not in (exp.Window, exp.Filter, exp.Exists, exp.Subquery)
}


class RowBinder:
    """Binds parts of one text on the columns of a table."""

    def __init__(self, tree: QueryTree, fields: Sequence[DataField]) -> None:
        self._columns = [RowColumn(f"c{at}", field) for at, field in enumerate(fields)]
        scope = QueryScope(
            [ScopeColumn(each.field.name, None, evaluated_type(each.field.type), each.name) for each in self._columns]
        )
        self._binder = ExpressionBinder(tree, scope, _no_query, _HANDLERS)

    def bind(self, node: Node) -> Expression:
        """Return the expression of a node. Raises UnsupportedFeatureError for a part that is refused."""
        return self._binder.bind(node)

    def condition(self, node: Node) -> str:
        """Return a condition in DuckDB's SQL."""
        return self._binder.condition(node)

    def columns(self, node: Node) -> tuple[RowColumn, ...]:
        """Return the columns that a node names, in the order of the table; the first column if it names none."""
        named = {column.parts[0].name.lower() for column in node.find_all(exp.Column)}
        return tuple(each for each in self._columns if each.field.name.lower() in named) or tuple(self._columns[:1])


def _no_query(node: Node, scope: QueryScope) -> tuple[str, Sequence[object]]:
    raise UnsupportedFeatureError("SQL: a query within a condition is not evaluated in this process.")

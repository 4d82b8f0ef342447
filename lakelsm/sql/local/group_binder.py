"""The GROUP BY clause of a query in DuckDB's SQL: expressions, ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.aggregate_functions import AGGREGATES
from lakelsm.expressions.duckdb_casts import DuckExpression, text_of
from lakelsm.expressions.expression_binder import Node, shown
from lakelsm.predicate.expression import BOOLEAN, NULL_TYPE, Expression, Value, is_ordered
from lakelsm.predicate.sqlglot_tree import is_plain

_SETS = {"Cube": "CUBE", "Rollup": "ROLLUP", "GroupingSets": "GROUPING SETS"}
#: A condition on groups with sets: Spark has no group of all rows where there are no rows.
NOT_EMPTY = "count(*) > 0"


class GroupBinder:
    """Binds the elements of one GROUP BY clause. ``groups`` are its expressions by their SQL, in their order."""

    def __init__(self, bind: Callable[[Node], Expression]) -> None:
        """``bind`` binds an expression, or the number or alias of one of the SELECT list."""
        self._bind = bind
        self.groups: dict[str, Expression] = {}
        self.has_sets = False

    def clause(self, node: Node) -> str:
        """Return the elements in DuckDB's SQL. Raises UnsupportedFeatureError for what is not evaluated."""
        if not is_plain(node, "expressions", "all", "rollup", "cube", "grouping_sets"):
            raise _refused(node)
        lists = [each for part in ("rollup", "cube", "grouping_sets") for each in node.args.get(part) or ()]
        of_all = [each for each in lists if not each.expressions]
        self.has_sets = bool(lists) or any(type(each).__name__ in _SETS for each in node.expressions)
        if of_all:  # GROUP BY a, b WITH ROLLUP
            if len(lists) > 1 or any(type(each).__name__ in _SETS for each in node.expressions):
                raise _refused(node)
            return f"{_SETS[type(of_all[0]).__name__]} ({', '.join(map(self._member, node.expressions))})"
        if node.args.get("grouping_sets") and node.expressions:
            raise _refused(node)
        return ", ".join(self._element(each) for each in (*node.expressions, *lists))

    def listed(self, nodes: Sequence[Node]) -> str:
        """Return some expressions in DuckDB's SQL."""
        return ", ".join(map(self._leaf, nodes))

    def _element(self, node: Node) -> str:
        word = _SETS.get(type(node).__name__)
        if word is None:
            return self._leaf(node)
        return f"{word} ({', '.join(map(self._member, node.expressions))})"

    def _member(self, node: Node) -> str:
        """Return an expression, or a list of expressions in parentheses."""
        if type(node).__name__ in _SETS:
            raise _refused(node)
        if isinstance(node, exp.Tuple):
            return f"({', '.join(map(self._leaf, node.expressions))})"
        return self._leaf(node.this if isinstance(node, exp.Paren) else node)

    def _leaf(self, node: Node) -> str:
        found = self._bind(node)
        if not is_ordered(found.type) or (self.has_sets and not isinstance(found, DuckExpression)):
            raise UnsupportedFeatureError(
                f"SQL: GROUP BY of a constant or of {found.type.sql()} is not evaluated in this process. "
                "Pass engine='spark' to evaluate it on Spark."
            )
        self.groups[text_of(found)] = found
        return text_of(storable(found))


def storable(expression: Expression) -> Expression:
    """Return an expression that can be a column: NULL without a type is a BOOLEAN there."""
    return Value(BOOLEAN, None) if expression.type == NULL_TYPE else expression


def has_aggregate(node: Node) -> bool:
    """Return whether a node has an aggregate function that is neither a window function nor one of a subquery."""
    if isinstance(node, exp.Window):
        return any(map(has_aggregate, [*(node.args.get("partition_by") or ()), *getattr(node.this, "expressions", ())]))
    if isinstance(node, exp.Select):
        return False
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATES:
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


def _refused(node: Node) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"SQL: {shown(node)!r} of GROUP BY is not evaluated in this process. Pass engine='spark' to evaluate it on Spark."
    )

"""Conversion of relations of FROM to DuckDB's SQL: tables, queries in parentheses and joins, and the columns in scope."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.calls import CALLS
from lakelsm.expressions.cast_binder import CASTS
from lakelsm.expressions.duckdb_casts import DuckExpression, cast, text_of
from lakelsm.expressions.duckdb_types import expression_type
from lakelsm.expressions.expression_binder import (
    BindQuery,
    ExpressionBinder,
    Node,
    QueryScope,
    ScopeColumn,
    refusal,
    shown,
)
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.expressions.operators import OPERATORS
from lakelsm.predicate.expression import common_type
from lakelsm.predicate.sqlglot_tree import is_plain
from lakelsm.text_table import amount
from lakelsm.types import DataField, DataType

#: The handlers of all expressions.
HANDLERS = {**OPERATORS, **CASTS, **CALLS}
_JOINS = {
    "": "INNER JOIN",
    "INNER": "INNER JOIN",
    "CROSS": "CROSS JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "FULL": "FULL JOIN",
    "SEMI": "SEMI JOIN",
    "ANTI": "ANTI JOIN",
}


@dataclass(frozen=True)
class OutputColumn:
    """A column of a query: the name that the user sees, and its type."""

    name: str
    type: DataType


@dataclass(frozen=True)
class BoundQuery:
    """A query in DuckDB's SQL. Its columns are named c0, c1, … there."""

    sql: str
    columns: Sequence[OutputColumn]


#: Common table expressions in scope: by name in lower case, the relation in SQL and its columns.
CommonTables = Mapping[str, BoundQuery]


class RelationBinder(ABC):
    """Binds the relations of queries on some tables. Each relation of the SQL has a separate name."""

    def __init__(self, tree: QueryTree, tables: Mapping[str, Sequence[DataField]]) -> None:
        self.tree = tree
        self._tables = {name.lower(): fields for name, fields in tables.items()}
        self._relations = 0

    def new_name(self, letter: str) -> str:
        """Return a name that no other relation has."""
        self._relations += 1
        return f"{letter}{self._relations}"

    @abstractmethod
    def query(self, node: Node, common: CommonTables, parent: QueryScope | None) -> BoundQuery:
        """Bind a query."""

    def subquery(self, common: CommonTables) -> BindQuery:
        """Return the function that binds the subqueries of an expression."""

        def bind(node: Node, scope: QueryScope) -> tuple[str, Sequence[OutputColumn]]:
            bound = self.query(node, common, scope)
            return bound.sql, bound.columns

        return bind

    def sources(
        self, node: Node, common: CommonTables, parent: QueryScope | None
    ) -> tuple[str, list[ScopeColumn]]:
        """Bind the FROM clause of a SELECT; return its SQL and the columns in scope."""
        clause = node.args.get("from_") or node.args.get("from")
        if clause is None:
            return "", []
        sql, columns = self._relation(clause.this, common, parent)
        for join in node.args.get("joins") or ():
            sql, columns = self._joined(sql, columns, join, common, parent)
        return f"FROM {sql}", columns

    def _relation(self, node: Node, common: CommonTables, parent: QueryScope | None) -> tuple[str, list[ScopeColumn]]:
        if not is_plain(node, "this", "db", "catalog", "alias", "joins", "expressions"):
            raise refusal(node)
        if isinstance(node, exp.Table):
            sql, columns, own = self._table(node, common)
        elif isinstance(node, exp.Subquery | exp.Values):
            inner = node.this if isinstance(node, exp.Subquery) else node
            if isinstance(inner, exp.Table | exp.Subquery) and not isinstance(inner, exp.Subquery):
                return self._nested(node, common, parent)
            bound = self.query(node if isinstance(node, exp.Values) else node.this, common, parent)
            name = self.new_name("t")
            sql, columns, own = f"({bound.sql}) AS {name}", scope_columns(bound.columns, name), ""
        else:
            raise refusal(node)
        alias = node.args.get("alias")
        qualifier = alias.name if alias is not None and alias.name else own
        names = [each.name for each in alias.columns] if alias is not None else []
        if names and len(names) != len(columns):
            raise InvalidInputError(
                f"SQL: {shown(node)!r} has {amount(len(names), 'name')} for {amount(len(columns), 'column')}."
            )
        renamed = names or [each.name for each in columns]
        return sql, [ScopeColumn(name, qualifier, each.type, each.sql) for name, each in zip(renamed, columns)]

    def _nested(self, node: Node, common: CommonTables, parent: QueryScope | None) -> tuple[str, list[ScopeColumn]]:
        """Bind joins in parentheses."""
        sql, columns = self._relation(node.this, common, parent)
        for join in node.this.args.get("joins") or node.args.get("joins") or ():
            sql, columns = self._joined(sql, columns, join, common, parent)
        return f"({sql})", columns

    def _table(self, node: Node, common: CommonTables) -> tuple[str, list[ScopeColumn], str]:
        name = self.tree.table_name(node).lower()
        relation = self.new_name("t")
        if not node.args.get("db") and name in common:
            bound = common[name]
            return f"{bound.sql} AS {relation}", scope_columns(bound.columns, relation), node.name
        fields = self._tables.get(name)
        if fields is None or node.args.get("db"):
            raise InvalidInputError(f"SQL: table {'.'.join(part.name for part in node.parts)!r} does not exist.")
        columns = [
            ScopeColumn(each.name, None, expression_type(each.type), f'{relation}."{at}"')
            for at, each in enumerate(fields)
        ]
        return f'"{name}" AS {relation}', columns, node.name

    def _joined(
        self, left: str, columns: list[ScopeColumn], join: Node, common: CommonTables, parent: QueryScope | None
    ) -> tuple[str, list[ScopeColumn]]:
        right, added = self._relation(join.this, common, parent)
        kind = self._kind(join)
        condition = join.args.get("on")
        using = [each.name for each in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            names = {each.name.lower() for each in added if not each.hidden}
            using = [each.name for each in columns if each.name.lower() in names and not each.hidden]
        visible = columns if kind in ("SEMI", "ANTI") else [*columns, *added]
        if using:
            test, visible = self._using(using, columns, added, kind)
        elif condition is not None:
            scope = QueryScope([*columns, *added], parent)
            test = ExpressionBinder(self.tree, scope, self.subquery(common), HANDLERS).condition(condition)
        elif kind in ("", "INNER", "CROSS"):
            return f"{left} CROSS JOIN {right}", visible
        else:
            test = "TRUE"
        return f"{left} {_JOINS['INNER' if kind == 'CROSS' else kind]} {right} ON {test}", visible

    def _kind(self, join: Node) -> str:
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        found = kind if kind in ("SEMI", "ANTI") else side or ("" if kind == "OUTER" else kind)
        is_known = is_plain(join, "this", "on", "using", "kind", "side", "method")
        if not is_known or found not in _JOINS or (kind in ("SEMI", "ANTI") and side == "RIGHT"):
            raise refusal(join)
        return found

    def _using(
        self, names: Sequence[str], left: Sequence[ScopeColumn], right: Sequence[ScopeColumn], kind: str
    ) -> tuple[str, list[ScopeColumn]]:
        """Return the condition of USING, and the columns in scope: each column of USING is first, and only once."""
        tests, merged, hidden = [], [], list[ScopeColumn]()
        for name in names:
            sides = [_only(columns, name) for columns in (left, right)]
            both = common_type(side.type for side in sides)
            casts = [None if both is None else cast(DuckExpression(side.type, side.sql), both) for side in sides]
            if both is None or casts[0] is None or casts[1] is None:
                raise UnsupportedFeatureError(
                    f"SQL: USING ({name}): the columns are {sides[0].type.sql()} and {sides[1].type.sql()}. "
                    "Join with ON and a CAST."
                )
            one, other = text_of(casts[0]), text_of(casts[1])
            tests.append(f"{one} = {other}")
            if kind == "FULL":
                merged.append(ScopeColumn(sides[0].name, None, both, f"coalesce({one}, {other})"))
            else:
                merged.append(sides[1] if kind == "RIGHT" else sides[0])
            hidden += [replace(side, hidden=True) for side in sides if side is not merged[-1]]
        lowered = {name.lower() for name in names}
        rest = [each for each in left if each.hidden or each.name.lower() not in lowered]
        if kind not in ("SEMI", "ANTI"):
            rest += [each for each in right if each.hidden or each.name.lower() not in lowered]
            rest += hidden
        return " AND ".join(tests), [*merged, *rest]


def scope_columns(columns: Sequence[OutputColumn], relation: str) -> list[ScopeColumn]:
    """Return the columns of a query that has a name in SQL."""
    return [ScopeColumn(each.name, None, each.type, f"{relation}.c{at}") for at, each in enumerate(columns)]


def _only(columns: Sequence[ScopeColumn], name: str) -> ScopeColumn:
    found = [each for each in columns if each.name.lower() == name.lower() and not each.hidden]
    if len(found) != 1:
        raise InvalidInputError(f"SQL: USING ({name}): {'no' if not found else 'more than one'} column has this name.")
    return found[0]

"""Conversion of queries to DuckDB's SQL: relations, joins, groups, order, set operations and columns of the result.

Each relation and each column of the SQL has a new name (``t0``, ``c0``), so that no name of the user reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlglot import exp

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.duckdb_casts import DuckExpression, cast, text_of
from lakelsm.expressions.expression_binder import ExpressionBinder, QueryScope, ScopeColumn, refusal, shown
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.predicate.expression import Expression, Value, common_type, is_ordered
from lakelsm.predicate.sqlglot_tree import is_plain
from lakelsm.sql.local.generator_binder import GeneratorBinder, Known
from lakelsm.sql.local.group_binder import NOT_EMPTY, GroupBinder, has_aggregate, storable
from lakelsm.sql.local.relation_binder import HANDLERS, BoundQuery, CommonTables, OutputColumn
from lakelsm.text_table import amount
from lakelsm.types import DataField

Node = Any
#: Parts of a SELECT that are bound; others are refused.
_KNOWN_PARTS = frozenset(
    [
        "kind", "expressions", "from", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
        "distinct", "with", "with_", "hint", "operation_modifiers", "laterals"
    ]
)
_OPERATIONS: dict[Any, str] = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}
#: Maximum levels of nested queries.
_MAX_DEPTH = 60
#: The largest number of LIMIT and OFFSET, as in Spark.
_MAX_LIMIT, _LIMIT = 2**31 - 1, re.compile("[0-9]{1,10}")


def bind_query(tree: QueryTree, tables: Mapping[str, Sequence[DataField]]) -> BoundQuery:
    """Bind a query on some tables, by the names that the query has for them.

    Raises InvalidInputError for names that do not exist or are ambiguous, and UnsupportedFeatureError for what is not
    evaluated in this process.
    """
    try:
        return _QueryBinder(tree, tables).query(tree.root, {}, None)
    except RecursionError as error:
        raise InvalidInputError("SQL: the query is nested too deeply.") from error


class _QueryBinder(GeneratorBinder):
    """Binds queries within each other."""

    def __init__(self, tree: QueryTree, tables: Mapping[str, Sequence[DataField]]) -> None:
        super().__init__(tree, tables)
        self._depth = 0

    def query(self, node: Node, common: CommonTables, parent: QueryScope | None) -> BoundQuery:
        """Bind a SELECT, a set operation, VALUES, or one of these in parentheses."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InvalidInputError("SQL: the query is nested too deeply.")
        try:
            return self._query(node, common, parent)
        finally:
            self._depth -= 1

    def _query(self, node: Node, common: CommonTables, parent: QueryScope | None) -> BoundQuery:
        definitions, common = self._common_tables(node, common, parent)
        if isinstance(node, exp.Subquery):
            found = self._ordered(self.query(node.this, common, parent), node, common, parent)
        elif isinstance(node, exp.Select):
            found = self._select(node, common, parent)
        elif type(node) in _OPERATIONS:
            found = self._ordered(self._set_operation(node, common, parent), node, common, parent)
        elif isinstance(node, exp.Values):
            found = self._values(node, parent)
        else:
            raise UnsupportedFeatureError(f"SQL: {shown(node)!r} is not a query that this process evaluates.")
        return BoundQuery(definitions + found.sql, found.columns)

    def _common_tables(
        self, node: Node, common: CommonTables, parent: QueryScope | None
    ) -> tuple[str, CommonTables]:
        """Bind the WITH clause: return its SQL and the relations in scope after it. Each one is evaluated once."""
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return "", common
        if clause.args.get("recursive"):
            raise UnsupportedFeatureError("SQL: WITH RECURSIVE is not evaluated in this process. Pass engine='spark'.")
        parts, known, defined = [], dict(common), set[str]()
        for each in clause.expressions:
            if each.alias.lower() in defined:
                raise InvalidInputError(f"SQL: WITH defines {each.alias!r} twice.")
            defined.add(each.alias.lower())
            bound = self.query(each.this, known, parent)
            name = self.new_name("w")
            names = [column.name for column in each.args["alias"].columns]
            parts.append(f"{name} AS MATERIALIZED ({bound.sql})")
            known[each.alias.lower()] = BoundQuery(name, self._renamed(bound.columns, names, each))
        return f"WITH {', '.join(parts)} ", known

    def _renamed(self, columns: Sequence[OutputColumn], names: Sequence[str], node: Node) -> list[OutputColumn]:
        if names and len(names) != len(columns):
            raise InvalidInputError(
                f"SQL: {shown(node)!r} has {amount(len(names), 'name')} for {amount(len(columns), 'column')}."
            )
        return [OutputColumn(name, each.type) for name, each in zip(names, columns)] if names else list(columns)

    # -- SELECT ------------------------------------------------------------------------------------------------------

    def _select(self, node: Node, common: CommonTables, parent: QueryScope | None) -> BoundQuery:
        for part, value in node.args.items():
            if value and part not in _KNOWN_PARTS:
                unknown = value[0] if isinstance(value, list) else value
                raise UnsupportedFeatureError(
                    f"SQL: {shown(unknown) if isinstance(unknown, exp.Expression) else part!r} is not evaluated in this "
                    "process. Pass engine='spark' to evaluate it on Spark."
                )
        source, columns = self.sources(node, common, parent)
        source, generated = self.generated(node, source, columns, common, parent)
        scope = QueryScope(columns, parent)
        binder = ExpressionBinder(self.tree, scope, self.subquery(common), HANDLERS)
        parts = [source] if source else []
        where = node.args.get("where")
        if where is not None:
            if any(each.find_ancestor(exp.Select) is node for each in where.find_all(exp.Window)):
                raise InvalidInputError(f"SQL: WHERE {shown(where.this)!r} has a window function. Use a subquery.")
            parts.append(f"WHERE {binder.condition(where.this)}")
        items = self._items(node, columns, generated)
        if not items:
            raise InvalidInputError("SQL: SELECT has no columns.")
        group = self._group(node, binder, items)
        if group:
            parts.append(group)
        outputs = self._outputs(binder, items)
        having = node.args.get("having")
        conditions = [NOT_EMPTY] if scope.has_sets else []
        if having is not None:
            scope.aliases = {each.name.lower(): bound for each, bound in outputs}
            conditions.append(binder.condition(having.this))
        if conditions:
            parts.append(f"HAVING {' AND '.join(conditions)}")
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise UnsupportedFeatureError("SQL: DISTINCT ON is not evaluated in this process.")
        order = node.args.get("order")
        if order is not None:
            parts.append(self._order(order, binder, outputs, bool(distinct)))
        limit = self._limit(node)
        texts = [f"{text_of(storable(bound))} AS c{at}" for at, (_, bound) in enumerate(outputs)]
        sql = f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(texts)} {' '.join(parts)}{limit}"
        return BoundQuery(sql, [each for each, _ in outputs])

    def _items(
        self, node: Node, columns: Sequence[ScopeColumn], generated: Mapping[int, Sequence[ScopeColumn]]
    ) -> list[tuple[str, Node]]:
        """Return the expressions of the SELECT list with their names; ``*`` stands for the columns in scope.

        ``generated`` are the columns of explode, by its position in the list.
        """
        items: list[tuple[str, Node]] = []
        for at, each in enumerate(node.expressions):
            star = each.this if isinstance(each, exp.Column) and isinstance(each.this, exp.Star) else each
            if at in generated:
                items += [(column.name, Known(column)) for column in generated[at]]
            elif isinstance(star, exp.Star):
                items += self._starred(each, star, columns)
            elif isinstance(each, exp.Alias):
                items.append((each.alias, each.this))
            elif isinstance(each, exp.Column):
                items.append((each.parts[-1].name, each))
            else:
                items.append((self.tree.as_written(shown(each)), each))
        return items

    def _starred(self, node: Node, star: Node, columns: Sequence[ScopeColumn]) -> list[tuple[str, Node]]:
        qualifier = node.table.lower() if isinstance(node, exp.Column) else ""
        hidden = {each.name.lower() for each in star.args.get("except_") or star.args.get("except") or ()}
        if star.args.get("replace") or star.args.get("rename"):
            raise refusal(node)
        found = [each for each in columns if not each.hidden and qualifier in ("", (each.qualifier or "").lower())]
        if not found:
            raise InvalidInputError(f"SQL: {shown(node)!r}: there are no such columns.")
        unknown = sorted(hidden - {each.name.lower() for each in found})
        if unknown:
            raise InvalidInputError(f"SQL: {shown(node)!r}: column {unknown[0]!r} does not exist.")
        return [(each.name, Known(each)) for each in found if each.name.lower() not in hidden]

    def _outputs(
        self, binder: ExpressionBinder, items: Sequence[tuple[str, Node]]
    ) -> list[tuple[OutputColumn, Expression]]:
        """Return the bound SELECT list. An alias can be used in the items after it, where no column has its name."""
        found = []
        for name, node in items:
            bound = self._item(binder, node)
            found.append((OutputColumn(name, bound.type), bound))
            binder.scope.aliases = {**binder.scope.aliases, name.lower(): bound}
        return found

    def _item(self, binder: ExpressionBinder, node: Node) -> Expression:
        if isinstance(node, Known):
            groups = binder.scope.groups
            if groups is not None and node.column.sql not in groups:
                raise InvalidInputError(f"SQL: column {node.column.name!r} of * is not in GROUP BY.")
            return DuckExpression(node.column.type, node.column.sql)
        return binder.bind(node)

    # -- groups, order and limit --------------------------------------------------------------------------------------

    def _group(self, node: Node, binder: ExpressionBinder, items: Sequence[tuple[str, Node]]) -> str:
        """Bind the GROUP BY clause; afterwards the scope of the binder is that of groups, if there are any."""
        clause = node.args.get("group")
        if clause is None:
            nodes = [each for _, each in items if not isinstance(each, Known)]
            having = node.args.get("having")
            if having is not None or any(map(has_aggregate, nodes)):
                binder.scope.groups = {}
            return ""
        if clause.args.get("all"):
            binding = GroupBinder(partial(self._item, binder))
            wanted = [each for _, each in items if isinstance(each, Known) or not has_aggregate(each)]
            text = binding.listed(wanted)
        else:
            binding = GroupBinder(lambda each: self._grouped(each, binder, items))
            text = binding.clause(clause)
        binder.scope.groups, binder.scope.has_sets = binding.groups, binding.has_sets
        binder.scope.aliases = {}
        return f"GROUP BY {text}" if text else ""

    def _grouped(self, node: Node, binder: ExpressionBinder, items: Sequence[tuple[str, Node]]) -> Expression:
        """Bind an expression of GROUP BY: one of the SELECT list by its number or alias, or any other."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._item(binder, self._numbered(node, [each for _, each in items], "GROUP BY"))
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            names = {column.name.lower() for column in binder.scope.columns}
            aliased = [each for name, each in items if name.lower() == node.name.lower()]
            if node.name.lower() not in names and aliased:
                return self._item(binder, aliased[0])
        return binder.bind(node)

    def _numbered(self, node: Node, choices: Sequence[Any], clause: str) -> Any:
        number = int(node.this) if str(node.this).isdigit() else 0
        if not 1 <= number <= len(choices):
            raise InvalidInputError(f"SQL: {clause} {node.this}: the query has {amount(len(choices), 'column')}.")
        return choices[number - 1]

    def _order(
        self,
        clause: Node,
        binder: ExpressionBinder,
        outputs: Sequence[tuple[OutputColumn, Expression]],
        outputs_only: bool,
    ) -> str:
        """Bind the ORDER BY clause: columns of the result by number or name, and other expressions."""
        aliases = {each.name.lower(): bound for each, bound in reversed(outputs)}
        parts = []
        for each in clause.expressions:
            child = each.this
            if len(clause.expressions) == 1 and _is_all(child) and "all" not in aliases:
                for _, found in outputs:
                    if not is_ordered(found.type):
                        binder.refuse(clause)
                texts = [f"c{at}" if outputs_only else text_of(found) for at, (_, found) in enumerate(outputs)]
                constant = [isinstance(found, Value) for _, found in outputs]
                parts = [_sorted(text, each) for text, skip in zip(texts, constant) if outputs_only or not skip]
                break
            bound = None
            if isinstance(child, exp.Literal) and not child.is_string:
                bound = self._numbered(child, [found for _, found in outputs], "ORDER BY")
            elif isinstance(child, exp.Column) and len(child.parts) == 1:
                bound = aliases.get(child.name.lower())
                if len({text_of(found) for item, found in outputs if item.name.lower() == child.name.lower()}) > 1:
                    raise InvalidInputError(f"SQL: ORDER BY {child.name}: more than one column has this name.")
            if bound is None:
                binder.scope.aliases = aliases
                bound = binder.bind(child)
            texts = [text_of(found) for _, found in outputs]
            if outputs_only and text_of(bound) not in texts:
                raise InvalidInputError(f"SQL: ORDER BY {shown(child)!r} is not a column of SELECT DISTINCT.")
            if not is_ordered(bound.type):
                binder.refuse(child)
            if isinstance(bound, Value) and not outputs_only:
                continue  # DuckDB refuses constants there, and they order nothing.
            text = f"c{texts.index(text_of(bound))}" if outputs_only else text_of(bound)
            parts.append(_sorted(text, each))
        return f"ORDER BY {', '.join(parts)}" if parts else ""

    def _limit(self, node: Node) -> str:
        parts = []
        for part, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
            clause = node.args.get(part)
            if clause is None or (part == "limit" and str(clause.expression).upper() == "ALL"):
                continue
            number = clause.expression
            is_number = isinstance(number, exp.Literal) and not number.is_string
            if not is_number or not _LIMIT.fullmatch(number.this) or int(number.this) > _MAX_LIMIT:
                raise InvalidInputError(f"SQL: {word} takes a whole number of INT as a literal.")
            parts.append(f" {word} {int(number.this)}")
        return "".join(parts)

    def _ordered(self, query: BoundQuery, node: Node, common: CommonTables, parent: QueryScope | None) -> BoundQuery:
        """Bind the ORDER BY and LIMIT of a set operation or a query in parentheses."""
        order, limit = node.args.get("order"), self._limit(node)
        if order is None and not limit:
            return query
        name = self.new_name("t")
        columns = [
            ScopeColumn(each.name, None, each.type, f"{name}.c{at}") for at, each in enumerate(query.columns)
        ]
        binder = ExpressionBinder(self.tree, QueryScope(columns, parent), self.subquery(common), HANDLERS)
        outputs = [(each, DuckExpression(each.type, column.sql)) for each, column in zip(query.columns, columns)]
        clause = "" if order is None else f" {self._order(order, binder, outputs, False)}"
        return BoundQuery(f"SELECT {name}.* FROM ({query.sql}) AS {name}{clause}{limit}", query.columns)

    # -- set operations and values ------------------------------------------------------------------------------------

    def _set_operation(self, node: Node, common: CommonTables, parent: QueryScope | None) -> BoundQuery:
        sides = [self.query(side, common, parent) for side in (node.this, node.expression)]
        if node.args.get("by_name"):
            raise UnsupportedFeatureError("SQL: UNION BY NAME is not evaluated in this process. Pass engine='spark'.")
        if not is_plain(node, "this", "expression", "distinct", "order", "limit", "offset", "with", "with_"):
            raise refusal(node)
        if len({len(side.columns) for side in sides}) > 1:
            counts = " and ".join(str(len(side.columns)) for side in sides)
            raise InvalidInputError(f"SQL: the queries of a {_OPERATIONS[type(node)]} have {counts} columns.")
        columns = []
        for one, other in zip(*(side.columns for side in sides)):
            kind = common_type(iter((one.type, other.type)))
            if kind is None:
                raise UnsupportedFeatureError(
                    f"SQL: column {one.name!r} of a {_OPERATIONS[type(node)]} is {one.type.sql()} and "
                    f"{other.type.sql()}. Cast one of them."
                )
            columns.append(OutputColumn(one.name, kind))
        texts = [self._as_types(side, columns) for side in sides]
        every = "" if node.args.get("distinct", True) else " ALL"
        return BoundQuery(f"({texts[0]}) {_OPERATIONS[type(node)]}{every} ({texts[1]})", columns)

    def _as_types(self, query: BoundQuery, columns: Sequence[OutputColumn]) -> str:
        if [each.type for each in query.columns] == [each.type for each in columns]:
            return query.sql
        name = self.new_name("t")
        texts = []
        for at, (each, column) in enumerate(zip(query.columns, columns)):
            found = cast(DuckExpression(each.type, f"{name}.c{at}"), column.type)
            if found is None:
                raise UnsupportedFeatureError(
                    f"SQL: column {each.name!r} is {each.type.sql()} and {column.type.sql()}. Cast one of them."
                )
            texts.append(f"{text_of(storable(found))} AS c{at}")
        return f"SELECT {', '.join(texts)} FROM ({query.sql}) AS {name}"

    def _values(self, node: Node, parent: QueryScope | None) -> BoundQuery:
        binder = ExpressionBinder(self.tree, QueryScope((), parent), self.subquery({}), HANDLERS)
        rows = [
            [binder.bind(value) for value in (each.expressions if isinstance(each, exp.Tuple) else [each])]
            for each in node.expressions
        ]
        if not all(rows):
            raise InvalidInputError("SQL: a row of VALUES has no values.")
        if len({len(row) for row in rows}) != 1:
            raise InvalidInputError("SQL: the rows of VALUES have different numbers of columns.")
        columns, texts = [], []
        for at in range(len(rows[0])):
            kind = common_type(row[at].type for row in rows)
            if kind is None:
                raise UnsupportedFeatureError(f"SQL: column {at + 1} of VALUES has several types. Cast its values.")
            columns.append(OutputColumn(f"col{at + 1}", kind))
        for row in rows:
            values = [cast(value, column.type) for value, column in zip(row, columns)]
            if any(value is None for value in values):
                raise UnsupportedFeatureError("SQL: a column of VALUES has several types. Cast its values.")
            texts.append(", ".join(text_of(storable(value)) for value in values if value))
        names = [column.name for column in node.args["alias"].columns] if node.args.get("alias") else []
        relation = self.new_name("t")
        named = ", ".join(f"c{at}" for at in range(len(columns)))
        sql = f"SELECT {relation}.* FROM (VALUES {', '.join(f'({text})' for text in texts)}) AS {relation}({named})"
        return BoundQuery(sql, self._renamed(columns, names, node))


def _is_all(node: Node) -> bool:
    """Return whether an expression of ORDER BY is ALL, which stands for all columns of the result."""
    name = node.this if isinstance(node, exp.Column) and not node.table else None
    is_name = isinstance(node, exp.Var) or (isinstance(name, exp.Identifier) and not name.quoted)
    return is_name and node.name.upper() == "ALL"


def _sorted(text: str, node: Node) -> str:
    descending, nulls_first = bool(node.args.get("desc")), node.args.get("nulls_first")
    first = (not descending) if nulls_first is None else bool(nulls_first)
    return f"{text} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"

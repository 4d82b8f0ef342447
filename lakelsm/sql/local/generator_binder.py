"""Functions that make several rows of one, in DuckDB's SQL: LATERAL VIEW explode(…), and explode(…) in SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.collection_functions import generated_columns
from lakelsm.expressions.expression_binder import ExpressionBinder, Node, QueryScope, ScopeColumn, refusal, shown
from lakelsm.predicate.sqlglot_tree import is_plain
from lakelsm.sql.local.group_binder import has_aggregate
from lakelsm.sql.local.relation_binder import HANDLERS, CommonTables, RelationBinder
from lakelsm.text_table import amount

_GENERATORS = frozenset(["explode", "explode_outer", "posexplode", "posexplode_outer"])


@dataclass(frozen=True)
class Known:
    """A column that ``*`` or explode stands for."""

    column: ScopeColumn


class GeneratorBinder(RelationBinder):
    """Binds the relations of a query with those that its generators add: lateral joins."""

    def sources(
        self, node: Node, common: CommonTables, parent: QueryScope | None
    ) -> tuple[str, list[ScopeColumn]]:
        """Bind the FROM clause of a SELECT with its LATERAL VIEWs."""
        sql, columns = super().sources(node, common, parent)
        for each in node.args.get("laterals") or ():
            alias = each.args.get("alias")
            if not each.args.get("view") or not is_plain(each, "this", "view", "outer", "alias") or not sql:
                raise refusal(each)
            names = [column.name for column in alias.columns] if alias is not None else []
            sql, added = self._joined_rows(sql, columns, each.this, common, parent, outer=bool(each.args.get("outer")))
            added = _renamed(added, names, each)
            columns = [*columns, *(replace(one, qualifier=alias.name if alias is not None else None) for one in added)]
        return sql, columns

    def generated(
        self, node: Node, source: str, columns: Sequence[ScopeColumn], common: CommonTables, parent: QueryScope | None
    ) -> tuple[str, dict[int, list[ScopeColumn]]]:
        """Bind explode in the SELECT list: return the FROM clause, and the columns by the position in the list."""
        found = {at: call for at, each in enumerate(node.expressions) if (call := _generator(each)) is not None}
        if not found:
            return source, {}
        at, call = next(iter(found.items()))
        others = [each for each in node.expressions if each is not node.expressions[at]]
        is_grouped = node.args.get("group") is not None or any(has_aggregate(each) for each in node.expressions)
        if len(found) > 1 or is_grouped or any(each.find(exp.Window) is not None for each in others):
            raise refusal(node.expressions[at])
        sql, added = self._joined_rows(source, columns, call, common, parent, outer=False)
        return sql, {at: _renamed(added, _names(node.expressions[at]), call)}

    def _joined_rows(
        self,
        source: str,
        columns: Sequence[ScopeColumn],
        call: Node,
        common: CommonTables,
        parent: QueryScope | None,
        *,
        outer: bool,
    ) -> tuple[str, list[ScopeColumn]]:
        """Return a FROM clause with the rows of a generator beside each row, and the generator's columns."""
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        if name not in _GENERATORS or len(call.expressions) != 1:
            raise refusal(call)
        binder = ExpressionBinder(self.tree, QueryScope(list(columns), parent), self.subquery(common), HANDLERS)
        made = generated_columns(binder.bind(call.expressions[0]), with_position=name.startswith("pos"))
        if made is None:
            raise refusal(call)
        relation = self.new_name("t")
        lists = [one.text for one in made]
        if outer or name.endswith("_outer"):
            # A left join would keep all rows in memory or on disk; this is a stream.
            lists = [f"CASE WHEN len({lists[-1]}) > 0 THEN {text} ELSE [NULL] END" for text in lists]
        texts = ", ".join(f"unnest({text}) AS c{at}" for at, text in enumerate(lists))
        rows = f"(SELECT {texts}) AS {relation}"
        added = [ScopeColumn(one.name, None, one.type, f"{relation}.c{at}") for at, one in enumerate(made)]
        return f"{source} CROSS JOIN LATERAL {rows}" if source else f"FROM {rows}", added


def _generator(node: Node) -> Node | None:
    """Return the call of a generator of a SELECT list; None for another expression."""
    call = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    is_call = isinstance(call, exp.Anonymous) and str(call.this).lower() in _GENERATORS
    return call if is_call else None


def _names(node: Node) -> list[str]:
    if isinstance(node, exp.Aliases):
        return [each.name for each in node.expressions]
    return [node.alias] if isinstance(node, exp.Alias) else []


def _renamed(columns: Sequence[ScopeColumn], names: Sequence[str], node: Node) -> list[ScopeColumn]:
    if names and len(names) != len(columns):
        raise InvalidInputError(
            f"SQL: {shown(node)!r} has {amount(len(names), 'name')} for {amount(len(columns), 'column')}."
        )
    return [replace(each, name=name) for each, name in zip(columns, names)] if names else list(columns)

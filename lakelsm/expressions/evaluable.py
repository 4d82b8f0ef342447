"""Conditions and expressions of this process: those of `predicate/`, and for all other parts evaluators on DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.expressions.duck_evaluator import DuckEvaluator, ListEvaluator, RowColumn
from lakelsm.expressions.duckdb_casts import DuckExpression, text_of
from lakelsm.expressions.duckdb_library import imported_duckdb
from lakelsm.expressions.expression_binder import Node, shown
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.expressions.row_binder import RowBinder, any_true, every_true
from lakelsm.predicate.evaluation import check_supported, unsupported
from lakelsm.predicate.expression import BOOLEAN, STRING, EvaluatedValue, Expression
from lakelsm.predicate.parser import parse_expression
from lakelsm.predicate.predicate import Constant, Evaluated, Predicate, all_of, any_of, negate, unknown_part
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.predicate.sqlglot_tree import condition_tree, operands, too_deep
from lakelsm.types import INTEGER_ROOTS, DataField, DataType

_REMEDY = "use Spark: Table.read or engine='spark'"


def evaluable_condition(where: str, fields: Sequence[DataField], session_time_zone: str | None) -> Predicate:
    """Parse a condition, all parts of which can be evaluated in this process.

    Raises UnsupportedFeatureError for a part that cannot, InvalidInputError as `parse_where`, and if the condition needs
    DuckDB and it is not installed.
    """
    try:
        conversion = _Conversion(where, fields, session_time_zone)
        predicate = conversion.predicate()
    except RecursionError as error:
        raise too_deep() from error
    if conversion.needs_duckdb:
        imported_duckdb(f"condition {shown_condition(where)}", _REMEDY)
    check_supported(predicate, where)
    return predicate


def evaluable_expression(text: str, fields: Sequence[DataField], session_time_zone: str | None) -> Expression:
    """Parse an expression. Raises as `evaluable_condition`."""
    try:
        return parse_expression(text, fields, session_time_zone)
    except UnsupportedFeatureError as refused:
        try:
            found = _bound(text, fields)
        except (RecursionError, LakelsmError):
            raise refused from None
    if isinstance(found, EvaluatedValue):
        imported_duckdb(f"expression {shown_condition(text)}", _REMEDY)
    return found


def _bound(text: str, fields: Sequence[DataField]) -> Expression:
    """Return an expression on DuckDB."""
    tree = QueryTree(text, is_expression=True)
    binder = RowBinder(tree, fields)
    found = binder.bind(tree.root)
    if not isinstance(found, DuckExpression):
        return found
    part = _BoundPart(found.sql, frozenset(binder.columns(tree.root)))
    return EvaluatedValue(found.type, part.evaluator(found.type, text, "expression"))


@dataclass(frozen=True)
class _BoundPart:
    """A part of a condition or an expression in DuckDB's SQL, and the columns that it names."""

    sql: str
    columns: frozenset[RowColumn]

    def evaluator(self, kind: DataType, text: str, what: str = "condition") -> DuckEvaluator:
        """Return the evaluator; ``text`` is the whole text, for messages."""
        columns = sorted(self.columns, key=lambda column: column.name)
        return DuckEvaluator(self.sql, tuple(columns), kind, text=text, what=what)


class _Conversion:
    """Converts a condition, as `parse_where` does, and binds the parts that this does not understand.

    They are parts of another tree of the text, which has the same AND, OR and NOT. NOT is pushed down to the parts, so
    that a part that is FALSE and one that is NULL have the same effect.
    """

    def __init__(self, where: str, fields: Sequence[DataField], zone: str | None) -> None:
        self._where, self._fields = where, fields
        self._scope, self._node, self._shortened = condition_tree(where, fields, zone)
        self.needs_duckdb = False

    def predicate(self) -> Predicate:
        """Return the condition."""
        return self._evaluated(self._converted(self._node, negated=False))

    @cached_property
    def _tree(self) -> QueryTree:
        self.needs_duckdb = True
        return QueryTree(self._shortened, is_expression=True)

    @cached_property
    def _binder(self) -> RowBinder:
        return RowBinder(self._tree, self._fields)

    @cached_property
    def _twins(self) -> Mapping[int, Node]:
        """The parts of the other tree, by the ids of those of the condition's tree."""
        found: dict[int, Node] = {}
        pending = [(self._node, self._tree.root)]
        while pending:
            node, twin = (each.unnest() for each in pending.pop())
            found[id(node)] = twin
            kind = type(node)
            if kind is exp.Not and type(twin) is kind:
                pending.append((node.this, twin.this))
            elif kind in (exp.And, exp.Or) and type(twin) is kind:
                pending += zip(operands(node, kind), operands(twin, kind), strict=True)
        return found

    def _converted(self, node: Node, *, negated: bool) -> Predicate | _BoundPart:
        node = node.unnest()
        if isinstance(node, exp.Not):
            return self._converted(node.this, negated=not negated)
        if isinstance(node, exp.And | exp.Or):
            children = [self._converted(each, negated=negated) for each in operands(node, type(node))]
            return self._connected(children, is_and=isinstance(node, exp.And) != negated)
        found = self._scope.convert(node)
        if unknown_part(found) is None:
            return negate(found) if negated else found
        twin = self._twins[id(node)]
        return self._list(node, twin, negated) or self._part(twin, negated)

    def _connected(self, children: Sequence[Predicate | _BoundPart], *, is_and: bool) -> Predicate | _BoundPart:
        """Combine parts by AND or OR; those of DuckDB become one part."""
        known = [each for each in children if isinstance(each, Predicate)]
        parts = [each for each in children if isinstance(each, _BoundPart)]
        if parts:
            sql = (every_true if is_and else any_true)([each.sql for each in parts])
            part = _BoundPart(sql, frozenset[RowColumn]().union(*(each.columns for each in parts)))
            if not known:
                return part
            known.append(self._evaluated(part))
        return (all_of if is_and else any_of)(known)

    def _part(self, twin: Node, negated: bool) -> _BoundPart:
        if any(literal.this in self._scope.lists for literal in twin.find_all(exp.Literal)):
            raise self._refused(twin)
        try:
            sql = self._binder.condition(twin)
        except UnsupportedFeatureError as error:
            raise self._refused(twin) from error
        except InvalidInputError as error:
            problem = str(error).removeprefix("SQL: ")
            raise InvalidInputError(f"condition {shown_condition(self._where)}: {problem}") from error
        return _BoundPart(f"(NOT {sql})" if negated else sql, frozenset(self._binder.columns(twin)))

    def _list(self, node: Node, twin: Node, negated: bool) -> Predicate | None:
        """Return the condition of a long IN list of texts or integers; None for other parts."""
        if not isinstance(node, exp.In) or not isinstance(twin, exp.In) or len(node.expressions) != 1:
            return None
        listed = self._scope.lists.get(node.expressions[0].this)
        if listed is None:
            return None
        try:
            value = self._binder.bind(twin.this)
        except (UnsupportedFeatureError, InvalidInputError) as error:
            raise self._refused(twin.this) from error
        kinds = {None if each is None else each.kind for each in listed}
        plain = "string" if value.type == STRING else "integer" if value.type.root in INTEGER_ROOTS else ""
        if not plain or not kinds <= {plain, "null"}:
            raise self._refused(twin.this)
        if kinds == {"null"} or (negated and "null" in kinds):
            return Constant(False)
        values = tuple(dict.fromkeys(each.value for each in listed if each is not None and each.kind == plain))
        part = _BoundPart(text_of(value), frozenset(self._binder.columns(twin.this)))
        return Evaluated(ListEvaluator(part.evaluator(value.type, self._where), values, negated))

    def _refused(self, twin: Node) -> UnsupportedFeatureError:
        return unsupported(self._where, self._tree.as_written(shown(twin)))

    def _evaluated(self, found: Predicate | _BoundPart) -> Predicate:
        return found if isinstance(found, Predicate) else Evaluated(found.evaluator(BOOLEAN, self._where))

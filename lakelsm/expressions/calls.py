"""Calls of functions in DuckDB's SQL: scalar functions, aggregate functions with FILTER, and windows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.aggregate_functions import AGGREGATES, NEIGHBOURS, RANKS, AggregateCall, neighbour
from lakelsm.expressions.collection_functions import COLLECTION_FUNCTIONS, struct_of
from lakelsm.expressions.decimal_arithmetic import BIGINT
from lakelsm.expressions.duckdb_casts import TIMESTAMP, TIMESTAMP_LTZ, DuckExpression, alike, cast, text_of
from lakelsm.expressions.duckdb_functions import DATE, SCALAR
from lakelsm.expressions.duckdb_types import type_text
from lakelsm.expressions.expression_binder import ExpressionBinder, Handlers, Node, shown
from lakelsm.expressions.operators import chosen, compared, concatenated
from lakelsm.expressions.regular_expressions import REGULAR_EXPRESSIONS
from lakelsm.expressions.text_functions import TEXT_FUNCTIONS
from lakelsm.expressions.time_functions import TIME_FUNCTIONS
from lakelsm.predicate.expression import BOOLEAN, NULL_TYPE, STRING, Expression, Value, is_ordered
from lakelsm.types import AtomicType

TINYINT = AtomicType("TINYINT")
_FUNCTIONS = {**SCALAR, **TEXT_FUNCTIONS, **TIME_FUNCTIONS, **COLLECTION_FUNCTIONS, **REGULAR_EXPRESSIONS}
#: Functions of the current time, and their types.
_CURRENT = {
    **dict.fromkeys(("current_timestamp", "now"), TIMESTAMP_LTZ),
    **dict.fromkeys(("current_date", "curdate"), DATE),
    "localtimestamp": TIMESTAMP,
}
#: Functions of `call` itself.
_OTHERS = frozenset(
    [
        "coalesce", "concat", "decode", "grouping", "grouping_id", "if", "ifnull", "isnotnull", "isnull",
        "nullif", "nvl", "nvl2", "struct", "substr", "substring",
    ]
)  # fmt: skip
#: All functions that are evaluated; docs/sql.md lists them.
FUNCTION_NAMES = frozenset([*_FUNCTIONS, *_OTHERS, *_CURRENT, *AGGREGATES, *RANKS, *NEIGHBOURS, "mod", "trim"])
#: The length of a substring without one, in Spark.
_MAX_INT = 2147483647


def call(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind the call of a function by its name."""
    name = str(node.this).lower()
    if name in AGGREGATES:
        return _aggregate(binder, node, "", "")
    if name == "mod" and len(node.expressions) == 2:
        return binder.bind(exp.Mod(this=node.expressions[0], expression=node.expressions[1]))
    if name in _CURRENT and not node.expressions:
        return current(binder, name)
    if name not in _OTHERS and name not in _FUNCTIONS:
        return None  # Another aggregate, perhaps: its arguments may be no groups.
    arguments = [binder.bind(each) for each in node.expressions]
    if name in ("grouping", "grouping_id"):
        return _grouping(binder, name, arguments)
    if name in ("coalesce", "nvl", "ifnull"):
        found = alike(arguments)
        if not found:
            return None
        if all(each.type == NULL_TYPE for each in arguments):
            return Value(NULL_TYPE, None)
        return DuckExpression(found[0].type, f"coalesce({', '.join(map(text_of, found))})")
    if name == "nullif" and len(arguments) == 2:
        equal = compared("=", *arguments)
        return None if equal is None else chosen([text_of(equal)], [Value(NULL_TYPE, None), arguments[0]])
    if name == "if" and len(arguments) == 3:
        return chosen([binder.condition(node.expressions[0])], arguments[1:])
    if name == "concat":
        return concatenated(arguments)
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        word = "IS NULL" if name == "isnull" else "IS NOT NULL"
        return DuckExpression(BOOLEAN, f"({text_of(arguments[0])} {word})")
    if name in ("substring", "substr"):
        return _substring(binder, arguments)
    if name == "struct":
        return struct_of(_names(node.expressions), arguments)
    if name == "decode" and len(arguments) > 2:
        return _decoded(arguments)
    if name == "nvl2" and len(arguments) == 3:
        return chosen([f"({text_of(arguments[0])} IS NOT NULL)"], arguments[1:])
    function = _FUNCTIONS.get(name)
    return None if function is None else function(arguments)


def current(binder: ExpressionBinder, name: str) -> Expression | None:
    """Bind current_timestamp and its like: the time at which the query was parsed, in UTC."""
    time = DuckExpression(TIMESTAMP_LTZ, f"CAST('{binder.time.isoformat(' ')}' AS TIMESTAMPTZ)")
    return cast(time, _CURRENT[name])


def _decoded(arguments: Sequence[Expression]) -> Expression | None:
    """Bind decode(x, value, result, … [, default]): NULL equals NULL."""
    value, rest = arguments[0], list(arguments[1:])
    default = rest.pop() if len(rest) % 2 else Value(NULL_TYPE, None)
    tests = [compared("IS NOT DISTINCT FROM", value, each) for each in rest[::2]]
    texts = [text_of(test) for test in tests if test is not None]
    return chosen(texts, [*rest[1::2], default]) if len(texts) == len(tests) else None


def _grouping(binder: ExpressionBinder, name: str, arguments: Sequence[Expression]) -> Expression | None:
    """Bind grouping(a), and grouping_id() of all expressions of GROUP BY: a bit is 1 where the row has all values."""
    groups = binder.scope.groups or {}
    if not binder.scope.has_sets or binder.in_aggregate:
        return None
    texts = [text_of(each) for each in arguments]
    if name == "grouping":
        is_group = len(texts) == 1 and texts[0] in groups
        return DuckExpression(TINYINT, f"CAST(grouping({texts[0]}) AS TINYINT)") if is_group else None
    if texts and texts != list(groups):
        return None
    return DuckExpression(BIGINT, f"CAST(grouping({', '.join(groups)}) AS BIGINT)")


def _names(nodes: Sequence[Node]) -> list[str]:
    """Return the names of the fields of struct(…)."""
    return [
        each.alias if isinstance(each, exp.Alias) else each.parts[-1].name if isinstance(each, exp.Column) else f"col{at}"
        for at, each in enumerate(nodes, start=1)
    ]


def _substring(binder: ExpressionBinder, arguments: Sequence[Expression]) -> Expression | None:
    """Bind substring(text, position [, length]): position 0 is 1, and a negative one counts from the end."""
    if not 2 <= len(arguments) <= 3 or arguments[0].type != STRING:
        return None
    if any(each.type.root not in ("TINYINT", "SMALLINT", "INT") for each in arguments[1:]):
        return None
    text, start = text_of(arguments[0]), f"CAST({text_of(arguments[1])} AS BIGINT)"
    first = f"(CASE WHEN {start} > 0 THEN {start} - 1 WHEN {start} < 0 THEN length({text}) + {start} ELSE 0 END)"
    length = f"CAST({text_of(arguments[2]) if len(arguments) == 3 else _MAX_INT} AS BIGINT)"
    count = f"greatest({first} + {length} - greatest({first}, 0), 0)"
    known = f"{start} IS NOT NULL AND {length} IS NOT NULL"
    return DuckExpression(
        STRING, f"CASE WHEN {known} THEN substring({text}, greatest({first}, 0) + 1, {count}) END"
    )


def _aggregate(binder: ExpressionBinder, node: Node, condition: str, over: str) -> Expression | None:
    """Return an aggregate function with FILTER and OVER, both as DuckDB writes them."""
    name = str(node.this).lower()
    if not over and (binder.scope.groups is None or binder.in_aggregate):
        raise InvalidInputError(f"SQL: aggregate function {shown(node)!r} is not allowed here.")
    arguments, distinct = list(node.expressions), ""
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = arguments[0].expressions, "DISTINCT "
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        found: AggregateCall | None = AggregateCall(BIGINT, "count(*)")
    else:
        bound = _arguments(binder, arguments, bool(over))
        aggregate = AGGREGATES.get(name)
        found = neighbour(name, bound) if aggregate is None and over else aggregate and aggregate(bound, distinct)
    if not found or (distinct and over):
        return None
    return DuckExpression(found.type, found.text(f"{condition}{over}"))


def _arguments(binder: ExpressionBinder, nodes: Sequence[Node], over: bool) -> list[Expression]:
    """Return the arguments of an aggregate: of a window, they may be groups and aggregates."""
    before, binder.in_aggregate = binder.in_aggregate, binder.in_aggregate or not over
    try:
        return [binder.bind(each) for each in nodes]
    finally:
        binder.in_aggregate = before


def filtered(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``aggregate FILTER (WHERE condition)``."""
    before, binder.in_aggregate = binder.in_aggregate, True
    try:
        condition = binder.condition(node.expression.this)
    finally:
        binder.in_aggregate = before
    return _aggregate(binder, node.this, f" FILTER (WHERE {condition})", "")


def window(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``function OVER (PARTITION BY … ORDER BY … ROWS …)``."""
    if node.args.get("alias") is not None or node.args.get("first") is not None:
        return None
    parts = []
    if node.args.get("partition_by"):
        parts.append("PARTITION BY " + ", ".join(text_of(binder.bind(each)) for each in node.args["partition_by"]))
    order = node.args.get("order")
    if order is not None:
        parts.append("ORDER BY " + ", ".join(ordered(binder, each) for each in order.expressions))
    frame = _frame(binder, node.args.get("spec"))
    over = f" OVER ({' '.join([*parts, frame])})"
    function = node.this
    name = str(function.this).lower() if isinstance(function, exp.Anonymous) else ""
    if name in RANKS:
        if function.expressions or order is None:
            return None
        kind = RANKS[name]
        return DuckExpression(kind, f"CAST({name}(){over} AS {type_text(kind)})")
    if not name:
        return None
    if name in ("lag", "lead") and order is None:
        return None
    return _aggregate(binder, function, "", over)


def ordered(binder: ExpressionBinder, node: Node) -> str:
    """Return an expression of ORDER BY: NULL comes first in ascending order, unless the query says otherwise."""
    child, descending = (node.this, bool(node.args.get("desc"))) if isinstance(node, exp.Ordered) else (node, False)
    nulls_first = node.args.get("nulls_first") if isinstance(node, exp.Ordered) else None
    first = (not descending) if nulls_first is None else bool(nulls_first)
    found = binder.bind(child)
    if not is_ordered(found.type):
        binder.refuse(child)
    return f"{text_of(found)} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"


def _frame(binder: ExpressionBinder, spec: Node) -> str:
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "RANGE").upper()
    if kind != "ROWS" and any(not isinstance(spec.args.get(side), str) for side in ("start", "end")):
        binder.refuse(spec)
    ends = [_frame_end(binder, spec, side) for side in ("start", "end")]
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}"


def _frame_end(binder: ExpressionBinder, spec: Node, side: str) -> str:
    value, direction = spec.args.get(side), spec.args.get(f"{side}_side")
    if value is None:
        return "CURRENT ROW"
    if isinstance(value, str):
        return value if value == "CURRENT ROW" else f"{value} {direction}"
    number = binder.literal(value)
    if number is None or not isinstance(number.value, int):
        binder.refuse(spec)
    return f"{number.value} {direction}"


#: The handlers of this module, by the class of the node.
CALLS: Handlers = {
    exp.Anonymous: call,
    exp.Filter: filtered,
    exp.Window: window,
}

"""CAST and TRY_CAST of queries in DuckDB's SQL, and literals with a type."""

from __future__ import annotations

from sqlglot import exp

from lakelsm.expressions.decimal_arithmetic import with_value
from lakelsm.expressions.duckdb_casts import DuckExpression, cast, computed, text_of
from lakelsm.expressions.expression_binder import ExpressionBinder, Handlers, Node
from lakelsm.predicate.expression import NULL_TYPE, STRING, Expression
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataType, parse_type

_CAST_TYPES = {
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMPNTZ": "TIMESTAMP(6)",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPLTZ", "TIMESTAMPTZ"), "TIMESTAMP_LTZ(6)"),
}


def cast_to(binder: ExpressionBinder, node: Node) -> Expression | None:
    """Bind ``CAST(a AS type)``, ``TRY_CAST(a AS type)``, ``DATE '…'``."""
    target = _target(node)
    child = None if target is None else binder.bind(node.this)
    if child is None or target is None:
        return None
    is_try = isinstance(node, exp.TryCast) and node.args.get("safe")
    if not is_try or child.type == NULL_TYPE:
        found = cast(child, target)
        return None if found is None else computed(found)
    if child.type == STRING and target.root not in INTEGER_ROOTS:
        return None  # Spark casts more texts than `cast`.
    # An error of the child is an error.
    found = cast(DuckExpression(child.type, "{x}"), target)
    return None if found is None else DuckExpression(target, with_value(f"TRY({text_of(found)})", text_of(child)))


def _target(node: Node) -> DataType | None:
    """Return the type of a CAST; None for one that is not evaluated here."""
    name = str(getattr(node.to.this, "value", node.to.this))
    if name == "DECIMAL":
        digits = [int(one.this.this) for one in node.to.expressions]
        return AtomicType("DECIMAL", precision=(digits or [10])[0], scale=(digits[1:] or [0])[0])
    return parse_type(_CAST_TYPES[name]) if name in _CAST_TYPES and not node.to.expressions else None


#: The handlers of this module, by the class of the node.
CASTS: Handlers = {exp.Cast: cast_to, exp.TryCast: cast_to}

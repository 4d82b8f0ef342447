"""Filters that Spark pushes to a Python data source, as conditions on a table.

A filter without an exact condition is left out: Spark applies all filters again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from lakelsm.environment import utc_zone
from lakelsm.errors import LakelsmError
from lakelsm.predicate.evaluation import check_supported
from lakelsm.predicate.parser import parse_where
from lakelsm.schema.table_schema import TableSchema

#: Operators by the name of Spark's class of filters. The classes exist since PySpark 4.1.
_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_PATTERNS = {"StringStartsWith": ("", "%"), "StringEndsWith": ("%", ""), "StringContains": ("%", "%")}


def conditions(filters: Iterable[Any], schema: TableSchema) -> Iterator[str]:
    """Yield the condition of each filter that the table can evaluate."""
    for each in filters:
        text = _condition(each)
        if text is None:
            continue
        try:
            check_supported(parse_where(text, schema.fields, utc_zone()), text)
        except LakelsmError:
            continue
        yield text


def _condition(given: Any) -> str | None:
    """Return the SQL text of a filter; None if it has none."""
    kind = type(given).__name__
    if kind == "Not":
        inner = _condition(given.child)
        return None if inner is None else f"NOT ({inner})"
    if len(getattr(given, "attribute", ())) != 1:  # A field within a column.
        return None
    name = "`" + given.attribute[0].replace("`", "``") + "`"
    if kind in ("IsNull", "IsNotNull"):
        return f"{name} IS {'NOT ' if kind == 'IsNotNull' else ''}NULL"
    if kind in _PATTERNS:
        before, after = _PATTERNS[kind]
        pattern = None if set(given.value) & set("%_") else _text(before + given.value + after)
        return None if pattern is None else f"{name} LIKE {pattern}"
    if kind == "In":
        values = [_literal(value) for value in given.value]
        return None if not values or None in values else f"{name} IN ({', '.join(map(str, values))})"
    value = _literal(given.value) if kind in _OPERATORS else None
    return None if value is None else f"{name} {_OPERATORS[kind]} {value}"


def _literal(value: object) -> str | None:
    """Return a value as a literal of SQL; None if its literal may compare otherwise."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return f"{value:f}" + ("" if "." in f"{value:f}" else ".") if value.is_finite() else None
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        return f"TIMESTAMP_LTZ '{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(sep=' ')}Z'"
    return f"DATE '{value.isoformat()}'" if isinstance(value, date) else None


def _text(value: str) -> str | None:
    """Return a text in quotes; None if it has a quote or an escape character."""
    return None if "'" in value or "\\" in value else f"'{value}'"

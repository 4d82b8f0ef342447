"""Random conditions as SQL text, with a reference that evaluates them in three-valued logic."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from lakelsm.types import AtomicType, DataField

FIELDS = (
    DataField(0, "id", AtomicType("BIGINT")),
    DataField(1, "amount", AtomicType("DECIMAL", precision=10, scale=2)),
    DataField(2, "Name", AtomicType("VARCHAR", length=20)),
    DataField(3, "day", AtomicType("DATE")),
    DataField(4, "ratio", AtomicType("DOUBLE")),
    DataField(5, "flag", AtomicType("BOOLEAN")),
)
Row = Mapping[str, Any]
Reference = Callable[[Row], "bool | None"]
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Condition:
    """SQL text and its meaning."""

    sql: str
    reference: Reference


_days = st.integers(0, 6).map(lambda n: date(2020, 1, 28) + timedelta(days=n))
_texts = st.text("ab", max_size=3)
_numbers = st.integers(-3, 3)
_amounts = st.integers(-300, 300).map(lambda n: Decimal(n) / 100)
_ratios = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 2.0, float("nan"), float("inf")])

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": _numbers,
    "amount": _amounts,
    "Name": _texts,
    "day": _days,
    "ratio": _ratios,
    "flag": st.booleans(),
}


def rows() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


def _literal(column: str) -> st.SearchStrategy[tuple[str, Any]]:
    """Draw the text and the value of a literal of the column's type."""
    number = st.one_of(_numbers.map(lambda n: (str(n), n)), _amounts.map(lambda d: (str(d), d)))
    by_column: dict[str, st.SearchStrategy[tuple[str, Any]]] = {
        "id": number,
        "amount": number,
        "Name": _texts.map(lambda text: (f"'{text}'", text)),
        "day": _days.flatmap(lambda d: st.sampled_from([(f"'{d}'", d), (f"DATE '{d}'", d)])),
        "ratio": st.sampled_from([("0", 0), ("-1.5", -1.5), ("0.5", 0.5), ("2e0", 2.0), ("0.3", 0.3)]),
        "flag": st.sampled_from([("true", True), ("FALSE", False)]),
    }
    return by_column[column]


def rank(value: Any) -> tuple[bool, Any]:
    """Return a sort key with Spark's order: NaN equals itself and is above all."""
    return (True, 0) if value != value else (False, value)


def _compare(column: str, op: str, value: Any) -> Reference:
    def reference(row: Row) -> bool | None:
        held = row[column]
        return None if held is None or value is None else OPS[op](rank(held), rank(value))

    return reference


@st.composite
def _leaves(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(sorted(VALUES)))
    name = draw(st.sampled_from([column, column.upper(), f"`{column}`"]))
    kinds = ["compare", "flipped", "null", "in", "between", "safe", "like", "pattern", "columns", "flag", "odd"]
    kind = draw(st.sampled_from(kinds))
    text, value = draw(_literal(column) | st.just(("NULL", None)) if kind == "compare" else _literal(column))
    op = draw(st.sampled_from(sorted(OPS)))
    if kind == "compare":
        return Condition(f"{name} {op} {text}", _compare(column, op, value))
    if kind == "flipped":
        return Condition(f"{text} {op} {name}", _compare(column, _FLIPPED.get(op, op), value))
    if kind == "null":
        return Condition(f"{name} IS NULL", lambda row: row[column] is None)
    if kind == "in":
        options = draw(st.lists(_literal(column), min_size=1, max_size=3))
        has_null = draw(st.booleans())
        texts = [option[0] for option in options] + ["NULL"] * has_null

        def contains(row: Row) -> bool | None:
            held = row[column]
            if held is None:
                return None
            found = any(rank(option[1]) == rank(held) for option in options)
            return None if has_null and not found else found

        return Condition(f"{name} IN ({', '.join(texts)})", contains)
    if kind == "between":
        high_text, high = draw(_literal(column))
        both = _and(_compare(column, ">=", value), _compare(column, "<=", high))
        return Condition(f"{name} BETWEEN {text} AND {high_text}", both)
    if kind == "safe":
        plain = _compare(column, "=", value)
        return Condition(f"{name} <=> {text}", lambda row: bool(plain(row)))
    if kind == "like":
        prefix = draw(_texts)
        return Condition(
            f"name LIKE '{prefix}%'",
            lambda row: None if row["Name"] is None else row["Name"].startswith(prefix),
        )
    if kind == "pattern":
        pattern = draw(st.text("ab_%", max_size=4))
        like = re.compile(pattern.replace("%", ".*").replace("_", "."), re.DOTALL)
        return Condition(
            f"name LIKE '{pattern}'", lambda row: None if row["Name"] is None else bool(like.fullmatch(row["Name"]))
        )
    if kind == "columns":
        return Condition(
            f"{name} {op} {column}",
            lambda row: None if row[column] is None else OPS[op](rank(row[column]), rank(row[column])),
        )
    if kind == "flag":
        return Condition("flag", lambda row: row["flag"])
    return Condition(
        "id % 2 = 1", lambda row: None if row["id"] is None else row["id"] % 2 == 1 and row["id"] > 0
    )


def _and(left: Reference, right: Reference) -> Reference:
    def reference(row: Row) -> bool | None:
        sides = left(row), right(row)
        return False if False in sides else None if None in sides else True

    return reference


def _or(left: Reference, right: Reference) -> Reference:
    def reference(row: Row) -> bool | None:
        sides = left(row), right(row)
        return True if True in sides else None if None in sides else False

    return reference


def _not(inner: Reference) -> Reference:
    def reference(row: Row) -> bool | None:
        value = inner(row)
        return None if value is None else not value

    return reference


def conditions() -> st.SearchStrategy[Condition]:
    """Draw conditions on FIELDS; `id % 2 = 1` is an unsupported part."""

    def extend(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        return st.one_of(
            st.tuples(inner, inner).map(
                lambda p: Condition(f"({p[0].sql}) AND ({p[1].sql})", _and(p[0].reference, p[1].reference))
            ),
            st.tuples(inner, inner).map(
                lambda p: Condition(f"({p[0].sql}) OR ({p[1].sql})", _or(p[0].reference, p[1].reference))
            ),
            inner.map(lambda c: Condition(f"NOT ({c.sql})", _not(c.reference))),
            inner.map(lambda c: Condition(f"({c.sql}) IS TRUE", lambda row: c.reference(row) is True)),
            inner.map(lambda c: Condition(f"({c.sql}) IS NOT FALSE", lambda row: c.reference(row) is not False)),
        )

    return st.recursive(_leaves(), extend, max_leaves=6)

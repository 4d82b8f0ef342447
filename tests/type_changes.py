"""Every change of a column's type that a table permits, with values of the old type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from lakelsm.schema.type_widening import can_change
from lakelsm.schema_changes import SchemaChange, UpdateColumnType
from lakelsm.types import AtomicType, output_arrow, parse_type
from tests.typed_values import TYPED_VALUES

#: The types of the list, and decimals with special rules for conversions to floating-point numbers.
_TYPES = [typed.sql for typed in TYPED_VALUES] + [
    *("DECIMAL(10, 0)", "DECIMAL(18, 18)", "DECIMAL(19, 1)", "DECIMAL(22, 3)", "DECIMAL(38, 0)", "DECIMAL(38, 38)")
]
#: (old type, new type) of columns, and of nested elements, values or members.
CHANGES = [(a, b) for a in _TYPES for b in _TYPES if a != b and can_change(parse_type(a), parse_type(b))]
NESTED = [
    ("ARRAY<DECIMAL(5, 2)>", "element", "DOUBLE"),
    ("MAP<STRING, DECIMAL(18, 3)>", "value", "DOUBLE"),
    ("ROW<x DECIMAL(38, 10), y INT>", "x", "FLOAT"),
]
_NESTED_COLUMNS = [f"n{at} {kind}" for at, (kind, _, _) in enumerate(NESTED)]

#: The columns of a table with one column c<number> for each change, before and after.
BEFORE = ", ".join(["k INT", *(f"c{at} {old}" for at, (old, _) in enumerate(CHANGES)), *_NESTED_COLUMNS])
PATHS = [*((f"c{at}", new) for at, (_, new) in enumerate(CHANGES))]
PATHS += [(f"n{at}.{part}", new) for at, (_, part, new) in enumerate(NESTED)]


def schema_changes() -> list[SchemaChange]:
    """Return the changes of the whole table."""
    return [UpdateColumnType(tuple(path.split(".")), parse_type(new)) for path, new in PATHS]


def rows_before(count: int, seed: int = 20) -> pa.Table:
    """Return rows of the table before the changes: ``count`` random values of each column, its extremes, and NULL."""
    random = Random(seed)
    by_type = {old: _values(old, count, random) for old in dict.fromkeys(old for old, _ in CHANGES)}
    columns: dict[str, tuple[str, list[Any]]] = {"k": ("INT", list(range(count)))}
    columns |= {f"c{at}": (old, by_type[old]) for at, (old, _) in enumerate(CHANGES)}
    fives, eighteens = _values("DECIMAL(5, 2)", count, random), _values("DECIMAL(18, 3)", count, random)
    longest = _values("DECIMAL(38, 10)", count, random)
    columns["n0"] = NESTED[0][0], [[value, None] if at % 7 else None for at, value in enumerate(fives)]
    columns["n1"] = NESTED[1][0], [[("a", value)] if at % 7 else None for at, value in enumerate(eighteens)]
    columns["n2"] = NESTED[2][0], [{"x": value, "y": at} if at % 7 else None for at, value in enumerate(longest)]
    arrays = [pa.array(values, output_arrow(parse_type(kind))) for kind, values in columns.values()]
    return pa.Table.from_arrays(arrays, list(columns))


def _values(sql: str, count: int, random: Random) -> list[Any]:
    kind = parse_type(sql)
    assert isinstance(kind, AtomicType)
    # Times may widen to Arrow's nanoseconds, whose range does not contain the extremes of coarser times.
    known = [value for typed in TYPED_VALUES if typed.sql == sql and "STAMP" not in sql for value in typed.values]
    made = _MAKERS[kind.root](kind, random)
    return [None, *known, *(made() for _ in range(count - len(known) - 1))]


def _integers(bits: int) -> Callable[[AtomicType, Random], Callable[[], Any]]:
    # Numbers of any length: most numbers of 64 bits have no exact DOUBLE or FLOAT.
    return lambda kind, random: lambda: random.choice((-1, 1)) * random.getrandbits(random.randint(1, bits))


def _decimal(kind: AtomicType, random: Random) -> Callable[[], Any]:
    digits, scale = kind.precision or 0, kind.scale or 0

    def made() -> Decimal:
        number = random.randrange(10 ** random.randint(1, digits))
        return Decimal((random.randint(0, 1), tuple(map(int, str(number))), -scale))

    return made


def _floats(kind: AtomicType, random: Random) -> Callable[[], Any]:
    specials = [float("inf"), float("-inf"), float("nan"), -0.0]
    return lambda: random.choice(specials) if random.random() < 0.01 else _finite(random)


def _finite(random: Random) -> float:
    return random.uniform(-1, 1) * 2.0 ** random.randint(-149, 127)


def _texts(kind: AtomicType, random: Random) -> Callable[[], Any]:
    return lambda: "".join(random.choices("aé~\U0001f600 ", k=random.randint(0, min(kind.length or 1, 9))))


def _bytes(kind: AtomicType, random: Random) -> Callable[[], Any]:
    # A value of Paimon's BINARY always has the full length.
    return lambda: random.randbytes((kind.length or 1) if kind.root == "BINARY" else random.randint(0, 4))


def _clock(kind: AtomicType, random: Random) -> Callable[[], Any]:
    return lambda: (dt.datetime.min + dt.timedelta(seconds=random.randrange(86_400))).time()


def _times(kind: AtomicType, random: Random) -> Callable[[], Any]:
    precision = kind.precision or 0
    step = {0: 1_000_000, 3: 1_000}.get(precision, 1)
    zone = dt.timezone.utc if kind.root == "TIMESTAMP_LTZ" else None
    first = dt.datetime(1678, 1, 1, tzinfo=zone)

    def made() -> dt.datetime:
        micros = random.randrange(583 * 365 * 86_400_000_000)
        return first + dt.timedelta(microseconds=micros // step * step)

    return made


_MAKERS: dict[str, Callable[[AtomicType, Random], Callable[[], Any]]] = {
    **{root: _integers(bits) for root, bits in (("TINYINT", 7), ("SMALLINT", 15), ("INT", 31), ("BIGINT", 63))},
    "FLOAT": _floats,
    "DECIMAL": _decimal,
    **dict.fromkeys(("CHAR", "VARCHAR"), _texts),
    **dict.fromkeys(("BINARY", "VARBINARY"), _bytes),
    "TIME": _clock,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _times),
}

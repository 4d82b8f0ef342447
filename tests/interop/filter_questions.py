"""Conditions on columns of every type, the rows that match them, and tables whose files they may skip.

Values are in the common form of `value_form`. Conditions follow SQL: NULL matches only IS NULL, texts and binaries
compare by unsigned bytes, NaN equals itself and is above every number, 0.0 equals -0.0.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, islice, zip_longest
from random import Random
from typing import Any

import pyarrow as pa

from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, AtomicType, DataField, parse_columns
from tests.interop.samples import column_name, rows_of
from tests.interop.value_form import Rows, unordered_of_arrow

INF, NAN = float("inf"), float("nan")
_MICROS = [
    dt.datetime(1, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1960, 2, 29, 12, 0, 0, 123_456),
    dt.datetime(1970, 1, 1),
    dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(2024, 1, 1, 0, 0, 0, 123_456),
    dt.datetime(2024, 1, 1, 0, 0, 0, 124_000),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
]
_MILLIS = [time.replace(microsecond=time.microsecond // 1000 * 1000) for time in _MICROS]
_SECONDS = [time.replace(microsecond=0) for time in _MICROS]
_NANOS = [-(2**60), -1_000_000_001, -1_000, -999, -1, 0, 1, 999, 1_704_067_200_123_456_789, 2**62]
_TEXTS = ["", "a", "ab", "b", "B", "é", "\x7f", "\x80", "\ud7ff", "\ue000", "\uffff", "\U0001f600", "\U0010ffff", "a "]
_LONG_TEXTS = [
    *_TEXTS,
    "abcdefghijklmnop",
    "abcdefghijklmnopq",
    "abcdefghijklmnop\U0001f600",
    "\U0010ffff" * 17,
    "\uffff" * 20,
    "a%b_c\\d",
    "it's",
]
_BYTES = [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\x7f\xff", b"\x80\x00", b"\xc3\xa9", b"a", b"ab"]
_LONG_BYTES = [*_BYTES, b"\x00" * 20, b"\x7f" * 17, b"\x80" * 17, b"\xff" * 40]


def _integers(bits: int) -> list[int]:
    most = 2 ** (bits - 1) - 1
    return [-most - 1, -most, -2, -1, 0, 1, 7, 100, most - 1, most]


def _decimals(precision: int, scale: int) -> list[Decimal]:
    """Return the extremes, the smallest values, and those around the limits of each number of bytes."""
    most = 10**precision - 1
    ends = [sign * 2 ** (8 * size - 1) + more for size in (1, 4, 8, 12) for sign in (-1, 1) for more in (-1, 0)]
    numbers = {number for number in (-most, most, -1, 0, 1, 3, -5, *ends) if -most <= number <= most}
    return [Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)) for number in sorted(numbers)]


#: Values of each SQL type that has an order.
VALUES: dict[str, Sequence[Any]] = {
    "BOOLEAN": [False, True],
    "TINYINT": _integers(8),
    "SMALLINT": _integers(16),
    "INT": _integers(32),
    "BIGINT": _integers(64),
    "FLOAT": [-INF, -1.5, -1e-45, -0.0, 0.0, 1e-45, 0.5, 3.25, 2.0**127, INF, NAN],
    "DOUBLE": [-INF, -1.5, -5e-324, -0.0, 0.0, 5e-324, 0.1, 3.25, 1.7e308, INF, NAN],
    "DECIMAL(1, 0)": _decimals(1, 0),
    "DECIMAL(9, 2)": _decimals(9, 2),
    "DECIMAL(10, 3)": _decimals(10, 3),
    "DECIMAL(18, 4)": _decimals(18, 4),
    "DECIMAL(19, 5)": _decimals(19, 5),
    "DECIMAL(27, 0)": _decimals(27, 0),
    "DECIMAL(38, 10)": _decimals(38, 10),
    "CHAR(5)": _TEXTS,
    "VARCHAR(20)": _LONG_TEXTS,
    "STRING": _LONG_TEXTS,
    "BINARY(2)": [value for value in _BYTES if len(value) == 2],
    "VARBINARY(40)": _LONG_BYTES,
    "BYTES": _LONG_BYTES,
    "DATE": [
        dt.date(1, 1, 1), dt.date(1600, 2, 29), dt.date(1969, 12, 30), dt.date(1969, 12, 31), dt.date(1970, 1, 1),
        dt.date(1970, 1, 2), dt.date(2024, 2, 29), dt.date(9999, 12, 31),
    ],
    "TIME(0)": [dt.time(0), dt.time(0, 0, 1), dt.time(12), dt.time(23, 59, 59)],
    "TIME(3)": [dt.time(0), dt.time(0, 0, 0, 1000), dt.time(12, 0, 0, 999_000), dt.time(23, 59, 59, 999_000)],
    **{f"TIMESTAMP({digits})": times for digits, times in ((0, _SECONDS), (3, _MILLIS), (6, _MICROS), (9, _NANOS))},
    **{
        f"TIMESTAMP({digits}) WITH LOCAL TIME ZONE": times
        for digits, times in ((0, _SECONDS), (3, _MILLIS), (6, _MICROS), (9, _NANOS))
    },
}  # fmt: skip
#: Types without an order: conditions on them are IS NULL and IS NOT NULL only.
NESTED: dict[str, Sequence[Any]] = {
    "ARRAY<DECIMAL(38, 10)>": [[Decimal(1)], []],
    "MAP<STRING, BYTES>": [[("a", b"\xff")], []],
    "ROW<x DECIMAL(20, 2), y BYTES>": [{"x": Decimal(1), "y": b"\x80"}, {"x": None, "y": None}],
}


def random_values(kind: str, chance: Random) -> list[Any]:
    """Return some values of an SQL type, most of them close to listed values."""
    known = VALUES[kind]
    (column,) = parse_columns(f"c {kind}")
    assert isinstance(column.type, AtomicType)
    length = column.type.length or 0
    found: list[Any] = []
    for base in chance.choices(known, k=6):
        if isinstance(base, bool):
            found.append(base)
        elif isinstance(base, int):
            bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32}.get(kind, 64)
            moved = base + chance.choice([-1, 1, chance.getrandbits(bits - 1)])
            most = 9 * 10**18 if kind.startswith("TIMESTAMP") else 2 ** (bits - 1) - 1  # Nanoseconds: up to 2255.
            found.append(max(-most, min(moved, most)))
        elif isinstance(base, float):
            drawn = chance.choice([chance.uniform(-2, 2), chance.expovariate(1) * 10 ** chance.randint(-30, 30)])
            found.append(struct.unpack("f", struct.pack("f", drawn))[0] if kind == "FLOAT" else drawn)
        elif isinstance(base, Decimal):
            digits = [chance.randint(0, 9) for _ in range(chance.randint(1, column.type.precision or 1))]
            found.append(Decimal((chance.getrandbits(1), tuple(digits), -(column.type.scale or 0))))
        elif isinstance(base, str):
            more = chance.choices("ab\x7f\x80é\uffff\U0001f600", k=chance.randint(0, 20))
            found.append("".join([base, *more])[:length])
        elif isinstance(base, bytes):
            wanted = length if kind.startswith("BINARY") else min(length, chance.randint(0, 40))
            found.append((base + chance.randbytes(40))[:wanted])
        elif isinstance(base, dt.datetime):
            step = {"0": 1_000_000, "3": 1_000}.get(kind.partition("(")[2][:1], 1)
            found.append(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=step * chance.randint(-(10**9), 10**9)))
        elif isinstance(base, dt.date):
            found.append(dt.date(1970, 1, 1) + dt.timedelta(days=chance.randint(-300, 300)))
        else:
            found.append(chance.choice(known))
    return found


@dataclass(frozen=True)
class Question:
    """A condition ``method`` on a column, with operands."""

    method: str
    column: str
    operands: tuple[Any, ...] = ()


def order_of(value: Any, field: DataField) -> Any:
    """Return a value that compares as the values of the column do in SQL."""
    assert isinstance(field.type, AtomicType)
    if field.type.root in ("FLOAT", "DOUBLE"):
        number = float(value)
        return (1, 0.0) if math.isnan(number) else (0, number + 0.0)
    return value.encode() if isinstance(value, str) else value


def matches(question: Question, value: Any, field: DataField) -> bool:
    """Return whether a row with this value matches the condition."""
    method, operands = question.method, question.operands
    if method in ("is_null", "is_not_null"):
        return (value is None) == (method == "is_null")
    if value is None:
        return False
    if method in _OF_TEXTS:
        return _OF_TEXTS[method](value, operands[0])
    own, others = order_of(value, field), [order_of(each, field) for each in operands]
    if method in ("in", "in_set", "not_in", "not_in_set"):
        return (own in others) != method.startswith("not")
    if method == "between":
        return bool(others[0] <= own <= others[1])
    return _COMPARED[method](own, others[0])


_OF_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "starts_with": lambda value, part: value.startswith(part),
    "ends_with": lambda value, part: value.endswith(part),
    "contains": lambda value, part: part in value,
}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: bool(a == b),
    "not_equal": lambda a, b: bool(a != b),
    "less_than": lambda a, b: bool(a < b),
    "less_or_equal": lambda a, b: bool(a <= b),
    "greater_than": lambda a, b: bool(a > b),
    "greater_or_equal": lambda a, b: bool(a >= b),
}


class FilterTable:
    """Rows of columns of every type, in partitions ``p``; after a compaction each is one file.

    Partition 0 has all values except some, 1 has one value, 2 and 3 the lower and the upper half, 4 only NULL (keys: one
    value), 5 the extremes. ``id`` is unique. ``role`` is the role of the typed columns: values, keys (a part of the
    primary key), or partitions (partition columns instead of ``p``, with the rows of partition 0). ``chance`` adds
    random values to the listed ones.
    """

    def __init__(self, role: str = "values", chance: Random | None = None) -> None:
        types = [*VALUES, *(NESTED if role == "values" else {})]
        if role == "partitions":  # Paimon has no partitions of binaries.
            types = [kind for kind in types if not kind.startswith(("BINARY", "VARBINARY", "BYTES"))]
        self.keys = role != "values"
        self._values: dict[str, Sequence[Any]] = {**VALUES, **NESTED}
        if chance is not None:
            self._values |= {kind: [*known, *random_values(kind, chance)] for kind, known in VALUES.items()}
        self.columns = ", ".join(["p INT", "id INT", *(f"{column_name(kind)} {kind}" for kind in types)])
        self.fields = parse_columns(self.columns)
        columns = [column_name(kind) for kind in types] if self.keys else []
        self.partition_by = columns if role == "partitions" else ["p"]
        self.primary_key = [*dict.fromkeys([*self.partition_by, *columns, "id"])]
        self._types = types

    def rows(self) -> pa.Table:
        """Return the rows of the first commit."""
        partitions = range(6) if self.partition_by == ["p"] else [0]
        return self._rows([row for p in partitions for row in self._partition(p)], first=0)

    def later_rows(self) -> pa.Table:
        """Return the rows of a later commit: new keys if columns are keys, else other values of existing keys."""
        later = [(p, at + 1, position) for p, at, position in self._partition(0)[::2]]
        return self._rows(later, first=1000 if self.keys else 0)

    def _partition(self, p: int) -> list[tuple[int, int, int]]:
        """Return (partition, index of the value, row in the partition) of each row."""
        longest = max(map(len, self._values.values())) + 1
        return [(p, at, at) for at in range(longest if p in (0, 2, 3) else 4)]

    def _rows(self, rows: Sequence[tuple[int, int, int]], first: int) -> pa.Table:
        values: dict[str, list[Any]] = {"p": [p for p, _, _ in rows]}
        values["id"] = [first + 100 * p + row for p, _, row in rows]
        for kind in self._types:
            values[column_name(kind)] = [self._value(kind, p, at) for p, at, _ in rows]
        return rows_of(self.columns, values)

    def _value(self, kind: str, p: int, at: int) -> Any:
        known = self._values[kind]
        kept = known if len(known) < 4 else [value for position, value in enumerate(known) if position % 4 != 1]
        nothing = kept[0] if self.keys else None
        half = (len(kept) + 1) // 2
        of_partition = {
            0: [*kept, nothing],
            1: [kept[(len(kept) - 1) // 2]],
            2: kept[:half],
            3: kept[half:] or kept,
            4: [nothing],
            5: [kept[0], kept[-1], nothing],
        }[p]
        return of_partition[at % len(of_partition)]

    def literals(self, field: DataField) -> list[Any]:
        """Return the values that conditions compare with."""
        kind = next(kind for kind in self._types if column_name(kind) == field.name)
        if kind not in VALUES:
            return []
        ddl = f"c {kind}"
        return [value for (value,) in unordered_of_arrow(rows_of(ddl, {"c": self._values[kind]}), parse_columns(ddl))]

    def questions(self) -> list[Question]:
        """Return every condition on every column of a type."""
        return [question for field in self.fields[2:] for question in _questions(field, self.literals(field))]

    def sample(self, number: int, chance: Random) -> list[Question]:
        """Return ``number`` questions, with about equally many of each method on each column."""
        piles: dict[tuple[str, str], list[Question]] = {}
        for question in self.questions():
            piles.setdefault((question.column, question.method), []).append(question)
        mixed = [chance.sample(pile, len(pile)) for pile in piles.values()]
        chance.shuffle(mixed)
        rounds = (question for each in zip_longest(*mixed) for question in each if question is not None)
        return list(islice(rounds, number))

    def answer(self, question: Question, rows: Rows) -> set[int]:
        """Return the ids of the rows that match a condition."""
        at = [field.name for field in self.fields].index(question.column)
        return {row[1] for row in rows if matches(question, row[at], self.fields[at])}


def _questions(field: DataField, literals: Sequence[Any]) -> list[Question]:
    name = field.name
    found = [Question("is_null", name), Question("is_not_null", name)]
    found += [Question(method, name, (literal,)) for method in _COMPARED for literal in literals]
    pairs = list(combinations(literals, 2))[:: max(1, len(literals) // 3)]
    for method in ("in", "in_set", "not_in", "not_in_set"):
        found += [Question(method, name, (literal,)) for literal in literals]
        found += [Question(method, name, pair) for pair in pairs]
    found += [Question("between", name, pair) for pair in [*pairs, *((one, one) for one in literals)]]
    if isinstance(field.type, AtomicType) and field.type.root in STRING_ROOTS:
        parts = dict.fromkeys([*literals, *(text[:1] for text in literals), *(text[-1:] for text in literals)])
        found += [Question(method, name, (part,)) for method in _OF_TEXTS for part in parts]
    return found


def python_of(value: Any, field: DataField) -> Any:
    """Return an operand in Python's form, for pypaimon; raise ValueError for nanoseconds, which it lacks."""
    assert isinstance(field.type, AtomicType)
    root = field.type.root
    if root in ("FLOAT", "DOUBLE"):
        return float(value)
    if root == "DATE":
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if root == "TIME":
        return (dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=value)).time()
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        if value % 1000:
            raise ValueError(f"{value} has nanoseconds")
        zone = dt.timezone.utc if root == "TIMESTAMP_LTZ" else None
        return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=value // 1000)
    return value


def sql_of(question: Question, field: DataField) -> str | None:
    """Return the condition as SQL for lakelsm; None if an operand has no literal."""
    try:
        operands = [_literal(operand, field) for operand in question.operands]
    except ValueError:
        return None
    name, method = question.column, question.method
    if method in ("in", "not_in", "in_set", "not_in_set"):
        return f"{name} {'NOT ' if method.startswith('not') else ''}IN ({', '.join(operands)})"
    if method in _OF_TEXTS:
        pattern = "".join(f"\\{letter}" if letter in "\\%_" else letter for letter in question.operands[0])
        ends = {"starts_with": (pattern, "%"), "ends_with": ("%", pattern), "contains": ("%", pattern, "%")}
        return f"{name} LIKE {_text(''.join(ends[method]))}"
    return _SHAPES[method].format(name, *operands)


_SHAPES = {
    "is_null": "{} IS NULL",
    "is_not_null": "{} IS NOT NULL",
    "equal": "{} = {}",
    "not_equal": "{} <> {}",
    "less_than": "{} < {}",
    "less_or_equal": "{} <= {}",
    "greater_than": "{} > {}",
    "greater_or_equal": "{} >= {}",
    "between": "{} BETWEEN {} AND {}",
}


def _literal(value: Any, field: DataField) -> str:
    """Return the literal of an operand. Raises ValueError if SQL or lakelsm has none."""
    assert isinstance(field.type, AtomicType)
    root = field.type.root
    if root in STRING_ROOTS:
        return _text(value)
    if root in BINARY_ROOTS:
        return f"X'{value.hex()}'"
    if root in ("FLOAT", "DOUBLE"):
        if not math.isfinite(float(value)):
            raise ValueError(value)
        return f"{value}D"
    if root == "DECIMAL":
        return f"{value:f}"
    if root == "DATE":
        return f"DATE '{python_of(value, field).isoformat()}'"
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        time = python_of(value, field).replace(tzinfo=None).isoformat(" ", "microseconds")
        return f"TIMESTAMP_NTZ '{time}'" if root == "TIMESTAMP" else f"TIMESTAMP_LTZ '{time}Z'"
    if root == "TIME":
        raise ValueError(value)
    return str(value)


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

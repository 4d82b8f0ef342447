"""Random expressions as text, and rows on which they are evaluated."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from lakelsm.types import parse_columns, python_arrow, to_arrow

NAN, INF = float("nan"), float("inf")
DDL = (
    "i8 TINYINT, i16 SMALLINT, n INT, m INT, b BIGINT, r FLOAT, x DOUBLE, d DECIMAL(5, 2), e DECIMAL(18, 6), "
    "w DECIMAL(38, 10), v STRING, u STRING, ok BOOLEAN, day DATE, ts TIMESTAMP(6), bin BYTES, arr ARRAY<INT>"
)
FIELDS = parse_columns(DDL)
#: Some critical values of each column, one list per column.
ROWS: list[tuple[Any, ...]] = [
    (
        *(1, 2, 3, -2, 4, 1.5, 2.25, Decimal("1.25"), Decimal("3.141593"), Decimal("1234.5678901234"), "a", "it's", True),
        *(date(2020, 2, 29), datetime(2020, 2, 29, 23, 59, 59, 999999), b"\x00\xff", [1, None]),
    ),
    (
        *(-7, 100, 7, 3, -9007199254740993, 0.1, -1e10, Decimal("-0.05"), Decimal("-99999.5"), Decimal("-0.0000000005")),
        *("", "b", False, date(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59), b"", []),
    ),
    (
        *(0, -1, 2147483647, 1, 1 << 40, -0.0, 1e23, Decimal("999.99"), Decimal("0.000001"), Decimal(10) ** 22),
        *("ß%_", 'say "hi"', None, date(9999, 12, 31), datetime(1, 1, 1), None, None),
    ),
    (None,) * len(FIELDS),
    (
        *(3, None, -5, None, 12, None, 0.005, None, Decimal("2.5"), None, "Ab", None, True, None),
        *(datetime(2000, 1, 1), b"a", [3]),
    ),
]

_NUMBERS = ["i8", "i16", "n", "m", "b", "r", "x", "d", "e", "w"]
_LITERALS = ["0", "1", "-1", "2", "7", "10", "3L", "2Y", "1.5", "0.01", "-2.75", "1e2", "2.5D", "0.5F", "1.50BD", "NULL"]
_TEXTS = ["v", "u", "'a'", "''", "'it''s'", '"q"', "'%'", "NULL"]
_TYPES = ["TINYINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(10, 3)", "DECIMAL(38, 20)", "DECIMAL(3, 1)"]


def batch() -> pa.RecordBatch:
    """Return the rows in the engine's types."""
    columns = [
        pa.array([row[at] for row in ROWS], python_arrow(field.type)).cast(to_arrow(field.type))
        for at, field in enumerate(FIELDS)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[field.name for field in FIELDS])


class Drawn:
    """A generator of expressions, with a method for each kind."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def expression(self) -> str:
        """Return an expression of any kind."""
        return self._pick(self.number, self.number, self.number, self.text, self.condition, self.other)(3)

    def number(self, depth: int) -> str:
        if depth == 0 or self._random.random() < 0.2:
            return self._random.choice(_NUMBERS + _LITERALS)
        return self._pick(self._binary, self._binary, self._binary, self._negative, self._choice, self._cast)(depth - 1)

    def text(self, depth: int) -> str:
        if depth == 0:
            return self._random.choice(_TEXTS)
        part = self._pick(self.text, self.text, self._castable)
        return self._random.choice(
            [
                f"{self.text(depth - 1)} || {part(depth - 1)}",
                f"concat({self.text(depth - 1)}, {part(depth - 1)})",
                f"CASE WHEN {self.condition(depth - 1)} THEN {self.text(depth - 1)} ELSE {self.text(depth - 1)} END",
                f"coalesce({self.text(depth - 1)}, {self.text(depth - 1)})",
                f"CAST({self._castable(depth - 1)} AS STRING)",
            ]
        )

    def condition(self, depth: int) -> str:
        if depth == 0:
            return self._random.choice(["ok", "n > 2", "v LIKE 'a%'", "d IS NULL", "u = 'it''s'", "n IN (3, 7)", "true"])
        op = self._random.choice(["=", "<>", "<", "<=", ">", ">="])
        return self._random.choice(
            [
                f"{self.number(depth - 1)} {op} {self.number(depth - 1)}",
                f"({self.condition(depth - 1)}) AND ({self.condition(depth - 1)})",
                f"({self.condition(depth - 1)}) OR ({self.condition(depth - 1)})",
                f"NOT ({self.condition(depth - 1)})",
                f"{self.number(depth - 1)} IS NOT NULL",
                f"{self.text(depth - 1)} {op} {self.text(depth - 1)}",
            ]
        )

    def other(self, depth: int) -> str:
        return self._random.choice(
            [
                "day",
                "ts",
                "arr",
                "bin || X'4142'",
                "DATE '2021-03-04'",
                "CAST(day AS TIMESTAMP_NTZ)",
                "CAST(ts AS DATE)",
                "coalesce(ts, day)",
                f"if({self.condition(depth)}, arr, NULL)",
                f"CASE v WHEN 'a' THEN {self.number(depth)} WHEN '' THEN {self.number(depth)} END",
                "nullif(day, DATE '2020-02-29')",
                "TIMESTAMP_NTZ '2020-01-01 01:02:03.5'",
            ]
        )

    def _binary(self, depth: int) -> str:
        op = self._random.choice("+-*/%")
        return f"({self.number(depth)} {op} {self.number(depth)})"

    def _negative(self, depth: int) -> str:
        return f"(-({self.number(depth)}))"

    def _choice(self, depth: int) -> str:
        return self._random.choice(
            [
                f"CASE WHEN {self.condition(depth)} THEN {self.number(depth)} ELSE {self.number(depth)} END",
                f"coalesce({self.number(depth)}, {self.number(depth)})",
                f"nullif({self.number(depth)}, {self.number(depth)})",
                f"if({self.condition(depth)}, {self.number(depth)}, {self.number(depth)})",
            ]
        )

    def _cast(self, depth: int) -> str:
        return f"CAST({self.number(depth)} AS {self._random.choice(_TYPES)})"

    def _castable(self, depth: int) -> str:
        return self._random.choice(["i8", "n", "b", "d", "e", "ok", "day", "v", "7", "1.50"])

    def _pick(self, *makers: Any) -> Any:
        return self._random.choice(makers)

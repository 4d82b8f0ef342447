"""Random values and conditions of columns in scope, for random queries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

#: Constants by kind: N is an integer, T a text, D a date, X a double, P a decimal, M a time, B a condition.
_CONSTANTS = {
    "N": ["0", "1", "2", "10", "-5", "NULL"],
    "T": ["'x'", "'y'", "'and'", "'it''s'", "''"],
    "D": ["DATE '2024-01-01'", "DATE '2023-12-31'", "DATE'2024-02-29'"],
    "X": ["0.5D", "-0.0D", "CAST('NaN' AS DOUBLE)", "1e3", "2.0D"],
    "P": ["1.25", "0.00", "-3.5", "100BD", "0.001"],
    "M": ["TIMESTAMP_NTZ '2024-01-01 10:30:00'", "TIMESTAMP_NTZ '1969-12-31 23:59:59.5'"],
    "B": ["TRUE", "FALSE", "(1 = 1)"],
}
_TYPES = {
    "N": "INT", "T": "STRING", "D": "DATE", "X": "DOUBLE", "P": "DECIMAL(12, 3)", "M": "TIMESTAMP_NTZ", "B": "BOOLEAN",
}  # fmt: skip
#: Values of a kind, made of values of kinds by their letters in braces.
_FORMS = {
    "N": ["({N} + 1)", "coalesce({N}, 0)", "abs({N})", "length({T})", "({N} % 3)", "({N} * {N})", "year({D})",
          "datediff({D}, {D})", "size({A})", "CAST({P} AS INT)", "if({B}, {N}, 3)", "({N} - {N})", "({N} DIV 2)",
          "nullif({N}, 1)", "month({M})", "CASE WHEN {B} THEN {N} ELSE 3 END"],
    "T": ["upper({T})", "coalesce({T}, 'none')", "concat({T}, 'and')", "substring({T}, 1, 2)", "CAST({N} AS STRING)",
          "({T} || {T})", "CASE WHEN {B} THEN {T} END", "date_format({D}, 'yyyy-MM')", "CAST({D} AS STRING)",
          "lpad({T}, 3, '*')", "array_join({A}, '+')", "element_at({A}, 1)", "CAST({P} AS STRING)",
          "nvl2({T}, 'k', {T})"],
    "D": ["date_add({D}, 1)", "last_day({D})", "coalesce({D}, DATE '2020-02-29')", "CAST({M} AS DATE)",
          "trunc({D}, 'month')", "({D} + INTERVAL 1 MONTH)", "to_date('2024-01-02')"],
    "X": ["({X} + 1)", "({X} * 2)", "CAST({N} AS DOUBLE)", "coalesce({X}, 0.5D)", "({N} / 2)", "abs({X})", "(-{X})",
          "CAST({P} AS DOUBLE)", "greatest({X}, {X})", "nullif({X}, 2.0D)"],
    "P": ["({P} + {P})", "({P} * 2)", "round({P}, 1)", "coalesce({P}, 0.5)", "CAST({N} AS DECIMAL(10, 2))", "({P} / 4)",
          "(-{P})", "({P} % 7)", "least({P}, {P})", "({P} - {N})"],
    "M": ["({M} + INTERVAL 1 HOUR)", "coalesce({M}, TIMESTAMP_NTZ '2024-01-01 00:00:00')", "CAST({D} AS TIMESTAMP_NTZ)",
          "({M} - INTERVAL 2 MONTHS)", "greatest({M}, {M})"],
    "B": ["({N} > 1)", "({T} LIKE '%a%')", "isnan({X})", "array_contains({A}, {T})", "({P} BETWEEN 0 AND {P})",
          "({D} < {M})", "coalesce({B}, FALSE)", "({T} IS NULL)", "({X} >= {N})", "({P} = {X})"],
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column in scope: how a query writes it, and its kind. Kind A is an array of texts."""

    text: str
    kind: str


class RandomValues:
    """Writes values and conditions of a few levels."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def _is(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _constant(self, kind: str) -> str:
        return self._chance.choice(_CONSTANTS[kind])

    def _compares(self) -> str:
        return self._chance.choice(["=", "<", ">", "<=", ">=", "<>", "<=>", "!="])

    def _value(self, kind: str, columns: Sequence[Column], depth: int) -> str:
        own = [column.text for column in columns if column.kind == kind]
        if kind == "A":
            return self._chance.choice(own) if own and self._is(0.8) else "split('a,b', ',')"
        if depth == 0 or self._is(0.55):
            if own and self._is(0.85):
                return self._chance.choice(own)
            return f"CAST({self._constant(kind)} AS {_TYPES[kind]})"
        form = self._chance.choice(_FORMS[kind])
        for letter in "NTDXPMBA":
            while "{" + letter + "}" in form:
                form = form.replace("{" + letter + "}", self._value(letter, columns, depth - 1), 1)
        return form

    def _condition(self, columns: Sequence[Column], depth: int) -> str:
        """Return a condition without queries."""
        known = [column.kind for column in columns if column.kind in _TYPES]
        kind = self._chance.choice(known if known and self._is(0.8) else "NNTTDXPMB")
        one = self._value(kind, columns, 1 if depth else 0)
        choice = self._chance.randrange(10 if depth else 5)
        if choice == 0:
            return f"{one} IS {self._chance.choice(['NULL', 'NOT NULL'])}"
        if choice == 1:
            return f"{one} {self._chance.choice(['', 'NOT '])}BETWEEN {self._constant(kind)} AND {self._constant(kind)}"
        if choice == 2:
            values = ", ".join(self._constant(kind) for _ in range(self._chance.randint(1, 3)))
            return f"{one} {self._chance.choice(['', 'NOT '])}IN ({values})"
        if choice in (3, 4):
            other = self._chance.choice([self._constant(kind), self._value(kind, columns, 0)])
            return f"{one} {self._compares()} {other}"
        if choice == 5:
            kinds = self._chance.sample("NXP", 2)
            return f"{self._value(kinds[0], columns, 1)} {self._compares()} {self._value(kinds[1], columns, 1)}"
        left, right = self._condition(columns, depth - 1), self._condition(columns, depth - 1)
        return self._chance.choice(
            [f"({left} OR {right})", f"{left} AND {right}", f"NOT ({left} AND {right})", f"NOT {left}",
             f"({left}) IS TRUE", f"CASE WHEN {left} THEN {right} ELSE FALSE END"]
        )  # fmt: skip

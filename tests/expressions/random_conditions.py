"""Random conditions that mix parts which leave out files with functions, arithmetic and nested columns; none fails."""

from __future__ import annotations

import random

KNOWN = [
    "id = {i}", "id IN ({i}, {i}, {i})", "id BETWEEN {i} AND {i} + 9", "id > {i}", "p = '{p}'", "p IN ('{p}', '{p}')",
    "p IS NULL", "n < {n}", "n IS NOT NULL", "t LIKE '{t}%'", "t = '{t}'", "d >= DATE '2024-01-{day}'", "x > {n}",
    "n = id", "flag", "NOT flag", "t <=> NULL",
]  # fmt: skip
EVALUATED = [
    "upper(t) = '{T}'", "lower(p) = '{p}'", "length(p) + id % 2 = 2", "abs(n) > {i}", "n + id > {n}", "n * 2 = id",
    "id % 7 = 3", "n / 4 > {n}", "coalesce(n, 0) - id < {n}", "year(d) = 2024 AND month(d) = 1",
    "date_add(d, 1) > '2024-01-{day}'",
    "date(m) = '2024-01-{day}'", "hour(m) < {i}", "r.q = {i}", "r.s = '{t}'", "r.q + n > {n}", "a[0] = '{t}'",
    "CAST(id AS STRING) = '{i}'", "CAST(n AS BIGINT) = {n}", "CASE WHEN n > 0 THEN t ELSE p END = '{t}'",
    "substring(t, 1, 1) = '{t}'", "concat(t, p) = '{t}{p}'", "t || '' ILIKE '{T}%'", "n IS DISTINCT FROM {n}",
    "(n > {n}) = flag", "nullif(n, {n}) IS NULL", "greatest(n, id) = id", "id DIV 10 = {n}", "p < t", "trim(t) <> p",
    "n IN (id, {n}, NULL)", "if(flag, n, id) > {n}", "n <> 0 AND 100 / n > {n}", "x + 1 > n", "m > '2024-01-{day}'",
]  # fmt: skip


class RandomCondition:
    """A random condition."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.text = self._condition(3)

    def _condition(self, depth: int) -> str:
        kind = self._random.choice(["leaf"] * 2 + ["and"] * 3 + ["or"] * 2 + ["not", "is"]) if depth else "leaf"
        if kind == "leaf":
            return self._leaf()
        if kind == "not":
            return f"NOT ({self._condition(depth - 1)})"
        if kind == "is":
            return f"({self._condition(depth - 1)}) IS {self._random.choice(['', 'NOT '])}TRUE"
        parts = [self._condition(depth - 1) for _ in range(self._random.randint(2, 3))]
        return "(" + f" {kind.upper()} ".join(parts) + ")"

    def _leaf(self) -> str:
        choice = self._random
        found = choice.choice(choice.choice([KNOWN, EVALUATED]))
        for name, values in (
            ("{i}", range(40)), ("{n}", range(-4, 5)), ("{p}", ["a", "b", "c"]), ("{t}", ["a", "b", "x"]),
            ("{T}", ["A", "B", "X"]), ("{day}", ["01", "05", "20"]),
        ):  # fmt: skip
            while name in found:
                found = found.replace(name, str(choice.choice(list(values))), 1)
        return found

"""Random queries on the tables db.t and db.u: joins, groups, windows, set operations, subqueries and common tables."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

#: Columns of both tables by name: N is an integer, T a text, D a date.
T = {"id": "N", "a": "N", "b": "T", "c": "N", "d": "D"}
U = {"k": "N", "a": "N", "b": "T", "p": "T"}
TABLES = {"db.t": T, "db.u": U}
T_ROWS = [
    (1, 0, "x", 10, "2024-01-01"), (2, 1, "y", None, "2024-01-02"), (3, 1, None, 30, None),
    (4, None, "x", 10, "2023-12-31"),
    (5, 2, "and", -5, "2024-01-01"), (6, 3, "it's", 0, "2024-02-29"), (7, 2, "y", 7, None), (8, None, None, None, None),
]  # fmt: skip
U_ROWS = [
    (1, 0, "x", "p"), (2, 1, None, "p"), (3, None, "y", "q"), (4, 2, "x", "q"), (5, 2, "WHERE", "r"), (6, 9, "y", "r"),
]  # fmt: skip
_JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN", ","]
_CONSTANTS = {"N": ["0", "1", "2", "10", "-5", "NULL"], "T": ["'x'", "'y'", "'and'", "'it''s'", "''"]}
_CONSTANTS["D"] = ["DATE '2024-01-01'", "DATE '2023-12-31'", "DATE'2024-02-29'"]


@dataclass(frozen=True)
class Column:
    """A column in scope: how a query writes it, and its kind."""

    text: str
    kind: str


class RandomQuery:
    """Writes a query from a seed. ``text`` has rows in no particular order, without ties that a limit could cut."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._names = 0
        self._common: dict[str, dict[str, str]] = {}
        self.text = self._with() if self._is(0.2) else self._query(3)[0]

    def _is(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _with(self) -> str:
        parts = []
        for _ in range(self._chance.randint(1, 2)):
            text, columns = self._query(2)
            name = self._chance.choice([self._name("w"), "a", "t", "`W w`"]) if not parts else self._name("w")
            parts.append(f"{name} AS ({text})")
            self._common[name] = columns
        return f"WITH {', '.join(parts)} {self._query(2)[0]}"

    def _query(self, depth: int, kinds: Sequence[str] | None = None) -> tuple[str, dict[str, str]]:
        """A query and the columns of its result; with ``kinds``, columns of these kinds."""
        if depth > 1 and self._is(0.15):
            one, columns = self._query(depth - 1, kinds)
            other, _ = self._query(depth - 1, list(columns.values()))
            word = self._chance.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "MINUS", "UNION DISTINCT"])
            sides = (f"({one})", f"({other})") if self._is(0.5) or "LIMIT" in one + other else (one, other)
            return f"{sides[0]} {word} {sides[1]}", columns
        return self._select(depth, kinds, [])

    def _select(self, depth: int, kinds: Sequence[str] | None, outer: list[Column]) -> tuple[str, dict[str, str]]:
        source, columns = self._source(depth)
        if self._is(0.1):
            view, elements = self._name("e"), [self._value("N", columns, 1) for _ in range(2)]
            word = self._chance.choice(["", "OUTER "])
            source += f" LATERAL VIEW {word}explode(array({', '.join(elements)})) {view} AS e"
            columns = [*columns, Column(f"{view}.e", "N")]
        where = f" WHERE {self._conjunction(columns, depth, outer)}" if self._is(0.7) else ""
        wanted = kinds or [self._chance.choice("NNTTD") for _ in range(self._chance.randint(1, 3))]
        if kinds is None and self._is(0.1) and not outer and len({c.text for c in columns}) == len(columns):
            names = {column.text.rpartition(".")[2]: column.kind for column in columns}
            if len(names) == len(columns):
                return f"SELECT * FROM {source}{where}", names
        if self._is(0.3):
            return self._grouped(source, where, columns, wanted)
        names = {self._output(): kind for kind in wanted}
        items = [(self._window if self._is(0.12) else self._value)(kind, columns, 2) for kind in names.values()]
        distinct = "DISTINCT " if self._is(0.15) and not outer else ""
        text = f"SELECT {distinct}{self._listed(items, names)} FROM {source}{where}"
        return text + self._limit(names), names

    def _output(self) -> str:
        """The name of a column: often that of a column of a table, which the alias then hides or not."""
        self._names += 1
        return self._chance.choice([f"v{self._names}", f"v{self._names}", f"a{self._names}", f"`Select {self._names}`"])

    def _listed(self, items: Sequence[str], names: dict[str, str]) -> str:
        return ", ".join(f"{item} AS {name}" for item, name in zip(items, names))

    def _limit(self, names: dict[str, str]) -> str:
        if not self._is(0.15):
            return ""
        order = ", ".join(
            f"{name} {self._chance.choice(['', 'DESC', 'ASC NULLS LAST', 'DESC NULLS FIRST'])}" for name in names
        )
        return f" ORDER BY {order} LIMIT {self._chance.randint(0, 5)}" + (" OFFSET 1" if self._is(0.2) else "")

    def _grouped(
        self, source: str, where: str, columns: list[Column], wanted: Sequence[str]
    ) -> tuple[str, dict[str, str]]:
        keys = [self._value(self._chance.choice("NTD"), columns, 1) for _ in range(self._chance.randint(0, 2))]
        keys = [key for key in keys if any(column.text in key for column in columns)]
        names = {self._output(): kind for kind in wanted}
        items = [self._aggregate(kind, columns) for kind in names.values()]
        having = (
            f" HAVING {self._aggregate('N', columns)} {self._compares()} {self._constant('N')}" if self._is(0.3) else ""
        )
        listed = ", ".join(keys)
        group = f" GROUP BY {self._chance.choice([listed] * 4 + self._sets(keys))}" if keys else ""
        if keys and self._is(0.7):
            items.append(keys[0])
            names = {**names, "key": "?"}
        text = f"SELECT {self._listed(items, names)} FROM {source}{where}{group}{having}"
        if "key" in names:
            text = f"SELECT {', '.join(name for name in names if name != 'key')} FROM ({text}) {self._name('g')}"
            names.pop("key")
        return text, names

    def _sets(self, keys: list[str]) -> list[str]:
        """Elements of GROUP BY that make rows of several groups."""
        listed = ", ".join(keys)
        found = [f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"]
        return [*found, f"{listed} WITH ROLLUP", f"{keys[0]}, ROLLUP ({keys[-1]})"]

    def _aggregate(self, kind: str, columns: list[Column]) -> str:
        value = self._value(kind, columns, 1)
        filtered = f" FILTER (WHERE {self._condition(columns, 1)})" if self._is(0.15) else ""
        if kind == "N":
            distinct = "DISTINCT " if self._is(0.2) else ""
            name = self._chance.choice(["count", "sum", "min", "max", "count"])
            return f"{name}({distinct}{value}){filtered}" if self._is(0.8) else f"count(*){filtered}"
        return f"{self._chance.choice(['min', 'max'])}({value}){filtered}"

    def _window(self, kind: str, columns: list[Column], _depth: int) -> str:
        partition = f"PARTITION BY {self._value(self._chance.choice('NT'), columns, 1)}" if self._is(0.6) else ""
        order = f"ORDER BY {', '.join(column.text for column in columns)}"
        value = self._value(kind, columns, 1)
        if kind == "N" and self._is(0.5):
            ranked = self._chance.choice(["rank()", "dense_rank()"])
            return f"{ranked} OVER ({partition} {order})"
        if self._is(0.3):
            return f"max({value}) OVER ({partition})"
        return f"{self._chance.choice(['min', 'max'])}({value}) OVER ({partition} {order})"

    # -- relations ---------------------------------------------------------------------------------------------------

    def _source(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self._relation(depth)
        for _ in range(self._chance.choice([0, 0, 1, 1, 2])):
            kind = self._chance.choice(_JOINS)
            if kind == "," and "JOIN" in text:
                kind = "CROSS JOIN"
            right, added = self._relation(depth)
            on = ""
            if kind not in (",", "CROSS JOIN"):
                pairs = [(x.text, y.text) for x in columns for y in added if x.kind == y.kind]
                one, other = self._chance.choice(pairs) if pairs else ("1", "1")
                on = f" ON {one} = {other}"
                if self._is(0.3):
                    on += f" {self._chance.choice(['AND', 'AND', 'OR'])} {self._condition([*columns, *added], 1)}"
            text += f"{kind} {right}{on}" if kind == "," else f" {kind} {right}{on}"
            columns = columns if "SEMI" in kind or "ANTI" in kind else [*columns, *added]
        return self._unqualified(text, columns)

    def _unqualified(self, text: str, columns: list[Column]) -> tuple[str, list[Column]]:
        """Columns whose names no other column has are sometimes written without the relation's name."""
        names = [column.text.rpartition(".")[2].lower() for column in columns]
        if "JOIN" in text or "," in text or self._is(0.3):
            return text, columns
        if len(set(names)) < len(names):
            return text, columns
        return text, [Column(name, each.kind) for name, each in zip(names, columns)]

    def _relation(self, depth: int) -> tuple[str, list[Column]]:
        if depth > 1 and self._is(0.25):
            text, columns = self._query(depth - 1)
            name = self._name("q")
            return f"({text}) {self._chance.choice(['', 'AS '])}{name}", self._columns(name, columns)
        if self._common and self._is(0.6):
            chosen = self._chance.choice(list(self._common))
            name = self._name("r")
            return f"{chosen} {name}", self._columns(name, self._common[chosen])
        chosen = self._chance.choice(list(TABLES))
        name = self._name("r")
        return f"{chosen} {name}", self._columns(name, TABLES[chosen])

    def _columns(self, relation: str, columns: dict[str, str]) -> list[Column]:
        return [Column(f"{relation}.{name}", kind) for name, kind in columns.items()]

    # -- expressions -------------------------------------------------------------------------------------------------

    def _constant(self, kind: str) -> str:
        return self._chance.choice(_CONSTANTS[kind])

    def _compares(self) -> str:
        return self._chance.choice(["=", "<", ">", "<=", ">=", "<>", "<=>", "!="])

    def _value(self, kind: str, columns: list[Column], depth: int) -> str:
        own = [column.text for column in columns if column.kind == kind]
        if depth == 0 or self._is(0.6) or kind == "D":
            return (
                self._chance.choice(own) if own and self._is(0.85) else f"CAST({self._constant(kind)} AS {_TYPES[kind]})"
            )
        inner = self._value(kind, columns, depth - 1)
        forms = {
            "N": [
                f"({inner} + 1)",
                f"coalesce({inner}, 0)",
                f"CASE WHEN {self._condition(columns, 0)} THEN {inner} ELSE 3 END",
            ],
            "T": [f"upper({inner})", f"coalesce({inner}, 'none')", f"concat({inner}, 'and')"],
        }
        return self._chance.choice(forms[kind])

    def _conjunction(self, columns: list[Column], depth: int, outer: list[Column]) -> str:
        parts = [self._condition(columns, 2, depth) for _ in range(self._chance.randint(1, 3))]
        if outer:
            pairs = [(x.text, y.text) for x in columns for y in outer if x.kind == y.kind]
            parts.append(" = ".join(self._chance.choice(pairs)) if pairs else "TRUE")
        self._chance.shuffle(parts)
        comment = self._chance.choice(["", "", "", " /* OR 1 = 1 */", " -- AND\n"])
        return f"{comment} AND ".join(parts)

    def _condition(self, columns: list[Column], depth: int, queries: int = 0) -> str:
        kind = self._chance.choice("NNTTD")
        one = self._value(kind, columns, 1 if depth else 0)
        if queries > 1 and self._is(0.2):
            return self._subquery(columns, kind, one, queries - 1)
        choice = self._chance.randrange(9 if depth else 5)
        if choice == 0:
            return f"{one} IS {self._chance.choice(['NULL', 'NOT NULL'])}"
        if choice == 1:
            return f"{one} {self._chance.choice(['', 'NOT '])}BETWEEN {self._constant(kind)} AND {self._constant(kind)}"
        if choice == 2:
            values = ", ".join(self._constant(kind) for _ in range(self._chance.randint(1, 3)))
            return f"{one} {self._chance.choice(['', 'NOT '])}IN ({values})"
        if choice in (3, 4):
            return (
                f"{one} {self._compares()} {self._chance.choice([self._constant(kind), self._value(kind, columns, 0)])}"
            )
        left, right = self._condition(columns, depth - 1), self._condition(columns, depth - 1)
        return self._chance.choice(
            [f"({left} OR {right})", f"{left} AND {right}", f"NOT ({left} AND {right})", f"NOT {left}",
             f"({left}) IS TRUE", f"CASE WHEN {left} THEN {right} ELSE FALSE END"]
        )  # fmt: skip

    def _subquery(self, columns: list[Column], kind: str, one: str, depth: int) -> str:
        choice = self._chance.randrange(4)
        if choice < 2:
            text, _ = self._select(1, [kind], [])
            return f"{one} {'' if choice else 'NOT '}IN ({text})"
        if choice == 2:
            source, own = self._source(1)
            where = self._conjunction(own, 1, columns)
            return f"{self._chance.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {source} WHERE {where})"
        source, own = self._source(1)
        return f"{one} {self._compares()} (SELECT max({self._value(kind, own, 1)}) FROM {source})"


_TYPES = {"N": "INT", "T": "STRING", "D": "DATE"}

"""Random queries on the tables db.t and db.u: joins, groups, windows, set operations, subqueries and common tables."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sql.random_values import Column, RandomValues

#: Columns of both tables by name. N is an integer, T a text, D a date, X a double, P a decimal, M a time, B a boolean, A
#: an array of texts.
T = {"id": "N", "a": "N", "b": "T", "c": "N", "d": "D", "x": "X", "e": "P", "f": "B"}
U = {"k": "N", "a": "N", "b": "T", "p": "T", "x": "X", "m": "M", "g": "A"}
TABLES = {"db.t": T, "db.u": U}
_NAN = float("nan")
T_ROWS = [
    (1, 0, "x", 10, "2024-01-01", 0.5, "1.25", True), (2, 1, "y", None, "2024-01-02", _NAN, "-3.50", False),
    (3, 1, None, 30, None, -0.0, None, None), (4, None, "x", 10, "2023-12-31", None, "1.25", True),
    (5, 2, "and", -5, "2024-01-01", 0.0, "99999999.99", None),
    (6, 3, "it's", 0, "2024-02-29", float("inf"), "0.00", False), (7, 2, "y", 7, None, 0.5, "100.00", True),
    (8, None, None, None, None, _NAN, None, None),
]  # fmt: skip
U_ROWS = [
    (1, 0, "x", "p", 0.5, "2024-01-01T10:30:00", ["a", "b"]), (2, 1, None, "p", _NAN, None, []),
    (3, None, "y", "q", None, "1969-12-31T23:59:59.500000", None),
    (4, 2, "x", "q", -0.0, "2024-01-01T10:30:00", ["x", None]),
    (5, 2, "WHERE", "r", 1000.0, "2023-12-31T00:00:00", ["it's"]),
    (6, 9, "y", "r", float("-inf"), "2024-02-29T23:59:59.999999", ["b", "b", "a"]),
]  # fmt: skip
_JOINS = ["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
_JOINS += ["CROSS JOIN", ","]
_KINDS = "NNNTTTDDXXPPMB"
#: Aggregate functions by the kind of their result, of values by the kinds in braces.
_AGGREGATES = {
    "N": ["count({N})", "sum({N})", "min({N})", "max({N})", "count(DISTINCT {T})", "count(*)", "count_if({B})",
          "sum(DISTINCT {N})", "count(DISTINCT {X})", "count({T}, {N})", "size(collect_set({T}))",
          "size(collect_list({X}))"],
    "T": ["min({T})", "max({T})", "array_join(sort_array(collect_list({T})), ',')",
          "array_join(sort_array(collect_set({T}), FALSE), '/')"],
    "D": ["min({D})", "max({D})"],
    "X": ["avg({N})", "min({X})", "max({X})", "sum({X})", "avg({X})", "mean({N})"],
    "P": ["sum({P})", "avg({P})", "min({P})", "max({P})", "sum(DISTINCT {P})"],
    "M": ["min({M})", "max({M})"],
    "B": ["bool_and({B})", "bool_or({B})", "min({B})", "every({B})", "max({B})"],
}  # fmt: skip
#: Frames of windows with an order.
_FRAMES = [
    "", "", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS 2 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
]  # fmt: skip


class RandomQuery(RandomValues):
    """Writes a query from a seed, without ties that a limit could cut.

    ``is_ordered``: the order of the rows is that of all columns; else they have no order.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._names = 0
        self._common: dict[str, dict[str, str]] = {}
        text, columns = self._with() if self._is(0.2) else self._query(3)
        self.is_ordered = "LIMIT" not in text and "A" not in columns.values() and self._is(0.4)
        order = ", ".join(f"{at} {self._order()}" for at in self._chance.sample(range(1, len(columns) + 1), len(columns)))
        self.text = f"{text} ORDER BY {self._chance.choice([order, order, 'ALL'])}" if self.is_ordered else text

    def _order(self) -> str:
        return self._chance.choice(["", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST", "ASC", "NULLS LAST"])

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _with(self) -> tuple[str, dict[str, str]]:
        parts = []
        for _ in range(self._chance.randint(1, 2)):
            text, columns = self._query(2)
            name = self._chance.choice([self._name("w"), "a", "t", "`W w`"]) if not parts else self._name("w")
            parts.append(f"{name} AS ({text})")
            self._common[name] = columns
        text, columns = self._query(2)
        return f"WITH {', '.join(parts)} {text}", columns

    def _query(self, depth: int, kinds: Sequence[str] | None = None) -> tuple[str, dict[str, str]]:
        """A query and the columns of its result; with ``kinds``, columns of these kinds."""
        if depth > 1 and self._is(0.15):
            one, columns = self._query(depth - 1, kinds)
            if {"A", "?"} & {*columns.values()}:
                return one, columns
            wanted = list(columns.values())
            wanted = [self._chance.choice("NXP") if each in "NXP" and self._is(0.2) else each for each in wanted]
            other, _ = self._query(depth - 1, wanted)
            word = self._chance.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "MINUS", "UNION DISTINCT"])
            word = self._chance.choice([word] * 4 + ["INTERSECT ALL", "EXCEPT ALL"])
            sides = (f"({one})", f"({other})") if self._is(0.5) or "LIMIT" in one + other else (one, other)
            both = [kind if kind == other else "?" for kind, other in zip(columns.values(), wanted)]
            return f"{sides[0]} {word} {sides[1]}", dict(zip(columns, both))
        return self._select(depth, kinds, [])

    def _select(self, depth: int, kinds: Sequence[str] | None, outer: list[Column]) -> tuple[str, dict[str, str]]:
        source, columns = self._source(depth)
        if self._is(0.12):
            source, columns = self._view(source, columns)
        where = f" WHERE {self._conjunction(columns, depth, outer)}" if self._is(0.45) else ""
        wanted = kinds or [self._chance.choice(_KINDS) for _ in range(self._chance.randint(1, 3))]
        if kinds is None and self._is(0.1) and not outer and len({c.text for c in columns}) == len(columns):
            names = {column.text.rpartition(".")[2]: column.kind for column in columns}
            if len(names) == len(columns):
                return f"SELECT * FROM {source}{where}", names
        if self._is(0.3):
            return self._grouped(source, where, columns, wanted)
        names = {self._output(): kind for kind in wanted}
        items = [(self._window if self._is(0.15) else self._value)(kind, columns, 2) for kind in names.values()]
        distinct = "DISTINCT " if self._is(0.15) and not outer else ""
        text = f"SELECT {distinct}{self._listed(items, names)} FROM {source}{where}"
        return text + self._limit(names), names

    def _view(self, source: str, columns: list[Column]) -> tuple[str, list[Column]]:
        """Add the rows of explode."""
        view, kind = self._name("e"), self._chance.choice("NTAK")
        outer = self._chance.choice(["", "OUTER "])
        if kind == "A":
            rows, added = f"explode({self._value('A', columns, 1)}) {view} AS e", [Column(f"{view}.e", "T")]
        elif kind == "K":
            rows = f"explode(map(1, {self._value('X', columns, 1)}, 2, {self._value('X', columns, 1)})) {view} AS q, z"
            added = [Column(f"{view}.q", "N"), Column(f"{view}.z", "X")]
        else:
            elements = ", ".join(self._value(kind, columns, 1) for _ in range(2))
            rows = f"posexplode(array({elements})) {view} AS at, e"
            added = [Column(f"{view}.at", "N"), Column(f"{view}.e", kind)]
        return f"{source} LATERAL VIEW {outer}{rows}", [*columns, *added]

    def _output(self) -> str:
        """The name of a column: often that of a column of a table, which the alias then hides or not."""
        self._names += 1
        return self._chance.choice([f"v{self._names}", f"v{self._names}", f"a{self._names}", f"`Select {self._names}`"])

    def _listed(self, items: Sequence[str], names: dict[str, str]) -> str:
        return ", ".join(f"{item} AS {name}" for item, name in zip(items, names))

    def _limit(self, names: dict[str, str]) -> str:
        if not self._is(0.15):
            return ""
        order = ", ".join(f"{name} {self._order()}" for name in names)
        return f" ORDER BY {order} LIMIT {self._chance.randint(0, 5)}" + (" OFFSET 1" if self._is(0.2) else "")

    def _grouped(
        self, source: str, where: str, columns: list[Column], wanted: Sequence[str]
    ) -> tuple[str, dict[str, str]]:
        keys = [self._value(self._chance.choice("NTDXPB"), columns, 1) for _ in range(self._chance.randint(0, 2))]
        keys = [key for key in dict.fromkeys(keys) if any(column.text in key for column in columns)]
        names = {self._output(): kind for kind in wanted}
        sets = self._sets(keys) if keys and self._is(0.35) else []
        items = [self._aggregate(kind, columns) for kind in names.values()]
        if sets and self._is(0.5) and "N" in wanted:
            grouping = self._chance.choice([f"grouping({keys[0]})", "grouping_id()"])
            items[wanted.index("N")] = f"{grouping} + 0"
        having = (
            f" HAVING {self._aggregate('N', columns)} {self._compares()} {self._constant('N')}" if self._is(0.3) else ""
        )
        listed = ", ".join(keys)
        group = f" GROUP BY {self._chance.choice(sets or [listed])}" if keys else ""
        if keys and self._is(0.7):
            items.append(keys[0])
            names = {**names, "key": "?"}
            if not sets and len(keys) == 1:
                group = self._chance.choice([group, f" GROUP BY {len(items)}", " GROUP BY ALL"])
        text = f"SELECT {self._listed(items, names)} FROM {source}{where}{group}{having}"
        if "key" in names:
            text = f"SELECT {', '.join(name for name in names if name != 'key')} FROM ({text}) {self._name('g')}"
            names.pop("key")
        return text, names

    def _sets(self, keys: list[str]) -> list[str]:
        """Elements of GROUP BY that make rows of several groups."""
        listed = ", ".join(keys)
        found = [f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"]
        return [*found, f"{listed} WITH ROLLUP", f"{listed} WITH CUBE", f"{keys[0]}, ROLLUP ({keys[-1]})"]

    def _aggregate(self, kind: str, columns: list[Column]) -> str:
        form = self._chance.choice(_AGGREGATES[kind])
        for letter in _KINDS:
            form = form.replace("{" + letter + "}", self._value(letter, columns, 1))
        if form.startswith(("array_join", "size")) or self._is(0.85):
            return form
        return f"{form} FILTER (WHERE {self._condition(columns, 1)})"

    def _window(self, kind: str, columns: list[Column], _depth: int) -> str:
        partition = f"PARTITION BY {self._value(self._chance.choice('NTXB'), columns, 1)}" if self._is(0.6) else ""
        ordered = [column.text for column in columns if column.kind != "A"]
        order = f"ORDER BY {', '.join(f'{text} {self._order()}' for text in ordered)}"
        value = self._value(kind, columns, 1)
        if any(column.kind == "A" for column in columns):
            return f"max({value}) OVER ({partition})"  # Rows that differ in an array alone have no order.
        frame = self._chance.choice(_FRAMES)
        if kind == "N" and self._is(0.5):
            ranked = self._chance.choice(["rank()", "dense_rank()", f"count({value})"])
            return f"{ranked} OVER ({partition} {order})"
        if kind in "NP" and self._is(0.4):
            return f"sum({value}) OVER ({partition} {order} {frame})"
        if kind == "P" and self._is(0.3):
            return f"avg({value}) OVER ({partition} {order} {frame})"
        if self._is(0.3):
            moved = self._chance.choice([f"lag({value})", f"lead({value}, 2)", f"lag({value}, 1, {value})"])
            return f"{moved} OVER ({partition} {order})"
        if self._is(0.3):
            return f"{self._chance.choice(['first_value', 'last_value'])}({value}) OVER ({partition} {order} {frame})"
        return f"{self._chance.choice(['min', 'max'])}({value}) OVER ({partition} {order} {frame})"

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
                pairs = [(x.text, y.text) for x in columns for y in added if x.kind == y.kind and x.kind not in "A?"]
                one, other = self._chance.choice(pairs) if pairs else ("1", "1")
                on = f" ON {one} = {other}"
                if self._is(0.3):
                    on += f" {self._chance.choice(['AND', 'AND', 'OR'])} {self._condition([*columns, *added], 1)}"
                elif self._is(0.1):
                    shared = {x.text.rpartition(".")[2] for x in columns} & {y.text.rpartition(".")[2] for y in added}
                    shared -= {"x", "g"}  # A merged -0.0 is that of either side.
                    if shared and "JOIN" not in text and "," not in text:
                        name = self._chance.choice(sorted(shared))
                        on = f" USING ({name})"
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
        if self._is(0.04):
            name = self._name("v")
            rows = ", ".join(f"({self._constant('N')}, {self._constant('T')}, {n})" for n in ("1.5", "NULL", "2"))
            return f"VALUES {rows} AS {name}(n, b, e)", self._columns(name, {"n": "N", "b": "T", "e": "P"})
        if self._common and self._is(0.6):
            chosen = self._chance.choice(list(self._common))
            name = self._name("r")
            return f"{chosen} {name}", self._columns(name, self._common[chosen])
        chosen = self._chance.choice(list(TABLES))
        name = self._name("r")
        return f"{chosen} {name}", self._columns(name, TABLES[chosen])

    def _columns(self, relation: str, columns: dict[str, str]) -> list[Column]:
        return [Column(f"{relation}.{name}", kind) for name, kind in columns.items()]

    # -- conditions with queries ---------------------------------------------------------------------------------------

    def _conjunction(self, columns: list[Column], depth: int, outer: list[Column]) -> str:
        parts = [
            self._subquery(columns, depth - 1) if depth > 1 and self._is(0.2) else self._condition(columns, 2)
            for _ in range(self._chance.choice([1, 1, 2]))
        ]
        if outer:
            pairs = [(x.text, y.text) for x in columns for y in outer if x.kind == y.kind and x.kind not in "A?"]
            parts.append(" = ".join(self._chance.choice(pairs)) if pairs else "TRUE")
        self._chance.shuffle(parts)
        comment = self._chance.choice(["", "", "", " /* OR 1 = 1 */", " -- AND\n"])
        return f"{comment} AND ".join(parts)

    def _subquery(self, columns: list[Column], depth: int) -> str:
        choice, kind = self._chance.randrange(5), self._chance.choice("NTDXP")
        one = self._value(kind, columns, 1)
        if choice < 2:
            text, _ = self._select(1, [kind], [])
            return f"{one} {'' if choice else 'NOT '}IN ({text})"
        source, own = self._source(1)
        if choice == 2:
            where = self._conjunction(own, 1, columns)
            return f"{self._chance.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {source} WHERE {where})"
        where = ""
        if choice == 3:
            pairs = [(x.text, y.text) for x in own for y in columns if x.kind == y.kind and x.kind in "NTD"]
            qualified = [pair for pair in pairs if "." in pair[0] and "." in pair[1]]
            where = f" WHERE {' = '.join(self._chance.choice(qualified))}" if qualified else ""
        return f"{one} {self._compares()} (SELECT max({self._value(kind, own, 1)}) FROM {source}{where})"

"""Random tables of all merge engines, with many columns and with commits on few keys.

They use only rules on which Paimon 1.4 (the newest available Java) and 2.1 (whose rules lakelsm follows) agree. 1.4
differs in: sums and products that overflow, blank texts in listagg, `max` and `min` of BOOLEAN, a descending sequence
within a batch, and nested rows that are NULL, have no key or are repeated. They also avoid sums beyond the precision of
a DECIMAL of at most 18 digits: Java keeps a number that does not fit the type, lakelsm and pypaimon make it NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

from lakelsm.merge.functions.aggregate_functions import FUNCTIONS as KERNEL_FUNCTIONS
from tests.merge.engine_oracle import Column, Record, Table

#: A commit: pairs of a key and a record.
Keyed = list[tuple[int, Record]]
NESTED = ("nested_update", "nested_partial_update")

_NUMBERS = {
    "INT": [-1, 0, 1],
    "TINYINT": [-1, 0, 1],
    "SMALLINT": [-1, 0, 1],
    "BIGINT": [-1, 0, 1],
    "FLOAT": [0.5, -0.0, 0.0, float("nan"), 3.25],
    "DOUBLE": [0.1, -0.0, 0.0, float("nan"), 1e16, -7.5],
    "DECIMAL(4, 2)": [Decimal("0.50"), Decimal("-0.01"), Decimal("1.25"), Decimal("0.00")],
    "DECIMAL(20, 2)": [Decimal("999999999999999999.99"), Decimal("0.01"), Decimal("-5.50")],
}
_ORDERED = {
    **_NUMBERS,
    "STRING": ["a", "b", "a,b", "b;c", "é"],
    "BYTES": [b"", b"\x00", b"\x80a"],
    "DATE": [dt.date(1, 1, 1), dt.date(2024, 2, 29)],
    "TIMESTAMP(6)": [dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
}
_NESTED_ROWS = [{"k": key, "v": value, "s": 1} for key in (1, 2, 3) for value in (None, 5)]
_VALUES: dict[str, list[Any]] = {
    **_ORDERED,
    "BOOLEAN": [True, False],
    "ARRAY<INT>": [[], [1], [1, 2, None], [2, 2]],
    "MAP<STRING, INT>": [[], [("a", 1)], [("a", None), ("b", 2)], [("c", 3)]],
    "MAP<STRING, ROW<v INT, ts STRING>>": [
        [],
        [("a", {"v": 1, "ts": "1"})],
        [("a", {"v": 2, "ts": "2"}), ("b", None)],
        [("a", None), ("b", {"v": 3, "ts": None})],
    ],
    "ARRAY<ROW<k INT, v INT, s INT>>": [[], _NESTED_ROWS[:1], _NESTED_ROWS[1:3], _NESTED_ROWS[3::2], _NESTED_ROWS[::3]],
}

#: Functions with the types that they accept; a table has a column of one of these types.
_FUNCTIONS: dict[str, Sequence[str]] = {
    **{name: [*_NUMBERS] for name in ("sum", "product")},
    **{name: [*_ORDERED] for name in ("max", "min")},
    **{name: [*_VALUES] for name in ("last_value", "last_non_null_value", "first_value", "first_non_null_value")},
    **{name: ["BOOLEAN"] for name in ("bool_and", "bool_or")},
    "listagg": ["STRING"],
    "collect": ["ARRAY<INT>"],
    "merge_map": ["MAP<STRING, INT>"],
    "merge_map_with_keytime": ["MAP<STRING, ROW<v INT, ts STRING>>"],
    **{name: ["ARRAY<ROW<k INT, v INT, s INT>>"] for name in NESTED},
}
_ROWS, _KEYS, _COMMITS = 90, 12, 3


def random_table(random: Random, engine: str, number: int) -> Table:
    """Return a table of an engine. ``number`` selects options about deletes, so that a few numbers cover all of them."""
    plain = [Column(f"p{at}", random.choice([*_VALUES])) for at in range(3)]
    if engine == "first-row":
        return Table(engine, plain, ignore_delete=True)
    sequence = [Column("s", "INT")] if number % 2 else []
    if engine == "deduplicate":
        return Table(engine, [*plain, *sequence], [column.name for column in sequence], ignore_delete=number % 3 == 2)
    if engine == "aggregation":
        removes = number % 4 == 3
        columns = [*_aggregates(random, removes), *sequence]
        return Table(engine, columns, [column.name for column in sequence], remove_on_delete=removes)
    if number % 5 in (3, 4):
        flags = {"remove_on_delete": True} if number % 5 == 3 else {"ignore_delete": True}
        return Table(engine, plain, **flags)
    return _grouped(random, plain, removes=number % 5 == 1)


def _aggregates(random: Random, removes: bool = False) -> list[Column]:
    """Return a column of each function. If -D removes the row, without ignore-retract and the functions that need it."""
    columns = []
    for function, types in _FUNCTIONS.items():
        options = {}
        if function in ("listagg", "collect") and random.random() < 0.5:
            options["distinct"] = "true"
        if function == "nested_partial_update" or (function == "nested_update" and random.random() < 0.5):
            options["nested-key"] = "k"
        if function == "product" or not KERNEL_FUNCTIONS[function][1] or random.random() < 0.3:
            if removes:
                continue
            options["ignore-retract"] = "true"
        columns.append(Column(f"c_{function}", random.choice(types), function, options))
    return columns


def _grouped(random: Random, plain: list[Column], removes: bool) -> Table:
    """Return a `partial-update` table with three sequence groups, which have columns with and without a function."""
    governed = [*_aggregates(random), *(Column(f"q{at}", random.choice([*_VALUES])) for at in range(3))]
    random.shuffle(governed)
    orderings = [["g0"], ["g1", "h1"], ["g2"]]
    groups = [(ordering, [column.name for column in governed[at::3]]) for at, ordering in enumerate(orderings)]
    columns = [*plain, *governed, *(Column(name, "INT") for ordering in orderings for name in ordering)]
    random.shuffle(columns)
    return Table("partial-update", columns, groups=groups, remove_on_groups=["g0", "g1"] if removes else [])


def random_commits(random: Random, table: Table, retractions: bool) -> list[Keyed]:
    """Return commits of records, all with number 0. Without ``retractions`` there are only inserts and updates."""
    kinds = [0, 0, 2, 1, 3, 3] if retractions else [0, 2]

    def record() -> Record:
        return Record(0, random.choice(kinds), {column.name: random_value(random, column) for column in table.columns})

    size = _ROWS // _COMMITS
    return [[(random.randrange(_KEYS), record()) for _ in range(size)] for _ in range(_COMMITS)]


def random_value(random: Random, column: Column) -> Any:
    """Return a value of a column, or NULL; sequence columns have few values."""
    if column.name[0] in "gsh":
        return random.choice([None, 0, 1, 2, 3])
    return None if random.random() < 0.25 else random.choice(_VALUES[column.type])

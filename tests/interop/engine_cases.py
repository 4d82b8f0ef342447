"""Tables of the merge engines that combine rows, with commits on the same keys and the expected merged rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyroaring import BitMap

from lakelsm.types import parse_columns
from tests.interop.peers import Batch
from tests.interop.samples import rows_of
from tests.interop.value_form import Rows, in_order, rows_of_arrow

BOTH = ("java-paimon", "pypaimon")
#: pypaimon refuses sequence groups, functions inside `partial-update`, every ignore-delete, remove-record-on-... and
#: ignore-retract option of these engines, and retractions in rows that it merges.
JAVA = ("java-paimon",)

#: A row: its kind, then its values.
KindedRow = tuple[Any, ...]


@dataclass(frozen=True)
class EngineCase:
    """A table with the key ``k``. Its writer compacts after the first commit, so that later commits meet a full run.

    ``merged`` are the rows of all commits; ``visible`` the rows of a read before the other commits are compacted. The
    arrays of ``unordered`` columns have no order; columns of type BYTES are 32-bit Roaring bitmaps.
    """

    name: str
    columns: str
    options: Mapping[str, str]
    commits: Sequence[Sequence[KindedRow]]
    merged: Sequence[tuple[Any, ...]]
    visible: Sequence[tuple[Any, ...]] | None = None
    unordered: Sequence[str] = ()
    peers: Sequence[str] = JAVA

    @property
    def table_options(self) -> dict[str, str]:
        """All options: one bucket, and no automatic compaction."""
        return {"bucket": "1", "write-only": "true", **self.options}

    @property
    def batches(self) -> list[Batch]:
        """The commits as rows and kinds; no kinds if all rows are inserts."""
        made: list[Batch] = []
        for rows in self.commits:
            kinds = [row[0] for row in rows]
            plain = all(kind == "+I" for kind in kinds)
            made.append((rows_of(self.columns, self._by_column([row[1:] for row in rows])), None if plain else kinds))
        return made

    def rows(self) -> Rows:
        """``merged`` in the common form."""
        return self._form(self.merged)

    def visible_rows(self, compacted_first: bool = True) -> Rows:
        """Return ``visible`` in the common form; if nothing was compacted, a `first-row` table shows no rows."""
        if self.visible is None:
            return self.rows()
        return self._form(self.visible if compacted_first else [])

    def comparable(self, rows: Rows) -> Rows:
        """Return rows of an engine sorted, with sorted arrays if they have no order, and bitmaps as their numbers."""
        names = [column.name for column in parse_columns(self.columns)]

        def plain(name: str, value: Any) -> Any:
            if isinstance(value, bytes):
                return tuple(BitMap.deserialize(value))
            return tuple(sorted(value, key=repr)) if name in self.unordered and value is not None else value

        return in_order(tuple(map(plain, names, row)) for row in rows)

    def _form(self, rows: Sequence[tuple[Any, ...]]) -> Rows:
        table = rows_of(self.columns, self._by_column(rows))
        return self.comparable(rows_of_arrow(table, parse_columns(self.columns)))

    def _by_column(self, rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
        names = [column.name for column in parse_columns(self.columns)]
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}


@dataclass(frozen=True)
class Written:
    """Three tables of a case that lakelsm wrote: without the last commit, with all commits, and compacted."""

    begun: Path
    loose: Path
    compacted: Path


def functions(engine: str, **names: str) -> dict[str, str]:
    """Return the options of an engine with the aggregate function of each column."""
    named = {f"fields.{column}.aggregate-function": name for column, name in names.items()}
    return {"merge-engine": engine, **named}


def d(text: str) -> Decimal:
    return Decimal(text)


def bitmap(*numbers: int) -> bytes:
    return bytes(BitMap(numbers).serialize())


PARTIAL_UPDATE = EngineCase(
    "partial-update",
    "k INT, a INT, b STRING, c DOUBLE, d ARRAY<INT>, e DECIMAL(9, 2)",
    {"merge-engine": "partial-update"},
    [
        [
            ("+I", 1, 1, None, None, [1], None),
            ("+I", 2, None, "b2", 2.5, None, d("2.00")),
            ("+I", 1, None, "b1", None, None, None),
            ("+I", 3, None, None, None, None, None),
        ],
        [
            ("+I", 1, 10, None, 1.5, None, None),
            ("+I", 3, 3, None, None, [], d("-0.01")),
            ("+I", 4, 4, "", None, None, None),
        ],
        [("+I", 2, None, None, None, [2, None], None), ("+I", 1, None, "b1x", None, None, None)],
    ],
    [
        (1, 10, "b1x", 1.5, [1], None),
        (2, None, "b2", 2.5, [2, None], d("2.00")),
        (3, 3, None, None, [], d("-0.01")),
        (4, 4, "", None, None, None),
    ],
    peers=BOTH,
)

PARTIAL_UPDATE_IN_SEQUENCE = EngineCase(
    "partial-update-ignore-delete",
    "k INT, s INT, a INT, b STRING",
    {"merge-engine": "partial-update", "sequence.field": "s", "ignore-delete": "true"},
    [
        [("+I", 1, 5, 1, None), ("+I", 2, 1, 2, "b2"), ("+U", 1, 4, 9, "older"), ("-D", 2, 9, None, None)],
        [("-D", 1, 9, None, None), ("+U", 2, 3, None, "b2x"), ("+I", 3, None, 3, None)],
        [("+I", 2, 2, 22, "late"), ("-U", 3, 1, 3, None), ("+I", 1, 5, None, "last")],
    ],
    [(1, 5, 1, "last"), (2, 3, 22, "b2x"), (3, None, 3, None)],
)

GROUPS = EngineCase(
    "partial-update-sequence-groups",
    "k INT, g INT, total BIGINT, names STRING, plain INT, h INT, i STRING, top INT, bag ARRAY<INT>, "
    "pairs MAP<STRING, INT>, factor DOUBLE, rest STRING",
    {
        **functions(
            "partial-update", total="sum", names="listagg", top="max", bag="collect", pairs="merge_map", factor="product"
        ),
        "fields.g.sequence-group": "total,names,plain",
        "fields.h,i.sequence-group": "top,bag,pairs,factor",
        "fields.names.ignore-retract": "true",
        "fields.top.ignore-retract": "true",
    },
    [
        [
            ("+I", 1, 1, 10, "a", 1, 1, "x", 5, [1, 1], [("p", 1)], 2.0, "r1"),
            ("+I", 1, 3, 5, "b", 2, None, None, 99, [99], [("q", 99)], 99.0, None),
            ("+I", 1, 2, 7, "late", 3, 1, "y", 4, [2], [("q", 2), ("p", 3)], 3.0, "r1x"),
            ("+I", 2, None, 1, "none", 4, 2, None, None, None, None, None, None),
            ("+I", 3, 1, None, None, None, 1, "a", 1, [], [], 0.5, "r3"),
        ],
        [
            ("-U", 1, 3, 5, "b", 2, 1, "x", 5, [1], [("p", 1)], 2.0, "old"),
            ("+U", 1, 4, 6, "c", None, 0, "z", 7, [3], [("p", 9), ("z", 9)], 5.0, None),
            ("+I", 2, 1, 2, "two", 5, 1, "older", 3, [4], [("o", 4)], 4.0, "r2"),
            ("-D", 4, 1, 1, "d", 1, 1, "d", 1, [1], [("d", 1)], 1.0, "d"),
        ],
        [
            ("-D", 3, 2, None, "x", 1, None, None, 1, [7], [("x", 1)], 7.0, "kept"),
            ("+I", 2, 0, 3, "early", 6, 2, None, 1, [4, None], [("o", 5)], 0.5, None),
            ("+I", 5, 1, 1, "", 1, 1, "a", 1, [5], [("f", None)], 1.0, ""),
        ],
    ],
    [
        (1, 4, 28, "late,a,b,b,c", None, 1, "y", 7, [1, 1, 2, 3], [("p", 3), ("q", 2), ("z", 9)], 30.0, "old"),
        (2, 1, 5, "early,two", 5, 2, None, 3, [4, 4, None], [("o", 5)], 2.0, "r2"),
        (3, 2, None, None, None, 1, "a", 1, [], [], 0.5, "r3"),
        (5, 1, 1, "", 1, 1, "a", 1, [5], [("f", None)], 1.0, ""),
    ],
)

REMOVE_ON_DELETE = EngineCase(
    "partial-update-remove-record-on-delete",
    "k INT, a INT, b STRING",
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    [
        [("+I", 1, 1, None), ("+I", 2, 2, "b2"), ("+I", 3, 3, "b3"), ("-D", 3, 3, "b3"), ("+I", 3, None, "again")],
        [("-D", 1, 1, None), ("-U", 2, 2, "b2"), ("+U", 2, None, "b2x"), ("-D", 4, 4, None)],
        [("+I", 1, None, "back"), ("-D", 3, None, None), ("+I", 5, 5, None)],
    ],
    [(1, 1, "back"), (2, 2, "b2x"), (5, 5, None)],
)

REMOVE_ON_GROUP = EngineCase(
    "partial-update-remove-record-on-sequence-group",
    "k INT, g INT, a INT, h INT, b STRING, total INT",
    {
        **functions("partial-update", total="sum"),
        "fields.g.sequence-group": "a",
        "fields.h.sequence-group": "b,total",
        "partial-update.remove-record-on-sequence-group": "g",
    },
    [
        [
            ("+I", 1, 1, 1, 1, "b1", 1),
            ("+I", 2, 5, 2, 1, "b2", 2),
            ("+I", 3, 1, 3, 1, "b3", 3),
            ("+U", 1, None, None, 2, "b1x", 10),
        ],
        [("-D", 1, 2, None, None, None, None), ("-D", 2, 4, None, 2, "b2", 1), ("-U", 3, 2, None, 2, "b3", 1)],
        [("+I", 1, 3, 30, 1, None, 7), ("-D", 4, 1, None, None, None, None), ("+I", 3, 1, 33, 3, "b3x", 5)],
    ],
    [(1, 3, 30, 1, None, 7), (2, 5, 2, 2, None, 1), (3, 2, None, 3, "b3x", 7)],
)

_NESTED = "ARRAY<ROW<id INT, v STRING>>"
# Without merge_map: pypaimon's merge fails on maps, which it converts to dicts and to lists of pairs. No function changes
# the only row of a key: pypaimon would apply it, Java would not.
AGGREGATION = EngineCase(
    "aggregation",
    "k INT, total BIGINT, money DECIMAL(12, 2), real FLOAT, top INT, low STRING, newest STRING, filled STRING, "
    "first INT, opened INT, texts STRING, once STRING, bag ARRAY<INT>, kinds ARRAY<STRING>, factor INT, "
    f"some BOOLEAN, every BOOLEAN, rows {_NESTED}, keyed {_NESTED}, ids BYTES",
    {
        **functions(
            "aggregation", total="sum", money="sum", real="sum", top="max", low="min", newest="last_value",
            first="first_value", opened="first_non_null_value", texts="listagg", once="listagg", bag="collect",
            kinds="collect", factor="product", some="bool_or", every="bool_and", rows="nested_update",
            keyed="nested_update", ids="rbm32",
        ),
        "fields.texts.list-agg-delimiter": ";",
        "fields.once.distinct": "true",
        "fields.kinds.distinct": "true",
        "fields.keyed.nested-key": "id",
    },
    [
        [
            ("+I", 1, 2**40, d("1.25"), 0.5, 3, "m", "n1", "f1", None, None, "t1", "a,b", [1, 1], ["x"], 2, False, True,
             [{"id": 1, "v": "a"}], [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], bitmap(1, 2)),
            ("+I", 1, 1, d("-0.25"), 0.25, 9, "b", None, None, 5, 5, "t2", "b,c", [None], ["y", "x"], 3, True, None,
             [{"id": 1, "v": "a"}], [{"id": 2, "v": "b2"}], None),
            ("+I", 2, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
             None, None, None),
            ("+I", 3, 3, d("3.00"), 3.0, 3, "3", "n3", "f3", 3, 3, "t3", "t3", [3], ["3"], 3, True, True,
             [{"id": 3, "v": None}], [{"id": 3, "v": "c"}], bitmap(3)),
        ],
        [
            ("+I", 1, None, None, None, 4, "c", "n1x", None, 7, 7, None, "d", [2], None, None, None, False,
             None, [{"id": 3, "v": "c"}], bitmap(2, 70000)),
            ("+I", 2, 5, d("5.00"), 0.125, 5, "5", None, "f2", 2, 2, "t", "t", [], ["z"], 5, None, True, [],
             [{"id": 5, "v": "e"}], None),
        ],
        [
            ("+I", 2, -7, d("0.01"), 0.5, -5, "4", "n2", None, 4, 4, "u", "t", [2, 2], ["z", "w"], -5, False, True,
             [{"id": 6, "v": "f"}], [{"id": 5, "v": None}], bitmap(5)),
            ("+I", 4, 4, d("4.00"), 4.0, 4, "4", "n4", "f4", 4, 4, "t4", "t4", [], [], 4, None, None, [], [], bitmap()),
        ],
    ],
    [
        (1, 2**40 + 1, d("1.00"), 0.75, 9, "b", "n1x", "f1", None, 5, "t1;t2", "a,b,c,d", [1, 1, None, 2], ["x", "y"], 6,
         True, False, [{"id": 1, "v": "a"}, {"id": 1, "v": "a"}],
         [{"id": 1, "v": "a"}, {"id": 2, "v": "b2"}, {"id": 3, "v": "c"}], bitmap(1, 2, 70000)),
        (2, -2, d("5.01"), 0.625, 5, "4", "n2", "f2", None, 2, "t;u", "t", [2, 2], ["z", "w"], -25,
         False, True, [{"id": 6, "v": "f"}], [{"id": 5, "v": None}], bitmap(5)),
        (3, 3, d("3.00"), 3.0, 3, "3", "n3", "f3", 3, 3, "t3", "t3", [3], ["3"], 3,
         True, True, [{"id": 3, "v": None}], [{"id": 3, "v": "c"}], bitmap(3)),
        (4, 4, d("4.00"), 4.0, 4, "4", "n4", "f4", 4, 4, "t4", "t4", [], [], 4, None, None, [], [], bitmap()),
    ],
    unordered=["keyed"],
    peers=BOTH,
)  # fmt: skip

RETRACTIONS = EngineCase(
    "aggregation-retractions",
    f"k INT, total INT, money DECIMAL(12, 2), factor INT, bag ARRAY<INT>, pairs MAP<STRING, INT>, rows {_NESTED}, "
    f"keyed {_NESTED}, newest STRING, filled STRING, top INT, texts STRING",
    {
        **functions(
            "aggregation", total="sum", money="sum", factor="product", bag="collect", pairs="merge_map",
            rows="nested_update", keyed="nested_update", newest="last_value", top="max", texts="listagg",
        ),
        "fields.keyed.nested-key": "id",
        "fields.top.ignore-retract": "true",
        "fields.texts.ignore-retract": "true",
    },
    [
        [
            ("+I", 1, 5, d("5.00"), 6, [1, 2, 1], [("p", 1), ("q", 2)], [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}],
             [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], "n", "f", 9, "t"),
            ("-U", 1, 2, d("0.50"), 3, [1], [("p", 9)], [{"id": 2, "v": "b"}], [{"id": 2, "v": "?"}], "n", None, 99, "-"),
            ("+U", 1, 1, None, 4, [7], [("r", 3)], None, [{"id": 2, "v": "c"}], "n2", None, 3, "t2"),
            ("+I", 2, 2, d("2.00"), 2, [2], [("b", 2)], [{"id": 2, "v": "b"}], [{"id": 2, "v": "b"}], "n", "f", 2, "t"),
            ("+I", 3, 3, d("3.00"), 3, [3], [("c", 3)], [{"id": 3, "v": "c"}], [{"id": 3, "v": "c"}], "n", "f", 3, "t"),
        ],
        [
            ("-D", 2, 2, d("2.00"), 2, [2], [("b", None)], [{"id": 2, "v": "b"}], [{"id": 2, "v": ""}], "n", "f", 2, "t"),
            ("-U", 3, None, None, None, None, None, None, None, None, None, None, None),
            ("+U", 3, 1, d("0.01"), -2, [None], [("c", None)], [], [{"id": 3, "v": None}], None, "g", 1, "u"),
            ("-D", 4, 4, d("4.00"), 4, [4], [("d", 4)], [{"id": 4, "v": "d"}], [{"id": 4, "v": "d"}], "n", "f", 4, "t"),
        ],
        [
            ("-D", 4, 1, d("1.00"), 1, [1], [("d", 1)], [{"id": 4, "v": "d"}], [{"id": 4, "v": "d"}], "n", "f", 1, "t"),
            ("-U", 1, 3, d("4.50"), 2, [7, 7], [("r", 0)], [{"id": 9, "v": "z"}], [{"id": 1, "v": "?"}], "n", "f", 1, ""),
            ("-D", 5, 5, None, 5, [5], [], [], [], "n", "f", 5, "t"),
        ],
    ],
    [
        (1, 1, d("0.00"), 4, [2, 1], [("q", 2)], [{"id": 1, "v": "a"}], [{"id": 2, "v": "c"}], None, None, 9, "t,t2"),
        (2, 0, d("0.00"), 1, [], [], [], [], None, None, 2, "t"),
        (3, 4, d("3.01"), -6, [3, None], [("c", None)], [{"id": 3, "v": "c"}],
         [{"id": 3, "v": None}], None, "g", 3, "t,u"),
        # Two retractions of values that were never added.
        (4, -5, d("-5.00"), None, None, None, None, None, None, None, None, None),
    ],
)  # fmt: skip

AGGREGATION_REMOVE = EngineCase(
    "aggregation-remove-record-on-delete",
    "k INT, total INT, newest STRING, bag ARRAY<INT>",
    {
        **functions("aggregation", total="sum", newest="last_value", bag="collect"),
        "aggregation.remove-record-on-delete": "true",
    },
    [
        [("+I", 1, 1, "n1", [1]), ("+I", 2, 2, "n2", [2]), ("+I", 3, 3, "n3", [3]), ("-D", 3, 30, "d3", [30])],
        [("-D", 1, 1, "n1", [1]), ("-U", 2, 2, "n2", [2]), ("+U", 2, 5, "n2x", [5]), ("+I", 3, 7, None, [7])],
        [("+I", 1, 10, None, [10]), ("-D", 2, 5, "n2x", [5]), ("-D", 4, 4, None, None), ("+I", 5, 5, "n5", None)],
    ],
    [(1, 11, None, [1, 10]), (3, 7, None, [7]), (5, 5, "n5", None)],
)

FIRST_ROW = EngineCase(
    "first-row",
    "k INT, v STRING, op STRING",
    # The kind is a column, because pypaimon supports no other form.
    {"merge-engine": "first-row", "ignore-delete": "true", "rowkind.field": "op"},
    [
        [("+I", 1, "a", "+I"), ("+I", 1, "b", "+U"), ("+I", 2, "old", "-D"), ("+I", 2, "c", "+I"), ("+I", 3, "x", "-D")],
        [("+I", 1, "d", "+I"), ("+I", 3, "e", "+I"), ("+I", 2, "c", "-D"), ("+I", 4, "f", "-U"), ("+I", 4, None, "+I")],
        [("+I", 3, "g", "+I"), ("+I", 4, "h", "+I"), ("+I", 5, "i", "+U"), ("+I", 1, "a", "-D")],
    ],
    [(1, "a", "+I"), (2, "c", "+I"), (3, "e", "+I"), (4, None, "+I"), (5, "i", "+U")],
    visible=[(1, "a", "+I"), (2, "c", "+I")],
    peers=BOTH,
)

CASES = (
    PARTIAL_UPDATE,
    PARTIAL_UPDATE_IN_SEQUENCE,
    GROUPS,
    REMOVE_ON_DELETE,
    REMOVE_ON_GROUP,
    AGGREGATION,
    RETRACTIONS,
    AGGREGATION_REMOVE,
    FIRST_ROW,
)

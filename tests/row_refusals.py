"""Rows that every write refuses, with the error text, which is the same for Arrow rows and Spark frames."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import DataType, parse_type


@dataclass(frozen=True)
class Refusal:
    """A frame of one row for a table with the key ``k`` (and the partition ``p``, if it has the column)."""

    table: str
    given: tuple[tuple[str, str], ...]
    row: tuple[Any, ...]
    message: str
    _: KW_ONLY
    row_kind: str | None = None
    fixed: dict[str, object] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    safe_casts: bool = True

    @property
    def schema(self) -> TableSchema:
        partition = ["p"] if ", p " in self.table else []
        return create_schema(self.table, ["k", *partition], partition, {"bucket": "1", **self.options}, None, 0)

    @property
    def parsed_options(self) -> TableOptions:
        return TableOptions.parse(dict(self.schema.options))

    @property
    def types(self) -> list[DataType]:
        """The types of the frame's columns."""
        return [parse_type(text) for _, text in self.given]


K, V = ("k", "INT"), ("v", "STRING")
_ROW = "The write was refused and nothing of it is visible: "
_FILL = "is NULL in a row of the DataFrame: filter or fill such rows"
_KINDS = "+I, -U, +U or -D"
_NO_KIND = f"row kind of column 'op' must be {_KINDS} and cannot be null"
_LONG = f"{_ROW}a value of column 'v' is longer than"
_CAST = "before the write."

REFUSALS = (
    Refusal("k INT, v STRING", (K, V, ("V", "STRING")), (1, "a", "b"), "column V, v more than once: rename or drop one"),
    Refusal("k INT, v STRING", (K,), (1,), "lacks column v of the table: add it (as NULL where the row has none)."),
    Refusal("k INT", (K, V), (1, "a"), "has no column v: drop it from the DataFrame or add it to the table first"),
    Refusal("k INT", (K,), (1,), "Row kind column 'op' is not in the DataFrame, which has k.", row_kind="op"),
    Refusal("k INT", (K, ("op", "INT")), (1, 2), f"Row kind column 'op' must be a string of {_KINDS}.", row_kind="op"),
    Refusal(
        "k INT, v STRING",
        (K, V, ("op", "STRING")),
        (1, "+I", "+I"),
        "The table takes row kinds from its column 'v' (rowkind.field): leave row_kind out.",
        row_kind="op",
        options={"rowkind.field": "v"},
    ),
    *(
        Refusal("k INT", (K, ("op", "STRING")), (1, kind), f"{_ROW}{_NO_KIND}: {message}", row_kind="op")
        for kind, message in (("+i", "+i"), (None, "NULL"))
    ),
    Refusal("k INT, v STRING", (K, V), (None, "a"), f"{_ROW}key column 'k' {_FILL}"),
    Refusal("k INT, v STRING NOT NULL", (K, V), (1, None), f"{_ROW}NOT NULL column 'v' {_FILL}"),
    Refusal("k INT, v VARCHAR(2)", (K, V), (1, "éèê"), f"{_LONG} VARCHAR(2) allows"),
    Refusal(
        "k INT, v CHAR",
        (K, V),
        (1, "ab"),
        f"{_LONG} CHAR(1) allows, which is what the type means without a length: "
        "declare STRING or BYTES for values of any length",
    ),
    Refusal("k INT, v VARBINARY(3)", (K, ("v", "BYTES")), (1, b"abcd"), f"{_LONG} VARBINARY(3) allows"),
    Refusal(
        "k INT, v TIME(3)",
        (K, ("v", "INT")),
        (1, 86_400_000),
        f"{_ROW}'v' (TIME(3)) is a number of milliseconds from 0 to 86399999, and a row has another",
    ),
    Refusal(
        "k INT, v ROW<x INT NOT NULL, y STRING>",
        (K, ("v", "ROW<X INT, y STRING>")),
        (1, {"X": None, "y": "b"}),
        f"{_ROW}'v.x', which is NOT NULL, {_FILL}",
    ),
    Refusal(
        "k INT, v ARRAY<INT NOT NULL>",
        (K, ("v", "ARRAY<INT>")),
        (1, [1, None]),
        f"{_ROW}'v.element', which is NOT NULL, {_FILL}",
    ),
    Refusal(
        "k INT, p STRING", (K, ("p", "STRING")), (1, "b"), f"{_ROW}a row's 'p' is not the overwritten partition's 'a'",
        fixed={"p": "a"},
    ),
    *(
        Refusal(f"k INT, v {target}", (K, ("v", source)), (1, None), _CAST, safe_casts=False)
        for source, target in (
            ("BIGINT", "INT"),
            ("INT", "FLOAT"),
            ("BIGINT", "DOUBLE"),
            ("DOUBLE", "FLOAT"),
            ("DOUBLE", "DECIMAL(20, 2)"),
            ("INT", "DECIMAL(11, 2)"),
            ("DECIMAL(9, 2)", "DECIMAL(9, 3)"),
            ("STRING", "DATE"),
            ("TIMESTAMP(6)", "DATE"),
            ("ARRAY<BIGINT>", "ARRAY<INT>"),
            ("MAP<STRING, BIGINT>", "MULTISET<STRING>"),
            ("ROW<a BIGINT>", "ROW<a INT>"),
        )
    ),
    *(
        Refusal(f"k INT, v {target}", (K, ("v", source)), (1, None), _CAST)
        for source, target in (
            ("STRING", "INT"),
            ("STRING", "BOOLEAN"),
            ("INT", "STRING"),
            ("BOOLEAN", "INT"),
            ("DATE", "TIMESTAMP_LTZ(6)"),
            ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
            ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6)"),
            ("TIMESTAMP_LTZ(6)", "DATE"),
            ("STRING", "BYTES"),
            ("ARRAY<STRING>", "ARRAY<INT>"),
            ("ROW<a INT>", "ROW<b INT>"),
        )
    ),
)

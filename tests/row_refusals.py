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
_ROW = "Nothing was written: "
_FILL = "is NULL in a row. Remove or fill such rows"
_KINDS = "+I, -U, +U or -D"
_NO_KIND = f"row kind column 'op': expected {_KINDS}, got"
_LONG = f"{_ROW}a value of column 'v' is longer than"
_CAST = "before the write."

REFUSALS = (
    Refusal("k INT, v STRING", (K, V, ("V", "STRING")), (1, "a", "b"), "column V, v occurs more than once in the frame."),
    Refusal("k INT, v STRING", (K,), (1,), "lacks column v of the table. Add it (NULL where a row has no value)."),
    Refusal("k INT", (K, V), (1, "a"), "the table has no column v. Drop it from the frame, or add it to the table"),
    Refusal("k INT", (K,), (1,), "row_kind: column 'op' is not in the frame. Columns: k.", row_kind="op"),
    Refusal("k INT", (K, ("op", "INT")), (1, 2), f"row kind column 'op': expected texts, {_KINDS}.", row_kind="op"),
    Refusal(
        "k INT, v STRING",
        (K, V, ("op", "STRING")),
        (1, "+I", "+I"),
        "row_kind: the table has row kinds in its column 'v' (rowkind.field). Leave row_kind out.",
        row_kind="op",
        options={"rowkind.field": "v"},
    ),
    *(
        Refusal("k INT", (K, ("op", "STRING")), (1, kind), f"{_ROW}{_NO_KIND} {message}", row_kind="op")
        for kind, message in (("+i", "+i"), (None, "NULL"))
    ),
    Refusal("k INT, v STRING", (K, V), (None, "a"), f"{_ROW}key column 'k' {_FILL}"),
    Refusal("k INT, v STRING NOT NULL", (K, V), (1, None), f"{_ROW}NOT NULL column 'v' {_FILL}"),
    Refusal("k INT, v VARCHAR(2)", (K, V), (1, "éèê"), f"{_LONG} VARCHAR(2) allows"),
    Refusal(
        "k INT, v CHAR",
        (K, V),
        (1, "ab"),
        f"{_LONG} CHAR(1) allows, the meaning of the type without a length. "
        "Declare STRING or BYTES for values of any length",
    ),
    Refusal("k INT, v VARBINARY(3)", (K, ("v", "BYTES")), (1, b"abcd"), f"{_LONG} VARBINARY(3) allows"),
    Refusal(
        "k INT, v TIME(3)",
        (K, ("v", "INT")),
        (1, 86_400_000),
        f"{_ROW}'v' (TIME(3)) has a number outside 0 to 86399999 (milliseconds) in a row",
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
        "k INT, p STRING",
        (K, ("p", "STRING")),
        (1, "b"),
        f"{_ROW}a row is not in the overwritten partition, where column 'p' is 'a'",
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

"""Random tables of all merge engines with random records, as the oracle and the kernel represent them."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.index.roaring64 import decode_roaring64, encode_roaring64
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from tests.merge.engine_oracle import Column, Record, Table

_NESTED = [
    {"k": 1, "v": 1, "s": 1},
    {"k": 1, "v": None, "s": 2},
    {"k": 2, "v": 5, "s": None},
    {"k": None, "v": 7, "s": 1},
]
_TIMED = [None, {"v": 1, "ts": "1"}, {"v": 2, "ts": "2"}, {"v": 3, "ts": None}]


def _lists(elements: Sequence[Any], unique: bool = False) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(elements), max_size=3, unique=unique)


def _maps(values: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    pairs = st.tuples(st.sampled_from("abc"), st.sampled_from(values))
    return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])


#: Few values of each type, so that they collide.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INT": st.sampled_from([-3, 0, 1, 2, 2**30]),
    "TINYINT": st.sampled_from([-128, -1, 0, 1, 100, 127]),
    "SMALLINT": st.sampled_from([-200, 3, 180]),
    "BIGINT": st.sampled_from([-(2**63), -1, 0, 3, 2**63 - 1]),
    "FLOAT": st.sampled_from([0.5, -0.0, 0.0, float("nan"), 3.25]),
    "DOUBLE": st.sampled_from([0.1, -0.0, 0.0, float("nan"), 1e16, -7.5]),
    "DECIMAL(4, 2)": st.sampled_from([Decimal("99.99"), Decimal("-0.01"), Decimal("1.25"), Decimal("3.00")]),
    "DECIMAL(20, 2)": st.sampled_from([Decimal("999999999999999999.99"), Decimal("0.01"), Decimal("-5.50")]),
    "BOOLEAN": st.booleans(),
    "STRING": st.sampled_from(["", " ", "a", "b", "a,b", "b;c", "é"]),
    "BYTES": st.sampled_from([b"", b"\x00", b"\x80a"]),
    "DATE": st.sampled_from([dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    "TIMESTAMP(6)": st.sampled_from([dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
    "ARRAY<INT>": _lists([1, 2, None]),
    "MAP<STRING, INT>": _maps([1, None]),
    "MAP<STRING, ROW<v INT, ts STRING>>": _maps(_TIMED),
    "ARRAY<ROW<k INT, v INT, s INT>>": _lists([*_NESTED, None]),
    "BITMAP": st.sets(st.integers(0, 9), max_size=3).map(lambda numbers: bytes(BitMap(numbers).serialize())),
    "BITMAP64": st.sets(st.sampled_from([0, 1, 2**16, 2**40, 2**63, 2**64 - 1]), max_size=4).map(
        lambda numbers: encode_roaring64(BitMap64(numbers))
    ),
}
_NUMBERS = ["INT", "TINYINT", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(4, 2)", "DECIMAL(20, 2)"]
_ORDERED = [*_NUMBERS, "STRING", "BYTES", "DATE", "TIMESTAMP(6)", "BOOLEAN"]
_ANY = [*_ORDERED, "ARRAY<INT>", "MAP<STRING, INT>"]
#: Functions with the types that they accept.
FUNCTIONS: dict[str, list[str]] = {
    "sum": _NUMBERS,
    "product": _NUMBERS,
    "max": _ORDERED,
    "min": _ORDERED,
    "last_value": _ANY,
    "last_non_null_value": _ANY,
    "first_value": _ANY,
    "first_non_null_value": _ANY,
    "bool_and": ["BOOLEAN"],
    "bool_or": ["BOOLEAN"],
    "listagg": ["STRING"],
    "collect": ["ARRAY<INT>"],
    "merge_map": ["MAP<STRING, INT>"],
    "merge_map_with_keytime": ["MAP<STRING, ROW<v INT, ts STRING>>"],
    "nested_update": ["ARRAY<ROW<k INT, v INT, s INT>>"],
    "nested_partial_update": ["ARRAY<ROW<k INT, v INT, s INT>>"],
    "rbm32": ["BITMAP"],
    "rbm64": ["BITMAP64"],
}
_OPTIONS: dict[str, dict[str, list[str]]] = {
    "listagg": {"distinct": ["true"], "list-agg-delimiter": [";"]},
    "collect": {"distinct": ["true"]},
    "nested_update": {
        "nested-key": ["k", "k,v"],
        "nested-sequence-field": ["s"],
        "nested-key-null-strategy": ["merge", "ignore", "error"],
        "count-limit": ["1", "2"],
    },
    "nested_partial_update": {"nested-key-null-strategy": ["merge", "ignore"]},
}


#: Types that are stored as another SQL type.
STORED = {"BITMAP": "BYTES", "BITMAP64": "BYTES"}


@st.composite
def columns(draw: st.DrawFn, name: str, functions: Sequence[str] = tuple(FUNCTIONS)) -> Column:
    """A column with a function and options."""
    function = draw(st.sampled_from(functions))
    choices = _OPTIONS.get(function, {}).items()
    options = {key: draw(st.sampled_from(texts)) for key, texts in choices if draw(st.booleans())}
    if function == "nested_partial_update":
        options["nested-key"] = "k"
    if "nested-key" not in options:
        options.pop("nested-key-null-strategy", None)
        options.pop("nested-sequence-field", None)
    if draw(st.integers(0, 3)):
        options["ignore-retract"] = "true"
    return Column(name, draw(st.sampled_from(FUNCTIONS[function])), function, options)


@st.composite
def aggregations(draw: st.DrawFn) -> Table:
    found = [draw(columns(f"c{at}")) for at in range(draw(st.integers(1, 4)))]
    ordered = draw(st.booleans())
    if ordered:
        found.append(Column("s", "INT"))
    remove = draw(st.booleans()) and not any(column.flag("ignore-retract") for column in found)
    return Table("aggregation", found, ["s"] if ordered else [], ordered and draw(st.booleans()), remove_on_delete=remove)


@st.composite
def partial_updates(draw: st.DrawFn) -> Table:
    found = [Column(f"u{at}", draw(st.sampled_from(_ANY))) for at in range(draw(st.integers(0, 2)))]
    groups = []
    for at in range(draw(st.integers(0, 2))):
        ordering = [f"g{at}_{i}" for i in range(draw(st.integers(1, 2)))]
        governed = [f"c{at}_{i}" for i in range(draw(st.integers(1, 2)))]
        for name in governed:
            plain = draw(st.booleans())
            found.append(Column(name, draw(st.sampled_from(_ANY))) if plain else draw(columns(name)))
        found += [Column(name, draw(st.sampled_from(["INT", "STRING"]))) for name in ordering]
        groups.append((ordering, governed))
    listed = [ordering[0] for ordering, _ in groups if draw(st.booleans())]
    delete = draw(st.sampled_from(["ignore", "remove", "none"]))
    return Table(
        "partial-update",
        draw(st.permutations(found or [Column("u", "INT")])),
        groups=groups,
        ignore_delete=delete == "ignore" and not listed,
        remove_on_delete=delete == "remove" and not groups,
        remove_on_groups=listed,
    )


@st.composite
def deduplicates(draw: st.DrawFn) -> Table:
    found = [Column(f"c{at}", draw(st.sampled_from(_ANY))) for at in range(draw(st.integers(1, 2)))]
    sequence = [f"s{at}" for at in range(draw(st.integers(0, 2)))]
    found += [Column(name, draw(st.sampled_from(["INT", "STRING"]))) for name in sequence]
    descending = bool(sequence) and draw(st.booleans())
    return Table("deduplicate", found, sequence, descending, ignore_delete=draw(st.booleans()))


def first_rows() -> st.SearchStrategy[Table]:
    return st.builds(lambda ignore: Table("first-row", [Column("c", "STRING")], ignore_delete=ignore), st.booleans())


#: Functions whose result does not depend on the order of the values, with types in which results always fit.
COMMUTATIVE = {
    "sum": ["SMALLINT"],
    "max": _ORDERED,
    "min": _ORDERED,
    "bool_and": ["BOOLEAN"],
    "bool_or": ["BOOLEAN"],
    "rbm32": ["BITMAP"],
    "rbm64": ["BITMAP64"],
}
#: Functions for which a merge of some consecutive records first changes nothing if nothing is retracted.
ASSOCIATIVE = {
    **COMMUTATIVE,
    **{name: FUNCTIONS[name] for name in ("last_value", "last_non_null_value", "first_value", "first_non_null_value")},
    **{name: FUNCTIONS[name] for name in ("listagg", "collect", "merge_map", "nested_update", "nested_partial_update")},
}
#: Functions for which this also holds with retractions.
REVERSIBLE = {"sum": ["SMALLINT"], "last_value": _ANY}

_ADDED, _ANY_KIND = st.sampled_from([0, 2]), st.sampled_from([0, 0, 0, 2, 1, 3])


@st.composite
def stable_tables(draw: st.DrawFn) -> tuple[Table, st.SearchStrategy[int]]:
    """Tables whose rows do not depend on when their records are merged, with the row kinds for which this holds.

    In other tables Paimon's rules make rows depend on it, because a merge keeps a row and not its records:
    - a retraction of a value that the merge does not have is forgotten (product, last_non_null_value, collections), and
      one that `ignore-retract` ignores still makes a row of NULLs, which is a first or last value;
    - a row that was removed and added again is an ordinary row (`remove-record-on-delete`, `…-on-sequence-group`);
    - the first retraction of a `partial-update` merge gives the row all its values;
    - a row has one position in the order of `sequence.field`, its records had several (functions that depend on order);
    - a limit, a removed map key or a rounded number cannot be undone (count-limit, merge_map_with_keytime, product,
      FLOAT, DOUBLE, and integers that overflow in between).
    """
    engine = draw(st.sampled_from(["deduplicate", "aggregation", "reversible", "ordered", "partial-update", "first-row"]))
    if engine == "deduplicate":
        return draw(deduplicates()), _ANY_KIND
    if engine == "first-row":
        return draw(first_rows()), _ADDED
    if engine == "partial-update":
        return draw(_stable_partial_updates()), _ADDED
    functions = {"aggregation": ASSOCIATIVE, "reversible": REVERSIBLE, "ordered": COMMUTATIVE}[engine]
    found = [draw(_stable_columns(f"c{at}", functions)) for at in range(draw(st.integers(1, 3)))]
    if engine == "ordered":
        table = Table("aggregation", [*found, Column("s", "INT")], ["s"], draw(st.booleans()))
        return table, _ADDED
    return Table("aggregation", found), _ANY_KIND if engine == "reversible" else _ADDED


@st.composite
def _stable_partial_updates(draw: st.DrawFn) -> Table:
    table = draw(partial_updates())
    grouped = {name for _, governed in table.groups for name in governed}
    found = []
    for column in table.columns:
        folds = column.name in grouped and draw(st.booleans())
        found.append(draw(_stable_columns(column.name, COMMUTATIVE)) if folds else Column(column.name, column.type))
    return Table("partial-update", found, groups=table.groups, ignore_delete=table.ignore_delete)


@st.composite
def _stable_columns(draw: st.DrawFn, name: str, functions: Mapping[str, Sequence[str]]) -> Column:
    drawn = draw(columns(name, list(functions)))
    options = {key: text for key, text in drawn.options.items() if key not in ("count-limit", "ignore-retract")}
    if options.get("nested-key-null-strategy") == "error":
        del options["nested-key-null-strategy"]
    return Column(name, draw(st.sampled_from(functions[str(drawn.function)])), drawn.function, options)


@dataclass(frozen=True)
class Case:
    """A table and its records, in the order of the runs: pairs of a key and a record."""

    table: Table
    records: list[tuple[int, Record]]

    def expected(self) -> dict[int, Record]:
        """The merged record of each key."""
        by_key: dict[int, list[Record]] = {}
        for key, record in self.records:
            by_key.setdefault(key, []).append(record)
        merged = {key: self.table.merge(by_key[key]) for key in sorted(by_key)}
        return {key: record for key, record in merged.items() if record is not None}


def records(table: Table, kinds: st.SearchStrategy[int], numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Lists of (key, record)."""
    return st.lists(st.tuples(st.integers(0, 2), st.builds(Record, numbers, kinds, rows(table))), max_size=14)


def rows(table: Table) -> st.SearchStrategy[dict[str, Any]]:
    """Values of all columns but the key."""
    return st.fixed_dictionaries(
        {column.name: _or_null(values_of(column)) for column in table.columns}
    )


def values_of(column: Column) -> st.SearchStrategy[Any]:
    if column.function == "nested_partial_update":
        return _NESTED_LISTS
    if column.function == "collect" and column.flag("distinct"):
        return _NUMBER_LISTS
    if column.name.startswith(("g", "s")):
        return _ORDERS[column.type == "STRING"]
    return VALUES[column.type]


#: Strategies that Hypothesis would otherwise check again for each table.
_NESTED_LISTS, _NUMBER_LISTS = _lists(_NESTED), _lists([1, 2, None])
_ORDERS = (st.integers(0, 3).map(int), st.integers(0, 3).map(str))


@cache
def _or_null(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values, values)


def same_value(value: Any, column: Column) -> Any:
    """A value in a form that compares: NaN equals NaN, -0.0 is not 0.0, collections without an order have none."""
    if value is None:
        return None
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    if column.type == "BITMAP" and column.function == "rbm32":
        return tuple(BitMap.deserialize(value))
    if column.type == "BITMAP64" and column.function == "rbm64":
        return tuple(decode_roaring64(value))
    if column.type.startswith("MAP") or (column.flag("distinct") and isinstance(value, list)):
        return sorted(map(repr, value))
    if column.function in ("nested_update", "nested_partial_update"):
        return sorted(map(repr, value))
    return value


def schema_of(table: Table, more: Mapping[str, str] | None = None) -> TableSchema:
    """The table as a schema with its options and ``more`` of them."""
    options: dict[str, str] = {"merge-engine": table.engine, "bucket": "1"}
    options.update(more or {})
    for column in table.columns:
        if column.function:
            options[f"fields.{column.name}.aggregate-function"] = column.function
        options.update({f"fields.{column.name}.{key}": text for key, text in column.options.items()})
    for ordering, governed in table.groups:
        options[f"fields.{','.join(ordering)}.sequence-group"] = ",".join(governed)
    flags: Mapping[str, bool] = {
        "ignore-delete": table.ignore_delete,
        f"{table.engine}.remove-record-on-delete": table.remove_on_delete,
    }
    options.update({key: "true" for key, value in flags.items() if value})
    if table.remove_on_groups:
        options["partial-update.remove-record-on-sequence-group"] = ",".join(table.remove_on_groups)
    if table.sequence:
        options["sequence.field"] = ",".join(table.sequence)
        if table.descending:
            options["sequence.field.sort-order"] = "descending"
    ddl = ", ".join(["id INT", *(f"{c.name} {STORED.get(c.type, c.type)}" for c in table.columns)])
    return create_schema(ddl, ["id"], [], options)


def spec_of(schema: TableSchema) -> MergeSpec:
    return MergeSpec.of(schema, TableOptions.parse(schema.options))


def rows_of(schema: TableSchema, found: Sequence[tuple[int, Record]]) -> pa.Table:
    """Records as rows of the kernel."""
    columns: dict[str, list[Any]] = {"_SEQUENCE_NUMBER": [], "_VALUE_KIND": [], "id": []}
    columns.update({name: [] for name in schema.field_names})
    for key, record in found:
        columns["_SEQUENCE_NUMBER"].append(record.number)
        columns["_VALUE_KIND"].append(record.kind)
        columns["id"].append(key)
        for name, value in record.row.items():
            columns[name].append(value)
    kinds = row_schema(schema.fields)
    return pa.Table.from_arrays([pa.array(columns[field.name], field.type) for field in kinds], schema=kinds)

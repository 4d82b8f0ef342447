"""All merge engines: the kernel's rows are those of the oracle."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lakelsm.errors import InvalidInputError
from lakelsm.format.roaring64 import decode_roaring64
from lakelsm.merge.kernel import contested, merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.streaming import merge_runs
from tests.merge.engine_oracle import Column, Record, Refused, Table
from tests.merge.engine_tables import (
    FUNCTIONS,
    Case,
    aggregations,
    columns,
    first_rows,
    partial_updates,
    records,
    rows_of,
    schema_of,
    spec_of,
)

ANY_TABLE = st.one_of(aggregations(), partial_updates(), partial_updates(), first_rows())


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


def comparable(table: Table, key: int, record: Record) -> Any:
    values = [same_value(record.row[column.name], column) for column in table.columns]
    return key, record.number, record.kind, values


def merged(table: Table, rows: pa.Table) -> pa.Table:
    return merge_rows(rows, order_keys([rows.column("id")]), spec_of(schema_of(table)))


def compared(table: Table, rows: pa.Table) -> list[Any]:
    found = rows.to_pylist()
    return [comparable(table, row["id"], Record(row["_SEQUENCE_NUMBER"], row["_VALUE_KIND"], row)) for row in found]


def check(case: Case) -> None:
    rows = rows_of(schema_of(case.table), case.records)
    try:
        expected = case.expected()
    except Refused:
        # What the oracle refuses before a record removes the row, the kernel may never look at.
        removes = case.table.remove_on_delete or case.table.remove_on_groups
        with suppress(InvalidInputError) if removes else pytest.raises(InvalidInputError):
            merged(case.table, rows)
        return
    found = compared(case.table, merged(case.table, rows))
    assert found == [comparable(case.table, key, record) for key, record in expected.items()]


@given(st.data())
@settings(max_examples=max(500, settings.default.max_examples if settings.default else 0))
def test_merged_rows_are_those_of_the_oracle(data: st.DataObject) -> None:
    table = data.draw(ANY_TABLE)
    kinds = data.draw(st.sampled_from([st.just(0), st.sampled_from([0, 0, 2, 1, 3]), st.sampled_from([0, 3])]))
    check(Case(table, data.draw(records(table, kinds, st.integers(0, 20)))))


@pytest.mark.parametrize("function", FUNCTIONS)
@given(st.data())
@settings(max_examples=50)
def test_each_function_is_that_of_the_oracle(function: str, data: st.DataObject) -> None:
    column = data.draw(columns("c", [function]))
    grouped = data.draw(st.booleans())
    if grouped:
        table = Table("partial-update", [column, Column("g", "INT")], groups=[(["g"], ["c"])])
    else:
        table = Table("aggregation", [column])
    kinds = data.draw(st.sampled_from([st.just(0), st.sampled_from([0, 0, 3])]))
    check(Case(table, data.draw(records(table, kinds, st.integers(0, 100)))))


#: Functions for which merging some consecutive records first changes nothing, as long as nothing is retracted.
ASSOCIATIVE = (
    "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value", "bool_and", "bool_or",
    "collect", "merge_map", "rbm32", "rbm64",
)  # fmt: skip


@st.composite
def stable_tables(draw: st.DrawFn) -> Table:
    """Tables whose rows do not depend on when their records are merged."""
    if draw(st.booleans()):
        return Table("aggregation", [draw(columns(f"c{at}", ASSOCIATIVE)) for at in range(2)])
    table = draw(partial_updates())
    plain = [Column(c.name, c.type) for c in table.columns]
    return Table("partial-update", plain, groups=table.groups, ignore_delete=table.ignore_delete)


def chunks(data: st.DataObject, found: list[Any]) -> Iterator[list[Any]]:
    """The list cut into consecutive parts."""
    while found:
        size = data.draw(st.integers(1, len(found)))
        yield found[:size]
        found = found[size:]


@given(st.data())
def test_rows_do_not_depend_on_compactions_in_between(data: st.DataObject) -> None:
    table = data.draw(stable_tables())
    found = data.draw(records(table, st.sampled_from([0, 2]), st.just(0)))
    found = [(key, Record(at, record.kind, record.row)) for at, (key, record) in enumerate(found)]
    schema = schema_of(table)
    runs = [merged(table, rows_of(schema, part)) for part in chunks(data, found)]
    while len(runs) > 1:
        start = data.draw(st.integers(0, len(runs) - 2))
        stop = data.draw(st.integers(start + 2, len(runs)))
        runs[start:stop] = [merged(table, pa.concat_tables(runs[start:stop]))]
    once = merged(table, rows_of(schema, found))
    plain = {"_VALUE_KIND", "_SEQUENCE_NUMBER"}
    after = runs[0] if runs else once
    assert [row[3] for row in compared(table, after)] == [row[3] for row in compared(table, once)]
    assert plain <= set(after.column_names)


@given(st.data())
def test_runs_merged_in_small_pieces_are_the_runs_merged_at_once(data: st.DataObject) -> None:
    table = data.draw(ANY_TABLE)
    found = data.draw(records(table, st.sampled_from([0, 2]), st.just(0)))
    found = [(key, Record(at, record.kind, record.row)) for at, (key, record) in enumerate(found)]
    schema = schema_of(table)
    try:
        runs = [merged(table, rows_of(schema, part)) for part in chunks(data, found)]
        expected = merged(table, pa.concat_tables(runs)) if runs else rows_of(schema, [])
    except InvalidInputError:
        return
    pieces = [iter([run.slice(at, 1) for at in range(len(run))]) for run in runs]
    joined = pa.concat_tables([rows_of(schema, []), *merge_runs(pieces, spec_of(schema), drop_deletes=False)])
    assert compared(table, joined) == compared(table, expected)


@given(st.lists(st.integers(0, 9), max_size=20))
def test_contested_rows_are_those_that_share_a_key(keys: list[int]) -> None:
    mask = contested(order_keys([pa.array(keys, pa.int64())]))
    assert mask.tolist() == [keys.count(key) > 1 for key in keys]


def test_an_older_value_confirms_the_first_one_that_is_not_null() -> None:
    columns = [Column("c", "INT", "first_non_null_value"), Column("g", "INT")]
    table = Table("partial-update", columns, groups=[(["g"], ["c"])])
    rows = [{"g": 3, "c": None}, {"g": 2, "c": 5}, {"g": 1, "c": 7}]
    check(Case(table, [(0, Record(at, 0, row)) for at, row in enumerate(rows)]))


def test_a_hot_key_is_summed_from_left_to_right() -> None:
    table = Table("aggregation", [Column("c", "DOUBLE", "sum")])
    values = [0.1 * at for at in range(1000)]
    check(Case(table, [(0, Record(at, 0, {"c": value})) for at, value in enumerate(values)]))

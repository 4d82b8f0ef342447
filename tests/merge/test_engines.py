"""The kernel's rows of all merge engines equal those of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.merge.kernel import contested, merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.streaming import merge_runs
from tests.examples import examples
from tests.merge.engine_oracle import Column, Record, Refused, Table
from tests.merge.engine_tables import (
    FUNCTIONS,
    Case,
    aggregations,
    columns,
    deduplicates,
    first_rows,
    partial_updates,
    records,
    rows_of,
    same_value,
    schema_of,
    spec_of,
    stable_tables,
)

ANY_TABLE = st.one_of(aggregations(), aggregations(), partial_updates(), partial_updates(), first_rows(), deduplicates())


def comparable(table: Table, key: int, record: Record) -> Any:
    values = [same_value(record.row[column.name], column) for column in table.columns]
    return key, record.number, record.kind, values


def merged(table: Table, rows: pa.Table) -> pa.Table:
    return merge_rows(rows, order_keys([rows.column("id")]), spec_of(schema_of(table)))


def compared(table: Table, rows: pa.Table) -> list[Any]:
    found = rows.to_pylist()
    return [comparable(table, row["id"], Record(row["_SEQUENCE_NUMBER"], row["_VALUE_KIND"], row)) for row in found]


def shown(table: Table, rows: pa.Table) -> list[Any]:
    """Return keys and values of the rows that a read shows."""
    return [(key, values) for key, _, kind, values in compared(table, rows) if kind not in (1, 3)]


def check(case: Case) -> None:
    rows = rows_of(schema_of(case.table), case.records)
    try:
        expected = case.expected()
    except Refused:
        # The kernel may never see an error that the oracle finds before a record removes the row.
        removes = case.table.remove_on_delete or case.table.remove_on_groups
        with suppress(InvalidInputError) if removes else pytest.raises(InvalidInputError):
            merged(case.table, rows)
        return
    found = compared(case.table, merged(case.table, rows))
    assert found == [comparable(case.table, key, record) for key, record in expected.items()]


@given(st.data())
@examples(1000)
def test_merged_rows_are_those_of_the_oracle(data: st.DataObject) -> None:
    table = data.draw(ANY_TABLE)
    kinds = data.draw(st.sampled_from([st.just(0), st.sampled_from([0, 0, 2, 1, 3]), st.sampled_from([0, 3])]))
    check(Case(table, data.draw(records(table, kinds, st.integers(0, 20)))))


@pytest.mark.parametrize("function", FUNCTIONS)
@given(st.data())
@examples(30)
def test_each_function_is_that_of_the_oracle(function: str, data: st.DataObject) -> None:
    column = data.draw(columns("c", [function]))
    grouped = data.draw(st.booleans())
    if grouped:
        table = Table("partial-update", [column, Column("g", "INT")], groups=[(["g"], ["c"])])
    else:
        table = Table("aggregation", [column])
    kinds = data.draw(st.sampled_from([st.just(0), st.sampled_from([0, 0, 3])]))
    check(Case(table, data.draw(records(table, kinds, st.integers(0, 100)))))


def chunks(data: st.DataObject, found: list[Any]) -> Iterator[list[Any]]:
    """Return the list split into consecutive parts."""
    while found:
        size = data.draw(st.integers(1, len(found)))
        yield found[:size]
        found = found[size:]


@given(st.data())
def test_rows_do_not_depend_on_compactions_in_between(data: st.DataObject) -> None:
    table, kinds = data.draw(stable_tables())
    found = data.draw(records(table, kinds, st.just(0)))
    found = [(key, Record(at, record.kind, record.row)) for at, (key, record) in enumerate(found)]
    schema = schema_of(table)
    runs = [merged(table, rows_of(schema, part)) for part in chunks(data, found)]
    while len(runs) > 1:
        start = data.draw(st.integers(0, len(runs) - 2))
        stop = data.draw(st.integers(start + 2, len(runs)))
        runs[start:stop] = [merged(table, pa.concat_tables(runs[start:stop]))]
    once = merged(table, rows_of(schema, found))
    assert shown(table, runs[0] if runs else once) == shown(table, once)


@given(st.data())
def test_runs_merged_in_small_pieces_give_the_rows_of_one_merge(data: st.DataObject) -> None:
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


RUN_OF_KEYS = st.lists(st.integers(0, 25), unique=True).map(sorted)
RUNS_OF_KEYS = st.lists(RUN_OF_KEYS, max_size=4).map(lambda runs: [key for run in runs for key in run])


@given(st.lists(st.integers(0, 9), max_size=20) | RUNS_OF_KEYS, st.sampled_from(["{}", "a key of more bytes {:3}"]))
def test_contested_rows_are_those_that_share_a_key(keys: list[int], form: str) -> None:
    mask = contested(order_keys([pa.array([form.format(key) for key in keys], pa.string())]))
    assert mask.tolist() == [keys.count(key) > 1 for key in keys]

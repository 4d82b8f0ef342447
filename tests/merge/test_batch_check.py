"""Retractions that every merge refuses are refused before they are written; those without effect are found."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.merge.batch_check import check_batch, ignored_rows
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from tests.examples import examples
from tests.merge.engine_oracle import Record, Refused, Table
from tests.merge.engine_tables import (
    aggregations,
    deduplicates,
    partial_updates,
    rows,
    rows_of,
    same_value,
    schema_of,
    spec_of,
    values_of,
)

INSERT, UPDATE_BEFORE, DELETE = 0, 1, 3
SUM, MAX = {"fields.v.aggregate-function": "sum"}, {"fields.v.aggregate-function": "max"}
GROUP = {"fields.g.sequence-group": "v"}


def check(kind: int, options: dict[str, str], g: int | None = 1) -> None:
    schema = create_schema("id INT, v INT, g INT", ["id"], [], options)
    kinds = pa.array([INSERT, kind], pa.int8())
    values = pa.array([1, 1], pa.int32())
    rows = pa.table({"_VALUE_KIND": kinds, "id": values, "v": values, "g": pa.array([1, g], pa.int32())})
    check_batch(rows, MergeSpec.of(schema, TableOptions.parse(schema.options)))


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"merge-engine": "first-row"}, "'ignore-delete' = 'true'"),
        ({"merge-engine": "partial-update"}, r"'partial-update\.remove-record-on-delete' = 'true'"),
        ({"merge-engine": "aggregation", **MAX}, r"column 'v'.*'fields\.v\.ignore-retract' = 'true'"),
        ({"merge-engine": "partial-update", **GROUP, **MAX}, r"column 'v'.*'fields\.v\.ignore-retract' = 'true'"),
    ],
    ids=["first-row", "partial-update", "max", "max in a group"],
)
def test_a_retraction_that_no_column_accepts_is_refused_with_the_remedy(
    kind: int, options: dict[str, str], remedy: str
) -> None:
    with pytest.raises(InvalidInputError, match=remedy):
        check(kind, options)


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "aggregation", **SUM},
        {"merge-engine": "aggregation", **MAX, "fields.v.ignore-retract": "true"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", **GROUP},
        {"merge-engine": "partial-update", **GROUP, **SUM},
    ],
    ids=str,
)
def test_other_retractions_pass(kind: int, options: dict[str, str]) -> None:
    check(kind, options)


def test_a_delete_that_removes_the_row_needs_no_function_that_retracts() -> None:
    aggregation = {"merge-engine": "aggregation", **MAX, "aggregation.remove-record-on-delete": "true"}
    check(DELETE, aggregation)
    with pytest.raises(InvalidInputError, match="column 'v'"):
        check(UPDATE_BEFORE, aggregation)
    group = {"merge-engine": "partial-update", **GROUP, **MAX, "partial-update.remove-record-on-sequence-group": "g"}
    check(DELETE, group)
    with pytest.raises(InvalidInputError, match="column 'v'"):
        check(UPDATE_BEFORE, group)


def test_a_retraction_without_a_sequence_does_not_change_the_group() -> None:
    check(DELETE, {"merge-engine": "partial-update", **GROUP, **MAX}, g=None)


def test_rows_that_add_are_never_refused() -> None:
    for engine in ("first-row", "partial-update"):
        check(INSERT, {"merge-engine": engine})
    check(INSERT, {"merge-engine": "aggregation", **MAX})


TABLES = st.one_of(aggregations(), aggregations(), partial_updates(), partial_updates(), deduplicates())
_RETRACTIONS = st.lists(st.sampled_from([INSERT, UPDATE_BEFORE, DELETE]), max_size=6)


def shown(table: Table, records: Sequence[Record]) -> object:
    """Return the values of the merged row, None if it is removed, 'refused' if it cannot be merged.

    A single record is merged too: any second one has that effect (`listagg` changes blank text to NULL).
    """
    try:
        merged = table.merge(records, alone=True)
    except Refused:
        return "refused"
    if merged is None or merged.retracts:
        return None
    return [same_value(merged.row[column.name], column) for column in table.columns]


def ignored_of(table: Table, records: Sequence[Record]) -> list[bool]:
    schema = schema_of(table)
    found = rows_of(schema, [(0, record) for record in records])
    try:
        check_batch(found, spec_of(schema))
    except InvalidInputError:
        reject()
    return ignored_rows(found, spec_of(schema)).tolist()


@given(st.data())
@examples(250)
def test_an_ignored_row_changes_no_existing_row(data: st.DataObject) -> None:
    table, kinds = data.draw(TABLES.filter(lambda table: not table.ignore_delete)), data.draw(_RETRACTIONS)
    records = [Record(at, kind, data.draw(rows(table))) for at, kind in enumerate([INSERT, *kinds])]
    for at, ignored in enumerate(ignored_of(table, records)):
        before = shown(table, records[:at]) if at else None
        if ignored and before is not None:
            assert records[at].retracts and shown(table, records[: at + 1]) == before


@given(st.data())
@examples(250)
def test_every_other_retraction_changes_some_row(data: st.DataObject) -> None:
    table = data.draw(TABLES.filter(lambda table: not table.ignore_delete))
    row = data.draw(rows(table))
    last = Record(1, data.draw(st.sampled_from([UPDATE_BEFORE, DELETE])), row)
    full = {column.name: data.draw(values_of(column)) for column in table.columns}
    # A division by 1 and an empty collection change nothing; only NULL is checked.
    assume(not any(row[c.name] == ([] if c.type[:3] in ("ARR", "MAP") else 1) for c in table.columns if c.function))
    if not ignored_of(table, [last])[0]:
        bases = [Record(0, INSERT, values) for values in (dict.fromkeys(row), row, full)]
        assert any(shown(table, [base]) != shown(table, [base, last]) for base in bases)

"""The changes of a table, applied to the rows before, give the rows after, for every producer and engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.plan.read_plan import plan_read
from lakelsm.schema.table_schema import create_schema
from tests.conformance.table_case import KindedRow
from tests.examples import examples
from tests.read.file_engine import FileTable

Row = tuple[Any, ...]

#: Small files, so that few rows give levels, upgrades and cut units.
_SMALL = {"bucket": "1", "target-file-size": "2 kb", "compaction.small-file-ratio": "0.01"}

COLUMNS = "k INT NOT NULL, v INT, s INT, t STRING"

#: Engines with their options, and whether -U and -D may be written to them.
ENGINES: Mapping[str, tuple[Mapping[str, str], bool]] = {
    "deduplicate": ({}, True),
    "deduplicate by sequence": ({"sequence.field": "s"}, True),
    "partial-update": ({"merge-engine": "partial-update"}, False),
    "partial-update, -D removes": (
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        False,
    ),
    "partial-update, groups": (
        {"merge-engine": "partial-update", "fields.s.sequence-group": "v", "fields.v.aggregate-function": "last_value"},
        True,
    ),
    "aggregation": ({"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}, True),
    "first-row": ({"merge-engine": "first-row"}, False),
}


def table_below(folder: str, options: Mapping[str, str], columns: str = COLUMNS) -> FileTable:
    return FileTable.of(Path(folder), create_schema(columns, ["k"], [], {**_SMALL, **options}, None, 0))


def applied(state: Mapping[int, Row], changes: Sequence[Row]) -> dict[int, Row]:
    """Return the rows after the changes; each change must fit the rows."""
    rows = dict(state)
    for kind, *values in changes:
        key, row = values[0], tuple(values)
        if kind in ("-U", "-D"):
            assert rows.pop(key, None) == row, f"{kind} of a row that is not there: {row}"
        else:
            assert key not in rows, f"{kind} of a row that is there: {row}"
            rows[key] = row
    return rows


def state_of(table: FileTable) -> dict[int, Row]:
    return {row[0]: row for row in table.read(None, None)}


@st.composite
def batches(draw: st.DrawFn, retractions: bool) -> list[KindedRow]:
    """Rows of one commit, some with many keys, so that files differ in size."""
    size = draw(st.sampled_from([1, 3, 8, 60]))
    kinds = st.sampled_from(["+I", "+I", "+U", "-D"]) if retractions else st.just("+I")
    small = st.one_of(st.none(), st.integers(0, 4))
    first = draw(st.integers(0, 40))
    keys = draw(st.lists(st.integers(first, first + size), min_size=1, max_size=size, unique=draw(st.booleans())))
    return [KindedRow(draw(kinds), (key, draw(small), draw(small), draw(st.sampled_from([None, "x"])))) for key in keys]


@pytest.mark.parametrize("engine", ENGINES)
@given(st.data())
@examples(8)
def test_a_lookup_changelog_leads_from_each_state_to_the_next(engine: str, data: st.DataObject) -> None:
    options, retractions = ENGINES[engine]
    trigger = data.draw(st.integers(2, 5))
    more = {"changelog-producer": "lookup", "num-sorted-run.compaction-trigger": str(trigger), **options}
    if data.draw(st.booleans()) and engine != "first-row":
        more["changelog-producer.row-deduplicate"] = "true"
    with TemporaryDirectory() as folder:
        table = table_below(folder, more)
        state: dict[int, Row] = {}
        for _ in range(data.draw(st.integers(1, 6))):
            action = data.draw(st.sampled_from(["write", "write", "write", "write only", "compact", "full"]))
            if action == "write":
                table.write(data.draw(batches(retractions)), {})
            elif action == "write only":
                table.write(data.draw(batches(retractions)), {"write-only": "true"})
                continue
            else:
                table.compact(full=action == "full")
            assert 0 not in table.levels()
            state = applied(state, table.changelog())
            assert state == state_of(table)


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "first-row"])
@given(st.data())
@examples(6)
def test_a_changelog_of_full_compactions_leads_from_each_to_the_next(engine: str, data: st.DataObject) -> None:
    options, retractions = ENGINES[engine]
    with TemporaryDirectory() as folder:
        table = table_below(folder, {"changelog-producer": "full-compaction", "write-only": "true", **options})
        state: dict[int, Row] = {}
        for _ in range(data.draw(st.integers(1, 3))):
            for _ in range(data.draw(st.integers(0, 3))):
                table.write(data.draw(batches(retractions)), {})
                if data.draw(st.booleans()):
                    table.compact(full=False)
            table.compact(full=True)
            state = applied(state, table.changelog())
            assert state == state_of(table)


@pytest.mark.parametrize("engine", ENGINES)
@given(st.data())
@examples(6)
def test_the_difference_of_two_snapshots_leads_from_one_to_the_other(engine: str, data: st.DataObject) -> None:
    options, retractions = ENGINES[engine]
    producer = data.draw(st.sampled_from(["none", "lookup"]))
    with TemporaryDirectory() as folder:
        table = table_below(folder, {"changelog-producer": producer, "write-only": "true", **options})
        for _ in range(data.draw(st.integers(1, 5))):
            if data.draw(st.integers(0, 2)):
                table.write(data.draw(batches(retractions)), {})
            else:
                table.compact(full=data.draw(st.booleans()))
        store = table.store
        snapshots = [None, *store.snapshots.list()]
        low = data.draw(st.integers(0, len(snapshots) - 1))
        high = data.draw(st.integers(0, len(snapshots) - 1))
        before, after = ({row[0]: row for row in rows(table, snapshots[at])} for at in (low, high))
        changes = table.difference(snapshots[low], snapshots[high])
        assert applied(before, changes) == after
        touched = {row[1] for row in changes}
        assert touched == {key for key in {*before, *after} if before.get(key) != after.get(key)}


def rows(table: FileTable, snapshot: Any) -> list[Row]:
    return [tuple(row.values()) for row in table.scanned(plan_read(table.store, snapshot, None)).to_pylist()]

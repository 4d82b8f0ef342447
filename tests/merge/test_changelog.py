"""The kernel's changes of one compaction equal those of the oracle, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.merge.changelog import ChangelogRule, ChangelogSource, change_rows, merge_to_top, merge_with_lookup
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import ColumnRule, MergeSpec
from lakelsm.options import MergeEngine
from tests.merge.engine_oracle import Column, Record, Refused, Table
from tests.merge.engine_tables import (
    aggregations,
    deduplicates,
    first_rows,
    partial_updates,
    records,
    rows_of,
    schema_of,
    spec_of,
)
from tests.merge.test_engines import comparable, compared

TOP = 3
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3


@dataclass(frozen=True)
class LeveledRecord:
    """A record and its level."""

    level: int
    record: Record


@dataclass(frozen=True)
class Outcome:
    """The result for one key: the row that is written, and its changes as (kind, record)."""

    row: Record | None
    changes: Sequence[tuple[int, Record]]


def changes_of(before: Record | None, after: Record | None) -> list[tuple[int, Record]]:
    """Return the changes from one row to another; a retraction counts as no row."""
    old = None if before is None or before.retracts else before
    new = None if after is None or after.retracts else after
    if old is not None and new is not None:
        return [(UPDATE_BEFORE, old), (UPDATE_AFTER, new)]
    return [(DELETE, old)] if old is not None else [(INSERT, new)] if new is not None else []


def looked_up(table: Table, leveled: Sequence[LeveledRecord], output: int) -> Outcome | None:
    """Compact one key to ``output`` with a look-up; None if no row of the key takes part."""
    inside = [one for one in leveled if one.level <= output]
    if not inside:
        return None
    fresh = [one.record for one in inside if one.level == 0]
    upper = min((one for one in inside if one.level > 0), key=lambda one: one.level, default=None)
    below = min((one for one in leveled if one.level > output), key=lambda one: one.level, default=None)
    if table.engine == "first-row":
        if upper is None and below is not None:
            return None
        merged = table.merge([*([upper.record] if upper else []), *fresh], alone=bool(fresh))
        new = merged is not None and not merged.retracts and fresh and upper is None
        return Outcome(merged, [(merged.kind, merged)] if merged is not None and new else [])
    base = upper or below
    candidates = [*([base.record] if base else []), *fresh]
    if not fresh:
        return Outcome(table.merge(candidates), [])
    merged = table.merge(candidates, alone=True)
    return Outcome(merged, changes_of(base.record if base else None, merged))


def on_top(table: Table, leveled: Sequence[LeveledRecord]) -> Outcome:
    """A full compaction of one key."""
    merged = table.merge([one.record for one in leveled])
    top = next((one.record for one in leveled if one.level == TOP), None)
    return Outcome(merged, [] if len(leveled) == 1 and top is not None else changes_of(top, merged))


@st.composite
def layouts(draw: st.DrawFn, table: Table) -> list[tuple[int, LeveledRecord]]:
    """Records on levels: any number on level 0, at most one of a key on each other level, newer ones lower."""
    kinds = draw(st.sampled_from([st.just(0), st.sampled_from([0, 0, 2, 3])]))
    found: list[tuple[int, LeveledRecord]] = []
    of_a_level = records(table, kinds, st.just(0))
    for level in range(TOP, -1, -1):
        rows = draw(of_a_level)
        if level:
            rows = list(dict(rows).items())
        found += [(key, LeveledRecord(level, record)) for key, record in rows]
    numbered = [
        (key, LeveledRecord(one.level, Record(number, one.record.kind, one.record.row)))
        for number, (key, one) in enumerate(found)
    ]
    return numbered


def by_key(found: Sequence[tuple[int, LeveledRecord]]) -> dict[int, list[LeveledRecord]]:
    keys: dict[int, list[LeveledRecord]] = {}
    for key, leveled in found:
        keys.setdefault(key, []).append(leveled)
    return dict(sorted(keys.items()))


def check(table: Table, found: Sequence[tuple[int, LeveledRecord]], output: int, source: ChangelogSource) -> None:
    schema = schema_of(table)
    rows = rows_of(schema, [(key, one.record) for key, one in found])
    levels = np.array([one.level for _, one in found], dtype=np.int64)
    keys, rule = order_keys([rows.column("id")]), ChangelogRule(source)
    merge = merge_with_lookup if source is ChangelogSource.LOOKUP else merge_to_top
    try:
        outcomes = {
            key: looked_up(table, leveled, output) if source is ChangelogSource.LOOKUP else on_top(table, leveled)
            for key, leveled in by_key(found).items()
        }
    except Refused:
        removes = table.remove_on_delete or table.remove_on_groups
        with suppress(InvalidInputError) if removes else pytest.raises(InvalidInputError):
            merge(rows, keys, levels, output, spec_of(schema), rule)
        return
    merged = merge(rows, keys, levels, output, spec_of(schema), rule)
    expected = [(key, outcome) for key, outcome in outcomes.items() if outcome is not None]
    written = [comparable(table, key, outcome.row) for key, outcome in expected if outcome.row is not None]
    assert compared(table, merged.rows) == written
    changes = [
        comparable(table, key, Record(record.number, kind, record.row))
        for key, outcome in expected
        for kind, record in outcome.changes
    ]
    assert ([] if merged.changes is None else compared(table, merged.changes)) == changes


@given(st.data())
def test_changes_of_a_compaction_that_looks_rows_up_are_those_of_the_oracle(data: st.DataObject) -> None:
    table = data.draw(st.one_of(aggregations(), partial_updates(), first_rows(), deduplicates()))
    check(table, data.draw(layouts(table)), data.draw(st.integers(1, TOP)), ChangelogSource.LOOKUP)


@given(st.data())
def test_changes_of_a_full_compaction_are_those_of_the_oracle(data: st.DataObject) -> None:
    table = data.draw(st.one_of(aggregations(), partial_updates(), deduplicates()))
    check(table, data.draw(layouts(table)), TOP, ChangelogSource.TOP_LEVEL)


KEYED = Table("aggregation", [Column("c", "INT", "sum"), Column("d", "STRING", "last_value")])


def row(key: int, c: int | None, d: str | None, number: int = 0, kind: int = 0) -> tuple[int, Record]:
    return key, Record(number, kind, {"c": c, "d": d})


def table_of(*rows: tuple[int, Record]) -> pa.Table:
    return rows_of(schema_of(KEYED), rows)


def kinds_and_values(changes: pa.Table) -> list[tuple[Any, ...]]:
    return [(r["_VALUE_KIND"], r["id"], r["c"], r["d"]) for r in changes.to_pylist()]


def test_an_update_that_changes_nothing_counts_unless_columns_are_compared() -> None:
    old, new = table_of(row(1, 5, "a")), table_of(row(1, 5, "a", 7))
    here = np.array([0])
    assert kinds_and_values(change_rows(old, here, new, here, None)) == [(1, 1, 5, "a"), (2, 1, 5, "a")]
    assert kinds_and_values(change_rows(old, here, new, here, ("c", "d"))) == []


def test_only_compared_columns_count_as_a_change() -> None:
    old, new = table_of(row(1, 5, "a"), row(2, 5, None)), table_of(row(1, 5, "b"), row(2, None, None))
    here = np.array([0, 1])
    assert kinds_and_values(change_rows(old, here, new, here, ("c",))) == [(1, 2, 5, None), (2, 2, None, None)]


def test_retractions_count_as_no_rows() -> None:
    old, new = table_of(row(1, 1, "a", kind=3), row(2, 2, "b")), table_of(row(1, 1, "c"), row(2, 2, "d", kind=3))
    here = np.array([0, 1])
    assert kinds_and_values(change_rows(old, here, new, here, None)) == [(0, 1, 1, "c"), (3, 2, 2, "b")]


def test_a_row_below_is_not_written_again_without_a_newer_row() -> None:
    rows = table_of(row(1, 1, "a"), row(2, 2, "b"))
    levels = np.array([5, 5])
    merged = merge_with_lookup(rows, None, levels, 4, MergeSpec(("id",)), ChangelogRule(ChangelogSource.LOOKUP))
    assert len(merged.rows) == 0
    assert merged.changes is None


@pytest.mark.parametrize("engine", [MergeEngine.AGGREGATION, MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW])
def test_an_expired_row_below_takes_no_part_and_is_replaced(engine: MergeEngine) -> None:
    """Key 1 has an expired row below its new one, key 2 one that has not expired, key 3 only an expired one."""
    rows = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array([5, 6, 1, 2, 3], pa.int64()),
            "_VALUE_KIND": pa.array([0] * 5, pa.int8()),
            "id": pa.array([1, 2, 1, 2, 3], pa.int32()),
            "s": pa.array([10, 20, 100, 200, 300], pa.int32()),
        }
    )
    levels, expired = np.array([0, 0, 5, 5, 5]), np.array([False, False, True, False, True])
    columns = (ColumnRule("s", "sum"),) if engine is MergeEngine.AGGREGATION else ()
    spec = MergeSpec(("id",), engine=engine, columns=columns)
    keys, rule = order_keys([rows.column("id")]), ChangelogRule(ChangelogSource.LOOKUP)
    merged = merge_with_lookup(rows, keys, levels, 4, spec, rule, expired=expired)
    if engine is MergeEngine.FIRST_ROW:
        assert len(merged.rows) == 0 and merged.changes is None, "the rows below are the first ones still"
        return
    assert merged.changes is not None and merged.replaced is not None
    shown = list(zip(*merged.rows.select(["id", "s"]).to_pydict().values()))
    changes = list(zip(*merged.changes.select(["_VALUE_KIND", "id", "s"]).to_pydict().values()))
    new = 220 if engine is MergeEngine.AGGREGATION else 20
    assert shown == [(1, 10), (2, new)]
    assert changes == [(INSERT, 1, 10), (UPDATE_BEFORE, 2, 200), (UPDATE_AFTER, 2, new)]
    assert merged.replaced.tolist() == [2, 3]

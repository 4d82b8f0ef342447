"""Changes of states: dead rows, new rows, changed keys; few generations with little dead space."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.format.row_kinds import DELETE, INSERT, is_retract
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full import state_change
from lakelsm.lookup.full.cache_state import CacheState
from lakelsm.lookup.full.state_change import StateChange, changed_rows, changes_schema
from lakelsm.predicate.predicate import Compare, Predicate
from lakelsm.schema.system_columns import VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from tests.chance import seeds
from tests.format.test_snapshot import MINIMUM
from tests.lookup.full.table_histories import CASES, Case, History
from tests.lookup.full.test_generation import LAYOUT

SNAPSHOT = Snapshot.from_json(json.dumps(MINIMUM))


def batch(*rows: tuple[int, int, int | None]) -> pa.RecordBatch:
    schema = changes_schema(LAYOUT.fields)
    columns = [pa.array(column, kind.type) for column, kind in zip(zip(*rows), schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def follow(
    directory: CacheDirectory, state: CacheState | None, *batches: pa.RecordBatch, predicate: Predicate | None = None
) -> tuple[CacheState, list[int] | None]:
    change = StateChange(state or CacheState("", None, (), content="c"), LAYOUT, directory, predicate=predicate)
    name = f"full-{directory.new_name()}"
    made = change.applied(iter(batches), SNAPSHOT, name)
    made.publish(directory)
    changed = change.changed
    return made, None if changed is None else sorted(changed["g"].to_pylist())


def rows_of(state: CacheState) -> list[tuple[int, int | None]]:
    rows = [table for generation in state.generations for table in generation.live()]
    return sorted(tuple(row.values()) for table in rows for row in table.to_pylist())


def test_replaced_rows_become_dead_new_rows_are_added_and_unchanged_rows_stay(directory: CacheDirectory) -> None:
    first = batch((INSERT, 1, 10), (INSERT, 2, 20), (INSERT, 3, None)), batch((INSERT, 4, 40))
    state, changed = follow(directory, None, *first)
    assert changed == [10, 20, 40]
    second = batch((DELETE, 1, None), (INSERT, 2, 21), (INSERT, 4, 40), (DELETE, 99, None))
    after, changed = follow(directory, state, second)
    assert rows_of(after) == [(2, 21), (3, None), (4, 40)] and changed == [10, 20, 21]
    assert rows_of(state) == [(1, 10), (2, 20), (3, None), (4, 40)], "a state never changes"
    last, changed = follow(directory, after, batch((INSERT, 4, 40)))
    assert rows_of(last) == rows_of(after) and changed == []
    assert [one.files for one in last.generations] == [one.files for one in after.generations]


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_deleted_and_added_again_unchanged_has_not_changed(directory: CacheDirectory, order: int) -> None:
    state, _ = follow(directory, None, batch((INSERT, 1, 10), (INSERT, 2, 20)))
    moved = [batch((DELETE, 1, None), (DELETE, 2, None)), batch((INSERT, 1, 10), (INSERT, 2, 22))][::order]
    after, changed = follow(directory, state, *moved)
    assert rows_of(after) == [(1, 10), (2, 22)] and changed == [20, 22]


def test_a_row_that_no_longer_matches_becomes_dead(directory: CacheDirectory) -> None:
    small = Compare("g", "<", 50)
    state, _ = follow(directory, None, batch((INSERT, 1, 10), (INSERT, 2, 60), (INSERT, 3, None)), predicate=small)
    assert rows_of(state) == [(1, 10)]
    after, changed = follow(directory, state, batch((INSERT, 1, 70), (INSERT, 2, 5)), predicate=small)
    assert rows_of(after) == [(2, 5)] and changed == [5, 10]


def test_too_many_changed_keys_are_not_reported(directory: CacheDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_change, "_MAX_KEY_BYTES", 20)
    assert follow(directory, None, batch((INSERT, 1, 1), (INSERT, 2, 2)))[1] == [1, 2]
    assert follow(directory, None, batch(*((INSERT, each, 1) for each in range(9))))[1] is None


def test_there_are_few_generations_and_none_is_more_than_half_dead(directory: CacheDirectory) -> None:
    chance = random.Random(5)
    model = dict.fromkeys(range(2000), 0)
    state, _ = follow(directory, None, batch(*((INSERT, *item) for item in model.items())))
    for at in range(1, 60):
        written = {chance.randrange(2500): at for _ in range(chance.choice([1, 10, 100]))}
        deleted = [each for each in chance.sample(sorted(model), 5) if each not in written]
        model.update(written)
        for each in deleted:
            del model[each]
        changes = [*((INSERT, *item) for item in written.items()), *((DELETE, each, None) for each in deleted)]
        state, _ = follow(directory, state, batch(*changes))
        assert rows_of(state) == sorted(model.items())
        assert len(state.generations) <= 5
        assert all(one.files.dead_rows <= one.files.rows // 2 for one in state.generations)
    assert len(directory.names()) <= 1 + 4 * len(state.generations), "files of older states are removed"


def test_a_cache_whose_rows_are_all_deleted_is_empty(directory: CacheDirectory) -> None:
    state, _ = follow(directory, None, batch((INSERT, 1, 10)))
    after, changed = follow(directory, state, batch((DELETE, 1, None)))
    assert after.generations == () and changed == [10]
    assert rows_of(follow(directory, after, batch((INSERT, 2, 20)))[0]) == [(2, 20)]


NAMES = ("k", "t", "g", "v")
#: Random histories of each kind of table; `make fuzz` runs others, and more.
SEEDS = seeds(1)
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def store_of(root: Path) -> TableStore:
    return TableStore.open(str(root / "d.db" / "t"))


def shown(table: Table) -> Rows:
    rows = (tuple(row.values()) for row in table.to_arrow(columns=list(NAMES)).to_pylist())
    return {row[:2]: row for row in rows}


def followed(rows: Rows, changes: Iterator[pa.RecordBatch], store: TableStore) -> tuple[Rows, int]:
    """Return the rows after the changes, and the number of changed keys."""
    reported = pa.Table.from_batches(changes, changes_schema([store.schema.field(name) for name in NAMES]))
    kept = reported.filter(pa.array(~is_retract(reported[VALUE_KIND]))).select(NAMES)
    added = [tuple(row.values()) for row in kept.to_pylist()]
    keys = {tuple(row.values()) for row in reported.select(["k", "t"]).to_pylist()}
    assert len({row[:2] for row in added}) == len(added), "a key has one added row"
    return {**{key: row for key, row in rows.items() if key not in keys}, **{row[:2]: row for row in added}}, len(keys)


@pytest.mark.property
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_changes_turn_each_snapshot_into_a_later_one(case: Case, tmp_path: Path) -> None:
    for seed in SEEDS:
        root = tmp_path / str(seed)
        history = History(case, root, seed)
        history.table.write(history.rows(30))
        store, states = store_of(root), []
        for _ in range(8):
            snapshot = store.snapshots.latest()
            assert snapshot is not None
            states.append((snapshot, shown(history.table)))
            history.step()
        after = store.snapshots.latest()
        assert after is not None
        wanted = shown(history.table)
        for before, rows in states:
            changes = changed_rows(store, before, after, NAMES)
            assert followed(rows, changes, store)[0] == wanted, f"seed {seed}, {before.id} to {after.id}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_changes_of_buckets_are_those_of_their_rows(case: Case, tmp_path: Path) -> None:
    history = History(case, tmp_path, 7)
    history.table.write(history.rows(30))
    store = store_of(tmp_path)
    before, rows = store.snapshots.latest(), shown(history.table)
    history.table.write(history.rows(20))
    after = store.snapshots.latest()
    assert before is not None and after is not None
    for only in ({0}, {1}, set(range(50))):
        rows, _ = followed(rows, changed_rows(store, before, after, NAMES, only), store)
    assert rows == shown(history.table)
    assert list(changed_rows(store, before, after, NAMES, set())) == []

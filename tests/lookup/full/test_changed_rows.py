"""What is told to have changed makes the rows of one snapshot those of a later one, however the table came there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.format.row_kinds import is_retract
from lakelsm.lookup.full.changed_rows import changed_rows, changes_schema
from lakelsm.schema.system_columns import VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from tests.chance import seeds
from tests.lookup.full.table_histories import CASES, Case, History

NAMES = ("k", "t", "g", "v")
#: Random histories of each kind of table; `make fuzz` has others, and more.
SEEDS = seeds(1)
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def store_of(root: Path) -> TableStore:
    return TableStore.open(str(root / "d.db" / "t"))


def shown(table: Table) -> Rows:
    rows = (tuple(row.values()) for row in table.to_arrow(columns=list(NAMES)).to_pylist())
    return {row[:2]: row for row in rows}


def followed(rows: Rows, changes: Iterator[pa.RecordBatch], store: TableStore) -> tuple[Rows, int]:
    """The rows after the changes, and how many keys these have."""
    told = pa.Table.from_batches(changes, changes_schema([store.schema.field(name) for name in NAMES]))
    kept = told.filter(pa.array(~is_retract(told[VALUE_KIND]))).select(NAMES)
    added = [tuple(row.values()) for row in kept.to_pylist()]
    keys = {tuple(row.values()) for row in told.select(["k", "t"]).to_pylist()}
    assert len({row[:2] for row in added}) == len(added), "a key comes with one row"
    return {**{key: row for key, row in rows.items() if key not in keys}, **{row[:2]: row for row in added}}, len(keys)


@pytest.mark.property
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_changes_lead_from_each_snapshot_to_a_later_one(case: Case, tmp_path: Path) -> None:
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

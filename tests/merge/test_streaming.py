"""A merge of one key range at a time gives the rows of a merge in memory, and needs little memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.streaming import key_ranges, merge_runs
from tests.merge.changes import FEW_VALUES, Shape, keys, shapes
from tests.oracle import Change, sort_key

Runs = list[list[Change]]


@st.composite
def sorted_runs(draw: st.DrawFn, shape: Shape) -> Runs:
    """Runs ordered from the oldest: each in key order, no key twice; sequence numbers of different runs may be equal."""
    runs: Runs = []
    at = 0
    for _ in range(draw(st.integers(0, 4))):
        chosen = draw(st.lists(keys(shape), max_size=12, unique_by=sort_key))
        run = []
        for key in sorted(chosen, key=sort_key):
            sequence = tuple(draw(st.sampled_from([*FEW_VALUES[name], None])) for name in shape.sequence)
            run.append(Change(key, draw(st.integers(0, 4)), draw(st.integers(0, 3)), sequence, at))
            at += 1
        runs.append(run)
    return runs


def cut(shape: Shape, run: Sequence[Change], sizes: Sequence[int]) -> Iterator[pa.Table]:
    """Return the run as tables of the given sizes (0: an empty table), and the rest as one."""
    start = 0
    for size in sizes:
        yield shape.table(run[start : start + size])
        start += size
    yield shape.table(run[start:])


@given(st.data())
def test_runs_merge_as_the_oracle_says_with_any_batches(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    runs = data.draw(sorted_runs(shape))
    drop_deletes = data.draw(st.booleans())
    sizes = data.draw(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=len(runs), max_size=len(runs)))
    opened = [cut(shape, run, size) for run, size in zip(runs, sizes)]
    every = [change for run in runs for change in run]
    wanted = shape.engine.rows(every) if drop_deletes else shape.engine.survivors(every)
    merged = [table.column("id").to_pylist() for table in merge_runs(opened, shape.spec, drop_deletes)]
    assert [row for part in merged for row in part] == [change.value for change in wanted]


@given(st.data())
def test_key_ranges_contain_every_row_once_and_are_consecutive(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    runs = data.draw(sorted_runs(shape))
    sizes = data.draw(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=len(runs), max_size=len(runs)))
    by_id = {change.value: change for run in runs for change in run}
    run_of = {change.value: number for number, run in enumerate(runs) for change in run}
    seen: list[int] = []
    reached: tuple[Any, ...] | None = None
    for rows, range_keys in key_ranges([cut(shape, run, size) for run, size in zip(runs, sizes)], shape.spec.key_columns):
        ids = rows.column("id").to_pylist()
        own = [sort_key(by_id[row].key) for row in ids]
        assert own, "a range has rows"
        assert reached is None or min(own) > reached
        reached = max(own)
        seen.extend(ids)
        assert [run_of[row] for row in ids] == sorted(run_of[row] for row in ids), "older runs come first"
        if range_keys is None:
            assert own == sorted(set(own))
            assert len({run_of[row] for row in ids}) == 1
        else:
            assert len(range_keys) == len(rows)
            order = np.argsort(range_keys, kind="stable").tolist()
            assert order == sorted(range(len(own)), key=lambda i: (own[i], i))
    assert sorted(seen) == sorted(by_id)


def test_runs_that_do_not_overlap_are_not_changed() -> None:
    shape = Shape(("INT",))
    low = shape.table([Change((i,), 0) for i in range(5)])
    high = shape.table([Change((i,), 0) for i in range(5, 9)])
    ranges = list(key_ranges([iter([high]), iter([low])], ("k0",)))
    assert [keys for _, keys in ranges] == [None, None]
    assert [len(rows) for rows, _ in ranges] == [5, 4]


class _Memory(bytearray):
    """Bytes that report when nothing refers to them any more."""


class TrackedRun:
    """A run whose tables are counted while anything refers to them."""

    def __init__(self, tables: int, rows: int, step: int, offset: int) -> None:
        self.alive = self.max_alive = 0
        self._tables, self._rows, self._step, self._offset = tables, rows, step, offset

    def __iter__(self) -> Iterator[pa.Table]:
        for number in range(self._tables):
            keys = (np.arange(number * self._rows, (number + 1) * self._rows) * self._step + self._offset).astype("i8")
            yield self._table(keys)

    def _table(self, keys: np.ndarray) -> pa.Table:
        memory = _Memory(keys.tobytes())
        self.alive += 1
        self.max_alive = max(self.max_alive, self.alive)
        weakref.finalize(memory, self._freed)
        column = pa.Array.from_buffers(pa.int64(), len(keys), [None, pa.py_buffer(memory)])
        kinds = pa.array(np.zeros(len(keys), dtype=np.int8))
        return pa.table({"k": column, "_SEQUENCE_NUMBER": pa.array(keys), "_VALUE_KIND": kinds})

    def _freed(self) -> None:
        self.alive -= 1


@pytest.mark.parametrize("runs", [1, 2, 3, 6])
def test_at_most_one_table_of_each_run_is_in_memory(runs: int) -> None:
    tracked = [TrackedRun(20, 10 + number, 1 + number % 3, number) for number in range(runs)]
    rows = 0
    ranges = key_ranges([iter(run) for run in tracked], ("k",))
    while True:
        item = next(ranges, None)
        if item is None:
            break
        rows += len(item[0])
        assert max(run.alive for run in tracked) <= 1
        del item
    assert rows == sum(20 * (10 + number) for number in range(runs))
    assert [run.max_alive for run in tracked] == [1] * runs


def test_a_merge_reads_ahead_only_as_its_rows_are_taken() -> None:
    """A long run against a short one: only one table is read ahead, not the run."""
    tracked = [TrackedRun(50, 10, 1, 0), TrackedRun(1, 10, 50, 0)]
    merged = merge_runs([iter(run) for run in tracked], MergeSpec(("k",)), drop_deletes=False)
    first = next(merged)
    assert len(first) <= 10
    assert sum(run.max_alive for run in tracked) <= 3

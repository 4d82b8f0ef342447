"""Rows are sorted by bucket and key, those of a key in input order, in memory and in scratch files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.local import row_sorter
from lakelsm.local.row_sorter import RowSorter
from lakelsm.local.scratch_runs import ScratchSpace
from lakelsm.schema.system_columns import SEQUENCE_NUMBER

Row = tuple[int, int, str | None]  # code, k, t
KINDS = {"k": pa.int64(), "t": pa.string(), SEQUENCE_NUMBER: pa.int64()}
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from([None, "", "a", "a\0", "éa", "x" * 60])))


def batch(rows: list[Row], start: int) -> pa.RecordBatch:
    columns = [[k for _, k, _ in rows], [t for _, _, t in rows], range(start, start + len(rows))]
    return pa.RecordBatch.from_arrays([pa.array(c, kind) for c, kind in zip(columns, KINDS.values())], names=list(KINDS))


def sorted_rows(batches: list[list[Row]], memory: int, keys: tuple[str, ...] = ("t", "k")) -> dict[int, list[Any]]:
    with ScratchSpace(pa.schema(KINDS.items()), 1 << 40) as scratch:
        sorter = RowSorter(keys, memory, scratch)
        start = 0
        for rows in batches:
            sorter.add(batch(rows, start), np.array([code for code, _, _ in rows], np.int32))
            start += len(rows)
        return {
            rows.code: [tuple(row.values()) for table in rows.tables() for row in table.to_pylist()]
            for rows in sorter.sorted()
        }


def expected(batches: list[list[Row]]) -> dict[int, list[Any]]:
    numbered = [(code, k, t, at) for at, (code, k, t) in enumerate(row for rows in batches for row in rows)]
    numbered.sort(key=lambda row: (row[0], row[2] is not None, (row[2] or "").encode(), row[1], row[3]))
    return {code: [row[1:] for row in numbered if row[0] == code] for code in Counter(row[0] for row in numbered)}


@settings(deadline=None)
@given(st.lists(ROWS.filter(bool), max_size=6), st.sampled_from([1, 100, 1 << 30]), st.sampled_from([1, 1 << 20]))
def test_rows_are_in_order_for_any_amount_of_memory(batches: list[list[Row]], memory: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_sorter, "_PIECE_BYTES", piece)
        patch.setattr(row_sorter, "_SCRATCH_BYTES", piece)
        assert sorted_rows(batches, memory) == expected(batches)


def test_more_runs_than_the_fan_in_are_merged_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sorter, "_FAN_IN", 3)
    batches: list[list[Row]] = [[(at % 2, (at * 7) % 5, "a"), (0, 1, None)] for at in range(20)]
    assert sorted_rows(batches, 1) == expected(batches)


def test_many_rows_of_a_key_in_several_runs_stay_in_input_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sorter, "_SCRATCH_BYTES", 100)
    batches: list[list[Row]] = [[(0, 1, "a")] * 50 for _ in range(6)]
    assert [row[2] for row in sorted_rows(batches, 1)[0]] == list(range(300))


def test_rows_in_memory_stay_within_the_limit() -> None:
    rows = pa.record_batch({"k": np.arange(10_000), SEQUENCE_NUMBER: np.arange(10_000)})
    with ScratchSpace(rows.schema, 1 << 30) as scratch:
        sorter = RowSorter(["k"], 4 * rows.nbytes, scratch)
        for _ in range(20):
            sorter.add(rows, np.zeros(len(rows), np.int32))
            assert sum(batch.nbytes for batch in sorter._batches) <= 2 * rows.nbytes
        (found,) = sorter.sorted()
        assert sum(map(len, found.tables())) == 200_000 and found.size == pytest.approx(20 * rows.nbytes, rel=0.1)

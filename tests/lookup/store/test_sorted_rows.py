"""Rows in the order of their keys are found without an index, and others with one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store import arrow_segment, sorted_rows
from lakelsm.lookup.store.arrow_segment import PlacedRows
from lakelsm.lookup.store.arrow_store import ArrowStore, ArrowStoreFormat
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.sorted_rows import NumberedBatches, SortedRows
from tests.lookup.store.keyed_tables import fields_of

_KEY = fields_of(["INT"])
_LAYOUT = StoreLayout(_KEY, (fields_of(["STRING"] * 2)[1],))


def _store(path: Path, keys: list[int | None], monkeypatch: pytest.MonkeyPatch) -> ArrowStore:
    monkeypatch.setattr(arrow_segment, "CHUNK_ROWS", 7)
    rows = pa.table({"k0": pa.array(keys, pa.int32()), "k1": [f"{key} at {at}" for at, key in enumerate(keys)]})
    ArrowStoreFormat().write(path, _LAYOUT, [rows])
    return ArrowStoreFormat().open(path, _LAYOUT)


def _probes(*keys: int) -> pa.Table:
    return pa.table({"k0": pa.array(keys, pa.int32())})


def test_keys_in_and_between_record_batches_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = list(range(-30, 90, 3))
    store = _store(tmp_path / "store", [*keys], monkeypatch)
    assert isinstance(store._rows, SortedRows)
    rng = np.random.default_rng(3)
    for asked in ([*range(-40, 100)], rng.integers(-40, 100, 500).tolist(), [87, -30, 87], [-31], [88], []):
        found = store.find(_probes(*asked))
        assert found.probes.tolist() == [at for at, key in enumerate(asked) if key in keys]
        expected = [f"{key} at {keys.index(key)}" for key in asked if key in keys]
        assert found.rows.column("k1").to_pylist() == expected
    for key in range(-40, 100):
        assert store.find_one((key,)) == ([(f"{key} at {keys.index(key)}",)] if key in keys else [])


@pytest.mark.parametrize("keys", [[1, 2, 9, 3], [*range(7), 6, *range(8, 20)], [None, 1, 2], [2, 2, 3]])
def test_rows_in_another_order_or_with_nulls_or_twice_get_an_index(
    keys: list[int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _store(tmp_path / "store", keys, monkeypatch)
    assert not isinstance(store._rows, SortedRows)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    for asked in {*keys} - {None}:
        expected = [f"{key} at {at}" for at, key in enumerate(keys) if key == asked]
        assert asked is not None and store.find(_probes(asked)).rows.column("k1").to_pylist() == expected


def test_answers_that_are_too_large_for_one_array_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _store(tmp_path / "store", [*range(50)], monkeypatch)
    take = PlacedRows.take

    def refusing(self: PlacedRows, names: list[str]) -> pa.Table:
        if len(self._local) > 4:
            raise pa.ArrowInvalid("offset overflow")
        return take(self, names)

    monkeypatch.setattr(sorted_rows.PlacedRows, "take", refusing)
    found = store.find(_probes(*range(49, -10, -1)))
    assert found.probes.tolist() == list(range(50))
    assert found.rows.column("k1").to_pylist() == [f"{key} at {key}" for key in range(49, -1, -1)]


def test_first_keys_of_other_record_batches_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _store(tmp_path / "store", [*range(20)], monkeypatch)._rows
    assert isinstance(rows, SortedRows)
    with pytest.raises(CorruptStoreError, match="first keys of 1 record batches"):
        SortedRows(rows.rows, rows._numbers, [0])


def test_record_batches_are_watched_until_they_do_not_ascend() -> None:
    batches = NumberedBatches("k")
    for first in (3, 9):
        batches.add(pa.record_batch({"k": [first, first + 1]}))
    assert batches.ascend and batches.firsts == [3, 9]
    batches.add(pa.record_batch({"k": [10]}))
    batches.add(pa.record_batch({"k": [11]}))
    assert not batches.ascend

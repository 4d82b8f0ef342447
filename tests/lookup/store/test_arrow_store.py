"""Columnar stores answer as a dict does, and report damage instead of returning wrong rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError, InvalidInputError
from lakelsm.lookup.store import arrow_segment
from lakelsm.lookup.store.arrow_store import ArrowStore, ArrowStoreFormat
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.types import DataField, parse_type

_LAYOUT = StoreLayout(
    (DataField(0, "id", parse_type("BIGINT NOT NULL")),),
    (DataField(1, "name", parse_type("STRING")), DataField(2, "tags", parse_type("ARRAY<INT>"))),
)
_ROWS = 300


def _rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": [3 * number for number in numbers],
            "name": [None if number % 7 == 0 else f"name {number}" for number in numbers],
            "tags": pa.array([[number, None] for number in numbers], pa.list_(pa.int32())),
        }
    )


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(arrow_segment, "CHUNK_ROWS", 50)
    ArrowStoreFormat().write(tmp_path / "store", _LAYOUT, (_rows(at, at + 30) for at in range(0, _ROWS, 30)))
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[ArrowStore]:
    store = ArrowStoreFormat().open(path, _LAYOUT)
    yield store
    store.close()


def _keys(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _find(store: ArrowStore, *ids: int) -> list[tuple[int, Any, Any]]:
    found = store.find(_keys(*ids))
    return [(probe, *row.values()) for probe, row in zip(found.probes.tolist(), found.rows.to_pylist(), strict=True)]


def test_keys_are_found_in_the_requested_order(store: ArrowStore) -> None:
    assert _find(store, 600, 1, 21, 600) == [
        (0, "name 200", [200, None]), (2, None, [7, None]), (3, "name 200", [200, None])
    ]  # fmt: skip
    assert store.find_plain((600,)) == [("name 200", [200, None])]
    assert store.find_plain((601,)) == []


def test_only_the_store_is_on_disk_while_it_is_written_and_after(tmp_path: Path) -> None:
    def rows() -> Iterator[pa.Table]:
        yield _rows(0, 10)
        assert os.listdir(tmp_path) == ["store"]

    ArrowStoreFormat().write(tmp_path / "store", _LAYOUT, rows())
    assert os.listdir(tmp_path) == ["store"]


def test_a_store_of_keys_alone_finds_rows_without_columns(tmp_path: Path) -> None:
    layout = StoreLayout(_LAYOUT.keys, ())
    ArrowStoreFormat().write(tmp_path / "store", layout, [_rows(0, 10)])
    found = ArrowStoreFormat().open(tmp_path / "store", layout).find(_keys(3, 4, 6))
    assert found.probes.tolist() == [0, 2] and found.rows.shape == (2, 0)


def test_a_store_truncated_while_open_is_not_read_beyond_its_end(path: Path, store: ArrowStore) -> None:
    found = store.find(_keys(600, 3))
    os.truncate(path, 0)
    for ask in (lambda: store.find(_keys(600)), lambda: store.find_plain((600,))):
        with pytest.raises(CorruptStoreError, match="it has 0 bytes instead of"):
            ask()
    assert found.rows.column("name").to_pylist() == ["name 200", "name 1"]  # The rows found earlier are copies.


def test_a_store_changed_while_open_is_checked_again(path: Path, store: ArrowStore) -> None:
    assert _find(store, 600)
    at = path.read_bytes().index(b"name 200")
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"mane")
    os.utime(path, ns=(1, 1))
    for ask in (lambda: store.find(_keys(600)), lambda: store.find_plain((600,))):
        with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
            ask()


def test_a_closed_store_answers_no_more(store: ArrowStore) -> None:
    store.close()
    with pytest.raises(InvalidInputError, match="is closed"):
        store.find(_keys(3))


def test_a_forked_process_searches_the_same_store(store: ArrowStore) -> None:
    ids = np.random.default_rng(1).integers(0, _ROWS, 1000)
    expected = [None if number % 7 == 0 else f"name {number}" for number in ids.tolist()]
    assert store.find(_keys(*(3 * ids).tolist())).rows.column("name").to_pylist() == expected
    child = os.fork()
    if not child:
        os._exit(0 if store.find_plain((600,)) == [("name 200", [200, None])] else 1)
    assert os.waitpid(child, 0)[1] == 0

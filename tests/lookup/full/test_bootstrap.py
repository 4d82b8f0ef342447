"""A cache is loaded with the merged rows of a snapshot that match, in shares of about the same size."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.bootstrap import Bootstrap
from lakelsm.lookup.full.generation import CacheLayout
from lakelsm.predicate.predicate import Compare
from lakelsm.snapshots.table_store import TableStore
from tests.compact.local_table import LocalTable


def layout_of(store: TableStore) -> CacheLayout:
    key, value = store.schema.fields
    return CacheLayout((key, value), ((key,), (value,)))


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t", bucket="5", **{"lookup.bootstrap-parallelism": "3"})
    made.write(*((key, f"v{key % 7}") for key in range(100)))
    made.write(*((key, "new") for key in range(10)))
    made.delete((99, "gone"))
    return made


def test_the_merged_rows_are_loaded_in_as_many_segments_as_asked_for(table: LocalTable, tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "cache")
    loaded = Bootstrap(table.store, layout_of(table.store), directory).load(table.latest, "full-a")
    assert loaded is not None and len(loaded.files.segments) == 3
    found = sorted(tuple(row.values()) for rows in loaded.live() for row in rows.to_pylist())
    assert found == table.rows() and sorted(directory.names()) == sorted(loaded.files.names)
    again = Bootstrap(table.store, layout_of(table.store), directory).load(table.latest, "full-b")
    assert again is not None and list(again.live()) == list(loaded.live()), "the same read gives the same order"


def test_rows_of_a_condition_and_of_buckets(table: LocalTable, tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "cache")
    store = table.store
    small = Bootstrap(store, layout_of(store), directory, predicate=Compare("v", "=", "new")).load(table.latest, "full-a")
    assert small is not None and small.files.rows == 10
    parts = [
        Bootstrap(store, layout_of(store), directory, buckets={bucket}).load(table.latest, f"full-{bucket}")
        for bucket in range(5)
    ]
    assert sum(part.files.rows for part in parts if part is not None) == 99
    assert Bootstrap(store, layout_of(store), directory, buckets={7}).load(table.latest, "full-x") is None
    none = Bootstrap(store, layout_of(store), directory, predicate=Compare("v", "=", "?")).load(table.latest, "full-y")
    assert none is None

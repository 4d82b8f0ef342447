"""The caches of a server: one a schema, as wide as was asked for, closed when nobody uses them any more."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import LookupServiceError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.service.served_table import ServedTable
from lakelsm.schema_changes import AddColumn
from tests.compact.local_table import LocalTable
from tests.lookup.service.whole_table import WholeTable
from tests.processes import PATIENCE

KEYS = pa.table({"id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, a INT, b INT")
    table.write((1, 10, 100), (2, 20, 200))
    return table


class Opened:
    """Remembers the caches that it opened."""

    def __init__(self, kind: type[WholeTable] = WholeTable) -> None:
        self.kind = kind
        self.caches: list[WholeTable] = []

    def __call__(self, spec: LookupSpec) -> WholeTable:
        self.caches.append(self.kind(spec))
        return self.caches[-1]


def test_a_cache_has_the_columns_asked_for_so_far_and_gives_way_to_a_wider_one(table: LocalTable) -> None:
    opened = Opened()
    served = ServedTable(table.store, opened)
    for columns in (("a",), ("a",), ("b",), ("a", "b"), ("b", "a")):
        found, snapshot = served.find(0, columns, KEYS)
        assert found.rows.column_names == list(columns)
        assert snapshot == table.latest
    assert [cache.spec.columns for cache in opened.caches] == [("a",), ("a", "b")]
    assert [cache.closed for cache in opened.caches] == [True, False]
    served.close()
    assert opened.caches[-1].closed
    with pytest.raises(LookupServiceError, match="has ended"):
        served.find(0, ("a",), KEYS)


def test_the_schema_not_asked_for_longest_goes_first(table: LocalTable) -> None:
    opened = Opened()
    served = ServedTable(table.store, opened)
    for number in range(5):
        table.alter(AddColumn(f"c{number}", "INT"))
    for schema in (0, 1, 2, 3, 0, 4):
        served.find(schema, ("a",), KEYS)
    assert [cache.closed for cache in opened.caches] == [False, True, False, False, False]


def test_a_cache_in_use_is_closed_after_its_last_lookup(table: LocalTable) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Slow(WholeTable):
        def find(self, keys: pa.Table) -> object:  # type: ignore[override]
            entered.set()
            assert go_on.wait(PATIENCE)
            return super().find(keys)

    opened = Opened(Slow)
    served = ServedTable(table.store, opened)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(served.find, 0, ("a",), KEYS)
        assert entered.wait(PATIENCE)
        served.snapshot(0, ("a", "b"), refreshed=False)
        served.close()
        assert not opened.caches[0].closed
        assert opened.caches[1].closed
        go_on.set()
        assert looking.result()[0].rows.num_rows == 2
    assert opened.caches[0].closed


def test_a_refresh_reaches_every_cache(table: LocalTable) -> None:
    served = ServedTable(table.store, Opened())
    table.alter(AddColumn("c", "INT"))
    for schema in (0, 1):
        served.find(schema, ("a",), KEYS)
    table.write((1, 11, 111, 1))
    served.refresh()
    for schema in (0, 1):
        assert served.snapshot(schema, ("a",), refreshed=False) == table.latest

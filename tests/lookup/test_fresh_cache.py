"""Caches that move to newer snapshots: when, and what lookups see during a refresh."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import Environment
from lakelsm.errors import InvalidInputError, StorageError
from lakelsm.lookup.fresh_cache import FreshCache, RowCache
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from lakelsm.schema_changes import AddColumn, RenameColumn
from lakelsm.types import DataField, parse_type
from tests.lookup.scanned_cache import Opened, ScannedCache
from tests.processes import PATIENCE

PERIOD = (0, 10_000)


class Clock:
    """A clock in seconds that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def environment(self) -> Environment:
        return Environment(
            monotonic=lambda: self.now, clock=lambda: int(self.now * 1000), local_offset=lambda _: 0
        )


class World:
    """A table of keys and texts, and lookups of it."""

    def __init__(self, folder: Path) -> None:
        self.catalog = Catalog(str(folder))
        self.table: Table = self.catalog.create_table(
            "db.t", "p STRING, k INT, v STRING", primary_key=["p", "k"], partition_by=["p"], options={"bucket": 1}
        )
        self.clock, self.opened = Clock(), Opened()
        self.fresh: list[FreshCache] = []
        self.write("a", 1, "old")

    def write(self, p: str, k: int, v: str) -> None:
        self.table.write(pa.table({"p": [p], "k": pa.array([k], pa.int32()), "v": [v]}))

    def lookup(self, request: dict[str, Any] | None = None, **policy: Any) -> FreshCache:
        definition = LookupDefinition(**{"options": {}, "columns": ("v",), **(request or {})})
        kept = RefreshPolicy(**{"interval": 10.0, **policy})
        self.fresh.append(
            FreshCache(self.table._store(), definition, kept, self.opened, environment=self.clock.environment())
        )
        return self.fresh[-1]

    @property
    def cache(self) -> ScannedCache:
        return self.opened.caches[-1]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    yield found
    for fresh in found.fresh:
        fresh.close()


def value(fresh: FreshCache, *key: Any) -> list[str]:
    with fresh.current() as opened:
        return [row[0] for row in opened.find_key(key or ("a", 1))]


def test_a_newer_snapshot_is_looked_for_once_each_interval(world: World) -> None:
    fresh = world.lookup()
    world.write("a", 1, "new")
    world.clock.now += 9.9
    assert value(fresh) == ["old"]
    world.clock.now += 0.1
    assert value(fresh) == ["new"]
    assert (world.cache.refreshes, fresh.seconds_since_look) == (1, 0.0)


def test_with_interval_0_each_lookup_checks_for_a_snapshot_and_with_none_no_lookup_does(world: World) -> None:
    always, never = world.lookup(interval=0.0), world.lookup(interval=None)
    world.write("a", 1, "new")
    world.clock.now += 1e9
    assert (value(always), value(never)) == (["new"], ["old"])
    never.refresh()
    assert value(never) == ["new"]


def test_in_quiet_periods_only_an_explicit_refresh_refreshes(world: World) -> None:
    world.clock.now = 5.0
    fresh = world.lookup(interval=1.0, quiet=(PERIOD,))
    world.write("a", 1, "new")
    world.clock.now = 10.0
    assert value(fresh) == ["old"]
    fresh.refresh()
    assert value(fresh) == ["new"]
    world.write("a", 1, "newer")
    world.clock.now = 10.5
    assert value(fresh) == ["new"]
    world.clock.now = 11.1
    assert value(fresh) == ["newer"]


def test_a_failed_refresh_is_raised_once_and_retried_after_the_interval(world: World) -> None:
    fresh = world.lookup()
    world.write("a", 1, "new")
    world.cache.failure = StorageError("full")
    world.clock.now += 10
    with pytest.raises(StorageError, match="full"):
        value(fresh)
    assert value(fresh) == ["old"]
    world.cache.failure = None
    world.clock.now += 10
    assert value(fresh) == ["new"]


def test_cached_rows_of_changed_keys_are_dropped_and_others_stay(world: World) -> None:
    world.write("a", 2, "other")
    fresh = world.lookup()
    assert (value(fresh), value(fresh, "a", 2), value(fresh, "a", 3)) == (["old"], ["other"], [])
    world.write("a", 1, "new")
    world.cache.changed = pa.table({"p": ["a"], "k": pa.array([1], pa.int32())})
    fresh.refresh()
    before = world.cache.lookups
    assert (value(fresh), value(fresh, "a", 2), value(fresh, "a", 3)) == (["new"], ["other"], [])
    assert world.cache.lookups == before + 1


class Held(ScannedCache):
    """A cache whose refresh waits for the test."""

    def __init__(self, spec: Any) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        super().__init__(spec)

    def refresh(self) -> Any:
        self.begun.set()
        assert self.go.wait(PATIENCE)
        return super().refresh()


@pytest.fixture
def held(world: World) -> World:
    world.opened.kind = Held
    return world


def wait_for_refresh(fresh: FreshCache) -> None:
    thread = fresh._background
    assert thread is not None
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_in_the_background_lookups_answer_from_the_snapshot_before(held: World) -> None:
    fresh = held.lookup(in_background=True, max_pending=5)
    held.write("a", 1, "new")
    held.clock.now += 10
    assert value(fresh) == ["old"]
    assert held.cache.begun.wait(PATIENCE)  # type: ignore[attr-defined]
    assert value(fresh) == ["old"]
    held.cache.go.set()  # type: ignore[attr-defined]
    wait_for_refresh(fresh)
    assert value(fresh) == ["new"]
    assert held.cache.refreshes == 1


def test_in_the_background_lookups_wait_when_too_many_snapshots_are_pending(world: World) -> None:
    fresh = world.lookup(in_background=True, max_pending=1)
    world.write("a", 1, "new")
    world.write("a", 1, "newer")
    world.clock.now += 10
    assert value(fresh) == ["newer"]
    assert fresh._background is None


def test_a_background_failure_is_raised_once_by_the_next_lookup(world: World) -> None:
    fresh = world.lookup(in_background=True, max_pending=5)
    world.cache.failure = StorageError("full")
    world.write("a", 1, "new")
    world.clock.now += 10
    assert value(fresh) == ["old"]
    wait_for_refresh(fresh)
    with pytest.raises(StorageError, match="The background refresh failed: full"):
        value(fresh)
    world.cache.failure = None
    assert value(fresh) == ["old"]
    world.clock.now += 10
    value(fresh)
    wait_for_refresh(fresh)
    assert value(fresh) == ["new"]


def test_opening_effective_refreshes_and_background_failures_are_logged_without_secrets(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "lakelsm")
    fresh = world.lookup(in_background=True, max_pending=5)
    fresh.refresh()
    world.write("a", 2, "new")
    fresh.refresh()
    lines = [(record.name, record.levelname, record.message) for record in caplog.records if ".lookup." in record.name]
    assert lines == [
        ("lakelsm.lookup.cache", "INFO", f"Table db.t: {text}, seconds 0.0)")
        for text in (
            "a lookup was opened (cache full, snapshot 1, rows 1",
            "a lookup was refreshed from snapshot 1 (cache full, snapshot 2, rows 2",
        )
    ]
    fields = vars(caplog.records[-1])
    assert [fields[name] for name in ("operation", "cache", "rows", "seconds")] == ["refresh lookup", "full", 2, 0.0]
    caplog.clear()
    world.cache.failure = StorageError("the call with token=abc123 to https://u:abc123@store/x failed")
    world.clock.now += 10
    value(fresh)
    wait_for_refresh(fresh)
    (line,) = [record for record in caplog.records if record.name == "lakelsm.lookup.fresh_cache"]
    assert line.levelname == "WARNING"
    assert line.message == "Table db.t: the background refresh of a lookup failed: the call with token= …"


def test_closing_waits_for_a_background_refresh(held: World) -> None:
    fresh = held.lookup(in_background=True, max_pending=5)
    held.clock.now += 10
    value(fresh)
    assert held.cache.begun.wait(PATIENCE)  # type: ignore[attr-defined]
    closing = threading.Thread(target=fresh.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    assert not held.cache.closed
    held.cache.go.set()  # type: ignore[attr-defined]
    closing.join(PATIENCE)
    assert held.cache.closed
    with pytest.raises(InvalidInputError, match=r"Table db.t: the lookup is closed. Open another one"):
        value(fresh)
    fresh.close()


def test_closing_waits_for_running_lookups(world: World) -> None:
    fresh = world.lookup()
    with fresh.current() as opened:
        fresh.close()
        assert opened.find_key(("a", 1)) == [("old",)]
        assert not world.cache.closed
    assert world.cache.closed


def test_many_threads_see_old_or_new_rows_and_one_of_them_refreshes(world: World) -> None:
    fresh = world.lookup()
    world.write("a", 1, "new")
    world.clock.now += 10
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.extend(value(fresh))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert (set(seen) <= {"old", "new"}, len(seen), world.cache.refreshes) == (True, 8, 1)
    assert value(fresh) == ["new"]


def test_the_greatest_partition_is_looked_for_once_each_partition_interval(world: World) -> None:
    request = {"options": {"scan.partitions": "max_pt()"}}
    fresh = world.lookup(request, interval=1.0, partition_interval=60.0)
    assert value(fresh, 1) == ["old"]
    world.write("b", 1, "of b")
    world.write("a", 1, "new")
    world.clock.now += 1
    assert value(fresh, 1) == ["new"]
    world.clock.now += 60
    assert value(fresh, 1) == ["of b"]
    assert [cache.closed for cache in world.opened.caches] == [True, False]
    with fresh.current() as opened:
        found = opened.find(pa.table({"k": pa.array([2, 1], pa.int32())}))
    assert (found.probes.tolist(), found.rows.to_pydict()) == ([1], {"v": ["of b"]})
    world.write("c", 1, "of c")
    fresh.refresh()
    assert value(fresh, 1) == ["of c"]


def test_a_key_without_its_partition_has_the_rows_of_all_chosen_ones(world: World) -> None:
    world.write("b", 1, "of b")
    world.write("b", 2, "b2")
    fresh = world.lookup({"options": {"scan.partitions": "max_two_pt()"}})
    assert value(fresh, 1) == ["of b", "old"]
    with fresh.current() as opened:
        found = opened.find(pa.table({"k": pa.array([2, 3, 1], pa.int32())}))
    assert (found.probes.tolist(), found.rows.to_pydict()) == ([0, 2, 2], {"v": ["b2", "of b", "old"]})


def test_without_a_chosen_partition_nothing_is_found(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.table.overwrite(world.table.to_arrow().slice(0, 0), partition={"p": "a"})
    fresh = world.lookup({"options": {"scan.partitions": "max_pt()"}})
    assert value(fresh, 1) == []
    with fresh.current() as opened:
        found = opened.find(pa.table({"k": pa.array([1], pa.int32())}))
    assert (len(found.probes), found.rows.column_names) == (0, ["v"])
    fresh.close()


def test_the_cache_is_replaced_if_its_columns_have_changed(world: World) -> None:
    fresh = world.lookup({"columns": None})
    world.catalog.alter_table("db.t", AddColumn("w", parse_type("INT")))
    world.clock.now += 10
    with fresh.current() as opened:
        assert opened.find_key(("a", 1)) == [("a", 1, "old", None)]
    assert [cache.closed for cache in world.opened.caches] == [True, False]


def test_a_dropped_column_is_an_error_and_the_older_rows_stay(world: World) -> None:
    fresh = world.lookup()
    world.catalog.alter_table("db.t", RenameColumn("v", "w"))
    world.clock.now += 10
    with pytest.raises(InvalidInputError, match=r"Table db.t: .*'v'"):
        value(fresh)
    assert value(fresh) == ["old"]


FIELDS = (DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "t", parse_type("STRING NOT NULL")))


def cache(most: int = 10) -> RowCache:
    return RowCache(FIELDS, most)


def keys(*rows: tuple[int, str]) -> pa.Table:
    numbers, texts = zip(*rows)
    return pa.table({"k": pa.array(numbers, pa.int32()), "t": texts})


def test_the_least_recently_used_key_is_dropped_and_misses_count() -> None:
    kept = cache(3)
    for number in range(3):
        kept.put((number, "a"), [(number,)] if number else [], kept.era)
    assert kept.get((0, "a")) == []
    kept.put((3, "a"), [(3,)], kept.era)
    assert [kept.get((number, "a")) for number in range(4)] == [[], None, [(2,)], [(3,)]]


def test_the_limit_counts_rows_not_keys() -> None:
    kept = cache(3)
    kept.put((1, "a"), [(1,), (2,)], kept.era)
    kept.put((2, "a"), [(1,), (2,)], kept.era)
    kept.put((3, "a"), [(1,)] * 4, kept.era)
    assert [kept.get((number, "a")) for number in range(1, 4)] == [None, [(1,), (2,)], None]


def test_exactly_the_changed_keys_are_dropped() -> None:
    kept = cache(1000)
    for number in range(100):
        kept.put((number, "é"), [(number,)], kept.era)
    kept.drop(keys((7, "é"), (8, "x"), (99, "é"), (1000, "é")))
    assert [number for number in range(100) if kept.get((number, "é")) is None] == [7, 99]
    kept.drop(keys((1, "é")).slice(1))
    assert kept.get((1, "é")) == [(1,)]


def test_equal_keys_with_other_bits_are_dropped() -> None:
    kept = RowCache([DataField(0, "x", parse_type("FLOAT"))], 10)
    for number in (0.0, 1.5):
        kept.put((number,), [("old",)], kept.era)
    kept.drop(pa.table({"x": pa.array([-0.0], pa.float32())}))
    assert (kept.get((0.0,)), kept.get((1.5,))) == (None, [("old",)])


def test_all_keys_are_dropped_if_any_may_have_changed() -> None:
    for changed in (None, keys((5, "b")).select(["k"])):
        kept = cache()
        kept.put((1, "a"), [(1,)], kept.era)
        kept.drop(changed)
        assert kept.get((1, "a")) is None


def test_rows_of_a_search_before_a_refresh_are_not_cached() -> None:
    kept = cache()
    era = kept.era
    kept.drop(keys((5, "b")))
    kept.put((1, "a"), [(1,)], era)
    assert kept.get((1, "a")) is None


def test_without_room_no_rows_are_cached() -> None:
    kept = cache(0)
    kept.put((1, "a"), [], kept.era)
    assert kept.get((1, "a")) is None

"""ExecutorLookups: the lookups that a process keeps, their freshness, and the location of their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakelsm.environment import SYSTEM
from lakelsm.errors import StorageError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.join.executor_lookups import ExecutorLookups, SharedLookup
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from tests.compact.local_table import LocalTable
from tests.lookup.scanned_cache import Opened, ScannedCache


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t")
    made.write((1, "one"))
    return made


@pytest.fixture
def clock() -> SimpleNamespace:
    return SimpleNamespace(seconds=100.0)


@pytest.fixture
def lookups(clock: SimpleNamespace) -> Iterator[ExecutorLookups]:
    made = ExecutorLookups(replace(SYSTEM, monotonic=lambda: clock.seconds))
    yield made
    made.close()


def lookup_of(table: LocalTable, opened: Opened, *columns: str, **options: str) -> SharedLookup:
    definition = LookupDefinition(columns or ("v",), key=("id",), options=options)
    return SharedLookup(table.store, definition, RefreshPolicy(interval=10.0), opens=opened)


def test_a_lookup_is_opened_once_and_refreshed_after_its_interval(
    table: LocalTable, clock: SimpleNamespace, lookups: ExecutorLookups
) -> None:
    opened = Opened()
    for seconds, refreshes in ((0.0, 0), (9.9, 0), (0.2, 1), (5.0, 1), (5.0, 2)):
        clock.seconds += seconds
        with lookups.current(lookup_of(table, opened)) as found:
            assert found.cache is opened.caches[0]
        assert [cache.refreshes for cache in opened.caches] == [refreshes]


def test_an_unused_lookup_is_closed(
    table: LocalTable, clock: SimpleNamespace, lookups: ExecutorLookups
) -> None:
    opened = Opened()
    for columns in (("v",), ("id", "v")):
        with lookups.current(lookup_of(table, opened, *columns)):
            clock.seconds += 3601
    assert [cache.closed for cache in opened.caches] == [True, False]
    lookups.close()
    assert [cache.closed for cache in opened.caches] == [True, True]


def test_files_are_in_the_directory_of_the_executor(
    table: LocalTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'blocks'},{tmp_path / 'more'}")
    opened = Opened()
    for process in (ExecutorLookups(), ExecutorLookups()):
        with process.current(lookup_of(table, opened)):
            pass
        process.close()
    assert opened.directories == [tmp_path / "blocks" / "lakelsm-lookup"] * 2


def test_outside_an_executor_files_are_private(
    table: LocalTable, lookups: ExecutorLookups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    opened = Opened()
    with lookups.current(lookup_of(table, opened)):
        assert opened.directories == [None]


def test_lookups_share_a_cache_only_if_they_are_equal(table: LocalTable) -> None:
    opened = Opened()
    lookup = lookup_of(table, opened)
    others = [
        lookup_of(table, opened, "id", "v"),
        lookup_of(table, opened, **{"lookup.cache": "full"}),
        replace(lookup, buckets=frozenset([0])),
        replace(lookup, buckets=frozenset([0, 1])),
        replace(lookup, definition=replace(lookup.definition, key=("v",))),
        replace(lookup, definition=replace(lookup.definition, where="v = 'x'")),
    ]
    assert len({each.name for each in (lookup, *others)}) == len(others) + 1
    assert lookup_of(table, Opened()).name == lookup.name


def test_a_lookup_that_cannot_be_opened_is_logged_without_secrets(
    table: LocalTable, lookups: ExecutorLookups, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(spec: LookupSpec, shared: Path | None) -> ScannedCache:
        raise StorageError("GET https://store/x?sig=abc123 failed")

    with pytest.raises(StorageError), lookups.current(replace(lookup_of(table, Opened()), opens=refused)):
        pass
    with pytest.raises(StorageError), lookups.current(lookup_of(table, Opened())):
        raise StorageError("its rows: token=abc123")
    logged = [record.message for record in caplog.records if record.name == "lakelsm.lookup.join.executor_lookups"]
    assert [line.split("a lookup in an executor failed: ")[1] for line in logged] == [
        "GET https://store/x?sig=…",
        "its rows: token= …",
    ]

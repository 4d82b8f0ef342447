"""ExecutorLookups: which lookups a process keeps, how fresh they are, and where their files lie."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.lookup.executor_lookups import ExecutorLookups, cache_name
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.surroundings import SYSTEM
from tests.compact.local_table import LocalTable
from tests.lookup.read_lookup import ReadLookup


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t")
    made.write((1, "one"))
    return made


def spec_of(table: LocalTable, **options: str) -> LookupSpec:
    return LookupSpec(LocalTable(table.root).store.with_options(options), ("id",), ("v",))


def test_a_lookup_is_refreshed_when_its_interval_is_over(table: LocalTable) -> None:
    clock = Clock()
    lookups = ExecutorLookups(replace(SYSTEM, monotonic=clock))
    spec = spec_of(table)
    found = lookups.fresh(spec, ReadLookup)
    assert isinstance(found, ReadLookup)
    for seconds, refreshes in ((9.9, 0), (0.2, 1), (5.0, 1), (5.0, 2)):
        clock.seconds += seconds
        assert lookups.fresh(spec, ReadLookup) is found
        assert found.refreshes == refreshes


def test_a_lookup_that_is_not_used_any_more_is_closed(table: LocalTable) -> None:
    clock = Clock()
    lookups = ExecutorLookups(replace(SYSTEM, monotonic=clock))
    first = lookups.fresh(spec_of(table), ReadLookup)
    clock.seconds += 3601
    second = lookups.fresh(replace(spec_of(table), columns=("id",)), ReadLookup)
    assert isinstance(first, ReadLookup) and isinstance(second, ReadLookup)
    assert (first.closed, second.closed) == (True, False)
    lookups.close()
    assert second.closed


def test_files_lie_in_the_directory_of_the_executor(
    table: LocalTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'blocks'},{tmp_path / 'more'}")
    spec = spec_of(table)
    found = [ExecutorLookups().fresh(spec, ReadLookup) for _ in range(2)]
    places = {lookup.directory.path for lookup in found if isinstance(lookup, ReadLookup)}
    assert places == {tmp_path / "blocks" / "lakelsm-lookup" / cache_name(spec)}


def test_a_process_that_is_no_executor_has_a_directory_of_its_own(
    table: LocalTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    found = ExecutorLookups().fresh(spec_of(table), ReadLookup)
    assert isinstance(found, ReadLookup)
    assert os.path.isdir(found.directory.path)
    found.directory.close()
    assert not os.path.exists(found.directory.path)


def test_specs_share_a_cache_only_where_one_answers_both(table: LocalTable) -> None:
    spec = spec_of(table)
    others = [
        replace(spec, columns=("id", "v")),
        replace(spec, key=("v",)),
        replace(spec, buckets=frozenset([0])),
        replace(spec, buckets=frozenset([0, 1])),
        spec_of(table, **{"source.split.target-size": "1mb"}),
    ]
    names = [cache_name(each) for each in (spec, *others)]
    assert len(set(names)) == len(names)
    assert cache_name(spec_of(table)) == names[0]

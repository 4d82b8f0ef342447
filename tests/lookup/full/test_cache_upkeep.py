"""A cache follows its table if the history continues from its snapshot; else it is loaded again and says why."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import StorageError
from lakelsm.lookup.cache import LookupSpec, Refreshed
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full import cache_upkeep, state_change
from lakelsm.lookup.full.cache_state import STATE, CacheContents, CacheState
from lakelsm.lookup.full.cache_upkeep import CacheUpkeep, load_snapshot
from lakelsm.lookup.full.generation import CacheLayout, Generation
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import SetOption
from tests.compact.local_table import LocalTable


class Cache:
    """The upkeep of one cache of a table, with its state."""

    def __init__(self, table: LocalTable, path: Path) -> None:
        self.table = table
        self.spec = LookupSpec(table.store, ("id",), ("id", "v"))
        self.directory = CacheDirectory.shared(path)
        self.state: CacheState | None = None

    @property
    def upkeep(self) -> CacheUpkeep:
        spec = self.spec.on_newest_schema()
        return CacheUpkeep(spec, self.directory, CacheContents.of(spec))

    def refresh(self) -> Refreshed:
        with self.directory.lock():
            self.state, refreshed = self.upkeep.refreshed(self.state)
        assert refreshed.snapshot == self.state.snapshot == self.table.store.snapshots.latest()
        assert self.rows() == (self.table.rows() if refreshed.snapshot is not None else [])
        return refreshed

    def rows(self) -> list[tuple[Any, ...]]:
        assert self.state is not None
        tables = [rows for generation in self.state.generations for rows in generation.live()]
        return sorted(tuple(row.values()) for rows in tables for row in rows.to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    return LocalTable(tmp_path / "t")


@pytest.fixture
def cache(table: LocalTable, tmp_path: Path) -> Cache:
    return Cache(table, tmp_path / "cache")


def remove_snapshots(table: LocalTable, *ids: int) -> None:
    for number in ids:
        (table.root / "snapshot" / f"snapshot-{number}").unlink()
    for hint in ("LATEST", "EARLIEST"):
        (table.root / "snapshot" / hint).unlink(missing_ok=True)


def keys(refreshed: Refreshed) -> list[int] | None:
    return None if refreshed.changed is None else sorted(refreshed.changed["id"].to_pylist())


def test_a_cache_of_an_empty_table_follows_it_from_its_first_snapshot(cache: Cache, table: LocalTable) -> None:
    assert cache.refresh() == Refreshed(None, changed=None)
    assert keys(cache.refresh()) == []
    table.write((1, "a"))
    assert cache.refresh().rebuilt is None
    table.write((2, "b"), (1, "a"))
    assert keys(cache.refresh()) == [2]
    assert keys(cache.refresh()) == []


def test_another_cache_of_the_directory_opens_the_state_of_the_first_one(
    cache: Cache, table: LocalTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write((1, "a"))
    cache.refresh()
    other = Cache(table, cache.directory.path)
    table.write((2, "b"))
    monkeypatch.setattr(cache_upkeep, "load_snapshot", None)
    assert other.refresh().rebuilt is None
    assert keys(other.refresh()) == []
    table.write((3, "c"))
    assert keys(other.refresh()) == [3]
    taken = cache.refresh()
    assert taken.rebuilt is None and keys(taken) is None, "changes by the other cache are unknown"
    assert cache.state is not None and other.state is not None and cache.state.name == other.state.name


def test_a_table_that_was_rolled_back_is_loaded_again(cache: Cache, table: LocalTable) -> None:
    for at in range(3):
        table.write((at, "a"))
    cache.refresh()
    remove_snapshots(table, 3)
    assert cache.refresh().rebuilt == "the table was rolled back from snapshot 3 to snapshot 2, or created again"
    remove_snapshots(table, 2)
    table.write((7, "other"))
    assert cache.refresh().rebuilt == "snapshot 2 was replaced: the table was rolled back, or created again"
    table.write((8, "x"))
    assert keys(cache.refresh()) == [8]
    remove_snapshots(table, 1, 2, 3)
    assert cache.refresh().rebuilt == "the table was rolled back from snapshot 3 to no snapshot, or created again"


def test_an_expired_snapshot_is_the_reason_of_a_reload(cache: Cache, table: LocalTable) -> None:
    table.write((1, "a"))
    table.write((2, "b"))
    cache.refresh()
    table.write((3, "c"))
    remove_snapshots(table, 1, 2)
    assert cache.refresh().rebuilt == "snapshot 2 expired before its changes were read"


def test_a_snapshot_that_expires_during_the_comparison_is_the_reason_of_a_reload(
    cache: Cache, table: LocalTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write((1, "a"))
    cache.refresh()
    table.overwrite((2, "b"))
    plan = state_change.plan_difference

    def expiring(*given: Any) -> Any:
        planned = plan(*given)
        first = table.store.snapshots.get(1)
        remove_snapshots(table, 1)
        (table.root / "manifest" / first.delta_manifest_list).unlink()
        for unit in planned.compared:
            for file, was in zip(unit.unit.files, unit.before):
                if was:
                    Path(file.path).unlink()
        return planned

    monkeypatch.setattr(state_change, "plan_difference", expiring)
    assert cache.refresh().rebuilt == "snapshot 1 expired during the comparison"


def test_a_cache_follows_an_overwrite(cache: Cache, table: LocalTable) -> None:
    table.write((1, "a"), (2, "b"), (3, "c"))
    cache.refresh()
    table.overwrite((2, "b"), (4, "d"))
    refreshed = cache.refresh()
    assert refreshed.rebuilt is None and keys(refreshed) == [1, 3, 4]


def test_a_cache_too_far_behind_is_loaded_again(cache: Cache, table: LocalTable) -> None:
    table.alter(SetOption("lookup.refresh.full-load-threshold", "2"))
    table.write((1, "a"))
    cache.refresh()
    table.write((2, "a"))
    table.write((3, "a"))
    assert keys(cache.refresh()) == [2, 3]
    for at in range(3):
        table.write((at, "b"))
    reported = cache.refresh().rebuilt
    assert reported == "it was 3 snapshots behind, more than 'lookup.refresh.full-load-threshold' (2)"


def test_options_that_may_change_rows_load_the_cache_again(cache: Cache, table: LocalTable) -> None:
    table.write((1, "a"))
    cache.refresh()
    table.alter(SetOption("ignore-delete", "true"))
    assert cache.refresh().rebuilt == "it has other columns, conditions or options"
    assert keys(cache.refresh()) == []


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("part", ["rows", "index", STATE])
def test_a_state_that_another_process_finds_damaged_is_loaded_again(
    cache: Cache, table: LocalTable, damage: str, part: str
) -> None:
    table.write(*((each, "a") for each in range(50)))
    cache.refresh()
    (name,) = [name for name in cache.directory.names() if name.endswith(part)]
    path = cache.directory.file(name)
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else data[:-9] + b"!" + data[-8:])
    other = Cache(table, cache.directory.path)
    if part == STATE and damage == "gone":
        other.refresh()
        return
    with pytest.warns(UserWarning, match=f"the cache of a lookup is loaded again.*{name}"):
        other.refresh()
    assert other.refresh().rebuilt is None


def test_a_full_disk_leaves_the_older_state_and_no_files(
    cache: Cache, table: LocalTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write((1, "a"), (2, "b"))
    cache.refresh()
    names, rows = cache.directory.names(), cache.rows()
    table.write((1, "c"))

    def full(*_: object) -> None:
        raise StorageError("disk full")

    monkeypatch.setattr(CacheState, "publish", full)
    with pytest.raises(StorageError, match="disk full"):
        cache.refresh()
    assert cache.directory.names() == names and cache.rows() == rows
    monkeypatch.undo()
    assert keys(cache.refresh()) == [1]
    shutil.rmtree(cache.directory.path)
    with pytest.raises(StorageError, match="cannot be"):
        cache.refresh()


def test_rows_that_a_compaction_expires_are_removed(tmp_path: Path) -> None:
    expiry = {"record-level.expire-time": "1 h", "record-level.time-field": "v"}
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, v INT", **expiry)
    cache = Cache(table, tmp_path / "cache")
    table.write((1, 5), (2, 2**31 - 1))
    cache.refresh()
    table.write((3, 2**31 - 1))
    assert keys(cache.refresh()) == [3]
    table.compact()
    refreshed = cache.refresh()
    assert refreshed.rebuilt is None and keys(refreshed) == [1] and len(cache.rows()) == 2


@pytest.fixture
def many(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "many", bucket="5", **{"lookup.bootstrap-parallelism": "3"})
    made.write(*((key, f"v{key % 7}") for key in range(100)))
    made.write(*((key, "new") for key in range(10)))
    made.delete((99, "gone"))
    return made


def loaded(table: LocalTable, directory: CacheDirectory, name: str = "full-a", **wanted: Any) -> Generation | None:
    spec = LookupSpec(table.store, ("v",), ("v",), **wanted)
    key, value = table.store.schema.fields
    return load_snapshot(spec, CacheLayout((key, value), ((key,), (value,))), directory, table.latest, name)


def test_the_merged_rows_are_loaded_in_the_requested_number_of_segments(many: LocalTable, tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "cache")
    first, again = loaded(many, directory), loaded(many, directory, "full-b")
    assert first is not None and again is not None and len(first.files.segments) == 3
    assert sorted(tuple(row.values()) for rows in first.live() for row in rows.to_pylist()) == many.rows()
    assert sorted(directory.names()) == sorted([*first.files.names, *again.files.names])
    assert list(again.live()) == list(first.live()), "the same read gives the same order"


def test_rows_of_a_condition_and_of_buckets_are_loaded(many: LocalTable, tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "cache")
    few = loaded(many, directory, predicate=Compare("v", "=", "new"))
    assert few is not None and few.files.rows == 10
    parts = [loaded(many, directory, f"full-{at}", buckets=frozenset({at})) for at in range(5)]
    assert sum(part.files.rows for part in parts if part is not None) == 99
    assert loaded(many, directory, "full-x", buckets=frozenset({7})) is None
    assert loaded(many, directory, "full-y", predicate=Compare("v", "=", "?")) is None

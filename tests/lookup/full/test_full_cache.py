"""Full caches answer as reads do after each step of random histories, with failures of table, disk and process."""

from __future__ import annotations

import datetime
import os
import tempfile
import threading
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import CorruptStoreError, InvalidInputError, OutOfMemoryError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import CacheState
from lakelsm.lookup.full.full_cache import FullCache
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import to_arrow
from tests.lookup.full.table_histories import CASES, SCHEMA, Case, History
from tests.processes import CONTEXT, PATIENCE, ended, started

COLUMNS = ("v", "n", "k")
#: The primary key; a part of it; another column, with NULLs; and one column of each.
KEYS = (("k", "t"), ("t",), ("g",), ("v", "k"))
Rows = dict[tuple[Any, ...], list[tuple[Any, ...]]]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


def store_of(root: Path) -> TableStore:
    return TableStore.open(str(root / "d.db" / "t"), "d.t")


def wanted(read: pa.Table, key: tuple[str, ...], columns: tuple[str, ...] = COLUMNS) -> Rows:
    """Return the rows of each key, according to a read."""
    found: Rows = defaultdict(list)
    for row in read.to_pylist():
        row_key = tuple(row[name] for name in key)
        if None not in row_key:
            found[row_key].append(tuple(row[name] for name in columns))
    return {row_key: sorted(rows, key=repr) for row_key, rows in found.items()}


def sample_keys(rows: Rows, key: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return keys that exist, and some that do not."""
    none = {"k": 1000, "t": "zz", "g": 99, "v": "none"}
    return [*rows, tuple(none[name] for name in key)]


def answers(cache: FullCache, keys: list[tuple[Any, ...]], key: tuple[str, ...]) -> Rows:
    row_key = pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in zip(key, zip(*keys))})
    found = cache.find(row_key)
    assert found.probes.tolist() == sorted(found.probes.tolist())
    rows: Rows = defaultdict(list)
    for probe, row in zip(found.probes.tolist(), found.rows.to_pylist()):
        rows[keys[probe]].append(tuple(row.values()))
    return {one: sorted(each, key=repr) for one, each in rows.items()}


def agree(cache: FullCache, table: Table | pa.Table, key: tuple[str, ...], reported: object = None) -> Rows:
    """The cache has exactly the rows of a table, or of a read of it."""
    rows = wanted(table.to_arrow() if isinstance(table, Table) else table, key)
    keys = sample_keys(rows, key)
    assert answers(cache, keys, key) == rows, reported
    for one in keys[-5:]:
        assert sorted(cache.find_key(one), key=repr) == rows.get(one, []), reported
    return rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_cache_answers_as_reads_do_and_reports_exactly_the_changed_keys(case: Case, tmp_path: Path) -> None:
    history = History(case, tmp_path, 3)
    store = store_of(tmp_path)
    # Each case is run by its primary key, and by two of the other keys in turn.
    keys = [KEYS[0], *(key for at, key in enumerate(KEYS[1:]) if at != CASES.index(case) % 3)]
    caches = {key: FullCache.open(LookupSpec(store, key, COLUMNS), CacheDirectory.private()) for key in keys}
    before = {key: agree(cache, history.table, key) for key, cache in caches.items()}
    for at in range(8):
        step = history.step()
        read = history.table.to_arrow()
        for key, cache in caches.items():
            refreshed = cache.refresh()
            rows = agree(cache, read, key, (at, step, refreshed))
            assert refreshed.snapshot == cache.snapshot == store.snapshots.latest()
            if refreshed.changed is not None:
                reported = {tuple(row.values()) for row in refreshed.changed.to_pylist()}
                really = {one for one in {*rows, *before[key]} if rows.get(one) != before[key].get(one)}
                assert really <= reported and len(reported) == len(refreshed.changed), (at, step)
                assert reported <= {*rows, *before[key]}
                if key == ("k", "t") and set(COLUMNS) == {"v", "n", "k"}:
                    assert really == reported, (at, step)
            else:
                assert refreshed.rebuilt is not None or before[key] == {}
            before[key] = rows
    for cache in caches.values():
        cache.close()


@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[5], CASES[9]], ids=lambda case: case.name)
def test_a_condition_and_buckets_leave_out_rows(case: Case, tmp_path: Path) -> None:
    history = History(case, tmp_path, 11)
    store, key = store_of(tmp_path), ("g",)
    few = FullCache.open(LookupSpec(store, key, COLUMNS, predicate=Compare("n", "<", 3)), CacheDirectory.private())
    both = [
        FullCache.open(LookupSpec(store, key, COLUMNS, buckets=frozenset({bucket})), CacheDirectory.private())
        for bucket in range(2)
    ]
    for at in range(8):
        history.step()
        rows = wanted(history.table.to_arrow(), key)
        keys = sample_keys(rows, key)
        few.refresh()
        small = {one: [row for row in each if row[1] is not None and row[1] < 3] for one, each in rows.items()}
        assert answers(few, keys, key) == {one: each for one, each in small.items() if each}, at
        found: Rows = defaultdict(list)
        for cache in both:
            cache.refresh()
            for one, each in answers(cache, keys, key).items():
                found[one] += each
        assert {one: sorted(each, key=repr) for one, each in found.items()} == rows, at


@pytest.mark.parametrize("part", [".rows", ".1.index", ".dead"])
@pytest.mark.parametrize("damage", ["cut", "gone", "changed"])
def test_a_damaged_file_is_rebuilt_once_with_a_warning_and_never_gives_wrong_rows(
    part: str, damage: str, tmp_path: Path
) -> None:
    history = History(CASES[0], tmp_path, 2)
    history.table.write(history.rows(200))
    directory = CacheDirectory.private()
    FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), directory)
    history.table.write(history.rows(5))
    opened = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), directory)
    cache = opened if part == ".dead" else FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), directory)
    for name in directory.names():
        if name.endswith(part):
            path = directory.file(name)
            if damage == "gone":
                path.unlink()
            elif damage == "cut":
                os.truncate(path, path.stat().st_size // 2)
            else:
                data = bytearray(path.read_bytes())
                data[: len(data) // 2] = bytes(each ^ 0x55 for each in data[: len(data) // 2])
                path.write_bytes(data)
    if damage == "gone" or part == ".dead":
        agree(cache, history.table, ("g",), "what is open is open")
        with pytest.warns(UserWarning, match="Table d.t: the cache of a lookup is loaded again"):
            cache = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), directory)
    else:
        with pytest.warns(UserWarning, match="Table d.t: the cache of a lookup is loaded again") as warned:
            agree(cache, history.table, ("g",))
        assert len(warned) == 1
    agree(cache, history.table, ("g",))


def test_a_damaged_index_that_only_refreshes_need_is_rebuilt_by_the_next_one(tmp_path: Path) -> None:
    history = History(CASES[0], tmp_path, 2)
    history.table.write(history.rows(200))
    directory = CacheDirectory.private()
    cache = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), directory)
    (name,) = [name for name in directory.names() if name.endswith(".0.index")]
    os.truncate(directory.file(name), 100)
    agree(cache, history.table, ("g",), "it does not look for primary keys")
    history.table.write(history.rows(5))
    with pytest.warns(UserWarning, match=f"Table d.t: the cache of a lookup is loaded again.*{name}"):
        assert cache.refresh().rebuilt == "its files were damaged or removed"
    agree(cache, history.table, ("g",))


def test_a_cache_that_cannot_be_rebuilt_reports_the_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(CASES[0], tmp_path, 2)
    history.table.write(history.rows(50))
    cache = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), CacheDirectory.private())

    def damaged(*_: object) -> None:
        raise CorruptStoreError("full-x.rows is damaged")

    monkeypatch.setattr(CacheState, "find", damaged)
    with pytest.raises(CorruptStoreError, match=r"full-x\.rows"), pytest.warns(UserWarning, match="loaded again"):
        cache.find(pa.table({"g": pa.array([1], pa.int64())}))
    monkeypatch.undo()
    agree(cache, history.table, ("g",))


def test_lookups_see_one_state_while_the_cache_is_refreshed(tmp_path: Path) -> None:
    table = Case("pairs").create(tmp_path)

    def write(number: int) -> None:
        rows = [{"k": k, "t": "a", "g": 1, "v": str(number), "n": number, "s": 0} for k in range(40)]
        table.write(pa.Table.from_pylist(rows, schema=SCHEMA))

    write(0)
    cache = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), ("k", "n")), CacheDirectory.private())
    done, wrong, seen = threading.Event(), [], set()

    def ask() -> None:
        keys = pa.table({"g": pa.array([1], pa.int64())})
        while not done.is_set():
            rows = cache.find(keys).rows.to_pylist()
            numbers = {row["n"] for row in rows}
            if len(rows) != 40 or len(numbers) != 1:
                wrong.append(rows)
            seen.update(numbers)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for number in range(1, 6):
        write(number)
        cache.refresh()
    done.set()
    for asker in askers:
        asker.join()
    assert not wrong and len(seen) > 1


def _follow(root: Path, path: Path, times: int, reported: Any) -> None:
    cache = FullCache.open(LookupSpec(store_of(root), ("k", "t"), COLUMNS), CacheDirectory.shared(path))
    for _ in range(times):
        cache.refresh()
        assert cache.snapshot is not None
        read = Table.for_path(str(root / "d.db" / "t")).at(snapshot=cache.snapshot.id).to_arrow()
        rows = {row["k"]: row["n"] for row in read.to_pylist()}
        for k in range(20):
            found = cache.find_key((k, "a"))
            if [n for _, n, _ in found] != [rows[k]]:
                reported.put((k, found, rows[k]))
    reported.put("done")


def test_processes_share_a_directory_while_the_table_changes(tmp_path: Path) -> None:
    table = Case("shared").create(tmp_path)

    def write(number: int) -> None:
        written = [k for k in range(20) if k % 7 != number % 7]
        rows = [{"k": k, "t": "a", "g": 1, "v": str(number), "n": number, "s": 0} for k in written]
        table.write(pa.Table.from_pylist(rows, schema=SCHEMA))

    write(-1)
    write(0)
    reported = CONTEXT.Queue()
    path = tmp_path / "shared"
    others = [started(_follow, tmp_path, path, 10, reported) for _ in range(2)]
    for number in range(1, 8):
        write(number)
    assert [reported.get(timeout=PATIENCE) for _ in others] == ["done", "done"]
    assert [ended(other) for other in others] == [0, 0]
    spec = LookupSpec(store_of(tmp_path), ("k", "t"), COLUMNS)
    agree(FullCache.open(spec, CacheDirectory.shared(path)), table, ("k", "t"))


def _killed(table: Path, path: Path, left: int) -> None:
    """Make a cache; exit instead of a write, after ``left`` other writes."""
    pwritev = os.pwritev

    def counted(*given: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(9)
        return pwritev(*given)

    os.pwritev = counted
    FullCache.open(LookupSpec(TableStore.open(str(table), "d.t"), ("g",), COLUMNS), CacheDirectory.shared(path))
    os._exit(0)


def test_a_refresh_that_is_killed_leaves_a_state_that_opens(tmp_path: Path) -> None:
    history = History(CASES[0], tmp_path, 5)
    history.table.write(history.rows(30))
    path, key = tmp_path / "cache", ("g",)
    for left in (5, 1000, 0, 4, 8):
        assert ended(started(_killed, tmp_path / "d.db" / "t", path, left)) == (0 if left == 1000 else 9), left
        cache = FullCache.open(LookupSpec(store_of(tmp_path), key, COLUMNS), CacheDirectory.shared(path))
        agree(cache, history.table, key)
        assert set(os.listdir(path)) == cache_files(cache) | {"state", ".lock", ".writers"}
        history.table.write(history.rows(10))


def cache_files(cache: FullCache) -> set[str]:
    held = cache._loaded
    assert held is not None
    return held[1].names


def test_added_columns_change_nothing_and_needed_columns_must_not_be_dropped(tmp_path: Path) -> None:
    history = History(CASES[0], tmp_path, 5)
    history.table.write(history.rows(30))
    catalog = Catalog(str(tmp_path))
    cache = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), CacheDirectory.private())
    catalog.alter_table("d.t", AddColumn("more", "STRING"), RenameColumn("s", "other"))
    refreshed = cache.refresh()
    assert refreshed.rebuilt is None and refreshed.changed is not None and len(refreshed.changed) == 0
    history.table.delete(keys=history.rows(5).select(["k", "t"]))
    assert cache.refresh().rebuilt is None
    rows = agree(cache, history.table, ("g",))
    catalog.alter_table("d.t", DropColumn("v"))
    with pytest.raises(InvalidInputError, match=r"d\.t: schema \d has dropped column 'v'"):
        cache.refresh()
    assert answers(cache, list(rows), ("g",)) == rows, "the older state still answers"


def test_a_single_key_is_found_with_values_for_users(tmp_path: Path) -> None:
    columns = "k INT NOT NULL, at TIMESTAMP(9), day DATE, price DECIMAL(9, 2), list ARRAY<INT>, f DOUBLE"
    table = Catalog(str(tmp_path)).create_table("d.t", columns, primary_key=["k"], options={"bucket": "1"})
    day = datetime.date(2020, 1, 2)
    row = {"k": 1, "at": pd.Timestamp("2020-01-02 03:04:05.678901234"), "day": day, "price": Decimal("1.25")}
    rows = [{**row, "list": [1, None], "f": 0.5}, {"k": 2}]
    table.write(pa.Table.from_pylist(rows, schema=table.to_arrow().schema))
    names = tuple(table.schema.field_names)
    for key in (("k",), ("day", "price"), ("at",), ("f",)):
        cache = FullCache.open(LookupSpec(store_of(tmp_path), key, names), CacheDirectory.private())
        (shown,) = [each for each in table.to_arrow().to_pylist() if each["k"] == 1]
        stored = cache.find(cache_keys(table, key)).rows.slice(0, 1).select(list(key)).to_pylist()[0]
        assert cache.find_key(tuple(stored.values())) == [tuple(shown.values())]


def cache_keys(table: Table, key: tuple[str, ...]) -> pa.Table:
    """Return the stored key of the first row."""
    rows = table.to_arrow().slice(0, 1)
    fields = [table.schema.field(name) for name in key]
    return pa.table({field.name: cast_column(rows[field.name], to_arrow(field.type)) for field in fields})


def test_a_closed_cache_raises_and_its_private_directory_is_removed(tmp_path: Path, temporary: Path) -> None:
    history = History(CASES[0], tmp_path, 5)
    directory = CacheDirectory.private()
    cache = FullCache.open(LookupSpec(store_of(tmp_path), ("g",), COLUMNS), directory)
    assert cache.snapshot is None and cache.find_key((1,)) == []
    history.table.write(history.rows(30))
    cache.refresh()
    assert list(temporary.iterdir()) == [directory.path] and directory.names()
    cache.close()
    cache.close()
    assert list(temporary.iterdir()) == []
    for call in (lambda: cache.find_key((1,)), cache.refresh):
        with pytest.raises(InvalidInputError, match=r"d\.t: the lookup is closed"):
            call()


def test_a_cache_in_memory_keeps_to_its_limit_and_keeps_its_rows(tmp_path: Path) -> None:
    history = History(CASES[0], tmp_path, 5)
    history.table.write(history.rows(300))
    spec = LookupSpec(store_of(tmp_path), ("g",), COLUMNS)
    refused = CacheDirectory.in_memory(1000)
    with pytest.raises(OutOfMemoryError, match=r"'lookup\.cache-max-memory-size' allows 1000"):
        FullCache.open(spec, refused)
    assert refused.names() == []
    refused.close()
    space = CacheDirectory.in_memory(64 << 10)
    cache = FullCache.open(spec, space)
    rows = agree(cache, history.table, ("g",))
    wide = [{"k": k, "t": "a", "g": 1, "v": f"{k}" * 100, "n": 1, "s": 1} for k in range(500, 700)]
    history.table.write(pa.Table.from_pylist(wide, schema=SCHEMA))
    with pytest.raises(OutOfMemoryError, match=r"take \d+ bytes in memory"):
        cache.refresh()
    assert answers(cache, list(rows), ("g",)) == rows, "the older state still answers"
    cache.close()

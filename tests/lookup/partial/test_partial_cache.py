"""PartialCache: a lookup by the primary key returns the rows of a read, after any changes of the table."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.local.output_rows import output_rows, output_schema
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.predicate.parser import parse_where
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema_changes import RenameColumn, SetOption
from lakelsm.snapshots.manifest_scan import read_live_entries
from tests.chance import seeds
from tests.lookup.full.table_histories import MERGED_CASES, Case, History
from tests.lookup.partial.dict_store import DictFormat
from tests.lookup.store.store_kinds import format_of
from tests.processes import CONTEXT, ended, started

#: Random histories; `make fuzz` runs others, and more.
_SEEDS = seeds(1)
_COLUMNS = "id INT NOT NULL, k STRING NOT NULL, v STRING, n BIGINT, t INT"


def _table(root: Path, **options: str) -> Table:
    every = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", **options}
    return Catalog(root.as_uri()).create_table("shop.things", _COLUMNS, primary_key=["id", "k"], options=every)


def _spec(table: Table, columns: tuple[str, ...] = ("v", "id", "n"), where: str | None = None, **more: Any) -> LookupSpec:
    store = table._store()
    predicate = None if where is None else parse_where(where, store.schema.fields, "UTC")
    key = tuple(sorted(store.schema.primary_keys))
    return LookupSpec(store, key, columns, predicate=predicate, **more)


def _found(cache: PartialCache, spec: LookupSpec, keys: pa.Table) -> list[tuple[int, tuple[Any, ...]]]:
    found = cache.find(keys)
    shown = output_rows(found.rows, output_schema([spec.store.schema.field(name) for name in spec.columns]))
    assert (np.diff(found.probes) >= 0).all()
    return list(zip(found.probes.tolist(), (tuple(row.values()) for row in shown.to_pylist())))


def _expected(
    table: Table, spec: LookupSpec, keys: pa.Table, where: str | None = None
) -> list[tuple[int, tuple[Any, ...]]]:
    rows = table.to_arrow(where=where).to_pylist()
    by_key = {tuple(row[name] for name in spec.key): tuple(row[name] for name in spec.columns) for row in rows}
    wanted = [tuple(row.values()) for row in keys.to_pylist()]
    return [(at, by_key[key]) for at, key in enumerate(wanted) if key in by_key]


@contextmanager
def _opened(spec: LookupSpec, **more: Any) -> Iterator[PartialCache]:
    directory = more.pop("directory", None) or CacheDirectory.private()
    cache = PartialCache.open(spec, directory, **{"format": DictFormat(), **more})
    try:
        yield cache
    finally:
        cache.close()
        directory.close()


@pytest.mark.property
@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("case", MERGED_CASES, ids=lambda case: case.name)
def test_lookups_return_the_rows_of_a_read_after_each_step_of_a_history(case: Case, seed: int, tmp_path: Path) -> None:
    history = History(case, tmp_path, seed, adds_columns=True)
    table, where = history.table, "n >= 1 AND v IS NOT NULL"
    spec, filtered = _spec(table, ("v", "k", "n")), _spec(table, ("s", "k"), where)
    other = format_of(("sort", "hash")[MERGED_CASES.index(case) % 2])
    with _opened(spec, format=format_of("arrow")) as cache, _opened(filtered, format=other) as narrow:
        for _ in range(10):
            history.step()
            keys = history.rows(90).select(list(spec.key))
            for lookup, one, condition in ((cache, spec, None), (narrow, filtered, where)):
                lookup.refresh()
                expected = _expected(table, one, keys, condition)
                assert _found(lookup, one, keys) == expected
                rows = dict(expected)
                for at, key in enumerate(keys.slice(0, 10).to_pylist()):
                    assert lookup.find_key(tuple(key.values())) == ([rows[at]] if at in rows else [])


_ROWS = pa.table({
    "id": pa.array(range(50), pa.int32()), "k": [f"k{at}" for at in range(50)], "v": ["a"] * 50,
    "n": pa.array(range(50), pa.int64()), "t": pa.array(range(50), pa.int32()),
})  # fmt: skip


def _written(root: Path, **options: str) -> Table:
    table = _table(root, **options)
    table.write(_ROWS)
    return table


def _all(cache: PartialCache, spec: LookupSpec) -> list[tuple[Any, ...]]:
    return [row for _, row in _found(cache, spec, _ROWS.select(list(spec.key)))]


def test_a_row_above_level_0_that_contains_older_levels_is_not_merged_twice(tmp_path: Path) -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "changelog-producer": "lookup"}
    table = _table(tmp_path, **options)
    ids = pa.array(range(3000), pa.int32())
    rows = pa.table({"id": ids, "k": ids.cast(pa.string()), "v": ids.cast(pa.string()), "n": ids.cast("int64"), "t": ids})
    table.write(rows)
    table.compact(full=True)
    for first in (10, 12):
        table.write(rows.slice(first, 4))
        table.compact()
    table.write(rows.slice(13, 1), options={"write-only": "true"})
    spec = _spec(table)
    with _opened(spec) as cache:
        assert len({file.level for file in cache._current().live.files}) > 2
        keys = rows.select(["id", "k"]).slice(5, 15)
        assert _found(cache, spec, keys) == _expected(table, spec, keys)
        assert dict(_found(cache, spec, keys))[8] == ("13", 13, 4 * 13)


def test_a_cache_needs_the_whole_primary_key(tmp_path: Path) -> None:
    table = _written(tmp_path)
    spec = LookupSpec(table._store(), ("id",), ("v",))
    with pytest.raises(InvalidInputError, match=r"shop\.things.*primary key \(id, k\), not by \(id\).*'full'"):
        PartialCache.open(spec, CacheDirectory.private(), format=DictFormat())


def test_an_empty_table_has_no_rows_until_it_is_written_to(tmp_path: Path) -> None:
    table = _table(tmp_path)
    spec = _spec(table)
    with _opened(spec) as cache:
        assert cache.snapshot is None
        assert _all(cache, spec) == []
        assert cache.find_key((1, "k1")) == []
        table.write(_ROWS)
        assert _all(cache, spec) == []
        refreshed = cache.refresh()
        assert refreshed.changed is None
        assert refreshed.snapshot == cache.snapshot
        assert len(_all(cache, spec)) == 50
        again = cache.refresh()
        assert again.changed is not None
        assert (len(again.changed), again.changed.column_names) == (0, ["id", "k"])


def test_a_closed_cache_raises(tmp_path: Path) -> None:
    spec = _spec(_written(tmp_path))
    with _opened(spec) as cache:
        _all(cache, spec)
        cache.close()
        cache.close()
        for ask in (lambda: cache.find_key((1, "k1")), cache.refresh, lambda: _all(cache, spec)):
            with pytest.raises(InvalidInputError, match="closed"):
                ask()


def _expire(table: Table, snapshot: int) -> None:
    """Remove a snapshot, and the data files that no later snapshot has."""
    store = table._store()
    kept = {entry.file.file_name for entry in _live(table)}
    for path in Path(store.paths.root).glob("bucket-*/data-*"):
        if path.name not in kept:
            path.unlink()
    Path(store.paths.root, "snapshot", f"snapshot-{snapshot}").unlink()


def _live(table: Table) -> list[Any]:
    store = table._store()
    latest = store.snapshots.latest()
    return [] if latest is None else read_live_entries(store.file_io, store.paths, latest)


def test_if_the_snapshot_of_the_cache_expired_it_continues_with_the_newest_and_warns(tmp_path: Path) -> None:
    table = _written(tmp_path, **{"write-only": "true"})
    spec = _spec(table)
    with _opened(spec) as cache:
        table.overwrite(_ROWS.slice(0, 7))
        _expire(table, 1)
        with pytest.warns(RuntimeWarning, match=r"snapshot 1 and a file .* are deleted.*continue with snapshot 2"):
            assert len(_all(cache, spec)) == 7
        assert cache.snapshot == table._store().snapshots.latest()
        assert cache.refresh().changed is None  # The refresh finds no newer snapshot.
        assert cache.refresh().changed is not None


def test_a_missing_data_file_of_an_existing_snapshot_is_an_error(tmp_path: Path) -> None:
    table = _written(tmp_path)
    spec = _spec(table)
    with _opened(spec) as cache:
        for path in tmp_path.rglob("data-*"):
            path.unlink()
        with pytest.raises(CorruptTableError, match="data-"):
            _all(cache, spec)


def test_the_cache_follows_a_rollback_with_later_writes(tmp_path: Path) -> None:
    table = _written(tmp_path, **{"write-only": "true"})
    spec = _spec(table)
    table.write(_ROWS.slice(0, 10).set_column(2, "v", pa.array(["b"] * 10)))
    with _opened(spec) as cache:
        assert {row[0] for row in _all(cache, spec)} == {"a", "b"}
        table.rollback(1)
        table.write(_ROWS.slice(0, 10).set_column(2, "v", pa.array(["c"] * 10)))
        cache.refresh()
        assert {row[0] for row in _all(cache, spec)} == {"a", "c"}


def test_a_renamed_column_is_an_error_of_the_refresh_and_the_cache_still_answers(tmp_path: Path) -> None:
    table = _written(tmp_path)
    spec = _spec(table)
    with _opened(spec) as cache:
        table._store().schemas.change(lambda schema: apply_changes(schema, [RenameColumn("v", "w")], 0, True))
        with pytest.raises(InvalidInputError, match=r"renamed column 'v' to 'w'.*Open another lookup"):
            cache.refresh()
        assert len(_all(cache, spec)) == 50


def test_vectors_that_are_enabled_later_are_applied(tmp_path: Path) -> None:
    table = _written(tmp_path)
    spec = _spec(table)
    with _opened(spec) as cache:
        assert len(_all(cache, spec)) == 50
        table._store().schemas.change(
            lambda schema: apply_changes(schema, [SetOption("deletion-vectors.enabled", "true")], 0, True)
        )
        table = Table.for_path(table._store().paths.root)
        for step in range(3):
            table.write(_ROWS.slice(step, 5).set_column(2, "v", pa.array([f"s{step}"] * 5)))
            table.compact(full=not step)
            cache.refresh()
            keys = _ROWS.select(["id", "k"])
            assert _found(cache, spec, keys) == _expected(table, spec, keys)


def test_lookups_while_the_cache_is_refreshed_each_see_one_state(tmp_path: Path) -> None:
    table = _written(tmp_path, bucket="3")
    spec = _spec(table)
    done = threading.Event()
    failures: list[object] = []

    def look_up() -> None:
        while not done.is_set():
            values = {row[0] for row in _all(cache, spec)}
            if len(values) != 1:
                failures.append(values)

    with _opened(spec) as cache:
        readers = [threading.Thread(target=look_up) for _ in range(3)]
        for reader in readers:
            reader.start()
        for step in range(8):
            table.write(_ROWS.set_column(2, "v", pa.array([f"s{step}"] * 50)))
            cache.refresh()
        done.set()
        for reader in readers:
            reader.join()
        assert {row[0] for row in _all(cache, spec)} == {"s7"}
    assert failures == []


def _damage(path: Path, way: str) -> None:
    data = path.read_bytes()
    if way == "gone":
        path.unlink()
    elif way == "cut":
        os.truncate(path, len(data) // 2)
    else:
        with path.open("r+b") as file:
            for at in range(0, len(data), 97):
                file.seek(at)
                file.write(bytes([data[at] ^ 0x55]))


@pytest.mark.parametrize("way", ["gone", "cut", "flipped"])
@pytest.mark.parametrize("kind", ["arrow", "sort", "hash"])
def test_lookup_files_damaged_while_open_give_no_wrong_row(
    kind: str, way: str, tmp_path: Path
) -> None:
    table = _written(tmp_path / "wh", bucket="2")
    spec = _spec(table)
    directory = CacheDirectory.private()
    opened = _opened(spec, format=format_of(kind), directory=directory)
    with opened as cache, warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        expected = _all(cache, spec)
        key = dict(zip(spec.key, [7, "k7"]))
        for name in directory.names():
            _damage(directory.file(name), way)
        assert cache.find_key(tuple(key[name] for name in spec.key)) == [expected[7]]
        assert _all(cache, spec) == expected
        texts = [str(one.message) for one in reported]
        assert all("shop.things" in text and "is built again" in text for text in texts)
        if kind == "arrow":  # Other keys are answered from blocks in memory.
            assert (way == "gone") == (not texts)


def _share(root: str, path: Path, reported: multiprocessing.Queue[int]) -> None:
    spec = _spec(Table.for_path(root))
    made = DictFormat()
    cache = PartialCache.open(spec, CacheDirectory.shared(path), format=made)
    for _ in range(20):
        assert len(_all(cache, spec)) == 50
        cache.refresh()
    reported.put(made.written)


def test_processes_that_share_a_directory_build_each_file_once(tmp_path: Path) -> None:
    table = _written(tmp_path / "wh", bucket="4")
    reported: multiprocessing.Queue[int] = CONTEXT.Queue()
    running = [started(_share, table._store().paths.root, tmp_path / "cache", reported) for _ in range(2)]
    assert [ended(process) for process in running] == [0, 0]
    assert reported.get() + reported.get() == 4
    assert len(CacheDirectory.shared(tmp_path / "cache").names()) == 4


def test_lookups_stay_within_the_disk_space_option(tmp_path: Path) -> None:
    rows = 40_000
    table = _table(tmp_path, bucket="4", **{"lookup.cache-max-disk-size": "1 mb"})
    ids = pa.array(range(rows), pa.int32())
    text = pa.array([f"{at:040}" for at in range(rows)])
    table.write(pa.table({"id": ids, "k": text, "v": text, "n": pa.nulls(rows, pa.int64()), "t": ids}))
    spec = _spec(table)
    with _opened(spec) as cache:
        for _ in range(2):
            found = cache.find(pa.table({"id": ids, "k": text}))
            assert len(found.rows) == rows
            assert cache._current().files.disk_bytes <= 1 << 20

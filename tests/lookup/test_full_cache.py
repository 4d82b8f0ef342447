"""Full caches answer as reads do: after each step of random histories, whatever happens to table, disk and process."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full_cache import FullCache
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.snapshots.table_store import TableStore
from tests.lookup.table_histories import CASES, SCHEMA, Case, History

COLUMNS = ("v", "n", "k")
#: The primary key; a part of it; another column, with NULLs; one of each.
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


def wanted(table: Table, key: tuple[str, ...], columns: tuple[str, ...] = COLUMNS) -> Rows:
    """What a read says of each key."""
    found: Rows = defaultdict(list)
    for row in table.to_arrow().to_pylist():
        asked = tuple(row[name] for name in key)
        if None not in asked:
            found[asked].append(tuple(row[name] for name in columns))
    return {asked: sorted(rows, key=repr) for asked, rows in found.items()}


def asked_of(table: Table, rows: Rows, key: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Keys that are there, and some that are not."""
    none = {"k": 1000, "t": "zz", "g": 99, "v": "none"}
    return [*rows, tuple(none[name] for name in key)]


def answers(cache: FullCache, keys: list[tuple[Any, ...]], key: tuple[str, ...]) -> Rows:
    asked = pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in zip(key, zip(*keys))})
    found = cache.find(asked)
    assert found.probes.tolist() == sorted(found.probes.tolist())
    rows: Rows = defaultdict(list)
    for probe, row in zip(found.probes.tolist(), found.rows.to_pylist()):
        rows[keys[probe]].append(tuple(row.values()))
    return {one: sorted(each, key=repr) for one, each in rows.items()}


def agree(cache: FullCache, table: Table, key: tuple[str, ...], told: object = None) -> Rows:
    rows = wanted(table, key)
    keys = asked_of(table, rows, key)
    assert answers(cache, keys, key) == rows, told
    for one in keys[-5:]:
        assert sorted(cache.find_one(one), key=repr) == rows.get(one, []), told
    return rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_cache_answers_as_reads_do_and_tells_the_very_keys_that_changed(case: Case, tmp_path: Path) -> None:
    history = History(case, tmp_path, 3)
    store = store_of(tmp_path)
    caches = {key: FullCache.open(LookupSpec(store, key, COLUMNS), CacheDirectory.private()) for key in KEYS}
    before = {key: agree(cache, history.table, key) for key, cache in caches.items()}
    for at in range(8):
        step = history.step()
        for key, cache in caches.items():
            refreshed = cache.refresh()
            rows = agree(cache, history.table, key, (at, step, refreshed))
            assert refreshed.snapshot == cache.snapshot == store.snapshots.latest()
            if refreshed.changed is not None:
                told = {tuple(row.values()) for row in refreshed.changed.to_pylist()}
                really = {one for one in {*rows, *before[key]} if rows.get(one) != before[key].get(one)}
                assert really <= told and len(told) == len(refreshed.changed), (at, step)
                assert told <= {*rows, *before[key]}
                if key == ("k", "t") and set(COLUMNS) == {"v", "n", "k"}:
                    assert really == told, (at, step)
            else:
                assert refreshed.rebuilt is not None or before[key] == {}
            before[key] = rows
    for cache in caches.values():
        cache.close()

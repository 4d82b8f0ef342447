"""States of full caches are published whole, can be opened by others, and are refused when damaged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import STATE, CacheContents, CacheState, published_state
from lakelsm.lookup.full.generation import Generation, index_segments, write_segment
from lakelsm.lookup.store.store_file import StoreFileWriter
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import AddColumn, SetOption
from tests.compact.local_table import LocalTable
from tests.lookup.full.test_generation import LAYOUT, keys, rows
from tests.time_limit import time_limit


def generation(directory: CacheDirectory, name: str, *ids: int) -> Generation:
    segment = write_segment(directory, f"{name}.rows", LAYOUT, iter([rows(*ids)]))
    return index_segments(directory, name, LAYOUT, [segment])


def state(directory: CacheDirectory) -> CacheState:
    older = generation(directory, "full-a", 1, 2, 3, 4).without(directory, "full-a.dead", np.array([1]))
    return CacheState("full-s", None, (older, generation(directory, "full-b", 2, 5)), content="c")


def contents(key: int, *names: str) -> CacheContents:
    """The contents of a lookup by one of the keys; the first key has one row each."""
    found = pa.schema([LAYOUT.schema.field(name) for name in names or LAYOUT.schema.names])
    return CacheContents(LAYOUT, key, unique=key == 0, found=found, read=(), fingerprint="c")


def test_rows_are_found_in_all_generations_in_the_order_of_the_keys(directory: CacheDirectory) -> None:
    made = state(directory)
    found = made.find(contents(0), keys("id", 5, 9, 1, 2, 5))
    assert found.probes.tolist() == [0, 2, 3, 4]
    assert found.rows["id"].to_pylist() == [5, 1, 2, 5] and found.rows.schema == LAYOUT.schema
    both = made.find(contents(1), keys("g", 1, 2))
    assert list(zip(both.probes.tolist(), both.rows["id"].to_pylist())) == [(0, 1), (0, 4), (1, 2), (1, 5)]
    assert made.find_plain(contents(1, "id"), (2,)) == [(2,), (5,)]
    assert made.find_plain(contents(0, "g"), (2,)) == [(2,)]


def test_an_empty_result_has_the_columns(directory: CacheDirectory) -> None:
    for nothing in (state(directory), CacheState("full-s", None, (), content="c")):
        found = nothing.find(contents(0), keys("id", 99))
        assert len(found.probes) == 0 and found.rows.equals(LAYOUT.schema.empty_table())


def test_a_published_state_is_opened_by_others_and_older_files_are_removed(directory: CacheDirectory) -> None:
    assert published_state(directory, LAYOUT, "c", None) is None
    own = state(directory)
    directory.file("full-old.rows").write_text("of a state before")
    directory.file("other").write_text("of somebody else")
    own.publish(directory)
    assert set(directory.names()) == own.names | {STATE, "other"}
    assert published_state(directory, LAYOUT, "c", own) is own
    other = published_state(directory, LAYOUT, "c", None)
    assert other is not None and (other.name, other.content) == (own.name, own.content)
    assert sum(generation.live_rows for generation in other.generations) == 5
    assert [each.files for each in other.generations] == [each.files for each in own.generations]
    assert pa.concat_tables(other.generations[0].live())["id"].to_pylist() == [1, 3, 4]
    another = published_state(directory, LAYOUT, "other columns", None)
    assert another is not None and another.content == "c" and another.generations == ()


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "other facts", "a directory", "fifo", "endless"])
def test_a_damaged_state_is_an_error(directory: CacheDirectory, damage: str) -> None:
    state(directory).publish(directory)
    path = directory.file(STATE)
    data = path.read_bytes()
    path.unlink()
    if damage == "a directory":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    elif damage == "other facts":
        with StoreFileWriter(path) as writer:
            writer.finish({"name": "x", "snapshot": None, "content": "c"})
    else:
        path.write_bytes({"cut": data[:-9], "changed": data.replace(b"full-s", b"full-t")}.get(damage, b""))
        if damage == "endless":
            os.truncate(path, 1 << 40)
    with time_limit(300, TimeoutError()), pytest.raises(CorruptStoreError, match=f"{STATE} "):
        published_state(directory, LAYOUT, "c", None)


COLUMNS = "id INT NOT NULL, g INT, v STRING, w STRING"


def test_the_layout_has_keys_and_result_columns_once(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t", COLUMNS).store
    contents = CacheContents.of(LookupSpec(store, ("g",), ("v", "g"), predicate=Compare("w", "=", "x")))
    assert contents.layout.schema.names == ["id", "g", "v"] and contents.read == ("id", "g", "v", "w")
    assert [[field.name for field in key] for key in contents.layout.keys] == [["id"], ["g"]]
    assert contents.key_position == 1 and not contents.unique
    assert contents.found.names == ["v", "g"] and contents.no_keys.schema.names == ["g"]
    primary = CacheContents.of(LookupSpec(store, ("id",), ("v",)))
    assert len(primary.layout.keys) == 1 and primary.key_position == 0 and primary.unique


def test_other_rows_columns_and_options_have_another_fingerprint(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", COLUMNS)

    def fingerprint(**changed: object) -> str:
        given: dict[str, object] = {"key": ("id",), "columns": ("v",), **changed}
        return CacheContents.of(LookupSpec(table.store, **given)).fingerprint  # type: ignore[arg-type]

    fingerprints = [
        fingerprint(),
        fingerprint(columns=("w",)),
        fingerprint(key=("g",)),
        fingerprint(predicate=Compare("v", "=", "x")),
        fingerprint(buckets=frozenset({0})),
    ]
    assert len(set(fingerprints)) == 5 and fingerprint() == fingerprints[0]
    table.alter(AddColumn("more", "INT"), SetOption("lookup.bootstrap-parallelism", "1"))
    assert fingerprint() == fingerprints[0], "neither changes the rows"
    table.alter(SetOption("deletion-vectors.merge-on-read", "true"))
    assert fingerprint() != fingerprints[0]

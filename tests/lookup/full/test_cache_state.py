"""States of full caches are published whole, opened by others, and never believed when they are damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import STATE, CacheState, published_state
from lakelsm.lookup.full.generation import Generation, index_segments, write_segment
from tests.lookup.full.test_generation import LAYOUT, keys, rows
from tests.time_limit import time_limit


@pytest.fixture
def directory(tmp_path: Path) -> CacheDirectory:
    return CacheDirectory.shared(tmp_path / "cache")


def generation(directory: CacheDirectory, name: str, *ids: int) -> Generation:
    segment = write_segment(directory, f"{name}.rows", LAYOUT, iter([rows(*ids)]))
    return index_segments(directory, name, LAYOUT, [segment])


def state(directory: CacheDirectory) -> CacheState:
    older = generation(directory, "full-a", 1, 2, 3, 4).without(directory, "full-a.dead", np.array([1]))
    return CacheState("full-s", None, (older, generation(directory, "full-b", 2, 5)), content="c")


def test_rows_are_found_in_all_generations_in_the_order_of_the_keys(directory: CacheDirectory) -> None:
    made = state(directory)
    found = made.find(0, keys("id", 5, 9, 1, 2, 5), LAYOUT.schema, unique=True)
    assert found.probes.tolist() == [0, 2, 3, 4]
    assert found.rows["id"].to_pylist() == [5, 1, 2, 5] and found.rows.schema == LAYOUT.schema
    both = made.find(1, keys("g", 1, 2), LAYOUT.schema, unique=False)
    assert list(zip(both.probes.tolist(), both.rows["id"].to_pylist())) == [(0, 1), (0, 4), (1, 2), (1, 5)]
    assert made.rows_of(1, (2,), ["id"], unique=False) == [(2,), (5,)]
    assert made.rows_of(0, (2,), ["g"], unique=True) == [(2,)]


def test_where_nothing_is_found_the_columns_are_there(directory: CacheDirectory) -> None:
    for nothing in (state(directory), CacheState("full-s", None, (), content="c")):
        found = nothing.find(0, keys("id", 99), LAYOUT.schema, unique=True)
        assert len(found.probes) == 0 and found.rows.equals(LAYOUT.schema.empty_table())


def test_a_state_that_is_published_is_opened_by_others_and_older_files_go(directory: CacheDirectory) -> None:
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


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"state": {}, "checksum": 0}', "cut", "changed", "a directory", "fifo", "endless"]
)
def test_a_damaged_state_is_told(directory: CacheDirectory, damage: str) -> None:
    state(directory).publish(directory)
    path = directory.file(STATE)
    text = path.read_text()
    path.unlink()
    if damage == "a directory":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    elif damage == "endless":
        path.write_bytes(b"")
        os.truncate(path, 1 << 40)
    else:
        changed = json.dumps({**json.loads(text), "checksum": 7})
        path.write_text({"cut": text[:-9], "changed": changed}.get(damage, damage))
    with time_limit(300, TimeoutError()), pytest.raises(CorruptStoreError, match=STATE):
        published_state(directory, LAYOUT, "c", None)

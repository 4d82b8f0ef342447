"""Generations: rows with indexes, a bitmap of dead rows, and files that are not mistaken for others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.generation import CacheLayout, Generation, index_segments, write_segment
from lakelsm.types import AtomicType, DataField

ID, GROUP = DataField(0, "id", AtomicType("INT")), DataField(1, "g", AtomicType("BIGINT"))
LAYOUT = CacheLayout((ID, GROUP), ((ID,), (GROUP,)))


def rows(*ids: int) -> pa.Table:
    groups = [None if each % 10 == 9 else each % 3 for each in ids]
    return pa.table({"id": pa.array(ids, pa.int32()), "g": pa.array(groups, pa.int64())})


def keys(name: str, *values: int) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int32() if name == "id" else pa.int64())})


def made(directory: CacheDirectory, name: str = "full-a") -> Generation:
    segments = [
        write_segment(directory, f"{name}.{at}.rows", LAYOUT, part)
        for at, part in enumerate((iter([rows(5, 6), rows(7)]), _parts()))
    ]
    assert [segment.rows for segment in segments] == [3, 3]
    return index_segments(directory, name, LAYOUT, segments)


def _parts() -> Iterator[pa.Table]:
    yield rows(1, 2, 9)


def live_rows_of(generation: Generation, key: int, value: int) -> list[int]:
    key_hash = generation.keyed[key].hash_of((value,))
    assert key_hash is not None
    return generation.live_rows_of(key, (value,), key_hash)


def test_rows_are_found_by_each_key_until_they_are_dead(directory: CacheDirectory) -> None:
    generation = made(directory)
    assert sorted(generation.files.names) == sorted(directory.names()), "hashes are removed when the indexes exist"
    probes, found = generation.row_indexes(0, keys("id", 9, 8, 5))
    assert (probes.tolist(), found.tolist()) == ([0, 2], [5, 0])
    assert [part.tolist() for part in generation.row_indexes(1, keys("g", 2, 0))] == [[0, 0, 1], [0, 4, 1]]
    younger = generation.without(directory, "full-b.0.dead", np.array([4, 5]))
    assert younger.live_rows == 4 and generation.live_rows == 6, "a generation never changes"
    assert [part.tolist() for part in younger.row_indexes(1, keys("g", 2, 0))] == [[0, 1], [0, 1]]
    assert live_rows_of(younger, 1, 2) == [0] and live_rows_of(younger, 0, 2) == []
    assert live_rows_of(generation, 1, 2) == [0, 4]
    again = Generation.open(directory, LAYOUT, younger.files)
    assert pa.concat_tables(again.live()).equals(pa.concat_tables([rows(5, 6, 7), rows(1)]).combine_chunks())
    youngest = again.without(directory, "full-c.0.dead", np.array([0]))
    assert live_rows_of(youngest, 0, 5) == [] and live_rows_of(again, 0, 5) == [0]
    assert youngest.live_rows == 3


def test_another_file_of_the_same_name_is_refused(directory: CacheDirectory) -> None:
    generation = made(directory)
    dead = generation.without(directory, "full-a.0.dead", np.array([1]))
    for name in dead.files.names:
        kept = directory.file(name).read_bytes()
        directory.discard(name)
        with pytest.raises(CorruptStoreError, match=name):
            Generation.open(directory, LAYOUT, dead.files)
        directory.file(name).write_bytes(kept[:-3])
        with pytest.raises(CorruptStoreError, match=name):
            Generation.open(directory, LAYOUT, dead.files)
        directory.file(name).write_bytes(kept)
    made(directory, "full-b").without(directory, "full-b.0.dead", np.array([2]))
    directory.file("full-b.0.dead").rename(directory.file("full-a.0.dead"))
    with pytest.raises(CorruptStoreError, match="it is not the file that the cache's state names"):
        Generation.open(directory, LAYOUT, dead.files)

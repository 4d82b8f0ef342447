"""The hidden rows of the same files are computed once, cached within limits, and never used for other files."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm import Catalog, Table
from lakelsm.frames import hidden_rows
from lakelsm.frames.hidden_rows import _max_bytes
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from tests.compact.local_table import LocalTable
from tests.read.tables import rows_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


def test_the_second_read_of_a_snapshot_merges_no_file_and_a_read_of_another_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    local = LocalTable(tmp_path / "t", file__compression="none", write_only="true")
    for value in ("a", "b"):
        local.write(*((key, value) for key in range(400)))
    table = Table.for_path(str(local.root), spark)
    assert table.read().where("v = 'b'").count() == 400
    file = local.path_of(local.live()[0])
    whole = file.read_bytes()
    data = bytearray(whole)
    data[pq.read_metadata(file).row_group(0).column(3).data_page_offset + 200] ^= 1  # A key that a merge reads.
    file.write_bytes(data)
    assert table.read(columns=["v"]).where("v = 'b'").count() == 400
    assert table.read(columns=["v"]).where("v = 'a'").count() == 0
    file.write_bytes(whole)
    local.write((7, "c"), (1000, "c"))
    assert rows_of(table.read().where("v = 'c'")) == [(1000, "c"), (7, "c")]
    assert table.read().count() == 401 and table.at(snapshot=2).read().count() == 400


def test_the_cache_of_a_table_is_bounded_and_drops_the_oldest_rows_first(spark: SparkSession, tmp_path: Path) -> None:
    local = LocalTable(tmp_path / "t", write_only="true", **{"lakelsm.hidden-rows.max-memory": "9300 b"})
    table = Table.for_path(str(local.root), spark)
    for number in range(5):
        local.write(*((key, str(number)) for key in range(10)))

    def cached() -> list[int]:
        return [len(state.units[0].files) for state in _cached_of(local.root)]

    for snapshot in (2, 3, 2):
        assert table.at(snapshot=snapshot).read().count() == 10
    assert cached() == [3, 2]
    before = {state: hidden_rows._cache[state].frame for state in _cached_of(local.root)}
    assert table.at(snapshot=5).read().count() == 10
    assert cached() == [2, 5]
    now = _cached_of(local.root)
    assert all(_is_persisted(hidden_rows._cache[state].frame) for state in now)
    assert [_is_persisted(frame) for state, frame in before.items() if state not in now] == [False]
    assert _max_bytes(table.explain().units, ()) <= 9300
    unkept = LocalTable(tmp_path / "u", write_only="true", **{"lakelsm.hidden-rows.max-memory": "0 b"})
    for _ in range(2):
        unkept.write((1, "a"))
    assert Table.for_path(str(unkept.root), spark).read().count() == 1
    assert _cached_of(unkept.root) == []


def test_cached_rows_are_dropped_with_their_session_and_table(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path), spark)
    roots = []
    for name in ("s.one", "s.two"):
        table = catalog.create_table(name, "k INT", primary_key=["k"], options={"bucket": 1, "write-only": True})
        for _ in range(2):
            table.write(pa.table({"k": pa.array([1, 2], pa.int32())}))
        roots.append(tmp_path / "s.db" / name.removeprefix("s."))
        assert table.read().count() == 2

    sessions = []
    for _ in range(5):
        session = spark.newSession()
        sessions.append(ref(session))
        assert Table.for_path(str(roots[0]), session).read().count() == 2
    frames = {state: kept.frame for state, kept in hidden_rows._cache.items() if state.owner.branch_root == str(roots[0])}
    assert len(frames) > 1 and all(map(_is_persisted, frames.values()))
    del session
    spark.newSession()  # PySpark refers to the newest session.
    gc.collect()
    assert [one() for one in sessions] == [None] * 5
    assert table.read().count() == 2
    assert len(_cached_of(roots[0])) == len(_cached_of(roots[1])) == 1
    assert [state for state, frame in frames.items() if _is_persisted(frame)] == _cached_of(roots[0])

    frames = {state: kept.frame for state, kept in hidden_rows._cache.items() if state.owner.branch_root == str(roots[1])}
    catalog.drop_table("s.two")
    assert _cached_of(roots[1]) == [] and not any(map(_is_persisted, frames.values()))
    assert len(_cached_of(roots[0])) == 1


def test_a_process_caches_a_bounded_number_of_states_and_bytes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for name in "abc":
        local = LocalTable(tmp_path / name, write_only="true", **{"lakelsm.hidden-rows.max-memory": "9300 b"})
        for value in ("x", "y"):
            local.write((1, value))
        tables.append(Table.for_path(str(local.root), spark))
    assert tables[0].read().count() == 1
    first = hidden_rows._cache[_cached_of(tmp_path / "a")[0]].frame
    assert _is_persisted(first)
    monkeypatch.setattr(hidden_rows, "_MAX_CACHED_STATES", 2)
    for table in tables:
        assert table.read().count() == 1
    assert [len(_cached_of(tmp_path / name)) for name in "abc"] == [0, 1, 1]
    assert len(hidden_rows._cache) == 2 and not _is_persisted(first)
    monkeypatch.setattr(hidden_rows, "_MAX_CACHED_BYTES", 0)
    assert tables[1].read().count() == 1
    assert [len(_cached_of(tmp_path / name)) for name in "abc"] == [0, 1, 1], "both have room in what one table may have"
    monkeypatch.setattr(hidden_rows, "_max_bytes", lambda units, masked: 9300)
    assert tables[0].read().count() == 1
    assert [len(_cached_of(tmp_path / name)) for name in "abc"] == [1, 0, 0]


def test_the_next_read_drops_the_rows_of_a_stopped_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalTable(tmp_path / "t", write_only="true")
    for value in ("x", "y"):
        local.write((1, value))
    table = Table.for_path(str(local.root), spark)
    assert table.read().count() == 1
    (state,) = _cached_of(local.root)

    class Stopped:
        _jsc = None

    kept = hidden_rows._cache[state]
    hidden_rows._cache[state] = replace(kept, context=Stopped())  # type: ignore[arg-type]
    assert table.read().count() == 1
    assert _cached_of(local.root) == [state] and hidden_rows._cache[state].context is spark.sparkContext
    assert _is_persisted(kept.frame), "no call reaches a stopped session"
    kept.frame.unpersist(False)


def _is_persisted(frame: JavaObject) -> bool:
    return bool(frame.storageLevel().useMemory())


def _cached_of(root: Path) -> list[hidden_rows._State]:
    return [state for state in hidden_rows._cache if state.owner.branch_root == str(root)]


def test_the_size_of_bitmaps_is_a_bit_a_row_and_for_each_part_a_plan_and_a_chunk() -> None:
    small = RunFile("small", schema_id=0, row_count=80, file_size=1)
    large = RunFile("large", schema_id=0, row_count=1 << 20, file_size=1)
    unit = MergeUnit(((large,), (small,)))
    assert _max_bytes([unit], [small]) == (80 + (1 << 20)) // 8 + 2 * (10 + 1024) + 8192 + 1024
    assert _max_bytes([unit, unit], []) - _max_bytes([unit], []) == 10 + 1024 + 8192 + 1024

"""The reader of a stream, called as Spark calls it: rows, restarts from a checkpoint, and checkpoints that do not fit."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from lakelsm import Catalog, Table
from lakelsm.data_source.source import DefaultSource
from lakelsm.data_source.stream_options import StreamOptions
from lakelsm.data_source.stream_reader import UnlimitedReader
from lakelsm.errors import (
    SnapshotNotFoundError,
    StreamOffsetError,
    StreamSchemaChangedError,
    UnsupportedFeatureError,
)
from lakelsm.schema_changes import AddColumn
from tests.stream_queries import MicroBatches, Rows

KINDS = {"read.changelog": "true"}
COLUMNS = {"id": "INT", "n": "INT"}


def created(tmp_path: Path, **options: str) -> Table:
    settings = {"bucket": "2", "write-only": "true"} | {name.replace("_", "-"): text for name, text in options.items()}
    return Catalog(str(tmp_path)).create_table("d.t", COLUMNS, primary_key="id", options=settings)


def query(tmp_path: Path, **options: str) -> MicroBatches:
    return MicroBatches({"path": str(tmp_path / "d.db" / "t"), **options})


def rows_of(first: int, last: int, n: int = 0) -> list[dict[str, int]]:
    return [{"id": number, "n": n} for number in range(first, last)]


def joined(batches: list[Rows]) -> Rows:
    return sorted(row for batch in batches for row in batch)


def test_a_stream_loads_the_table_and_continues_with_its_changes(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path, **KINDS)
    table.write(rows_of(0, 3))
    table.write(rows_of(2, 4, n=1))
    assert joined(stream.run()) == [("+I", 0, 0), ("+I", 1, 0), ("+I", 2, 1), ("+I", 3, 1)]
    assert stream.run() == []
    table.delete("id = 0")
    table.compact(full=True)
    table.write(rows_of(3, 4, n=2))
    assert joined(stream.run()) == [("+I", 3, 2), ("-D", 0, 0)]
    assert stream.run() == []


def test_without_kinds_a_stream_has_new_rows_only(tmp_path: Path) -> None:
    table, stream = created(tmp_path, changelog_producer="input"), query(tmp_path, where="n < 5", columns="N,id")
    table.write([{"kind": "+I", "id": 1, "n": 1}, {"kind": "+I", "id": 2, "n": 9}], "kind")
    assert stream.run() == [[(1, 1)]]
    changes = [("-U", 1, 1), ("+U", 1, 2), ("-D", 2, 9), ("+I", 3, 3), ("-D", 3, 3)]
    table.write([{"kind": kind, "id": key, "n": n} for kind, key, n in changes], "kind")
    assert joined(stream.run()) == [(2, 1), (3, 3)]


def test_a_query_that_starts_at_the_newest_snapshot_keeps_its_start_over_restarts(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path, **{"scan.mode": "latest"})
    table.write(rows_of(0, 3))
    assert stream.run() == [[]], "the first batch records the start"
    table.write(rows_of(3, 4))
    assert stream.run() == [[(3, 0)]]


@pytest.mark.parametrize("mode", ["latest-full", "latest"])
def test_the_first_batch_is_the_same_one_when_another_process_runs_it_again(tmp_path: Path, mode: str) -> None:
    table, stream = created(tmp_path), query(tmp_path, **{"scan.mode": mode, "consumer-id": "c"})
    table.write(rows_of(0, 4))
    before = stream.run(commit=False, batches=1)
    table.write(rows_of(4, 6))
    table.compact(full=True)
    after = stream.run()
    assert joined(after[:1]) == joined(before)
    assert joined(after) == [(at, 0) for at in range(0 if mode == "latest-full" else 4, 6)]


def test_a_later_batch_is_the_same_one_when_another_process_runs_it_again(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path, **KINDS)
    table.write(rows_of(0, 4))
    stream.run()
    table.write(rows_of(2, 6, n=1))
    before = stream.run(commit=False, batches=1)
    table.compact(full=True)
    table.write(rows_of(2, 3, n=2))
    after = stream.run()
    assert after[0] == before[0] == [("+I", key, 1) for key in [row[1] for row in before[0]]]
    assert after[1:] == [[("+I", 2, 2)]]


def test_a_table_without_snapshots_is_read_from_its_first_one(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path)
    assert joined(stream.run()) == []
    assert stream.run() == []
    table.write(rows_of(0, 2))
    assert joined(stream.run()) == [(0, 0), (1, 0)]
    assert stream.run() == []


def test_the_consumer_has_the_progress_of_committed_batches(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path, **{"consumer-id": "etl"})
    table.write(rows_of(0, 2))
    stream.run()
    table.write(rows_of(2, 4))
    stream.run()
    table.write(rows_of(4, 6))
    stream.run()
    progress = {info.name: info.next_snapshot_id for info in table.consumers.list()}
    assert progress == {"etl": 3}, "Spark commits a batch when the next one is planned"
    fresh = query(tmp_path, **{"consumer-id": "etl"})
    assert joined(fresh.run()) == [(4, 0), (5, 0)]


def test_checkpoints_of_another_table_are_refused(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path)
    table.write(rows_of(0, 2))
    stream.run()
    catalog = Catalog(str(tmp_path))
    other = catalog.create_table("d.o", COLUMNS, primary_key="id", options={"bucket": "1"})
    other.write(rows_of(0, 1))
    moved = MicroBatches({"path": str(tmp_path / "d.db" / "o")}, list(stream.offsets), stream.committed)
    for replayed in (False, True):
        moved.committed -= replayed
        with pytest.raises(StreamOffsetError):
            moved.run()
    catalog.drop_table("d.t")
    created(tmp_path).write(rows_of(0, 2))
    for replayed in (False, True):
        stream.committed -= replayed
        with pytest.raises(StreamOffsetError):
            stream.run()


def test_a_rollback_below_the_checkpoint_is_refused(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path)
    for key in range(3):
        table.write(rows_of(key, key + 1))
    stream.run()
    table.rollback(2)
    with pytest.raises(StreamOffsetError):
        stream.run()
    table.write(rows_of(9, 10))
    with pytest.raises(StreamOffsetError):
        stream.run()
    stream.committed = 0
    with pytest.raises(StreamOffsetError):
        stream.run()


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"index": 3},
        {"lakelsm-offset": 2},
        [],
        1,
        None,
        {"lakelsm-offset": 1, "table": 1},
    ],
)
def test_a_checkpoint_of_another_source_is_refused(tmp_path: Path, offset: Any) -> None:
    table, stream = created(tmp_path), query(tmp_path)
    table.write(rows_of(0, 2))
    stream.offsets = [json.dumps(offset)]
    for stream.committed in (0, 1):
        with pytest.raises(StreamOffsetError, match="offset"):
            stream.run()


def test_expired_changes_are_an_error_unless_data_loss_is_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, stream = created(tmp_path), query(tmp_path)
    table.write(rows_of(0, 1))
    stream.run()
    for key in range(1, 5):
        table.write(rows_of(key, key + 1))
    table.maintenance.expire_snapshots(retain_last=2, older_than="0 s")
    with pytest.raises(SnapshotNotFoundError, match="failOnDataLoss"):
        stream.run()
    assert joined(stream.run(failOnDataLoss="false")) == [(3, 0), (4, 0)]
    assert stream.run() == []


def test_changed_columns_end_a_query_and_a_restart_continues_with_them(tmp_path: Path) -> None:
    table, stream = created(tmp_path), query(tmp_path)
    table.write(rows_of(0, 1))
    source = DefaultSource(stream.options)
    reader: Any = source.streamReader(source.schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    Catalog(str(tmp_path)).alter_table("d.t", AddColumn("s", "STRING"))
    table.write([{"id": 1, "n": 1, "s": "x"}])
    with pytest.raises(StreamSchemaChangedError, match="again"):
        reader.latestOffset(end, reader.getDefaultReadLimit())
    stream.offsets, stream.committed = [json.dumps(end)], 1
    assert stream.run() == [[(1, 1, "x")]]
    old = DefaultSource(stream.options).streamReader(StructType().add("n", "integer").add("id", "integer"))
    tasks = pickle.loads(pickle.dumps(old))
    parts = old.partitions(json.loads(stream.offsets[0]), json.loads(stream.offsets[1]))
    assert [batch.to_pylist() for part in parts for batch in tasks.read(part)] == [[{"n": 1, "id": 1}]]


def test_a_reader_is_pickled_without_what_it_has_read(tmp_path: Path) -> None:
    created(tmp_path).write(rows_of(0, 100))
    source = DefaultSource({"path": str(tmp_path / "d.db" / "t")})
    reader: Any = source.streamReader(source.schema())
    before = len(pickle.dumps(reader))
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert reader.partitions(reader.initialOffset(), end)
    assert len(pickle.dumps(reader)) == before


class OldQuery:
    """Calls the reader for PySpark 4.0 and 4.1 as Spark does: first of all with the end of the last batch, twice."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options, self.offsets = options, list[dict[str, Any]]()

    def run(self, batches: int = 10, log: bool = True) -> list[Rows]:
        options = StreamOptions.of(self.options)
        reader = UnlimitedReader(options, options.struct())
        tasks = pickle.loads(pickle.dumps(reader))
        if self.offsets:
            assert reader.partitions(self.offsets[-1], self.offsets[-1]) == []
        found: list[Rows] = []
        for _ in range(batches):
            end = json.loads(json.dumps(reader.latestOffset()))
            if self.offsets and end == self.offsets[-1]:
                break
            start = self.offsets[-1] if self.offsets else reader.initialOffset()
            parts = reader.partitions(start, end)
            found.append([tuple(row.values()) for part in parts for each in tasks.read(part) for row in each.to_pylist()])
            self.offsets.append(end)
        return found


def test_the_reader_for_older_releases_finds_the_start_of_each_batch(tmp_path: Path) -> None:
    table = created(tmp_path)
    full, latest = (OldQuery({"path": str(tmp_path / "d.db" / "t"), "scan.mode": mode}) for mode in ("full", "latest"))
    table.write(rows_of(0, 2))
    assert joined(full.run()) == [(0, 0), (1, 0)]
    assert joined(latest.run()) == []
    table.write(rows_of(1, 3, n=1))
    for stream in (full, latest):
        assert joined(stream.run()) == [(1, 1), (2, 1)]
        assert stream.run() == []


def test_the_reader_for_older_releases_refuses_limits_by_name(tmp_path: Path) -> None:
    options = StreamOptions.of({"path": "t", "read.stream.maxrowspertrigger": "5"})
    with pytest.raises(UnsupportedFeatureError, match=r"option 'read.stream.maxRowsPerTrigger': PySpark .* 4.2 or later"):
        UnlimitedReader(options, StructType())


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
@pytest.mark.parametrize("seed", range(2))
def test_the_changes_of_a_stream_that_is_often_stopped_give_the_rows_of_the_table(
    tmp_path: Path, producer: str, seed: int
) -> None:
    chance = random.Random(f"{seed} {producer}")
    table = created(tmp_path, changelog_producer=producer)
    stream = query(tmp_path, **KINDS)
    for step in range(12):
        keys = chance.sample(range(20), chance.randint(1, 6))
        table.write([{"id": key, "n": step} for key in keys])
        if chance.random() < 0.3 and producer != "input":  # Its changelog would have the row as it was read.
            table.delete(f"id = {chance.choice(keys)}", engine="local")
        if chance.random() < 0.4:
            table.compact(full=chance.random() < 0.5, engine="local")
        if chance.random() < 0.6:
            limits = {} if chance.random() < 0.4 else {"read.stream.maxFilesPerTrigger": str(chance.randint(1, 3))}
            stream.run(batches=chance.choice([1, 2, 100]), commit=chance.random() < 0.7, **limits)
    table.compact(full=True, engine="local")
    while stream.run(**{"read.stream.maxRowsPerTrigger": "7"}):
        pass
    copy: dict[int, int] = {}
    for _, batch in sorted(stream.sink.items()):
        for kind, key, n in batch:
            if kind in ("+I", "+U"):
                copy[key] = n
            elif kind == "-D":
                del copy[key]
    assert copy == {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}
    assert len(stream.sink) > 4

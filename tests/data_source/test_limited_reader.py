"""Limits of the batches of a stream, and the trigger availableNow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="PySpark 4.2 and later")

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)

from lakelsm import Catalog, Table
from lakelsm.data_source.source import DefaultSource
from tests.stream_queries import MicroBatches

WAIT = {"read.stream.minRowsPerTrigger": "3", "read.stream.maxTriggerDelayMs": "3600000"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    options = {"bucket": "1", "write-only": "true"}
    return Catalog(str(tmp_path)).create_table("d.t", {"id": "INT"}, primary_key="id", options=options)


def query(tmp_path: Path, **options: str) -> MicroBatches:
    return MicroBatches({"path": str(tmp_path / "d.db" / "t"), **options})


def reader(tmp_path: Path, **options: str) -> Any:
    source = DefaultSource(query(tmp_path, **options).options)
    return source.streamReader(source.schema())


def write(table: Table, *keys: int) -> None:
    for key in keys:
        table.write([{"id": key}])


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"read.stream.maxFilesPerTrigger": "2", "read.stream.maxRowsPerTrigger": "3"}, ReadMaxFiles(2)),
        ({"read.stream.maxBytesPerTrigger": "2", "read.stream.maxRowsPerTrigger": "3"}, ReadMaxBytes(2)),
        ({"read.stream.maxRowsPerTrigger": "3"}, ReadMaxRows(3)),
        (WAIT, ReadMinRows(3)),
    ],
)
def test_spark_gets_one_of_the_limits(tmp_path: Path, table: Table, options: dict[str, str], limit: ReadLimit) -> None:
    assert reader(tmp_path, **options).getDefaultReadLimit() == limit


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"read.stream.maxFilesPerTrigger": "2"}, [2, 2, 1]),
        ({"read.stream.maxRowsPerTrigger": "1"}, [1, 1, 1, 1, 1]),
        ({"read.stream.maxBytesPerTrigger": "1"}, [1, 1, 1, 1, 1]),
        ({"read.stream.maxFilesPerTrigger": "4", "read.stream.maxRowsPerTrigger": "3"}, [3, 2]),
        ({}, [5]),
    ],
)
def test_all_limits_cut_the_load_and_the_changes(
    tmp_path: Path, table: Table, options: dict[str, str], sizes: list[int]
) -> None:
    stream = query(tmp_path, **options)
    write(table, *range(5))
    assert [len(batch) for batch in stream.run()] == sizes
    write(table, *range(5, 10))
    assert [len(batch) for batch in stream.run()] == sizes
    assert [row for _, batch in sorted(stream.sink.items()) for row in batch] == [(key,) for key in range(10)]


def test_a_limit_that_spark_passes_overrides_the_option(tmp_path: Path, table: Table) -> None:
    write(table, *range(4))
    stream = reader(tmp_path, **{"read.stream.maxFilesPerTrigger": "1"})
    start = stream.initialOffset()
    for limit, rows in ((ReadMaxFiles(3), 3), (ReadMaxRows(2), 1), (ReadMaxBytes(1), 1)):
        end = stream.latestOffset(start, limit)
        assert sum(part.part.rows for part in stream.partitions(start, end)) == rows


def test_a_trigger_without_limits_reads_everything(tmp_path: Path, table: Table) -> None:
    write(table, *range(4))
    stream = reader(tmp_path, **{"read.stream.maxFilesPerTrigger": "1"})
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    assert sum(part.part.rows for part in stream.partitions(start, end)) == 4


def test_a_batch_waits_for_rows_and_a_query_that_ends_does_not(tmp_path: Path, table: Table) -> None:
    stream = reader(tmp_path, **WAIT)
    limit = stream.getDefaultReadLimit()
    write(table, 0)
    first = stream.latestOffset(stream.initialOffset(), limit)
    write(table, 1, 2)
    assert stream.latestOffset(first, limit) == first
    write(table, 3)
    assert stream.latestOffset(first, limit)["snapshot"] == 4
    write(table, 4)
    ends = reader(tmp_path, **WAIT)
    ends.prepareForTriggerAvailableNow()
    second = ends.latestOffset(first, limit)
    assert second["snapshot"] == 5
    write(table, 5)
    assert ends.latestOffset(second, limit) == second


def test_a_query_that_ends_reads_what_is_committed_when_it_starts(tmp_path: Path, table: Table) -> None:
    write(table, 0, 1)
    stream = reader(tmp_path, **{"scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "1"})
    stream.prepareForTriggerAvailableNow()
    write(table, 2)
    limit, ends = stream.getDefaultReadLimit(), [stream.initialOffset()]
    for _ in range(5):
        ends.append(json.loads(json.dumps(stream.latestOffset(ends[-1], limit))))
    assert [end.get("snapshot") for end in ends[1:]] == [1, 2, 2, 2, 2]
    assert ends[2] == ends[3]
    assert stream.reportLatestOffset()["snapshot"] == 3


def test_a_query_that_ends_loads_a_snapshot_that_is_committed_while_it_starts(tmp_path: Path, table: Table) -> None:
    write(table, 0)
    stream = reader(tmp_path)
    stream.prepareForTriggerAvailableNow()
    write(table, 1)
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert sum(part.part.rows for part in stream.partitions(start, end)) == 2
    write(table, 2)
    assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end

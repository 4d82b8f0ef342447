"""Times with nanoseconds of any year, flat and nested: Java Paimon and lakelsm change none of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelsm.types import parse_columns, to_arrow
from tests.engines import TableEngine
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.value_form import Rows, cut_to_micros, rows_of_arrow
from tests.nano_times import times_of_nanos

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "k INT, t TIMESTAMP(9), l TIMESTAMP(7) WITH LOCAL TIME ZONE, a ARRAY<TIMESTAMP(9)>, m MAP<STRING, TIMESTAMP(8)>, "
    "r ROW<x TIMESTAMP(9), y TIMESTAMP(6) WITH LOCAL TIME ZONE>, b TIMESTAMP(6), v INT"
)
FIELDS = parse_columns(COLUMNS)
FIRST, LAST = -62_135_596_800_000_000_001, 253_402_300_799_999_999_999
#: Among them times whose nanoseconds of the day are negative in Java's files.
NANOS = [FIRST + 2, LAST, -1, -999, -1001, None, 1_704_067_200_123_456_789]


def rows(first_key: int = 0, value: int = 0) -> pa.Table:
    """Return a row for each of `NANOS`, in every column with times."""
    times = times_of_nanos(NANOS).to_pylist()
    micros = [None if nanos is None else nanos // 1000 for nanos in NANOS]
    values = {
        "k": [first_key + at for at in range(len(NANOS))],
        "t": times,
        "l": times_of_nanos([nanos and nanos // 100 * 100 for nanos in NANOS]).to_pylist(),
        "a": [[time, None, times[0]] for time in times],
        "m": [[("x", time), ("y", times[1])] for time in times],
        "r": [{"x": time, "y": micro} for time, micro in zip(times, micros)],
        "b": micros,
        "v": [value] * len(NANOS),
    }
    return pa.table({field.name: pa.array(values[field.name], to_arrow(field.type)) for field in FIELDS})


def form(*tables: pa.Table) -> Rows:
    return rows_of_arrow(pa.concat_tables(tables), FIELDS)


@pytest.fixture
def ours(spark: SparkSession) -> LakelsmTables:
    """lakelsm on Spark, which cuts times to microseconds: Arrow's nanoseconds end in 2262."""
    return LakelsmTables(TableEngine("spark", spark))


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_times_of_java_survive_every_read_and_compaction(
    ours: LakelsmTables, java: JavaPaimon, path: Path, engine: str
) -> None:
    options = {"bucket": "1", "merge-engine": engine, "write-only": "true", "changelog-producer": "lookup"}
    java.create(path, COLUMNS, ["k"], options=options)
    expected = form(rows())
    java.write(path, rows())
    assert ours.read_nanos(path) == expected, "one file, nothing to merge"
    java.write(path, rows(value=1))
    java.write(path, rows(first_key=100))
    expected = form(rows(value=1), rows(first_key=100))
    assert ours.read_nanos(path) == expected, "merged by a read"
    ours.compact(path)
    assert ours.read_nanos(path) == expected, "merged by a compaction"
    assert java.read(path) == expected
    told = ours.table(path).changelog().toArrow()
    assert rows_of_arrow(told.select([field.name for field in FIELDS]), FIELDS) == cut_to_micros(expected, FIELDS)


def test_a_condition_finds_the_time_that_a_read_returns(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1", "write-only": "true"})
    java.write(path, rows())
    table = ours.table(path)

    def found(time: str) -> list[int]:
        condition = f"t = TIMESTAMP_NTZ'{time}'"
        keys = sorted(row.k for row in table.read(where=condition).collect())
        assert keys == sorted(row.k for row in table.read().where(condition).collect())
        return keys

    for _ in range(2):
        assert found("1969-12-31 23:59:59.999999") == [2, 3]
        assert found("1969-12-31 23:59:59.999998") == [4]
        assert found("1970-01-01 00:00:00") == []
        assert found("9999-12-31 23:59:59.999999") == [1]
        table.compact(full=True)


def test_java_reads_what_lakelsm_wrote(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    ours.create(path, COLUMNS, ["k"], options={"bucket": "2"})
    ours.write(path, rows())
    expected = cut_to_micros(form(rows()), FIELDS)
    assert ours.read(path) == expected
    assert java.read(path) == expected
    java.compact(path)
    assert ours.read(path) == expected


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_keys_and_partitions_with_nanoseconds_of_any_year_are_shared(
    ours: LakelsmTables, java: JavaPaimon, path: Path, legacy: str
) -> None:
    columns = "p TIMESTAMP(9), k TIMESTAMP(9), v INT"
    fields = parse_columns(columns)
    days = times_of_nanos([FIRST + 2, LAST, -1]).to_pylist()
    times = times_of_nanos([FIRST + 2, -1, -1000, -1001, 0, LAST]).to_pylist()

    def batch(value: int, keys: list[bytes]) -> pa.Table:
        values = {"p": [day for day in days for _ in keys], "k": keys * len(days), "v": [value] * len(days) * len(keys)}
        return pa.table({field.name: pa.array(values[field.name], to_arrow(field.type)) for field in fields})

    options = {"bucket": "4", "write-only": "true", "partition.legacy-name": legacy}
    java.create(path, columns, ["p", "k"], ["p"], options)
    java.write(path, batch(1, times))
    java.write(path, batch(2, times[1:3]))
    expected = rows_of_arrow(pa.concat_tables([batch(1, [times[0], *times[3:]]), batch(2, times[1:3])]), fields)
    assert ours.read_nanos(path) == java.read(path) == expected
    condition = "p = TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' AND k = TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'"
    assert [row.v for row in ours.table(path).read(where=condition).collect()] == [2, 2], "-1 and -1000 ns look alike"
    ours.compact(path)
    assert ours.read_nanos(path) == java.read(path) == expected
    # Keys of whole microseconds have the same hash and bucket in lakelsm.
    whole = times_of_nanos([-1000, 0]).to_pylist()
    ours.write(path, batch(3, whole).slice(2, 2))
    assert len(java.read(path)) == len(ours.read(path)) == len(expected) + 2, "a partition is cut to microseconds, too"

"""Rows of every type are unchanged after merges, changelogs and differences."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.spark.spark_types import to_struct

COLUMNS = (
    "k INT, n DOUBLE, bo BOOLEAN, ti TINYINT, sm SMALLINT, bi BIGINT, fl FLOAT, de DECIMAL(20, 3), ch CHAR(3), "
    "vc VARCHAR(5), bn BINARY(2), by BYTES, da DATE, tm TIME, t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9), "
    "l3 TIMESTAMP_LTZ(3), l6 TIMESTAMP_LTZ(6), l9 TIMESTAMP_LTZ(9), ar ARRAY<TIMESTAMP_LTZ(9)>, "
    "ma MAP<STRING, TIMESTAMP(9)>, ro ROW<x TIME, y TIMESTAMP_LTZ(3), z ARRAY<DECIMAL(5, 2)>>, mu MULTISET<STRING>"
)
LOCAL = dt.datetime(2020, 1, 2, 3, 4, 5, 678000)
INSTANT = LOCAL.replace(tzinfo=dt.timezone.utc)


def row(key: int, number: float) -> tuple[Any, ...]:
    return (
        *(key, number, True, 1, 2, 3, 0.5, Decimal("1.125"), "abc", "de", b"xy", b"z", dt.date(2020, 1, 1), 1000),
        *(LOCAL, LOCAL, LOCAL, INSTANT, INSTANT, INSTANT, [INSTANT, None], {"a": LOCAL}),
        *((5, INSTANT, [Decimal("1.25")]), {"q": 2}),
    )


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_rows_of_every_type_are_merged_and_reported_unchanged(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    options = {"bucket": "1", "write-only": "true", "changelog-producer": "lookup", "merge-engine": engine}
    table = Catalog(str(tmp_path), spark).create_table("db.t", COLUMNS, primary_key=["k"], options=options)
    struct = to_struct(table.schema.fields)

    def frame(*rows: tuple[Any, ...]) -> Any:
        return spark.createDataFrame(list(rows), struct)

    table.write(frame(row(1, 1.5), row(2, 2.5)))
    table.write(frame(row(1, 9.5)))
    expected = [tuple(found) for found in frame(row(1, 9.5), row(2, 2.5)).collect()]
    assert [tuple(found) for found in table.read().orderBy("k").collect()] == expected
    for mode in ("delta", "diff"):
        assert sorted(tuple(found) for found in table.changelog(mode=mode).collect()) == [("+I", *r) for r in expected]
    table.compact(full=False)
    table.write(frame(row(2, 3.5)))
    table.compact(full=False)
    old, new = (tuple(frame(row(2, number)).collect()[0]) for number in (2.5, 3.5))
    assert [tuple(found) for found in table.changelog(3).collect()] == [("-U", *old), ("+U", *new)]

"""Rows of every type come out of local reads and changelogs as they went in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from tests.compact.local_table import LocalTable

COLUMNS = (
    "k INT NOT NULL, n DOUBLE, bo BOOLEAN, ti TINYINT, sm SMALLINT, bi BIGINT, fl FLOAT, de DECIMAL(20, 3), ch CHAR(3), "
    "vc VARCHAR(5), bn BINARY(2), by BYTES, da DATE, tm TIME, t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9), "
    "l3 TIMESTAMP_LTZ(3), l6 TIMESTAMP_LTZ(6), ar ARRAY<DECIMAL(5, 2)>, ma MAP<STRING, TIMESTAMP(9)>, "
    "ro ROW<x TIME, z ARRAY<TIMESTAMP(9)>>, mu MULTISET<STRING>"
)
LOCAL = dt.datetime(2020, 1, 2, 3, 4, 5, 678000)
INSTANT = LOCAL.replace(tzinfo=dt.timezone.utc)


def row(key: int, number: float) -> tuple[Any, ...]:
    return (
        *(key, number, True, 1, 2, 3, 0.5, Decimal("1.125"), "abc", "de", b"xy", b"z", dt.date(2020, 1, 1)),
        *(dt.time(1, 2, 3, 4000), LOCAL, LOCAL, LOCAL, INSTANT, INSTANT, [Decimal("1.25"), None], [("a", LOCAL)]),
        *({"x": dt.time(1), "z": [LOCAL, None]}, [("q", 2)]),
    )


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_rows_of_every_type_are_merged_and_told(tmp_path: Path, engine: str) -> None:
    plain = LocalTable(tmp_path / "t", COLUMNS, ("k",), merge_engine=engine, changelog_producer="lookup")
    plain.write(row(1, 1.5), row(2, 2.5), (3, *[None] * 22))
    plain.write(row(1, 9.5))
    table = Table.for_path(str(plain.root))
    expected = [row(1, 9.5), row(2, 2.5), (3, *[None] * 22)]

    def tuples(found: pa.Table) -> list[tuple[Any, ...]]:
        # Python's times have microseconds; a Timestamp of pandas with none beyond them equals them.
        return [tuple(values.values()) for values in found.to_pylist()]

    assert tuples(table.to_arrow(ordered=True)) == expected
    assert sorted(tuples(table.to_arrow("k > 0")), key=lambda found: found[0]) == expected
    for where in ("de = 1.125", "t9 = '2020-01-02 03:04:05.678'", "l3 = '2020-01-02 03:04:05.678Z'", "by = X'7A'", "bo"):
        assert len(table.to_arrow(where, ["k"])) == 2, where
        assert int(table.count(where, engine="local")) == 2
    for mode in ("delta", "diff"):
        changes = tuples(table.changelog_reader(mode=mode).read_all())
        assert sorted(changes, key=lambda found: found[1]) == [("+I", *values) for values in expected]
    plain.compact(full=False)
    plain.write(row(2, 3.5))
    plain.compact(full=False)
    assert tuples(table.changelog_reader(3).read_all()) == [("-U", *row(2, 2.5)), ("+U", *row(2, 3.5))]

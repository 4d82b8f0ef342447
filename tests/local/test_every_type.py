"""Local reads and changelogs return rows of nested types unchanged; test_types_in_roles has the other types."""

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
    "k INT NOT NULL, n DOUBLE, t9 TIMESTAMP(9), ar ARRAY<DECIMAL(5, 2)>, ma MAP<STRING, TIMESTAMP(9)>, "
    "ro ROW<x TIME, z ARRAY<TIMESTAMP(9)>>, mu MULTISET<STRING>"
)
LOCAL = dt.datetime(2020, 1, 2, 3, 4, 5, 678000)


def row(key: int, number: float) -> tuple[Any, ...]:
    parts = [Decimal("1.25"), None], [("a", LOCAL)], {"x": dt.time(1), "z": [LOCAL, None]}, [("q", 2)]
    return key, number, LOCAL, *parts


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_rows_of_nested_types_are_merged_and_returned(tmp_path: Path, engine: str) -> None:
    plain = LocalTable(tmp_path / "t", COLUMNS, ("k",), merge_engine=engine, changelog_producer="lookup")
    plain.write(row(1, 1.5), row(2, 2.5), (3, *[None] * 6))
    plain.write(row(1, 9.5))
    table = Table.for_path(str(plain.root))
    expected = [row(1, 9.5), row(2, 2.5), (3, *[None] * 6)]

    def tuples(found: pa.Table) -> list[tuple[Any, ...]]:
        # Python's times have microseconds; a pandas Timestamp without finer digits equals them.
        return [tuple(values.values()) for values in found.to_pylist()]

    assert tuples(table.to_arrow(ordered=True)) == expected
    assert sorted(tuples(table.to_arrow("k > 0")), key=lambda found: found[0]) == expected
    for mode in ("delta", "diff"):
        changes = tuples(table.changelog_reader(mode=mode).read_all())
        assert sorted(changes, key=lambda found: found[1]) == [("+I", *values) for values in expected]
    plain.compact(full=False)
    plain.write(row(2, 3.5))
    plain.compact(full=False)
    assert tuples(table.changelog_reader(3).read_all()) == [("-U", *row(2, 2.5)), ("+U", *row(2, 3.5))]

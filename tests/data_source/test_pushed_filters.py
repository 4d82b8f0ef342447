"""Filters of Spark become conditions with the same rows, or are left to Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Catalog, Table
from lakelsm.data_source.pushed_filters import conditions

sources = pytest.importorskip("pyspark.sql.datasource")
pytestmark = pytest.mark.skipif(not hasattr(sources, "EqualTo"), reason="PySpark 4.0 has no filters")

UTC = dt.timezone.utc
ROW: dict[str, Any] = {
    "id": 1,
    "we`ird": 7,
    "s": "a\"b c",
    "bs": "a\\%_",
    "d": Decimal("1.50"),
    "f": 0.5,
    "b": b"\x00'",
    "day": dt.date(2020, 1, 2),
    "t": dt.datetime(2020, 1, 2, 3, 4, 5, 6),
    "l": dt.datetime(2020, 1, 2, 3, 4, 5, 6, UTC),
    "o": True,
    "x": None,
}
COLUMNS = {
    "id": "INT",
    "we`ird": "BIGINT",
    "s": "STRING",
    "bs": "STRING",
    "d": "DECIMAL(5, 2)",
    "f": "DOUBLE",
    "b": "BYTES",
    "day": "DATE",
    "t": "TIMESTAMP(6)",
    "l": "TIMESTAMP_LTZ(6)",
    "o": "BOOLEAN",
    "x": "INT",
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, primary_key="id", options={"bucket": "1"})
    table.write([ROW])
    return table


def found(table: Table, each: Any) -> tuple[int, int]:
    """Return the number of conditions and of rows that match."""
    texts = list(conditions([each], table.schema))
    return len(texts), len(table.to_arrow(" AND ".join(texts) or None))


def test_a_value_of_each_type_is_compared_exactly(table: Table) -> None:
    pushed = []
    for name, value in ROW.items():
        if value is None:
            continue
        count, rows = found(table, sources.EqualTo((name,), value))
        assert rows == 1, name
        pushed += [name] * count
        assert found(table, sources.Not(sources.EqualTo((name,), value))) == (count, 1 - count), name
        assert found(table, sources.In((name,), (value,)))[1] == 1, name
    assert {"id", "we`ird", "s", "d", "f", "day", "t"} <= set(pushed)


def test_comparisons_nulls_and_texts(table: Table) -> None:
    assert found(table, sources.GreaterThan(("id",), 1)) == (1, 0)
    assert found(table, sources.GreaterThanOrEqual(("id",), 1)) == (1, 1)
    assert found(table, sources.LessThan(("id",), 1)) == (1, 0)
    assert found(table, sources.LessThanOrEqual(("id",), 1)) == (1, 1)
    assert found(table, sources.EqualNullSafe(("x",), 1)) == (1, 0)
    assert found(table, sources.IsNull(("x",))) == (1, 1)
    assert found(table, sources.IsNotNull(("x",))) == (1, 0)
    assert found(table, sources.StringStartsWith(("s",), 'a"b')) == (1, 1)
    assert found(table, sources.StringStartsWith(("s",), '"b')) == (1, 0)
    assert found(table, sources.StringEndsWith(("s",), "b c")) == (1, 1)
    assert found(table, sources.StringContains(("s",), '"b')) == (1, 1)
    assert found(table, sources.StringContains(("s",), '"c')) == (1, 0)


def test_other_filters_are_left_to_spark(table: Table) -> None:
    for each in (
        sources.EqualTo(("r", "x"), 1),
        sources.EqualTo(("none",), 1),
        sources.EqualTo(("f",), float("nan")),
        sources.EqualTo(("id",), None),
        sources.In(("id",), (1, None)),
        sources.In(("id",), ()),
        sources.EqualTo(("bs",), "a\\%"),
        sources.EqualTo(("s",), "a'b"),
        sources.StringStartsWith(("s",), "a%c"),
        sources.StringContains(("s",), "_"),
        object(),
    ):
        assert found(table, each) == (0, 1)

"""``lakelsm head``, ``lakelsm snapshots`` and ``lakelsm files``."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from tests.cli.called import Called

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "f": [float("nan"), 1.5, None],
        "b": [b"\x01\xff", None, b""],
        "d": [Decimal("1.10"), None, Decimal("-2.00")],
        "t": pa.array([dt.datetime(2020, 1, 1, 1, 2, 3, 4), None, None], pa.timestamp("us")),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "v": ["x" * 100, "a\n\x1b[2J", None],
    }
)


@pytest.fixture
def table(called: Called) -> Table:
    catalog = Catalog(str(called.warehouse))
    table = catalog.create_table("db.t", ROWS, primary_key="id", options={"bucket": "1"}, load=True)
    table.write(ROWS.slice(0, 1).set_column(1, "f", pa.array([2.5])))
    return table


def test_rows_are_shown_as_text_and_as_json(called: Called, table: Table) -> None:
    found = called.json("head", "--ordered", "--snapshot", "1")["rows"]
    assert found[0] == {
        "id": 1, "f": "nan", "b": "01ff", "d": "1.10", "t": "2020-01-01T01:02:03.000004", "m": [["k", 1]], "v": "x" * 100
    }  # fmt: skip
    assert found[1]["v"] == "a\n\x1b[2J" and found[2]["m"] == []
    lines = called.text("head", "--where", "id < 3", "--columns", "id,v", "--ordered").splitlines()
    assert lines == ["db.t: 2 rows", "id  v", f"1   {'x' * 59}…", "2   a\\n\\x1b[2J"]
    assert [row["f"] for row in called.json("head", "--where", "id = 1")["rows"]] == [2.5]
    assert len(called.json("head", "-n", "2")["rows"]) == 2
    assert called.text("head", "--limit", "0") == "db.t: no rows\n"


def test_a_wrong_request_is_one_line(called: Called, table: Table) -> None:
    assert "no" in called.error("head", "--columns", "no")
    assert "snapshot 9" in called.error("head", "--snapshot", "9")
    assert "'late'" in called.error("files", "--tag", "late")
    assert "--limit: expected a whole number, got 'x'" in called.usage("head", "--limit", "x")
    assert "not allowed with" in called.usage("head", "--snapshot", "1", "--tag", "a")


def test_snapshots_and_files_are_shown(called: Called, table: Table) -> None:
    found = called.json("snapshots")["snapshots"]
    assert [each["snapshot_id"] for each in found] == list(range(1, len(found) + 1))
    assert called.text("snapshots").splitlines()[0] == f"db.t: {len(found)} snapshots"
    assert len(called.json("files", "--snapshot", "1")["files"]) == 1
    assert "bucket" in called.text("files").splitlines()[1]

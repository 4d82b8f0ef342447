"""System tables of Java Paimon and lakelsm have the same columns and rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakelsm.snapshots.consumer_store import consumer_text
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.named_tables import SYSTEM_TABLES
from lakelsm.system_tables.system_table import SystemTable, TableState
from lakelsm.types import DataField, parse_type
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of
from tests.interop.value_form import rows_of_arrow
from tests.system_tables.states import AT_UTC

COLUMNS = (
    "d DATE, p STRING, k BIGINT, t TIMESTAMP(6), n DECIMAL(30, 12), f FLOAT, b BOOLEAN, h TIME(3), a ARRAY<INT>, "
    "r ROW<x INT>"
)
VALUES: dict[str, list[Any]] = {
    "t": [1_600_000_000_123_456, 0, None, -1_000],
    "n": [Decimal("-1.000000000001"), Decimal("12345678901234567.5"), None, Decimal(0)],
    "f": [1.5, 1e10, None, -0.0],
    "b": [True, False, None, True],
    "h": [0, 86_399_999, None, 1_000],
    "a": [[1, None], [], None, [2]],
    "r": [{"x": 1}, {"x": None}, None, {"x": 2}],
}


def assert_equal(java: JavaPaimon, path: Path) -> None:
    """Java's columns are the first of lakelsm's (later releases have more), and the rows are equal."""
    store = TableStore.open(str(path))
    state = TableState(store, store.snapshots.latest(), AT_UTC)
    for name, table in SYSTEM_TABLES.items():
        if not isinstance(table, SystemTable):
            continue
        columns, rows = java.system(path, name)
        fields = table.fields[: len(columns)]
        assert [(field.name, field.type.sql()) for field in fields] == columns, name
        found = table.rows(state).select([field.name for field in fields])
        if name in ("branches", "tags"):  # Java's times differ: those of a directory, and finer than the column.
            times = [at for at, field in enumerate(fields) if field.name == "create_time"]
            rows = [tuple(value for at, value in enumerate(row) if at not in times) for row in rows]
            fields = tuple(field for field in fields if field.name != "create_time")
            found = found.select([field.name for field in fields])
        assert rows_of_arrow(found, fields) == rows, name


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "2"},
        {"bucket": "-1", "changelog-producer": "input"},
        {"deletion-vectors.enabled": "true", "bucket": "1", "changelog-producer": "lookup"},
        {"bucket": "1", "changelog-producer": "full-compaction"},
    ],
)
def test_every_table_of_metadata_has_javas_rows(
    ours: LakelsmTables, java: JavaPaimon, path: Path, options: dict[str, str]
) -> None:
    keys = {"d": [0, 20_000, 20_000, -1], "p": ["x=1", "a", "a", "ü b"], "k": [1, 2, 3, 4]}
    java.create(path, COLUMNS, ["d", "p", "k"], ["d", "p"], options)
    java.write(path, rows_of(COLUMNS, {**keys, **VALUES}))
    java.write(path, rows_of(COLUMNS, {**keys, **VALUES, "k": [1, 9, 3, 5]}), ["+I", "+I", "-D", "+U"])
    java.compact(path)
    assert_equal(java, path)
    java.alter(path, ("rename", "b", "c"), ("type", "f", "DOUBLE"), ("add", "z", "INT"), ("drop", "h"))
    columns = COLUMNS.replace("b BOOLEAN, h TIME(3)", "c BOOLEAN").replace("f FLOAT", "f DOUBLE") + ", z INT"
    more = {"c" if name == "b" else name: values for name, values in VALUES.items() if name != "h"}
    rows = rows_of(columns, {**keys, **more, "z": [1, 2, 3, None]})
    java.write(path, rows)
    ours.write(path, rows)
    ours.compact(path)
    ours.write(path, rows)
    table = ours.table(path)
    assert table.maintenance.analyze(engine="local").rows == len(ours.read(path))
    table.tags.create("kept", snapshot=1, time_retained="26 h")
    table.tags.create("for good", snapshot=2)
    table.branches.create("b", tag="kept")
    store = TableStore.open(str(path))
    store.file_io.write(store.paths.consumer("reader"), consumer_text(3))
    assert_equal(java, path)


ENGINES = {
    "deduplicate": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    },
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "sequence": {"table-read.sequence-number.enabled": "true", "sequence.field": "v"},
    "lookup": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "changelog-producer": "lookup"},
}


@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
def test_the_tables_of_rows_have_javas_rows_before_and_after_compactions(
    ours: LakelsmTables, java: JavaPaimon, path: Path, options: dict[str, str]
) -> None:
    columns = "k INT, v INT, w STRING"
    java.create(path, columns, ["k"], options={"bucket": "1", "write-only": "true", **options})

    def assert_rows() -> None:
        for name in ("audit_log", "binlog", "ro"):
            kinds, rows = java.system(path, name)
            fields = [DataField(at, column, parse_type(kind)) for at, (column, kind) in enumerate(kinds)]
            assert rows_of_arrow(ours.table(path).inspect.system(name).to_arrow(), fields) == rows, name

    retracts = "aggregation" if "lookup" in options.values() else ""
    for number, kinds in enumerate((["+I"] * 4, ["+I", "+U", "-D", "+I"], ["-D", "+I", "+I", "-D"])):
        words = ["a", None, "c", str(number)]
        values = {"k": [1 + number, 2 + number, 3 + number, 9], "v": [1, 2, 3, number], "w": words}
        java.write(path, rows_of(columns, values), ["+I"] * 4 if retracts else kinds)
        assert_rows()
        if number == 0:
            java.compact(path)
            assert_rows()
    java.compact(path, full=False)
    assert_rows()
    java.compact(path)
    assert_rows()


def test_java_reads_statistics_of_columns_newer_than_the_newest_snapshot(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    ours.create(path, "k INT, v INT, w STRING", ["k"], options={"bucket": "1"})
    ours.write(path, rows_of("k INT, v INT, w STRING", {"k": [1], "v": [2], "w": ["a"]}))
    java.alter(path, ("add", "x", "INT"), ("rename", "v", "y"), ("drop", "w"))
    assert ours.table(path).maintenance.analyze(engine="local").rows == 1
    assert_equal(java, path)

"""System tables with rows: `audit_log`, `binlog` and `ro`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table, TableView
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.data_tables import READ_OPTIMIZED
from lakelsm.system_tables.system_table import TableState


def table_of(tmp_path: Path, **options: str) -> Table:
    given = {"bucket": "1", "write-only": "true", **{key.replace("_", "-"): value for key, value in options.items()}}
    return Catalog(str(tmp_path)).create_table("db.t", "k INT, v INT, w INT", primary_key=["k"], options=given)


def write(table: Table, kinds: str, *rows: tuple[int, int | None, int | None]) -> None:
    arrays = [pa.array(values, pa.int32()) for values in zip(*rows)]
    kind = pa.array([f"{'-' if each == 'D' else '+'}{each}" for each in kinds])
    table.write(pa.Table.from_arrays([*arrays, kind], ["k", "v", "w", "kind"]), row_kind="kind")


def shown(table: Table | TableView, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.inspect.system(name).to_arrow().to_pylist()), key=repr)


def test_an_audit_log_has_retractions_until_a_compaction_drops_them(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    write(table, "II", (1, 1, None), (2, 2, None))
    write(table, "DU", (1, 1, None), (2, 3, None))
    assert shown(table, "audit_log") == [("+U", 2, 3, None), ("-D", 1, 1, None)]
    assert shown(table, "binlog") == [("+U", [2], [3], [None]), ("-D", [1], [1], [None])]
    assert shown(table.at(snapshot=1), "audit_log") == [("+I", 1, 1, None), ("+I", 2, 2, None)]
    assert shown(table, "ro") == []
    table.compact(full=True)
    assert shown(table, "audit_log") == [("+U", 2, 3, None)]
    write(table, "I", (2, 9, None))
    assert shown(table, "ro") == [(2, 3, None)]


def test_sequence_numbers_follow_the_kind_if_the_option_is_set(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"table-read.sequence-number.enabled": "true"})
    write(table, "II", (1, 1, None), (2, 2, None))
    write(table, "DU", (1, 1, None), (2, 3, None))
    assert table.inspect.system("audit_log").to_arrow().schema.names == ["rowkind", "_SEQUENCE_NUMBER", "k", "v", "w"]
    assert shown(table, "audit_log") == [("+U", 3, 2, 3, None), ("-D", 2, 1, 1, None)]
    assert shown(table, "binlog") == [("+U", 3, [2], [3], [None]), ("-D", 2, [1], [1], [None])]


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_merge_engines_that_combine_rows_show_merged_rows(tmp_path: Path, producer: str) -> None:
    table = table_of(tmp_path, merge_engine="partial-update", changelog_producer=producer)
    write(table, "I", (1, 1, None))
    table.compact()
    write(table, "I", (1, None, 2))
    assert shown(table, "audit_log") == [("+I", 1, 1, 2)]
    assert shown(table, "binlog") == [("+I", [1], [1], [2])]


def test_masked_rows_and_level_0_are_left_out(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "1"})
    write(table, "III", (1, 1, 1), (2, 2, 2), (3, 3, 3))
    table.compact(full=True)
    write(table, "D", (1, 1, 1))
    table.compact()
    write(table, "U", (2, 9, 9))
    assert shown(table, "audit_log") == [("+I", 2, 2, 2), ("+I", 3, 3, 3)]
    assert shown(table, "ro") == [(2, 2, 2), (3, 3, 3)]


def test_a_table_without_snapshots_has_the_columns_and_no_rows(tmp_path: Path) -> None:
    table_of(tmp_path)
    store = TableStore.open(str(tmp_path / "db.db" / "t"))
    assert READ_OPTIMIZED.rows(TableState(store, None)).schema.names == ["k", "v", "w"]
    table = Table(store)
    assert table.inspect.system("audit_log").to_arrow().schema.names == ["rowkind", "k", "v", "w"]
    assert table.inspect.system("binlog").to_arrow().schema.field("v").type == pa.list_(pa.int32())

"""Indexes of data files: each engine reads those of the other and skips files by them. Without Spark of lakelsm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.data_file.key_value_file import KeyValueReader
from lakelsm.format.index.file_index.file_index_container import FileIndexContainer
from lakelsm.format.index.file_index.index_builder import FileIndexBuilder
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.parser import parse_where
from lakelsm.schema.option_rules import can_have_index
from lakelsm.types import parse_columns, parse_type, to_arrow
from tests.compact.local_table import LocalTable
from tests.conformance.table_case import KindedRow
from tests.interop.peers import JavaPaimon
from tests.interop.samples import ALL_TYPES, all_types_columns, all_types_rows, column_name, rows_of
from tests.interop.value_form import cut_to_micros, in_order, rows_of_arrow
from tests.read.file_engine import FileTable, filtered

COLUMNS = all_types_columns()


def indexed(threshold: str, version: str = "2") -> dict[str, str]:
    """Return the options of a table with each index that a column can have."""
    names = {
        kind: [column_name(sql) for sql in ALL_TYPES if can_have_index(kind, parse_type(sql))]
        for kind in (BLOOM_FILTER, BITMAP)
    }
    options = {f"file-index.{kind}.columns": ",".join(columns) for kind, columns in names.items()}
    options |= {f"file-index.{BLOOM_FILTER}.{name}.items": "20" for name in names[BLOOM_FILTER]}
    options |= {f"file-index.{BITMAP}.{name}.version": version for name in names[BITMAP]}
    return {**options, "file-index.in-manifest-threshold": threshold, "bucket": "1", "write-only": "true"}


def rows_in_memory() -> pa.Table:
    """Return the rows of `all_types_rows` in lakelsm's types for values in memory."""
    rows = all_types_rows()
    return pa.table({f.name: cast_column(rows.column(f.name), to_arrow(f.type)) for f in parse_columns(COLUMNS)})


def scanned(table: LocalTable, where: str) -> int:
    predicate = parse_where(where, table.store.schema.fields)
    return plan_read(table.store, table.store.snapshots.latest(), predicate).files_scanned


@pytest.mark.parametrize(("threshold", "version"), [("1 mb", "2"), ("1 b", "2"), ("1 b", "1")])
def test_java_and_lakelsm_write_equal_indexes_of_the_same_rows(
    java: JavaPaimon, path: Path, threshold: str, version: str
) -> None:
    java.create(path, COLUMNS, ["k"], options=indexed(threshold, version))
    java.write(path, all_types_rows())
    table = LocalTable(path)
    (entry,) = table.live()
    location = FileIndexLocation.of(entry.file, str(table.path_of(entry).parent))
    assert location is not None
    assert (location.path is None) == (threshold == "1 mb")
    theirs = FileIndexContainer.decode(location.embedded or Path(str(location.path)).read_bytes(), "theirs").bodies
    schema = table.store.schema
    builder = FileIndexBuilder([(index, schema.field(index.column).type) for index in table.store.options.file_indexes])
    mapping = [(field, field) for field in schema.fields]
    reader = KeyValueReader(table.store.file_io.filesystem(), str(table.path_of(entry)), mapping)
    for _, rows in reader.batches(lambda: 1 << 20):
        builder.add(rows)
    ours = FileIndexContainer.decode(builder.encode(), "ours").bodies
    assert {name: set(kinds) for name, kinds in ours.items()} == {name: set(kinds) for name, kinds in theirs.items()}
    for name, kinds in theirs.items():
        for kind, body in kinds.items():
            if version == "2" or kind == BLOOM_FILTER:  # Java does not sort the values of the first layout.
                assert ours[name][kind] == body, (name, kind)
    values: dict[str, Any] = {"string": "z" * 40, "int": 3, "bigint": -(2**63)}
    for name, value in values.items():
        assert scanned(table, f"{name} = {value!r}") == 1
    assert scanned(table, "`string` = 'nothing'") == scanned(table, "`int` NOT IN (3, 2147483647, -2147483648)") == 0


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"])
@pytest.mark.parametrize("version", ["1", "2"])
def test_java_finds_every_row_by_indexes_of_lakelsm(java: JavaPaimon, path: Path, threshold: str, version: str) -> None:
    fields = parse_columns(COLUMNS)
    java.create(path, COLUMNS, ["k"], options={**indexed(threshold, version), "metadata.stats-mode": "none"})
    table = LocalTable(path)
    table.write_columns(rows_in_memory())
    table.compact(full=True)
    expected = rows_of_arrow(all_types_rows(), fields)
    assert cut_to_micros(java.read(path), fields) == cut_to_micros(expected, fields)
    for kind in ("TINYINT", "BIGINT", "STRING", "VARCHAR(20)", "CHAR(5)", "BOOLEAN"):
        at = [field.name for field in fields].index(column_name(kind))
        for value in ALL_TYPES[kind]:
            found = java.read(path, ("equal", fields[at].name, value))
            wanted = in_order(row for row in expected if row[at] == value)
            assert cut_to_micros(found, fields) == cut_to_micros(wanted, fields), (kind, value)
    assert java.read(path, ("equal", "string", "nothing")) == []


def test_java_skips_a_file_of_lakelsm_by_its_index(java: JavaPaimon, path: Path) -> None:
    options = {"bucket": "1", "metadata.stats-mode": "none", "file-index.bloom-filter.columns": "v"}
    options |= {"file-index.bloom-filter.v.items": "10", "write-only": "true"}
    java.create(path, "k INT NOT NULL, v STRING", ["k"], options=options)
    table = LocalTable(path)
    table.write((1, "a"), (2, "b"))
    table.compact(full=True)
    (entry,) = table.live()
    table.path_of(entry).unlink()
    assert java.read(path, ("equal", "v", "nothing")) == []
    with pytest.raises(AssertionError, match="FileNotFound"):
        java.read(path, ("equal", "v", "a"))


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"])
def test_no_index_finds_masked_rows_after_either_engine_continues(
    java: JavaPaimon, path: Path, threshold: str
) -> None:
    options = {"bucket": "1", "metadata.stats-mode": "none", "deletion-vectors.enabled": "true"}
    options |= {"file-index.bitmap.columns": "v", "file-index.bloom-filter.columns": "k", "write-only": "true"}
    options |= {"file-index.bloom-filter.k.items": "100", "file-index.in-manifest-threshold": threshold}
    columns = "k INT NOT NULL, v STRING"
    java.create(path, columns, ["k"], options=options)
    table = FileTable(path)
    table.write([KindedRow("+I", (k, "old")) for k in range(50)], {})
    table.compact()
    table.write([KindedRow("+I", (3, "new")), KindedRow("-D", (4, "old"))], {})
    table.compact(full=False)
    assert java.read(path, ("equal", "v", "new")) == [(3, "new")]
    assert sorted(java.read(path, ("equal", "v", "old"))) == [(k, "old") for k in range(50) if k not in (3, 4)]

    java.write(path, rows_of(columns, {"k": [5, 60], "v": ["newer", "newer"]}))
    java.compact(path, full=False)
    for where, expected in (("v = 'newer'", [5, 60]), ("v = 'new'", [3]), ("k = 60", [60]), ("v = 'none'", [])):
        plan = plan_read(table.store, table.store.snapshots.latest(), parse_where(where, table.store.schema.fields))
        assert sorted(row["k"] for row in filtered(table.scanned(plan), where).to_pylist()) == expected
        assert plan.files_scanned == (1 if expected else 0)
    assert sorted(java.read(path, ("equal", "v", "newer"))) == [(5, "newer"), (60, "newer")]

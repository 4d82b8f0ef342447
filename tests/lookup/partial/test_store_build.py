"""StoreBuild: the rows of a data file as a store has them, and under which mark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.store_build import StoreBuild, StoredColumns
from lakelsm.predicate.predicate import IsNotNull
from lakelsm.schema_changes import AddColumn, DropColumn
from tests.compact.local_table import LocalTable
from tests.lookup.partial.dict_store import DictFormat


def test_a_store_has_the_columns_that_the_lookup_its_condition_and_the_merge_need(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id INT NOT NULL, v STRING, w INT, x INT, y INT", sequence__field="y")
    spec = LookupSpec(table.store, ("id",), ("id", "v"), predicate=IsNotNull("w"))
    stored = StoredColumns.of(spec, merged=True, positions=True)
    assert stored.names == ("id", "v", "w", "y", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_KEY__POSITION")


def test_all_rows_of_the_file_are_in_its_store_retractions_too_and_partition_columns_are_not(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "dt STRING NOT NULL, id INT NOT NULL, v STRING", ["dt", "id"], ["dt"])
    table.write(("a", 1, "x"), ("a", 2, "y"))
    table.alter(AddColumn("w", "INT"))
    table.delete(("a", 3, None, None))
    spec = LookupSpec(table.store, ("dt", "id"), ("v", "w"))
    stored = StoredColumns.of(spec, merged=True, positions=True)
    files = sorted(LiveBuckets.of(spec, table.latest).files, key=lambda file: file.schema_id)
    directory = CacheDirectory.private()
    build = StoreBuild(
        spec,
        stored,
        format=DictFormat(),
        directory=directory,
        names={file: f"store{file.schema_id}" for file in files},
        schemas=table.store.schemas_of([0, 1]),
        memory_bytes=1 << 20,
    )
    found = []
    for file in files:
        assert list(build(file)) == []
        store = DictFormat().open(directory.file(f"store{file.schema_id}"), stored.layout(file))
        found.append(store.find(pa.table({"id": pa.array([1, 2, 3], pa.int32())})).rows.to_pylist())
    directory.close()
    system = ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_KEY__POSITION")
    assert [[tuple(row.values()) for row in rows] for rows in found] == [
        [("x", None, 0, 0, 0), ("y", None, 1, 0, 1)], [(None, None, 2, 3, 0)]
    ]
    assert [*found[0][0]] == ["v", "w", *system]


def test_another_column_of_the_same_name_is_another_store(tmp_path: Path) -> None:
    table = LocalTable(tmp_path)
    table.write((1, "a"))
    before = LookupSpec(table.store, ("id",), ("v",))
    table.alter(DropColumn("v"), AddColumn("v", "STRING"))
    after = LookupSpec(table.store, ("id",), ("v",))
    (file,) = LiveBuckets.of(before, table.latest).files
    marks = [StoredColumns.of(spec, merged=True, positions=False).layout(file).mark for spec in (before, after)]
    assert marks[0] != marks[1]

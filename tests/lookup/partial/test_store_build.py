"""StoreBuild: the rows of a data file in a store, and the digest of the store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.store_build import StoreBuild, StoredColumns, store_format
from lakelsm.lookup.store.arrow_store import ArrowStoreFormat
from lakelsm.lookup.store.hash_store import HashStoreFormat
from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.lookup.store.sort_store import SortStoreFormat
from lakelsm.options import StoreKind, TableOptions
from lakelsm.predicate.predicate import IsNotNull
from lakelsm.schema_changes import AddColumn, DropColumn
from tests.compact.local_table import LocalTable
from tests.lookup.partial.dict_store import DictFormat


def test_a_store_has_the_columns_that_the_lookup_its_condition_and_the_merge_need(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id INT NOT NULL, v STRING, w INT, x INT, y INT", sequence__field="y")
    spec = LookupSpec(table.store, ("id",), ("id", "v"), predicate=IsNotNull("w"))
    stored = StoredColumns.of(spec, merged=True, positions=True)
    assert stored.names == ("id", "v", "w", "y", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_KEY__POSITION")


def test_a_store_has_all_rows_with_retractions_but_no_partition_columns(tmp_path: Path) -> None:
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
    digests = [StoredColumns.of(spec, merged=True, positions=False).layout(file).digest for spec in (before, after)]
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("text", "kind"), [("arrow", ArrowStoreFormat), ("sort", SortStoreFormat), ("hash", HashStoreFormat)]
)
def test_each_kind_has_its_format(text: str, kind: type) -> None:
    assert isinstance(store_format(TableOptions.parse({"lookup.local-file-type": text})), kind)


def test_every_value_of_the_option_has_a_format_and_there_is_a_default() -> None:
    for kind in StoreKind:
        store_format(TableOptions.parse({"lookup.local-file-type": kind.value}))
    assert isinstance(store_format(TableOptions.parse({})), ArrowStoreFormat)


def test_the_options_of_hash_stores_are_those_of_the_table() -> None:
    options = {
        "lookup.local-file-type": "hash",
        "lookup.hash-load-factor": "0.5",
        "cache-page-size": "4 kb",
        "lookup.cache-spill-compression": "lz4",
        "lookup.cache.bloom.filter.fpp": "0.01",
        "lookup.cache-max-memory-size": "1 mb",
    }
    chosen = store_format(TableOptions.parse(options))
    assert isinstance(chosen, HashStoreFormat)
    assert chosen.load_factor == 0.5
    assert chosen.form == BlockForm(4096, compression=BlockCompression.LZ4, bloom_fpp=0.01)
    assert chosen.cache.max_bytes == 1 << 19
    without = store_format(TableOptions.parse(options | {"lookup.cache.bloom.filter.enabled": "false"}))
    assert isinstance(without, HashStoreFormat) and without.form.bloom_fpp is None

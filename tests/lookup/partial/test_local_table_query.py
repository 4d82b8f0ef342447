"""LocalTableQuery: keys in any order, repeated or unknown, of several buckets and partitions at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.local_table_query import LocalTableQuery
from lakelsm.lookup.partial.lookup_files import LookupFiles
from lakelsm.lookup.partial.row_masks import RowMasks
from lakelsm.lookup.partial.store_build import StoredColumns
from tests.compact.local_table import LocalTable
from tests.lookup.partial.dict_store import DictFormat


@pytest.fixture
def directory() -> Iterator[CacheDirectory]:
    made = CacheDirectory.private()
    yield made
    made.close()


def _query(table: LocalTable, directory: CacheDirectory, columns: tuple[str, ...]) -> LocalTableQuery:
    spec = LookupSpec(table.store, table.store.schema.primary_keys, columns)
    stored = StoredColumns.of(spec, merged=True, positions=False)
    files = LookupFiles(spec, stored, format=DictFormat(), directory=directory)
    return LocalTableQuery(
        LiveBuckets.of(spec, table.store.snapshots.latest()), files, RowMasks(table.store.file_io, memory_bytes=1)
    )


def test_rows_come_in_the_order_of_the_keys_each_as_often_as_asked_for(directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(
        tmp_path, "p STRING NOT NULL, id INT NOT NULL, v INT", ["p", "id"], ["p"], bucket="3", write_only="true"
    )
    table.write(*(("ab"[at % 2], at // 2, at) for at in range(40)))
    table.write(*(("ab"[at % 2], at // 2, -at) for at in range(0, 40, 3)))
    query = _query(table, directory, ("v", "p"))
    ids = [19, 0, 3, 19, 500, 1, 3]
    found = query.find(pa.table({"p": list("babbabx"), "id": pa.array(ids, pa.int32())}))
    assert found.probes.tolist() == [0, 1, 2, 3, 5]
    assert found.rows.to_pylist() == [
        {"v": -39, "p": "b"}, {"v": 0, "p": "a"}, {"v": 7, "p": "b"}, {"v": -39, "p": "b"}, {"v": -3, "p": "b"}
    ]
    query.files.close()


@pytest.mark.parametrize("written", [True, False])
def test_keys_that_nothing_has_give_no_rows_with_the_columns_all_the_same(
    written: bool, directory: CacheDirectory, tmp_path: Path
) -> None:
    table = LocalTable(tmp_path)
    if written:
        table.write((1, "a"), (3, "a"))
        table.delete((1, None))
    query = _query(table, directory, ("v", "id"))
    for keys in ([1, 2, 9], []):
        found = query.find(pa.table({"id": pa.array(keys, pa.int32())}))
        assert found.probes.tolist() == []
        assert found.rows.schema.names == ["v", "id"]
    query.files.close()


def test_an_older_file_is_not_opened_where_a_newer_one_has_the_key(directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(tmp_path)
    for value in "ab":
        table.write((1, value), (9, value))
    query = _query(table, directory, ("v",))
    found = query.find(pa.table({"id": pa.array([1, 9], pa.int32())}))
    assert found.rows.column("v").to_pylist() == ["b", "b"]
    assert len(directory.names()) == 1
    assert query.find(pa.table({"id": pa.array([5], pa.int32())})).probes.tolist() == []
    assert len(directory.names()) == 2
    query.files.close()


def test_zeros_of_a_float_key_are_one_key_and_all_nans_are(directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "f DOUBLE NOT NULL, v INT", ["f"], bucket="4")
    table.write((0.0, 1), (float("nan"), 2))
    query = _query(table, directory, ("v",))
    (bits,) = pa.array([0x7FF8000000000123], pa.int64()).buffers()[1:]
    odd = pa.Array.from_buffers(pa.float64(), 1, [None, bits])
    found = query.find(pa.table({"f": pa.chunked_array([[-0.0], odd])}))
    assert found.rows.column("v").to_pylist() == [1, 2]
    query.files.close()

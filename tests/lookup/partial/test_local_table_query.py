"""LocalTableQuery: keys in any order, repeated or unknown, of several buckets and partitions; and single keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.local_table_query import LocalTableQuery
from lakelsm.lookup.partial.lookup_files import LookupFiles
from lakelsm.lookup.partial.row_masks import RowMasks
from lakelsm.lookup.partial.store_build import StoredColumns
from lakelsm.lookup.store.arrow_store import ArrowStoreFormat
from lakelsm.predicate.predicate import IsNotNull
from lakelsm.schema_changes import SetOption
from lakelsm.types import to_arrow
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


def test_rows_have_the_order_of_the_keys_and_repeat_with_them(directory: CacheDirectory, tmp_path: Path) -> None:
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
def test_missing_keys_give_no_rows_but_all_columns(
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


def test_an_older_file_is_not_opened_if_a_newer_one_has_the_key(directory: CacheDirectory, tmp_path: Path) -> None:
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


def test_zeros_of_a_float_key_are_equal_and_so_are_nans(directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "f DOUBLE NOT NULL, v INT", ["f"], bucket="4")
    table.write((0.0, 1), (float("nan"), 2))
    query = _query(table, directory, ("v",))
    (bits,) = pa.array([0x7FF8000000000123], pa.int64()).buffers()[1:]
    odd = pa.Array.from_buffers(pa.float64(), 1, [None, bits])
    found = query.find(pa.table({"f": pa.chunked_array([[-0.0], odd])}))
    assert found.rows.column("v").to_pylist() == [1, 2]
    query.files.close()


def _plain(table: LocalTable, directory: CacheDirectory, key: tuple[str, ...], **more: Any) -> LocalTableQuery:
    spec = LookupSpec(table.store, key, (*key, "v"), **more)
    live = LiveBuckets.of(spec, table.latest)
    stored = StoredColumns.of(spec, merged=live.merges, positions=live.has_vectors)
    files = LookupFiles(spec, stored, format=ArrowStoreFormat(), directory=directory)
    return LocalTableQuery(live, files, RowMasks(table.store.file_io, memory_bytes=1))


def _check(query: LocalTableQuery, keys: list[tuple[Any, ...]]) -> int:
    """Compare single keys with a batch of them, which opens the files. Return how many have a row."""
    spec = query.live.spec
    kinds = [to_arrow(spec.store.schema.field(name).type) for name in spec.key]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*keys), kinds)]
    batch = query.find(pa.table(columns, list(spec.key)))
    expected = dict(zip(batch.probes.tolist(), zip(*(column.to_pylist() for column in batch.rows.columns))))
    for at, key in enumerate(keys):
        assert query.find_plain(key) == ([expected[at]] if at in expected else [])
    query.files.close()
    return len(expected)


_COMPOSITE = "p STRING NOT NULL, d DATE NOT NULL, k STRING NOT NULL, v INT"


@pytest.mark.parametrize("buckets", ["1", "4", "-1"])
def test_keys_of_several_columns_buckets_and_partitions(buckets: str, directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(tmp_path, _COMPOSITE, ["p", "d", "k"], ["p"], bucket=buckets)
    rows = [(p, date(2020, 1, day), f"é{day % 7}" * day, day) for p in "ab" for day in range(1, 29)]
    table.write(*rows)
    table.write(*((*row[:3], -1) for row in rows[::3]))
    table.delete(*rows[::5])
    keys = [(k, p, d) for p, d, k, _ in rows] + [("x", "a", date(2020, 1, 3)), ("é1", "c", date(2020, 1, 1))]
    assert _check(_plain(table, directory, ("k", "p", "d")), keys) == len(rows) - len(rows[::5])


def test_masked_rows_are_skipped(directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(tmp_path, deletion_vectors__enabled="true", num_sorted_run__compaction_trigger="9")
    table.write(*((at, f"old {at}") for at in range(0, 3000, 2)))
    table.compact()
    table.write((4, "new"), (50, "new"))
    table.delete((6, None))
    table.compact(full=False)
    query = _plain(table, directory, ("id",))
    assert query.live.has_vectors
    assert _check(query, [(at,) for at in range(100)]) == 49


def test_a_retraction_hides_older_rows_unless_it_is_ignored(directory: CacheDirectory, tmp_path: Path) -> None:
    for ignored, rows in (("false", 9), ("true", 10)):
        table = LocalTable(tmp_path / ignored)
        table.write(*((at, "v") for at in range(10)))
        table.delete((3, None))
        table.alter(SetOption("ignore-delete", ignored))
        assert _check(_plain(table, directory, ("id",)), [(at,) for at in range(10)]) == rows


@pytest.mark.parametrize(
    ("columns", "options", "more"),
    [
        ("id INT NOT NULL, v INT", {"merge_engine": "partial-update"}, {}),
        ("id INT NOT NULL, v INT", {"sequence__field": "v"}, {}),
        ("id DOUBLE NOT NULL, v INT", {}, {}),
        ("id INT NOT NULL, v INT", {}, {"predicate": IsNotNull("v")}),
    ],
)
def test_keys_that_need_a_merge_or_a_new_store_are_left_to_find(
    columns: str, options: dict[str, str], more: dict[str, Any], directory: CacheDirectory, tmp_path: Path
) -> None:
    table = LocalTable(tmp_path, columns, **options)
    table.write((1, 1))
    table.write((1, 2))
    query = _plain(table, directory, ("id",), **more)
    list(query.files.find([(file, pa.table({"id": pa.array([1], to_arrow(query.files.stored.keys[0].type))}))
                           for file in query.live.files]))  # fmt: skip
    assert query.find_plain((1,)) is None
    query.files.close()

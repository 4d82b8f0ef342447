"""SingleKeyQuery: one key by plain values, as LocalTableQuery finds it among many, or no answer at all."""

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
from lakelsm.lookup.partial.single_key_query import SingleKeyQuery
from lakelsm.lookup.partial.store_build import StoredColumns
from lakelsm.lookup.store.arrow_store import ArrowStoreFormat
from lakelsm.predicate.predicate import IsNotNull
from lakelsm.schema_changes import SetOption
from lakelsm.types import to_arrow
from tests.compact.local_table import LocalTable


@pytest.fixture
def directory() -> Iterator[CacheDirectory]:
    made = CacheDirectory.private()
    yield made
    made.close()


def _query(table: LocalTable, directory: CacheDirectory, key: tuple[str, ...], **more: Any) -> SingleKeyQuery:
    spec = LookupSpec(table.store, key, (*key, "v"), **more)
    live = LiveBuckets.of(spec, table.latest)
    stored = StoredColumns.of(spec, merged=live.merges, positions=live.has_vectors)
    files = LookupFiles(spec, stored, format=ArrowStoreFormat(), directory=directory)
    return SingleKeyQuery(live, files, RowMasks(table.store.file_io, memory_bytes=1))


def _check(query: SingleKeyQuery, keys: list[tuple[Any, ...]]) -> int:
    """Compare single keys with a batch of them, which touches the files. Returns how many have a row."""
    spec = query.live.spec
    kinds = [to_arrow(spec.store.schema.field(name).type) for name in spec.key]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*keys), kinds)]
    batch = LocalTableQuery(query.live, query.files, query.masks).find(pa.table(columns, list(spec.key)))
    expected = dict(zip(batch.probes.tolist(), zip(*(column.to_pylist() for column in batch.rows.columns))))
    for at, key in enumerate(keys):
        assert query.find(key) == ([expected[at]] if at in expected else [])
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
    assert _check(_query(table, directory, ("k", "p", "d")), keys) == len(rows) - len(rows[::5])


def test_masked_rows_are_passed_over(directory: CacheDirectory, tmp_path: Path) -> None:
    table = LocalTable(tmp_path, deletion_vectors__enabled="true", num_sorted_run__compaction_trigger="9")
    table.write(*((at, f"old {at}") for at in range(0, 3000, 2)))
    table.compact()
    table.write((4, "new"), (50, "new"))
    table.delete((6, None))
    table.compact(full=False)
    query = _query(table, directory, ("id",))
    assert query.live.has_vectors
    assert _check(query, [(at,) for at in range(100)]) == 49


def test_a_retraction_hides_older_rows_unless_it_is_ignored(directory: CacheDirectory, tmp_path: Path) -> None:
    for ignored, rows in (("false", 9), ("true", 10)):
        table = LocalTable(tmp_path / ignored)
        table.write(*((at, "v") for at in range(10)))
        table.delete((3, None))
        table.alter(SetOption("ignore-delete", ignored))
        assert _check(_query(table, directory, ("id",)), [(at,) for at in range(10)]) == rows


@pytest.mark.parametrize(
    ("columns", "options", "more"),
    [
        ("id INT NOT NULL, v INT", {"merge_engine": "partial-update"}, {}),
        ("id INT NOT NULL, v INT", {"sequence__field": "v"}, {}),
        ("id DOUBLE NOT NULL, v INT", {}, {}),
        ("id INT NOT NULL, v INT", {}, {"predicate": IsNotNull("v")}),
    ],
)
def test_what_needs_more_than_plain_values_of_one_file_is_left_to_batches(
    columns: str, options: dict[str, str], more: dict[str, Any], directory: CacheDirectory, tmp_path: Path
) -> None:
    table = LocalTable(tmp_path, columns, **options)
    table.write((1, 1))
    table.write((1, 2))
    query = _query(table, directory, ("id",), **more)
    list(query.files.find([(file, pa.table({"id": pa.array([1], to_arrow(query.files.stored.keys[0].type))}))
                           for file in query.live.files]))  # fmt: skip
    assert query.find((1,)) is None
    query.files.close()

"""Manifest entries as planning sees them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import encode_row
from lakelsm.options import TableOptions
from lakelsm.plan.bucket_files import by_bucket, is_shown, partition_filter
from lakelsm.predicate.parser import parse_where
from lakelsm.schema.table_schema import create_schema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.commit.commit_table import CommitTable, add, file, partition
from tests.compact.local_table import LocalTable


def store_of(**options: str) -> TableStore:
    raw = {name.replace("_", "."): value for name, value in options.items()}
    schema = create_schema("k INT, kind STRING", ["k"], (), {"bucket": "2", **raw})
    options_ = TableOptions.parse(schema.options)
    return TableStore(file_io=LocalFileIO(), paths=TablePaths("/t"), schema=schema, options=options_)


def test_files_are_assigned_to_their_bucket_and_have_the_index_of_their_entry() -> None:
    entries = [add(dt="a", bucket=1), add(dt="b", bucket=1), add(dt="a", bucket=0), add(dt="a", bucket=1)]
    found = by_bucket(store_of(), entries)
    assert {bucket: [view.index for view in files] for bucket, files in found.items()} == {
        (partition("a"), 1): [0, 3],
        (partition("b"), 1): [1],
        (partition("a"), 0): [2],
    }
    assert by_bucket(store_of(), []) == {}


def test_keys_of_all_buckets_are_ranked_together() -> None:
    entries = [add(file(keys=(5, 9)), bucket=0), add(file(keys=(-3, 5)), bucket=1)]
    (first,), (second,) = by_bucket(store_of(), entries).values()
    assert second.min_key < first.min_key == second.max_key < first.max_key


def test_a_file_range_has_the_values_that_planning_needs() -> None:
    meta = file("name", level=4, seq=(3, 8), rows=7, creation_time_millis=99)
    ((view,),) = by_bucket(store_of(), [add(meta)]).values()
    assert (view.level, view.size, view.row_count, view.name) == (4, 1000, 7, "name")
    assert (view.min_seq, view.max_seq, view.delete_rows, view.creation_time) == (3, 8, 0, 99)


def test_a_delete_count_of_zero_is_trusted_only_of_compactions_if_others_may_have_written_deletes() -> None:
    metas = [file(file_source=0), file(file_source=1), replace(file(file_source=0), delete_row_count=2)]
    (trusting,) = by_bucket(store_of(), list(map(add, metas))).values()
    (wary,) = by_bucket(store_of(rowkind_field="kind"), list(map(add, metas))).values()
    assert [view.delete_rows for view in trusting] == [0, 0, 2]
    assert [view.delete_rows for view in wary] == [None, 0, 2]


@pytest.mark.parametrize(("engine", "level_0"), [("deduplicate", True), ("aggregation", True), ("first-row", False)])
def test_first_row_alone_hides_level_0_from_reads(engine: str, level_0: bool) -> None:
    options = TableOptions.parse({"merge-engine": engine})
    assert is_shown(options, 0) is level_0
    assert is_shown(options, 1)


DAYS = ["a", "b", None, "c"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    return TableStore.open(str(CommitTable(tmp_path_factory.mktemp("t")).root))


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("dt = 'b'", ["b"]),
        ("dt >= 'b'", ["b", "c"]),
        ("dt IS NULL", [None]),
        ("dt IS NULL OR dt = 'c'", [None, "c"]),
        ("NOT dt = 'a'", ["b", "c"]),
        ("dt = 'a' AND id = 7", ["a"]),
        ("dt = 'a' OR id = 7", DAYS),
        ("id = 7", DAYS),
        ("dt = 'z'", []),
    ],
)
def test_only_partitions_that_may_hold_a_matching_row_are_kept(store: TableStore, where: str, kept: list[str]) -> None:
    keep = partition_filter(store, parse_where(where, store.schema.fields))
    assert keep is not None
    mask = keep([partition(day) for day in DAYS])
    assert [day for day, is_kept in zip(DAYS, mask, strict=True) if is_kept] == kept


def test_no_condition_and_no_partition_columns_keep_all(store: TableStore, tmp_path: Path) -> None:
    assert partition_filter(store, None) is None
    plain = LocalTable(tmp_path).store
    assert partition_filter(plain, parse_where("id = 1", plain.schema.fields)) is None


def test_a_file_whose_smallest_key_is_above_its_greatest_is_damaged() -> None:
    entries = [add(file("fine", keys=(5, 5))), add(file("upside-down", keys=(9, 5)))]
    with pytest.raises(CorruptTableError, match="data file upside-down has a _MIN_KEY above its _MAX_KEY"):
        by_bucket(store_of(), entries)


def test_a_file_in_javas_order_of_zeros_is_refused_by_name() -> None:
    schema = create_schema("f DOUBLE, k INT", ["f", "k"], (), {"bucket": "2"})
    types = [field.type for field in schema.fields]
    low, high = (encode_row(values, types) for values in ([-0.0, 9], [0.0, 5]))
    store = replace(store_of(), schema=schema)
    with pytest.raises(UnsupportedFeatureError, match="because Java sorts"):
        by_bucket(store, [add(replace(file("both-zeros"), min_key=low, max_key=high))])

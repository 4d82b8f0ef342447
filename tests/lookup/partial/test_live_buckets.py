"""LiveBuckets: the visible files of a snapshot, in groups; a newer group hides keys in older ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.partial.live_buckets import LiveBucket, LiveBuckets
from tests.compact.local_table import LocalTable


def _live(table: LocalTable, **more: object) -> LiveBuckets:
    return LiveBuckets.of(LookupSpec(table.store, ("id",), ("v",), **more), table.latest)  # type: ignore[arg-type]


def _levels(bucket: LiveBucket) -> list[list[list[int]]]:
    return [[[bucket.files[at].level for at in run] for run in runs] for runs in bucket.groups]


def _table(root: Path, **options: str) -> LocalTable:
    """A run of three files on the top level, and two files of level 0."""
    table = LocalTable(root, target_file_size="4 kb", file__block_size="4 kb", file__compression="none", **options)
    table.write(*((at, f"{at:0100}") for at in range(300)))
    table.compact()
    table.write((5, "a"), (6, "a"))
    table.write((5, "b"), (200, "b"))
    return table


def test_with_deduplicate_each_newer_run_is_a_group(tmp_path: Path) -> None:
    (bucket,) = _live(_table(tmp_path)).partitions[bytes(12)].values()
    newest, older, top = _levels(bucket)
    assert (newest, older) == ([[0]], [[0]])
    assert set(top[0]) == {5}
    assert len(top[0]) > 1


@pytest.mark.parametrize(
    "options", [{"sequence__field": "v"}, {"merge_engine": "partial-update"}, {"merge_engine": "aggregation"}]
)
def test_if_older_rows_may_matter_all_runs_are_one_group_oldest_first(
    options: dict[str, str], tmp_path: Path
) -> None:
    (bucket,) = _live(_table(tmp_path, **options)).partitions[bytes(12)].values()
    ((top, *rest),) = _levels(bucket)
    assert (set(top), rest) == ({5}, [[0], [0]])


def test_with_vectors_level_0_is_not_visible(tmp_path: Path) -> None:
    (bucket,) = _live(_table(tmp_path, deletion_vectors__enabled="true")).partitions[bytes(12)].values()
    assert {file.level for file in bucket.files} == {5}


def test_a_key_is_searched_only_in_files_whose_range_contains_it(tmp_path: Path) -> None:
    (bucket,) = _live(_table(tmp_path)).partitions[bytes(12)].values()
    keys = [5, 6, 7, 250, 1000, -1]
    ranges = bucket.key_ranges([pa.array(keys, pa.int32())])
    found = [
        (bucket.files[file].level, keys[at])
        for runs in bucket.groups
        for run in runs
        for file, indexes in ranges.of_run(run, np.array([0, 1, 3, 4, 5]))
        for at in indexes.tolist()
    ]
    assert sorted(found) == [(0, 5), (0, 5), (0, 6), (0, 6), (5, 5), (5, 6), (5, 250)]


def test_keys_are_searched_only_in_their_bucket_if_it_is_required(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, bucket="3")
    table.write(*((at, "v") for at in range(30)))
    keys = pa.record_batch({"id": pa.array(range(40), pa.int32())})
    indexes = [found.tolist() for _, found in _live(table).buckets_of(keys)]
    assert sorted(at for some in indexes for at in some) == list(range(40))
    assert len(indexes) == 3
    required = _live(table, buckets=frozenset({1}))
    assert [found.tolist() in indexes for _, found in required.buckets_of(keys)] == [True]


def test_an_empty_table_has_no_files(tmp_path: Path) -> None:
    table = LocalTable(tmp_path)
    live = LiveBuckets.of(LookupSpec(table.store, ("id",), ("v",)), None)
    assert not live.files
    assert list(live.buckets_of(pa.record_batch({"id": pa.array([1], pa.int32())}))) == []

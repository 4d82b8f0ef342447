"""Manifests are pruned by partition statistics and bucket ranges."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.manifest import EMPTY_STATS, FileKind, ManifestEntry, ManifestFileMeta, summarize
from lakelsm.format.row.binary_row import encode_row
from lakelsm.snapshots.manifest_prune import select_manifests
from lakelsm.types import parse_type
from tests.commit.commit_table import INT, STRING, file

TYPES = [STRING, INT]
Where = tuple[str | None, int | None, int]


def entry(where: Where) -> ManifestEntry:
    return ManifestEntry(FileKind.ADD, encode_row(where[:2], TYPES), where[2], 4, file=file())


def manifest(name: str, *buckets: Where) -> ManifestFileMeta:
    return summarize(name, 1, [entry(bucket) for bucket in buckets], TYPES)


def selected(metas: list[ManifestFileMeta], *buckets: Where) -> list[str]:
    changed: dict[bytes, set[int]] = {}
    for bucket in buckets:
        changed.setdefault(entry(bucket).partition, set()).add(bucket[2])
    return [meta.file_name for meta in select_manifests(metas, changed, TYPES)]


METAS = [
    manifest("low", ("a", 1, 0), ("c", 5, 1)),
    manifest("high", ("x", 1, 2), ("z", 5, 3)),
    manifest("nulls", ("m", 1, 0), (None, 2, 0)),
]


@pytest.mark.parametrize(
    ("bucket", "names"),
    [
        (("b", 3, 0), ["low"]),
        (("b", 9, 0), []),
        (("b", 3, 2), []),
        (("y", 2, 3), ["high"]),
        ((None, 2, 0), ["nulls"]),
        ((None, 7, 0), []),
        (("", 2, 0), []),
        (("m", 1, 0), ["nulls"]),
    ],
)
def test_a_manifest_is_kept_if_its_ranges_have_the_bucket(bucket: Where, names: list[str]) -> None:
    assert selected(METAS, bucket) == names


def test_partitions_of_minus_zero_and_nan_are_found() -> None:
    types = [parse_type("DOUBLE")]

    def of(*values: float) -> list[bytes]:
        return [encode_row([value], types) for value in values]

    zeros, numbers, far = (
        summarize(name, 1, [ManifestEntry(FileKind.ADD, partition, 0, 4, file=file()) for partition in partitions], types)
        for name, partitions in [("zeros", of(0.0, -0.0)), ("numbers", of(1.0, math.nan)), ("far", of(7.0))]
    )
    for value, names in [(-0.0, ["zeros"]), (0.0, ["zeros"]), (math.nan, ["numbers"]), (7.0, ["numbers", "far"])]:
        found = select_manifests([zeros, numbers, far], {partition: {0} for partition in of(value)}, types)
        assert [meta.file_name for meta in found] == names


def test_no_buckets_select_nothing_and_missing_bounds_prune_nothing() -> None:
    assert selected(METAS) == []
    blind = replace(METAS[0], min_bucket=None, max_bucket=None, partition_stats=EMPTY_STATS)
    assert selected([blind], ("q", 99, 9)) == ["low"]


def test_a_table_without_partitions_is_pruned_by_bucket_alone() -> None:
    metas = [replace(METAS[0], partition_stats=EMPTY_STATS), replace(METAS[1], partition_stats=EMPTY_STATS)]
    assert [m.file_name for m in select_manifests(metas, {bytes(12): {0}}, [])] == ["low"]


_places = st.tuples(
    st.none() | st.sampled_from(["", "a", "é", "zz"]), st.none() | st.integers(-2, 2), st.integers(0, 3)
)


@given(st.lists(st.lists(_places, min_size=1, max_size=5), max_size=5), st.lists(_places, max_size=4))
def test_no_manifest_of_a_changed_bucket_is_ever_pruned(
    groups: list[list[Where]], changed: list[Where]
) -> None:
    metas = [manifest(str(i), *group) for i, group in enumerate(groups)]
    kept = selected(metas, *changed)
    for i, group in enumerate(groups):
        if set(group) & set(changed):
            assert str(i) in kept


def test_many_partitions_are_compared_by_their_common_range() -> None:
    buckets: list[Where] = [("b", number, 0) for number in range(2, 1000)]
    assert selected(METAS, *buckets) == ["low"]
    assert selected(METAS, (None, None, 0), *buckets) == ["low", "nulls"]

"""Groups are admitted up to the limits, and packed so that a bucket's changes are in one part."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakelsm.options import TableOptions
from lakelsm.stream.batch_groups import BatchSize, packed_parts
from lakelsm.stream.feed_part import FeedUnit
from lakelsm.stream.snapshot_files import FileGroup
from lakelsm.stream.stream_limits import StreamLimits


def group(bucket: int, size: int = 10, rows: int = 1, name: str = "") -> FileGroup:
    units: list[FeedUnit] = [f"{bucket}/{name}"]  # type: ignore[list-item]
    return FileGroup((b"", bucket), files=1, size=size, rows=rows, make=lambda: units)


@given(st.lists(st.integers(1, 30), min_size=1), st.integers(1, 50))
def test_a_batch_has_at_most_the_limit_or_one_group(sizes: list[int], limit: int) -> None:
    batch = BatchSize(StreamLimits(max_bytes=limit))
    admitted = [size for size in sizes if not batch.is_full and batch.admit(group(0, size), True)]
    assert admitted == sizes[: len(admitted)] and len(admitted) >= 1
    assert sum(admitted) <= limit or len(admitted) == 1
    assert len(admitted) == len(sizes) or sum(sizes[: len(admitted) + 1]) > limit


def test_a_group_that_is_not_read_and_no_group_need_nothing() -> None:
    batch = BatchSize(StreamLimits(max_files=1))
    assert batch.admit(group(0), False) and batch.admit_all([]) and batch.files == 0
    assert batch.admit(group(0), True) and not batch.admit(group(0), True) and batch.is_full


def test_each_core_has_work_if_the_files_are_not_few() -> None:
    options = TableOptions.parse({"source.split.target-size": "1 kb", "source.split.open-file-cost": "10 b"})
    changes = [group(bucket, 5, name=str(bucket)) for bucket in range(4)]
    assert [[part.files for part in packed_parts(options, [], changes, cores)] for cores in (1, 2, 3, 9)] == [
        [4],
        [2, 2],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
    ]
    cheap = TableOptions.parse({"source.split.target-size": "1 kb", "source.split.open-file-cost": "0 b"})
    assert len(packed_parts(cheap, [], [group(0, 5), group(1, 5)], 1)) == 1


@given(st.lists(st.integers(0, 5), max_size=20), st.lists(st.integers(0, 5), max_size=20), st.integers(1, 60))
def test_parts_have_each_group_once_and_changes_of_a_bucket_in_order(
    rows: list[int], changes: list[int], target: int
) -> None:
    options = TableOptions.parse({"source.split.target-size": f"{target} b", "source.split.open-file-cost": "1 b"})
    loaded = [group(bucket, name=f"r{at}") for at, bucket in enumerate(rows)]
    changed = [group(bucket, name=f"c{at:02}") for at, bucket in enumerate(changes)]
    parts = packed_parts(options, loaded, changed, 1 + target % 4)
    units = [[str(unit) for unit in part.units] for part in parts]
    every = [name for part in units for name in part]
    assert sorted(every) == sorted(str(unit) for each in (*loaded, *changed) for unit in each.make())
    for bucket in set(changes):
        owners = [[name for name in part if name.startswith(f"{bucket}/")] for part in units]
        (own,) = [found for found in owners if found]
        kinds = [name.split("/")[1] for name in own]
        assert all(not (one[0] == "c" and other[0] == "r") for one, other in pairwise(kinds))
        order = [kind for kind in kinds if kind[0] == "c"]
        assert order == sorted(order)
    assert [part.files for part in parts] == [len(part) for part in units]

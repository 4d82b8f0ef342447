"""Dynamic buckets: keys keep their bucket, new keys fill buckets up to the target. No JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.index.hash_index import encode_hashes
from lakelsm.format.row.binary_row import encode_row
from lakelsm.options import TableOptions
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.storage import LocalFileIO
from lakelsm.types import AtomicType
from lakelsm.write.dynamic_bucket import MAX_BUCKETS, Assigner, BucketPolicy

Hashes = npt.NDArray[np.int32]
HERE = encode_row(["a"], [AtomicType("VARCHAR", length=9)])
THERE = encode_row(["b"], [AtomicType("VARCHAR", length=9)])


def hashes(*numbers: int) -> Hashes:
    return np.array(numbers, dtype=np.int32)


def assigner(policy: BucketPolicy, indexes: Mapping[bytes, Mapping[int, HashIndex]] | None = None) -> Assigner:
    return Assigner(policy, LocalFileIO(), indexes or {})


def stored(folder: Path, buckets: Mapping[int, Hashes]) -> dict[int, HashIndex]:
    """HASH index files of one partition."""
    folder.mkdir(exist_ok=True)
    for bucket, keys in buckets.items():
        (folder / f"index-{bucket}").write_bytes(encode_hashes(keys))
    return {
        bucket: HashIndex(str(folder / f"index-{bucket}"), f"bucket {bucket}", 4 * len(keys), len(keys))
        for bucket, keys in buckets.items()
    }


def sizes(found: Hashes) -> dict[int, int]:
    return dict(zip(*(part.tolist() for part in np.unique(found, return_counts=True)), strict=True))


def test_new_keys_fill_one_bucket_after_the_other_up_to_the_target() -> None:
    found = assigner(BucketPolicy(10, -1, 1)).assign(HERE, np.arange(25, dtype=np.int32))
    assert sizes(found) == {0: 10, 1: 10, 2: 5}


def test_a_bucket_with_room_is_filled_by_later_batches() -> None:
    one = assigner(BucketPolicy(10, -1, 1))
    assert sizes(one.assign(HERE, hashes(*range(7)))) == {0: 7}
    assert sizes(one.assign(HERE, hashes(*range(100, 105)))) == {0: 3, 1: 2}


def test_equal_hashes_of_a_batch_share_a_bucket_and_count_once() -> None:
    found = assigner(BucketPolicy(2, -1, 1)).assign(HERE, hashes(5, 5, 5, 6, 5, 7))
    assert sizes(found) == {0: 5, 1: 1}
    assert len(set(found[[0, 1, 2, 4]].tolist())) == 1


def test_known_keys_keep_their_bucket(tmp_path: Path) -> None:
    index = stored(tmp_path, {0: hashes(1, 2, 3), 4: hashes(-9, 7)})
    one = assigner(BucketPolicy(3, -1, 1), {HERE: index})
    assert one.assign(HERE, hashes(7, 1, -9, 3)).tolist() == [4, 0, 4, 0]
    assert sizes(one.assign(HERE, hashes(50, 51, 52))) == {4: 1, 1: 2}


def test_each_partition_has_its_own_buckets(tmp_path: Path) -> None:
    index = stored(tmp_path, {3: hashes(1, 2)})
    one = assigner(BucketPolicy(2, -1, 1), {HERE: index})
    assert one.assign(HERE, hashes(1)).tolist() == [3]
    assert one.assign(THERE, hashes(1)).tolist() == [0]


def test_keys_beyond_the_last_bucket_are_distributed_over_all_and_keep_their_bucket() -> None:
    one = assigner(BucketPolicy(10, 3, 1))
    first = one.assign(HERE, np.arange(500, dtype=np.int32))
    assert set(first.tolist()) == {0, 1, 2} and min(sizes(first).values()) > 100
    again = one.assign(HERE, np.arange(500, dtype=np.int32))
    assert again.tolist() == first.tolist()


def test_a_full_table_of_several_assigners_stays_within_its_buckets() -> None:
    policy = BucketPolicy.of(options({"dynamic-bucket.max-buckets": "2", "dynamic-bucket.assigner-parallelism": "8"}))
    assert policy.assigners == 2
    one = assigner(BucketPolicy(5, 2, policy.assigners))
    assert set(one.assign(HERE, np.arange(-500, 500, dtype=np.int32)).tolist()) == {0, 1}


def options(given: dict[str, str]) -> TableOptions:
    return TableOptions.parse(given)


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, BucketPolicy(2_000_000, -1, 1)),
        ({"dynamic-bucket.initial-buckets": "4"}, BucketPolicy(2_000_000, -1, 4)),
        (
            {"dynamic-bucket.initial-buckets": "4", "dynamic-bucket.assigner-parallelism": "3"},
            BucketPolicy(2_000_000, -1, 3),
        ),
        ({"dynamic-bucket.target-row-num": "9", "dynamic-bucket.max-buckets": "1"}, BucketPolicy(9, 1, 1)),
    ],
)
def test_the_policy_comes_from_the_options(given: dict[str, str], policy: BucketPolicy) -> None:
    assert BucketPolicy.of(options(given)) == policy


def test_no_bucket_number_exceeds_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_BUCKETS == 32767
    monkeypatch.setattr("lakelsm.write.dynamic_bucket.MAX_BUCKETS", 50)
    for most in (-1, 60):
        found = assigner(BucketPolicy(1, most, 1)).assign(HERE, np.arange(70, dtype=np.int32))
        assert found.max() == 49 and found.min() == 0


KEYS = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=60)


@given(
    batches=st.lists(KEYS, min_size=1, max_size=4),
    assigners=st.integers(1, 5),
    target=st.integers(1, 12),
    max_buckets=st.one_of(st.just(-1), st.integers(5, 9)),
)
def test_several_assigners_never_share_a_bucket_and_no_key_moves(
    batches: list[list[int]], assigners: int, target: int, max_buckets: int
) -> None:
    policy = BucketPolicy(target, max_buckets, assigners)
    # Each owner's keys are in a separate task, as after Spark's shuffle.
    tasks = {owner: assigner(policy) for owner in range(assigners)}
    bucket_of: dict[int, int] = {}
    owner_of: dict[int, int] = {}
    for batch in batches:
        for owner in range(assigners):
            mine = [key for key in batch if key % assigners == owner]
            for key, bucket in zip(mine, tasks[owner].assign(HERE, hashes(*mine)).tolist(), strict=True):
                assert bucket_of.setdefault(key, bucket) == bucket
                assert owner_of.setdefault(bucket, owner) == owner
                assert max_buckets < 0 or bucket < max_buckets
    if max_buckets < 0:
        filled = sizes(np.array(list(bucket_of.values())))
        assert max(filled.values()) <= target
        for owner in range(assigners):
            mine = [bucket for bucket in filled if bucket % assigners == owner]
            keys = sum(filled[bucket] for bucket in mine)
            assert len(mine) == -(-keys // target), "a bucket was opened before the others were full"


@given(keys=KEYS, new=KEYS, before=st.integers(1, 4), after=st.integers(1, 4))
def test_known_keys_keep_their_bucket_when_the_number_of_assigners_changes(
    tmp_path_factory: pytest.TempPathFactory, keys: list[int], new: list[int], before: int, after: int
) -> None:
    distinct = np.unique(hashes(*keys))
    first = assigner(BucketPolicy(7, -1, before)).assign(HERE, distinct)
    folder = tmp_path_factory.mktemp("index")
    index = stored(folder, {bucket: distinct[first == bucket] for bucket in set(first.tolist())})
    one = assigner(BucketPolicy(7, -1, after), {HERE: index})
    one.assign(HERE, hashes(*new))
    assert one.assign(HERE, distinct).tolist() == first.tolist()

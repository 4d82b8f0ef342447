"""Each row gets a code for its partition and bucket, for partitions of any values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.row.bucket_hash import bucket_ids
from lakelsm.local.bucket_codes import BucketCodes
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from lakelsm.snapshots.hash_indexes import hash_indexes
from lakelsm.storage import LocalFileIO
from tests.compact.local_table import LocalTable

PARTITIONS = st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5])


def bucket_codes(partition_by: list[str], **options: str) -> BucketCodes:
    keys = ["k", *partition_by]
    given = {"bucket": "3", **options}
    schema = create_schema("k BIGINT, p DOUBLE, q STRING", keys, partition_by, given, None, 0)
    indexes = {} if given["bucket"] == "-1" else None
    return BucketCodes(schema, TableOptions.parse(dict(schema.options)), LocalFileIO(), indexes)


def batch(rows: list[tuple[int, float | None, str]]) -> pa.RecordBatch:
    kinds = (pa.int64(), pa.float64(), pa.string())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows), kinds)]
    return pa.RecordBatch.from_arrays(columns, names=["k", "p", "q"])


@given(st.lists(st.lists(st.tuples(st.integers(0, 99), PARTITIONS, st.sampled_from("ab")), min_size=1), min_size=1))
def test_rows_of_one_partition_and_bucket_share_a_code(
    batches: list[list[tuple[int, float | None, str]]],
) -> None:
    codes, key_type = bucket_codes(["p", "q"]), bucket_codes([])._keys[0].type
    seen: dict[int, tuple[str, str, int]] = {}
    for rows in batches:
        found = codes.of(batch(rows)).tolist()
        for (k, p, q), code in zip(rows, found, strict=True):
            bucket = int(bucket_ids([pa.array([k])], [key_type], 3)[0])
            assert codes.buckets[code] == bucket
            assert seen.setdefault(code, (repr(p), q, bucket)) == (repr(p), q, bucket)
    assert len(set(seen.values())) == len(seen)


def test_a_table_without_partitions_has_a_code_for_each_bucket() -> None:
    codes = bucket_codes([])
    found = codes.of(batch([(k, None, "a") for k in range(100)]))
    assert sorted(set(found.tolist())) == [0, 1, 2] and sorted(codes.buckets) == [0, 1, 2]
    assert set(bucket_codes([], bucket="1").of(batch([(1, None, "a"), (2, None, "a")])).tolist()) == {0}


def test_dynamic_buckets_fill_up_and_a_key_keeps_its_bucket(tmp_path: Path) -> None:
    codes = bucket_codes(["q"], bucket="-1", **{"dynamic-bucket.target-row-num": "2"})
    first = codes.of(batch([(k, None, "a") for k in range(5)]))
    again = codes.of(batch([(k, None, "a") for k in (4, 0, 9)]))
    buckets = np.array(codes.buckets)
    assert sorted(np.bincount(buckets[first]).tolist()) == [1, 2, 2]
    assert again[:2].tolist() == [first[4], first[0]] and buckets[again[2]] == 2


def test_existing_keys_keep_their_dynamic_buckets(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, bucket="-1", dynamic_bucket__target_row_num="2")
    for start in (0, 2, 4):
        table.write(*((k, "a") for k in range(start, start + 2)))
    known = {entry.bucket: table.stored(entry)["id"].to_pylist() for entry in table.live()}
    store = table.store
    codes = BucketCodes(store.schema, store.options, store.file_io, hash_indexes(store, table.latest))
    found = codes.of(pa.record_batch({"id": pa.array(range(6), pa.int32())}))
    assert [codes.buckets[code] for code in found.tolist()] == [
        next(bucket for bucket, ids in known.items() if k in ids) for k in range(6)
    ]

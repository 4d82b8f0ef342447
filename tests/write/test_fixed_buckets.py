"""Buckets by the hash of the bucket key, in Arrow: they equal Paimon's and are the last column of the rows."""

from __future__ import annotations

import pickle

import pyarrow as pa

from lakelsm.format.row.bucket_hash import bucket_ids
from lakelsm.options import TableOptions
from lakelsm.schema.system_columns import BUCKET
from lakelsm.schema.table_schema import create_schema
from lakelsm.write.fixed_buckets import FixedBuckets


def buckets_of(**options: str) -> FixedBuckets:
    schema = create_schema("k INT, s STRING, v INT", ["k", "s"], [], options)
    return FixedBuckets.of(schema, TableOptions.parse(schema.options))


def test_rows_get_the_bucket_of_their_bucket_key() -> None:
    buckets = buckets_of(**{"bucket": "5", "bucket-key": "s"})
    rows = pa.record_batch({"k": [1, 2, 3], "s": pa.array(["a", "b", "c"], pa.large_string()), "v": [None, 1, 2]})
    found = pickle.loads(pickle.dumps(buckets)).added(rows)
    assert found.schema.names == ["k", "s", "v", BUCKET]
    assert found.column(BUCKET).to_pylist() == bucket_ids([pa.array(["a", "b", "c"])], [buckets.keys[0].type], 5).tolist()


def test_one_bucket_needs_no_hash() -> None:
    rows = pa.record_batch({"k": [1, 2], "s": ["a", "b"], "v": [1, 2]})
    assert buckets_of(bucket="1").added(rows).column(BUCKET).equals(pa.array([0, 0], pa.int32()))


def test_the_bucket_function_is_that_of_the_table() -> None:
    schema = create_schema("k INT, v INT", ["k"], [], {"bucket": "3", "bucket-function.type": "mod"})
    buckets = FixedBuckets.of(schema, TableOptions.parse(schema.options))
    rows = pa.record_batch({"k": pa.array([4, 5, 6], pa.int32()), "v": [1, 2, 3]})
    assert buckets.added(rows).column(BUCKET).to_pylist() == [1, 2, 0]

"""Dynamic buckets of a DataFrame's rows: tasks look up keys and assign buckets to new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.schema.system_columns import BUCKET, KEY_HASH
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted_all
from lakelsm.spark.tasks import map_in_arrow
from lakelsm.storage import FileIO
from lakelsm.types import to_arrow
from lakelsm.write.dynamic_bucket import Assigner, BucketPolicy, partition_groups


def with_dynamic_bucket(
    rows: DataFrame,
    schema: TableSchema,
    policy: BucketPolicy,
    file_io: FileIO,
    indexes: Mapping[tuple[bytes, int], HashIndex],
) -> DataFrame:
    """Return the rows with an additional column `BUCKET`: the existing or newly assigned bucket of each row's key."""
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    partitions = list(schema.partition_fields)
    by_partition: dict[bytes, dict[int, HashIndex]] = {}
    for (of, bucket), index in indexes.items():
        by_partition.setdefault(of, {})[bucket] = index

    def add_hash(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [cast_column(batch.column(key.name), to_arrow(key.type)) for key in keys]
            hashes = pa.array(key_hashes(arrays, [key.type for key in keys]))
            yield pa.RecordBatch.from_arrays([*batch.columns, hashes], names=[*batch.schema.names, KEY_HASH])

    def assign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assigner = Assigner(policy, file_io, by_partition)
        for batch in batches:
            if not len(batch):
                continue
            hashes = batch.column(KEY_HASH).to_numpy()
            heads = [cast_column(batch.column(column.name), to_arrow(column.type)) for column in partitions]
            buckets = np.empty(len(batch), dtype=np.int32)
            for first, members in partition_groups(heads, len(batch)):
                values = [head[first] for head in heads]
                partition = encode_row(values, [column.type for column in partitions])
                buckets[members] = assigner.assign(partition, hashes[members])
            columns = [column for column, name in zip(batch.columns, batch.schema.names) if name != KEY_HASH]
            names = [name for name in batch.schema.names if name != KEY_HASH]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(buckets)], names=[*names, BUCKET])

    hashed = map_in_arrow(rows, add_hash, rows.withColumn(KEY_HASH, F.lit(0).cast("int")).schema)
    owner = F.pmod(F.col(KEY_HASH), F.lit(policy.assigners))
    spread = hashed.repartition(*quoted_all(schema.partition_keys), owner)
    # The order makes a task deterministic: if it runs again after the loss of an executor, buckets are the same.
    spread = spread.sortWithinPartitions(*quoted_all(schema.partition_keys), KEY_HASH)
    return map_in_arrow(spread, assign, rows.withColumn(BUCKET, F.lit(0).cast("int")).schema)

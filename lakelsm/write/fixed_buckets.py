"""Fixed buckets: the bucket of a row is computed from the hash of its bucket key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.row.bucket_hash import BucketFunction, bucket_ids
from lakelsm.options import TableOptions
from lakelsm.schema.system_columns import BUCKET
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, to_arrow


@dataclass(frozen=True)
class FixedBuckets:
    """Computes in which of ``number`` buckets a row is, from its columns ``keys``."""

    keys: tuple[DataField, ...]
    number: int
    function: BucketFunction

    def added(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the column `BUCKET`."""
        buckets = pa.array(self.of_rows(rows))
        return pa.RecordBatch.from_arrays([*rows.columns, buckets], names=[*rows.schema.names, BUCKET])

    def of_rows(self, rows: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the bucket of each row."""
        if self.number == 1:
            return np.zeros(len(rows), np.int32)
        types = [field.type for field in self.keys]
        arrays = [cast_column(rows.column(field.name), to_arrow(field.type)) for field in self.keys]
        return bucket_ids(arrays, types, self.number, self.function)

    @staticmethod
    def of(schema: TableSchema, options: TableOptions) -> FixedBuckets:
        """Return the buckets of a table."""
        keys = tuple(map(schema.field, schema.bucket_keys))
        return FixedBuckets(keys, options.bucket, options.bucket_function_type.value)

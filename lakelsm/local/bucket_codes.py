"""The partition and bucket of each row, before the sort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.storage import FileIO
from lakelsm.types import DataField
from lakelsm.write.dynamic_bucket import Assigner, BucketPolicy
from lakelsm.write.fixed_buckets import FixedBuckets

#: A code for each row: the index of its partition and bucket, in the order of their first row.
RowCodes = npt.NDArray[np.int32]
_Buckets = npt.NDArray[np.int32]

#: Below this number, distinct numbers are found by counting instead of sorting.
_MAX_COUNTED = 1 << 20


class BucketCodes:
    """Numbers the buckets of a write; ``indexes`` have the bucket of each known key if buckets are dynamic."""

    def __init__(
        self,
        schema: TableSchema,
        options: TableOptions,
        file_io: FileIO,
        indexes: Mapping[tuple[bytes, int], HashIndex] | None,
    ) -> None:
        self._fixed = FixedBuckets.of(schema, options)
        self._partition = schema.partition_fields
        self._keys = list(map(schema.field, schema.trimmed_primary_keys))
        self._assigner = None
        if indexes is not None:
            self._assigner = Assigner(BucketPolicy.of(options), file_io, _by_partition(indexes))
        self._known: dict[tuple[bytes, int], int] = {}

    @property
    def buckets(self) -> list[int]:
        """The bucket of each code."""
        return [bucket for _, bucket in self._known]

    def of(self, rows: pa.RecordBatch) -> RowCodes:
        """Return the code of each row."""
        codes, partitions = partition_codes(rows, self._partition)
        buckets = self._buckets(rows, codes, partitions)
        factor = int(buckets.max(initial=0)) + 1
        both = codes * factor + buckets
        distinct = _distinct(both)
        of_distinct = [
            self._known.setdefault((partitions[code], bucket), len(self._known))
            for code, bucket in zip((distinct // factor).tolist(), (distinct % factor).tolist())
        ]
        row_codes: RowCodes = np.array(of_distinct, np.int32)[np.searchsorted(distinct, both)]
        return row_codes

    def _buckets(self, rows: pa.RecordBatch, codes: npt.NDArray[np.int64], partitions: Sequence[bytes]) -> _Buckets:
        if self._assigner is None:
            return self._fixed.of_rows(rows)
        hashes = key_hashes([rows.column(field.name) for field in self._keys], [field.type for field in self._keys])
        buckets = np.empty(len(rows), np.int32)
        for code, members in rows_by_code(codes, len(partitions)):
            buckets[members] = self._assigner.assign(partitions[code], hashes[members])
        return buckets


def _by_partition(indexes: Mapping[tuple[bytes, int], HashIndex]) -> Mapping[bytes, Mapping[int, HashIndex]]:
    found: dict[bytes, dict[int, HashIndex]] = {}
    for (partition, bucket), index in indexes.items():
        found.setdefault(partition, {})[bucket] = index
    return found


def partition_codes(rows: pa.RecordBatch, fields: Sequence[DataField]) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """Return a code for each row's partition, and the partition (BinaryRow with arity) of each code."""
    codes = np.zeros(len(rows), np.int64)
    for field in fields:
        codes = _ranked(codes * len(rows) + _codes(rows.column(field.name)))
    first = np.empty(int(codes.max(initial=0)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(rows))[::-1]
    types = [field.type for field in fields]
    columns = [rows.column(field.name) for field in fields]
    return codes, [encode_row([column[row] for column in columns], types) for row in first.tolist()]


def _codes(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return a code for each value. Floats are compared by their bits, because -0.0 and 0.0 are two partitions."""
    if pa.types.is_floating(column.type):
        column = column.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())
    codes: npt.NDArray[np.int64] = column.dictionary_encode("encode").indices.to_numpy().astype(np.int64)
    return codes


def _ranked(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers without gaps, from 0, in their order."""
    ranked: npt.NDArray[np.int64] = np.searchsorted(_distinct(numbers), numbers)
    return ranked


def _distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct numbers, ascending."""
    if len(numbers) and int(numbers.max()) < _MAX_COUNTED:
        found: npt.NDArray[np.int64] = np.flatnonzero(np.bincount(numbers))
        return found
    return np.unique(numbers)


def rows_by_code(codes: npt.NDArray[np.int64], count: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield each code below ``count`` with the indexes of its rows, ascending."""
    if count == 1:
        yield 0, np.arange(len(codes))
        return
    # Numpy sorts 16-bit numbers by counting.
    order = np.argsort(codes.astype(np.uint16) if count <= 1 << 16 else codes, kind="stable")
    stops = np.cumsum(np.bincount(codes, minlength=count))
    for code, (start, stop) in enumerate(zip([0, *stops[:-1].tolist()], stops.tolist())):
        yield code, order[start:stop]

"""INT96 timestamps in Parquet files (format.md 8.2): nanoseconds of the day and a Julian day, with a range of millennia.

Arrow reads them as nanoseconds in 64 bits, which silently wrap outside 1677 to 2262, or, when asked, as microseconds.
Reading both ways gives every value of a column without nanoseconds, and tells most others that have no place in Arrow.

Java Paimon writes times before 1970 with negative nanoseconds of the day. Arrow takes those for unsigned: its nanoseconds
come out right, its microseconds 2^64 ns (584 years) too late. Only TIMESTAMP(7..9) is INT96 in Java's files, so this
touches the check alone.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelsm.errors import UnsupportedFeatureError

#: Bounds in microseconds since the epoch: what fits 64-bit nanoseconds, and times before 1970 as Arrow misreads them.
_LOWEST, _HIGHEST = -(2**63) // 1000 + 1, 2**64 // 1000


def int96_columns(file: pq.ParquetFile, wanted: Collection[str]) -> list[str]:
    """The columns among ``wanted`` (top level) that are, or hold, INT96 values."""
    leaves = (file.schema.column(at) for at in range(len(file.schema)))
    roots = (leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96")
    return [name for name in dict.fromkeys(roots) if name in wanted]


def exact_timestamps(batch: pa.RecordBatch, micros: pa.RecordBatch, targets: dict[str, pa.DataType]) -> pa.RecordBatch:
    """Return ``batch`` (INT96 read as nanoseconds) with no wrapped value in it.

    ``micros`` has the INT96 columns of the same rows as microseconds; ``targets`` the type that each is wanted in.
    Raises UnsupportedFeatureError for a value that is wanted with nanoseconds and does not fit them.
    """
    for name in micros.schema.names:
        column, target = micros.column(name), targets[name]
        if not has_nanoseconds(target):
            batch = batch.set_column(batch.schema.get_field_index(name), name, column)
        elif pa.types.is_timestamp(target):
            bounds = pc.min_max(column.cast(pa.int64())).as_py()
            if bounds["min"] is not None and not _LOWEST <= bounds["min"] <= bounds["max"] <= _HIGHEST:
                raise UnsupportedFeatureError(
                    f"Column '{name}' has a timestamp with nanoseconds outside the years 1677 to 2262, which lakelsm "
                    "cannot read: use TIMESTAMP(6) for the column or bring the value into that range."
                )
    return batch


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Whether the type is, or holds, timestamps in nanoseconds."""
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    if pa.types.is_nested(kind):
        return any(has_nanoseconds(kind.field(at).type) for at in range(kind.num_fields))
    return False

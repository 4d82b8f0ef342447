"""Files whose TIMESTAMP(7..9) columns are 64-bit nanoseconds, as pypaimon writes them.

Java Paimon and lakelsm write INT96 (format.md 8.2), which Spark reads as timestamps. Spark reads 64-bit nanoseconds only
as numbers, so such files are scanned apart. Only tables that have such columns pay: their files' footers are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelsm.format.file_check import PARQUET_ERRORS, unreadable
from lakelsm.merge.run_reader import RunFile
from lakelsm.schema import TableSchema
from lakelsm.spark.columns import quoted
from lakelsm.storage import FileIO
from lakelsm.types import AtomicType, DataType

_THREADS = 16


def has_nanoseconds(data_type: DataType) -> bool:
    """Whether a column of this type may be 64-bit nanoseconds in a file."""
    is_timestamp = isinstance(data_type, AtomicType) and data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ")
    return is_timestamp and isinstance(data_type, AtomicType) and (data_type.precision or 0) > 6


def nanosecond_files(file_io: FileIO, schema: TableSchema, files: Sequence[RunFile]) -> frozenset[str]:
    """The paths among ``files`` (of one schema) that store its TIMESTAMP(7..9) columns as 64-bit numbers."""
    names = [field.name for field in schema.fields if has_nanoseconds(field.type)]
    if not names:
        return frozenset()
    filesystem = file_io.filesystem()

    def stores_numbers(file: RunFile) -> bool:
        try:
            stored = pq.read_metadata(file.path, filesystem=filesystem).schema
        except PARQUET_ERRORS as error:
            raise unreadable(file.path, error) from error
        columns = (stored.column(at) for at in range(len(stored)))
        return any(column.path in names and column.physical_type == "INT64" for column in columns)

    with ThreadPoolExecutor(_THREADS) as pool:
        return frozenset(file.path for file, numbers in zip(files, pool.map(stores_numbers, files)) if numbers)


def parted(files: Iterable[RunFile], numbers: frozenset[str]) -> list[tuple[bool, list[RunFile]]]:
    """The files with 64-bit nanoseconds and the others, each kind if there are any."""
    kinds: dict[bool, list[RunFile]] = {}
    for file in files:
        kinds.setdefault(file.path in numbers, []).append(file)
    return sorted(kinds.items())


def timestamp_of_nanoseconds(name: str, data_type: DataType) -> Column:
    """The timestamp in a column of 64-bit nanoseconds, cut to Spark's microseconds."""
    micros = F.floor(quoted(name) / F.lit(1000).cast("decimal(4,0)")).cast("bigint")
    if isinstance(data_type, AtomicType) and data_type.root == "TIMESTAMP_LTZ":
        return F.timestamp_micros(micros)
    days = F.floor(micros / F.lit(86_400_000_000).cast("decimal(11,0)")).cast("int")
    rest = (micros - days.cast("bigint") * 86_400_000_000) / F.lit(1_000_000).cast("decimal(7,0)")
    midnight = F.date_add(F.lit("1970-01-01").cast("date"), days).cast("timestamp_ntz")
    return midnight + F.make_dt_interval(secs=rest.cast("decimal(18,6)"))

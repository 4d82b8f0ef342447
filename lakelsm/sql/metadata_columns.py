"""Paimon's metadata columns in queries: the partition and the bucket of a row. ``*`` does not stand for them.

The bucket is that of the files that a row is read from: the read is planned once, and its parts are read bucket by
bucket. `__paimon_file_path` and `__paimon_row_index` are refused: a merged row has no single file, and reads of raw files
do not keep its row index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.engine import local_engine
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import QuerySource
from lakelsm.sql.query_sources import TableSource
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.table.readable_table import RowsRequest, bucket_frames, bucket_scans
from lakelsm.types import AtomicType, DataField, RowType, output_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION, BUCKET = "__paimon_partition", "__paimon_bucket"
#: Metadata columns that are not built, with the reason.
_REFUSED = {
    "__paimon_file_path": "a merged row has no single file",
    "__paimon_row_index": "a merged row has no single file",
}
_PREFIX = "__paimon_"
#: Spark reads each bucket as a DataFrame of its own: planning takes longer with each one.
_MAX_FRAMES = 256


@dataclass(frozen=True)
class MetadataSource:
    """The rows of a table with metadata columns after its own."""

    rows: TableSource
    names: tuple[str, ...]

    @property
    def hidden(self) -> Sequence[str]:
        """The columns that ``*`` does not stand for."""
        return self.names

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return self.rows.applies_conditions

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns of the table, then the metadata columns."""
        own = list(self.rows.fields)
        return [*own, *(DataField(len(own) + at, name, self._type(name)) for at, name in enumerate(self.names))]

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        wanted = self._wanted(need)
        request = RowsRequest(need.where, self._read(wanted), fresh=self.rows.fresh)
        scans = bucket_scans(self.rows.table, request)
        schema = pa.schema([(field.name, output_arrow(field.type)) for field in wanted])

        def batches() -> Iterator[pa.RecordBatch]:
            for bucket, scan in scans:
                for batch in scan.batches(local_engine().runner):
                    columns = [self._column(field, batch, bucket) for field in wanted]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        from lakelsm.frames.sql_frame import with_metadata

        wanted, table = self._wanted(need) or self.fields[:1], self.rows.table
        frames = bucket_frames(table, need.where, self._read(wanted), fresh=self.rows.fresh, max_frames=_MAX_FRAMES)
        kinds: dict[str, Sequence[str] | None] = {PARTITION: table.schema.partition_keys, BUCKET: None}
        return with_metadata(spark, frames, [field.name for field in wanted], kinds)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return self.rows.plan(Need(None if need.columns is None else self._read(self._wanted(need)), need.where))

    def _type(self, name: str) -> AtomicType | RowType:
        if name == BUCKET:
            return AtomicType("INT")
        schema = self.rows.table.schema
        return RowType(tuple(schema.field(key) for key in schema.partition_keys))

    def _wanted(self, need: Need) -> list[DataField]:
        return [field for field in self.fields if need.columns is None or field.name in need.columns]

    def _read(self, wanted: Sequence[DataField]) -> list[str]:
        """Return the table's columns that are read, at least one."""
        names = [field.name for field in wanted if field.name not in self.names]
        if any(field.name == PARTITION for field in wanted):
            names += [key for key in self.rows.table.schema.partition_keys if key not in names]
        return names or [self.rows.table.schema.primary_keys[0]]

    def _column(self, field: DataField, batch: pa.RecordBatch, bucket: int) -> pa.Array:
        if field.name not in self.names:
            return batch.column(field.name)
        if field.name == BUCKET:
            return pa.repeat(pa.scalar(bucket, pa.int32()), len(batch))
        keys = self.rows.table.schema.partition_keys
        return pa.StructArray.from_arrays([batch.column(key) for key in keys], fields=list(output_arrow(field.type)))


def with_metadata_columns(query: QueryText, sources: Mapping[int, QuerySource]) -> dict[int, QuerySource]:
    """Return the sources of a query; tables have the metadata columns that the query names.

    Raises UnsupportedFeatureError for metadata columns that are not built, and where the query's own words hide them.
    """
    named = {name.lower() for name in _names(query)}
    found = dict(sources)
    for start, source in sources.items():
        if not isinstance(source, TableSource):
            continue
        own = {field.name.lower() for field in source.fields}
        names = sorted(named - own)
        for name in names:
            _check(name, source)
        if names:
            found[start] = MetadataSource(source, tuple(names))
    return found


def _names(query: QueryText) -> Iterator[str]:
    for token in query.tokens:
        if token.kind in (TokenKind.NAME, TokenKind.QUOTED):
            name = token.text.strip("`")
            if name.lower().startswith(_PREFIX) and name.lower() in (PARTITION, BUCKET, *_REFUSED):
                yield name


def _check(name: str, source: TableSource) -> None:
    table = source.table
    if name in _REFUSED:
        raise UnsupportedFeatureError(f"Table {table.name}: metadata column {name!r} is not supported: {_REFUSED[name]}.")
    if name == PARTITION and not table.schema.partition_keys:
        raise UnsupportedFeatureError(f"Table {table.name}: metadata column {name!r}: the table has no partitions.")

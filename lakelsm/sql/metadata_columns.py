"""Paimon's metadata columns in queries. ``*`` does not stand for them.

The partition and the bucket of a row are those of the files that it is read from. The file path and the row index are
known if no files are merged, as in Paimon: after a full compaction, or with deletion vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import QuerySource
from lakelsm.sql.query_sources import TableSource
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.table.bucket_reads import BucketRows, bucket_frames, bucket_rows
from lakelsm.table.readable_table import RowsRequest
from lakelsm.types import AtomicType, DataField, DataType, RowType, output_arrow, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION = "__paimon_partition"
#: The metadata columns, with their kinds.
_KINDS = {
    PARTITION: "partition",
    "__paimon_bucket": "bucket",
    "__paimon_file_path": "path",
    "__paimon_row_index": "index",
}
_TYPES = {"bucket": AtomicType("INT"), "path": parse_type("STRING"), "index": AtomicType("BIGINT")}
#: The kinds of columns that only files without a merge have.
_LOCATIONS = frozenset(["path", "index"])


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
        return self.rows.applies_conditions and not self._located

    @property
    def _located(self) -> bool:
        """Whether a column needs the file of each row."""
        return any(_KINDS[name] in _LOCATIONS for name in self.names)

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns of the table, then the metadata columns."""
        own = list(self.rows.fields)
        return [*own, *(DataField(len(own) + at, name, self._type(name)) for at, name in enumerate(self.names))]

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        wanted = self._wanted(need)
        request = RowsRequest(need.where, self._read(wanted), fresh=self.rows.fresh)
        parts = bucket_rows(self.rows.table, request, located=self._located)
        schema = pa.schema([(field.name, output_arrow(field.type)) for field in wanted])

        def batches() -> Iterator[pa.RecordBatch]:
            for part in parts:
                yield pa.RecordBatch.from_arrays([self._column(field, part) for field in wanted], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        from lakelsm.frames.sql_frame import with_metadata

        wanted, table = self._wanted(need) or self.fields[:1], self.rows.table
        frames = bucket_frames(table, need.where, self._read(wanted), fresh=self.rows.fresh, located=self._located)
        made = {name: _KINDS[name] for name in self.names}
        names = [field.name for field in wanted]
        return with_metadata(spark, frames, names, made=made, partition=table.schema.partition_keys)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return self.rows.plan(Need(None if need.columns is None else self._read(self._wanted(need)), need.where))

    def _type(self, name: str) -> DataType:
        if name != PARTITION:
            return _TYPES[_KINDS[name]]
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

    def _column(self, field: DataField, part: BucketRows) -> pa.Array:
        kind = _KINDS[field.name] if field.name in self.names else None
        if kind is None:
            return part.rows.column(field.name)
        if kind == "index":
            return part.indexes
        if kind == "partition":
            keys = self.rows.table.schema.partition_keys
            columns = [part.rows.column(key) for key in keys]
            return pa.StructArray.from_arrays(columns, fields=list(output_arrow(field.type)))
        value = part.bucket if kind == "bucket" else part.path
        return pa.repeat(pa.scalar(value, output_arrow(field.type)), len(part.rows))


def with_metadata_columns(query: QueryText, sources: Mapping[int, QuerySource]) -> dict[int, QuerySource]:
    """Return the sources of a query; tables have the metadata columns that the query names.

    Raises UnsupportedFeatureError for the partition of a table that has none.
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
            if name.lower() in _KINDS:
                yield name


def _check(name: str, source: TableSource) -> None:
    if name == PARTITION and not source.table.schema.partition_keys:
        table = source.table.name
        raise UnsupportedFeatureError(f"Table {table}: metadata column {name!r}: the table has no partitions.")

"""The options of `spark.readStream.format("lakelsm")`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from lakelsm.arguments import checked_condition
from lakelsm.data_source.read_options import column_names
from lakelsm.data_source.spark_rows import arrow_form, check_given, source_struct
from lakelsm.data_source.table_location import (
    LOCATION_NAMES,
    CatalogTable,
    Location,
    TableLocation,
    checked_options,
)
from lakelsm.engine import local_engine
from lakelsm.errors import InvalidInputError
from lakelsm.schema.identifiers import match
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.change_feed import ChangeFeed
from lakelsm.stream.feed_settings import LIMIT_OPTIONS, STREAM_OPTIONS, FeedSettings, limits_of_options
from lakelsm.stream.stream_limits import StreamLimits

#: The column of row kinds, as in Paimon's Spark source.
KIND_COLUMN = "rowkind"
#: Options, in lower case, that batch reads and writes do not have.
STREAM_NAMES = frozenset(name.lower() for name in (*STREAM_OPTIONS, *LIMIT_OPTIONS))
_NAMES = (*LOCATION_NAMES, *STREAM_OPTIONS, *LIMIT_OPTIONS, "columns", "where")
_REMEDY = "Load the table by its path, without a schema"


@dataclass(frozen=True)
class OpenedStream:
    """The feed of a stream, and the columns of its rows by the names of the table, after ``kind_column`` if any."""

    feed: ChangeFeed
    form: pa.Schema
    kind_column: str | None


@dataclass(frozen=True)
class StreamOptions:
    """A table, the settings of its stream as texts, the limits of a batch, and what is read."""

    location: Location
    _: KW_ONLY
    settings: Mapping[str, str]
    limits: StreamLimits
    columns: tuple[str, ...] | None = None
    where: str | None = None

    @staticmethod
    def of(given: Mapping[str, str], registered: CatalogTable | None = None) -> StreamOptions:
        """Check options, whose names have any case. Raises InvalidInputError for unknown and contradicting ones.

        The options of a ``registered`` table are those of one query.
        """
        options = checked_options(given, _NAMES, "stream", of=registered)
        return StreamOptions(
            registered or TableLocation.of(options),
            settings={name: options[name.lower()] for name in STREAM_OPTIONS if name.lower() in options},
            limits=limits_of_options(options),
            columns=column_names(options["columns"]) if "columns" in options else None,
            where=checked_condition(options.get("where")),
        )

    def struct(self) -> StructType:
        """Return the columns of the stream in Spark's types: with `KIND_COLUMN` first if the option asks for kinds."""
        store, settings = self._checked()
        kind = [StructField(KIND_COLUMN, StringType(), True)] if settings.has_kinds else []
        return StructType([*kind, *source_struct(store.schema, self.columns).fields])

    def opened(self, schema: StructType) -> OpenedStream:
        """Open the stream of rows with a schema: that of `struct`, one that the user gives, or that of an old frame."""
        store, settings = self._checked()
        kind = KIND_COLUMN if settings.has_kinds else None
        fields = schema.fields if kind is None else _fields_after_kind(store.schema, schema)
        check_given(store.schema, StructType(fields), self.columns)
        names = [*([] if kind is None else [kind]), *(store.schema.column_name(field.name) for field in fields)]
        form = pa.schema([each.with_name(name) for each, name in zip(arrow_form(schema), names)])
        predicate = local_engine().evaluable_predicate(store, self.where)
        return OpenedStream(ChangeFeed(store, settings, predicate), form, kind)

    def _checked(self) -> tuple[TableStore, FeedSettings]:
        store = self.location.opened()._store()
        settings = FeedSettings.of_options(store, self.settings)
        other = match(KIND_COLUMN, store.schema.field_names) if settings.has_kinds else None
        if other is not None:
            raise InvalidInputError(
                f"option 'read.changelog': the table has a column {other!r} itself. Rename it, or remove the option."
            )
        return store, settings


def _fields_after_kind(own: TableSchema, schema: StructType) -> list[StructField]:
    """Return the fields of a schema without that of the kind. Raises InvalidInputError for a schema without one."""
    fields = list(schema.fields)
    first = fields.pop(0) if fields else None
    if first is None or first.name != KIND_COLUMN or not isinstance(first.dataType, StringType):
        raise InvalidInputError(
            f"option 'read.changelog': the schema that is given or registered has no first column {KIND_COLUMN!r} of "
            f"type STRING. {_REMEDY}."
        )
    for field in fields:
        if not field.nullable and match(field.name, own.primary_keys) is None:
            raise InvalidInputError(
                f"column {field.name!r}: the schema says NOT NULL, and a row of kind -D may have nothing but its key. "
                f"{_REMEDY}."
            )
    return fields

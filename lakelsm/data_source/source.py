"""The class that Spark creates for `format("lakelsm")`, in a Python worker beside the driver.

Spark creates it, sends it to another worker as a pickle, and asks that one for a reader. Each query plans again, on the
newest snapshot unless an option names another one. The module imports little, because every Spark session that uses a
Python data source imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource

from lakelsm.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from lakelsm.data_source.table_location import CatalogTable

#: The name in `format(…)`.
FORMAT = "lakelsm"
#: The module of Spark's worker that passes filters to a reader. Spark runs it if filters may be pushed down.
_FILTER_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
#: The module of Spark's worker that commits or aborts the batch of a stream.
_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"


class DefaultSource(DataSource):
    """One table as a data source. `read_options`, `stream_options` and `write_options` have the options."""

    #: The table of a subclass that `registration` makes; its options are those of one query.
    registered: ClassVar[CatalogTable | None] = None

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))

    @classmethod
    def name(cls) -> str:
        """The name in `format(…)`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the table at the wanted snapshot, in Spark's types. Spark also calls it for writes."""
        from lakelsm.data_source.read_options import ReadOptions
        from lakelsm.data_source.spark_rows import source_struct
        from lakelsm.data_source.stream_options import STREAM_NAMES, StreamOptions
        from lakelsm.data_source.write_options import BATCH_NAMES

        if "provider" in self.options:  # Spark adds its own keys to the options of such a statement.
            raise UnsupportedFeatureError(
                f"CREATE TABLE … USING {FORMAT} is not supported: Spark passes no options of such a table to its "
                "queries. Use Catalog.register for tables by name, or CREATE TEMPORARY VIEW."
            )
        names = {name.lower() for name in self.options}
        if not names.isdisjoint(STREAM_NAMES):
            return StreamOptions.of(self.options, self.registered).struct()
        if not names.isdisjoint(BATCH_NAMES):
            return self._written_columns()
        options = ReadOptions.of(self.options, self.registered)
        return source_struct(options.opened().schema, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of columns with a schema: that of `schema`, or one that the user gives."""
        from lakelsm.data_source.read_options import ReadOptions
        from lakelsm.data_source.reader import FilteringReader, TableReader

        # Spark refuses a reader that takes filters if the session does not push them down (4.1 to 4.3).
        kind = FilteringReader if _is_worker(_FILTER_WORKER) else TableReader
        return kind(ReadOptions.of(self.options, self.registered), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of rows with a schema. ``overwrite``: they replace all rows of the table."""
        from lakelsm.data_source.write_options import WriteOptions
        from lakelsm.data_source.writer import TableWriter

        return TableWriter(WriteOptions.of(self.options, self.registered), schema, overwrite=overwrite)

    def _written_columns(self) -> StructType:
        """Return the columns of rows to write, with that of row kinds, because Spark refuses other columns."""
        from lakelsm.data_source.spark_rows import source_struct
        from lakelsm.data_source.write_options import WriteOptions
        from lakelsm.schema.identifiers import match

        options = WriteOptions.of(self.options, self.registered)
        struct = source_struct(options.location.opened().schema, None)
        if options.row_kind is None or match(options.row_kind, struct.names) is not None:
            return struct
        return struct.add(options.row_kind, "string")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream of rows with a schema."""
        from lakelsm.data_source.stream_options import StreamOptions
        from lakelsm.data_source.stream_reader import FeedReader, UnlimitedReader

        kind: type[FeedReader] = UnlimitedReader
        if hasattr(datasource, "ReadAllAvailable"):  # Since 4.2.
            from lakelsm.data_source.limited_reader import LimitedReader

            kind = LimitedReader
        return kind(StreamOptions.of(self.options, self.registered), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a batch of a stream, or of its commit. ``overwrite``: the output mode is complete."""
        from lakelsm.data_source.write_options import WriteOptions

        if not hasattr(datasource, "DataSourceStreamArrowWriter"):
            raise UnsupportedFeatureError(
                f"writeStream.format({FORMAT!r}) needs PySpark 4.1 or later. Use Table.write_stream."
            )
        from lakelsm.data_source.stream_writer import StreamWriter

        options = WriteOptions.of_stream(self.options, self.registered)
        if _is_worker(_COMMIT_WORKER):
            return StreamWriter(options)
        return StreamWriter.of_batch(options, schema, overwrite=overwrite)


def _is_worker(module: str) -> bool:
    """Return whether this process is the worker that runs a module of Spark."""
    main: Any = getattr(sys.modules.get("__main__"), "__spec__", None)
    return module in sys.modules or getattr(main, "name", None) == module

"""lakelsm with the operations of a peer, so that a test reads the same for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelsm import Catalog, Table
from lakelsm.format.data_file.key_value_file import cast_column
from lakelsm.schema.changes import AddColumn, DropColumn, RenameColumn, SchemaChange, UpdateColumnType
from lakelsm.spark.spark_types import to_spark_arrow, to_struct
from lakelsm.types import DataField, parse_type
from tests.interop.arrow_merge import merged_rows
from tests.interop.peers import Change
from tests.interop.value_form import Rows, cut_to_micros, rows_of_arrow

_KIND = "row_kind_of_the_test"


class LakelsmTables:
    """Tables by their directories, as in `Peer`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def table(self, path: Path) -> Table:
        return Table.for_path(str(path), self._spark)

    def create(
        self,
        path: Path,
        columns: str,
        primary_key: Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        catalog, name = self._catalog(path)
        catalog.create_table(name, columns, primary_key=primary_key, partition_by=partition_by, options=options)

    def alter(self, path: Path, *changes: Change) -> None:
        catalog, name = self._catalog(path)
        catalog.alter_table(name, *map(schema_change, changes))

    def write(self, path: Path, rows: pa.Table, kinds: Sequence[str] | None = None) -> None:
        table = self.table(path)
        frame = self._frame(rows, table.schema.fields, kinds)
        table.write(frame, row_kind=None if kinds is None else _KIND)

    def overwrite(self, path: Path, rows: pa.Table, partition: Mapping[str, object] | None = None) -> None:
        table = self.table(path)
        table.overwrite(self._frame(rows, table.schema.fields, None), partition)

    def read(self, path: Path, where: str | None = None) -> Rows:
        """The rows of the DataFrame; checked against a read by Arrow, which also has nanoseconds."""
        table = self.table(path)
        rows = rows_of_arrow(table.read(where=where).toArrow(), table.schema.fields)
        if where is None:
            assert rows == cut_to_micros(merged_rows(str(path)), table.schema.fields)
        return rows

    def read_nanos(self, path: Path) -> Rows:
        """The rows with nanoseconds; checked against the DataFrame."""
        self.read(path)
        return merged_rows(str(path))

    def compact(self, path: Path, full: bool = True) -> None:
        self.table(path).compact(full=full)

    def _catalog(self, path: Path) -> tuple[Catalog, str]:
        return Catalog(path.parents[1].as_uri(), self._spark), f"{path.parent.name.removesuffix('.db')}.{path.name}"

    def _frame(self, rows: pa.Table, fields: tuple[DataField, ...], kinds: Sequence[str] | None) -> DataFrame:
        columns = [cast_column(rows.column(column.name), column.type) for column in to_spark_arrow(fields)]
        names = [field.name for field in fields]
        schema = to_struct(fields)
        for member in schema.fields:
            member.nullable = True
        if kinds is not None:
            columns.append(pa.chunked_array([pa.array(kinds, pa.string())]))
            names.append(_KIND)
            schema = schema.add(_KIND, "string")
        return self._spark.createDataFrame(pa.table(columns, names=names), schema=schema)


def schema_change(change: Change) -> SchemaChange:
    """A change as lakelsm's own."""
    verb, dotted, *words = change
    column = tuple(dotted.split("."))
    if verb == "add":
        return AddColumn(column, parse_type(words[0]))
    if verb == "drop":
        return DropColumn(column)
    return RenameColumn(column, words[0]) if verb == "rename" else UpdateColumnType(column, parse_type(words[0]))

"""lakelsm with the operations of a peer, so that a test has the same form for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.format.data_file.key_value_file import cast_column
from lakelsm.local.output_rows import output_schema
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, SchemaChange, UpdateColumnType
from lakelsm.types import DataField, parse_type
from tests.engines import TableEngine
from tests.interop.arrow_merge import merged_rows
from tests.interop.peers import Change, Changes
from tests.interop.value_form import Rows, cut_to_micros, rows_of_arrow

_KIND = "row_kind_of_the_test"


class LakelsmTables:
    """Tables by their directories, as in `Peer`, on one engine."""

    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    def table(self, path: Path) -> Table:
        return self._engine.opened(path)

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
        """Return the rows that the engine reads; all of them are compared with a read that shares no code with it."""
        table = self.table(path)
        fields = table.schema.fields
        found = table.to_arrow(where) if self._engine.spark is None else table.read(where=where).toArrow()
        rows = rows_of_arrow(found, fields)
        if where is None:
            assert rows == self.held(merged_rows(str(path)), fields)
        return rows

    def held(self, rows: Rows, fields: Sequence[DataField]) -> Rows:
        """Return the rows as the engine keeps them: Spark has no nanoseconds."""
        return rows if self._engine.spark is None else cut_to_micros(rows, fields)

    def read_nanos(self, path: Path) -> Rows:
        """Return the rows with nanoseconds, compared with those of the engine."""
        self.read(path)
        return merged_rows(str(path))

    def changes(self, path: Path, *points: Any, **more: Any) -> Changes:
        """Return the changes that the engine reads."""
        return self._engine.changes(self.table(path), *points, **more)

    def compact(self, path: Path, full: bool = True) -> None:
        self._engine.compact(self.table(path), full)

    def delete(self, path: Path, where: str) -> None:
        self._engine.delete(self.table(path), where)

    def _catalog(self, path: Path) -> tuple[Catalog, str]:
        return self._engine.catalog(path.parents[1]), f"{path.parent.name.removesuffix('.db')}.{path.name}"

    def _frame(self, rows: pa.Table, fields: tuple[DataField, ...], kinds: Sequence[str] | None) -> Any:
        """Return the frame that the engine writes: the rows, with their kinds in a last column."""
        if self._engine.spark is None:
            given = _cast(rows, output_schema(fields))
            return given if kinds is None else given.append_column(_KIND, pa.array(kinds, pa.string()))
        from lakelsm.spark.spark_types import to_spark_arrow, to_struct

        columns = _cast(rows, to_spark_arrow(fields)).columns
        schema = to_struct(fields)
        for member in schema.fields:
            member.nullable = True
        if kinds is not None:
            columns.append(pa.chunked_array([pa.array(kinds, pa.string())]))
            schema = schema.add(_KIND, "string")
        return self._engine.spark.createDataFrame(pa.table(columns, names=schema.names), schema=schema)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    names = schema.names
    return pa.table([cast_column(rows.column(column.name), column.type) for column in schema], names=names)


def schema_change(change: Change) -> SchemaChange:
    """Return a change as lakelsm's class."""
    verb, dotted, *words = change
    column = tuple(dotted.split("."))
    if verb == "add":
        return AddColumn(column, parse_type(words[0]))
    if verb == "drop":
        return DropColumn(column)
    return RenameColumn(column, words[0]) if verb == "rename" else UpdateColumnType(column, parse_type(words[0]))

"""Both engines behind one interface, so that tests of rows run on each of them.

A test with the fixture ``engine`` runs twice, without and with a JVM. A test with many cases runs all of them in this
process, and some on Spark (`each_case`). A test with the fixture ``local`` covers code that both engines share; another
test has a case of it on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.engine import Engine, chosen_engine
from lakelsm.results import CommitResult, CompactionResult
from lakelsm.types import parse_columns
from lakelsm.write.batch_write import BatchWriter
from tests.spark_frames import arrow_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]


@dataclass(frozen=True)
class TableEngine:
    """An engine's own calls on tables: DataFrames on Spark, Arrow in this process."""

    name: str
    spark: SparkSession | None = None

    @property
    def product(self) -> Engine:
        """The engine that the calls use."""
        return chosen_engine(self.name, self.spark)

    def catalog(self, warehouse: Path) -> Catalog:
        return Catalog(str(warehouse), self.spark)

    def opened(self, location: Path | str) -> Table:
        return Table.for_path(str(location), self.spark)

    def create(
        self,
        warehouse: Path,
        columns: str,
        key: Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        name: str = "db.t",
    ) -> Table:
        """Create a table with one bucket and no automatic compaction; ``options`` are added."""
        every = {"bucket": "1", "write-only": "true", **(options or {})}
        catalog = self.catalog(warehouse)
        return catalog.create_table(name, columns, primary_key=key, partition_by=partition_by, options=every)

    def frame(self, rows: Sequence[Sequence[Any]], ddl: str) -> Any:
        """Return rows, in their order, as a frame that the engine writes."""
        if self.spark is None:
            return arrow_of(rows, ddl)
        from lakelsm.spark.spark_types import to_struct

        return self.spark.createDataFrame(arrow_of(rows, ddl), to_struct(parse_columns(ddl))).coalesce(1)

    def write(self, table: Table, rows: Sequence[Sequence[Any]], row_kind: str | None = None, **more: Any) -> Any:
        """Write rows with all columns of the table; with ``row_kind``, each begins with its kind."""
        return table.write(self.frame_for(table, rows, row_kind), row_kind, **more)

    def frame_for(self, table: Table, rows: Sequence[Sequence[Any]], row_kind: str | None = None) -> Any:
        """Return the frame that `write` writes."""
        return self.frame(rows, ddl_of(table, row_kind))

    def rows(
        self, table: Table, where: str | None = None, columns: Sequence[str] | None = None, **more: Any
    ) -> list[Row]:
        """Return the rows of a read, as tuples `in_order`."""
        if self.spark is None:
            return in_order(plain_rows(table.to_arrow(where, columns, **more)))
        return in_order([tuple(row) for row in table.read(where, columns, **more).collect()])

    def columns(self, table: Table, **more: Any) -> list[str]:
        """Return the column names of a read."""
        return list(table.to_reader(**more).schema.names if self.spark is None else table.read(**more).columns)

    def changes(self, table: Table, *between: Any, **more: Any) -> list[Row]:
        """Return the changes as tuples, in their order."""
        if self.spark is None:
            return plain_rows(table.changelog_reader(*between, **more).read_all())
        return [tuple(row) for row in table.changelog(*between, **more).collect()]

    def changelog(self, table: Table, *between: Any, **more: Any) -> Any:
        """Return the changes as a frame that the engine writes."""
        return (
            table.changelog_reader(*between, **more).read_all()
            if self.spark is None
            else table.changelog(*between, **more)
        )

    def compact(self, table: Table, full: bool = False, **more: Any) -> CompactionResult:
        return table.compact(full, engine=self.name, **more)

    def delete(self, table: Table, where: str, **more: Any) -> CommitResult:
        return table.delete(where, engine=self.name, **more)

    def update(self, table: Table, values: Mapping[str, str], where: str, **more: Any) -> CommitResult:
        return table.update(values, where, engine=self.name, **more)

    def append(
        self, table: Table, frame: Any, step: Callable[[str], None], row_kind: str | None = None, user: str = "slow"
    ) -> Any:
        """Write a batch as ``user`` with batch id 5; ``step`` is called for each step and may do anything."""
        store = table._store()
        rows = self.product.prepared_rows(store, frame, row_kind)
        return BatchWriter(self.product.writer(store), store, step).append(rows, user, 5)


def each_case(name: str, cases: Iterable[Any], on_spark: Iterable[Any]) -> pytest.MarkDecorator:
    """Give a test the arguments ``engine`` and ``name``: all cases in this process, and some also on Spark."""
    local = [("local", case) for case in cases]
    spark = [pytest.param("spark", case, marks=pytest.mark.spark) for case in on_spark]
    return pytest.mark.parametrize(("engine", name), [*local, *spark], indirect=["engine"])


#: For tests whose fixtures use ``engine``: run on one engine only.
LOCALLY = pytest.mark.parametrize("engine", ["local"], indirect=True)
ON_SPARK = pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True)


def ddl_of(table: Table, row_kind: str | None = None) -> str:
    """Return the DDL of a table's columns, after a column of row kinds if one is named."""
    quoted = [(field.name.replace("`", "``"), field.type.with_nullable(True)) for field in table.schema.fields]
    return ", ".join(([f"{row_kind} STRING"] if row_kind else []) + [f"`{name}` {kind}" for name, kind in quoted])


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows sorted; NULL is last."""
    return sorted(rows, key=lambda row: [(value is None, value) for value in row])


def plain_rows(rows: pa.Table) -> list[Row]:
    """Return Arrow rows in Spark's Python form: rows are tuples, maps are dicts."""
    columns = [[_plain(value, column.type) for value in column.to_pylist()] for column in rows.columns]
    return list(zip(*columns, strict=True))


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(_plain(value[field.name], field.type) for field in kind)
    if pa.types.is_map(kind):
        return {_plain(name, kind.key_type): _plain(item, kind.item_type) for name, item in value}
    return [_plain(item, kind.value_type) for item in value] if pa.types.is_list(kind) else value

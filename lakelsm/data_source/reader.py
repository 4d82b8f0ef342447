"""The reader of a table: plans once for each query, and reads a part of the plan in each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakelsm.data_source.pushed_filters import conditions
from lakelsm.data_source.read_options import ReadOptions
from lakelsm.data_source.spark_rows import arrow_form, check_given
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.merge_units import pack_for_tasks
from lakelsm.read.snapshot_guard import SnapshotGuard
from lakelsm.table.readable_table import RowsRequest, planned_scans

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, repr=False)
class UnitsPartition(InputPartition):
    """The units of a read that one task of Spark reads, with the task."""

    units: Sequence[RunFile | MergeUnit]
    task: SnapshotGuard[Any]


class TableReader(DataSourceReader):
    """Reads the columns of a Spark ``schema``. Spark pickles it for its tasks before it plans."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._pushed: tuple[str, ...] = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the read from metadata: one partition for each task, none of them with rows."""
        table = self._options.opened()
        check_given(table.schema, self._schema, self._options.columns)
        where = [text for text in (self._options.where, *self._pushed) if text is not None]
        joined = " AND ".join(f"({text})" for text in where) or None
        names = [table.schema.column_name(name) for name in self._schema.names]
        form = arrow_form(self._schema)
        stored = pa.schema([each.with_name(name) for each, name in zip(form, names)])
        found: list[InputPartition] = []
        for scan in planned_scans(table, RowsRequest(where=joined, columns=names, timestamps="us")):
            task = SnapshotGuard(scan.store, (scan.plan.snapshot,), scan.task(stored))
            packed = pack_for_tasks(scan.store.options, scan.units, _files)
            found += [UnitsPartition(units, task) for units in packed]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition. Spark passes one of its own if the plan has none."""
        if isinstance(partition, UnitsPartition):
            form = arrow_form(self._schema)
            for unit in partition.units:
                for batch in partition.task(unit):
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=form)


class FilteringReader(TableReader):
    """A reader that gets the filters of the query. It uses them to skip files and rows, and Spark applies them again."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Keep the filters that the table can evaluate. Return all of them, so that Spark decides about each row."""
        self._pushed = tuple(conditions(filters, self._options.opened().schema))
        return iter(filters)


def _files(unit: RunFile | MergeUnit) -> Sequence[RunFile]:
    return [unit] if isinstance(unit, RunFile) else unit.files

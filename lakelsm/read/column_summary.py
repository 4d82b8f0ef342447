"""Summaries of columns, computed in tasks and combined: counts, bounds, lengths and distinct values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.manifest.partition_stats import comparable
from lakelsm.format.row.binary_row import decode_rows, encode_row
from lakelsm.read.distinct_count import DistinctCount
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, DataField, DataType

Unit = TypeVar("Unit")

#: The result of a task: a row with the number of rows (column -1), then one row for each column, by its index.
SUMMARY_SCHEMA = pa.schema(
    [
        ("column", pa.int32()),
        ("rows", pa.int64()),
        ("nulls", pa.int64()),
        ("length", pa.int64()),
        ("longest", pa.int64()),
        ("bounds", pa.binary()),
        ("registers", pa.binary()),
    ]
)
_ROWS = -1


@dataclass
class ColumnSummary:
    """The summary of a column. ``length`` is the total of characters (texts) or bytes (binary) of all values.

    ``bounds`` are an array of the smallest and the greatest value; None for texts and binary, and if all are NULL.
    """

    data_type: DataType
    _: KW_ONLY
    nulls: int = 0
    length: int = 0
    longest: int = 0
    bounds: pa.Array | None = None
    distinct: DistinctCount = field(default_factory=DistinctCount)

    @property
    def has_lengths(self) -> bool:
        """Whether values have lengths (texts and binary); such columns have no bounds."""
        return self.data_type.root in STRING_ROOTS or self.data_type.root in BINARY_ROOTS

    def add(self, column: pa.Array) -> None:
        """Add the values of an array."""
        self.nulls += column.null_count
        values = column.drop_null()
        if not len(values):
            return
        self.distinct.add(values)
        if self.has_lengths:
            text = self.data_type.root in STRING_ROOTS
            lengths = pc.utf8_length(values) if text else pc.binary_length(values)
            self.length += pc.sum(lengths).as_py()
            self.longest = max(self.longest, pc.max(lengths).as_py())
        else:
            self._widen(values)

    def merge(self, row: Mapping[str, Any]) -> None:
        """Add the summary of a task, a row of `SUMMARY_SCHEMA`."""
        self.nulls += row["nulls"]
        self.length += row["length"]
        self.longest = max(self.longest, row["longest"])
        self.distinct.merge(row["registers"])
        if row["bounds"] is not None:
            low, high = decode_rows([row["bounds"]], [self.data_type] * 2)
            self._widen(pa.concat_arrays([low, high]))

    def to_row(self, index: int) -> dict[str, Any]:
        """Return the summary as a row of `SUMMARY_SCHEMA`; ``index`` is that of the column."""
        kinds = [self.data_type] * 2
        return {
            "column": index,
            "rows": 0,
            "nulls": self.nulls,
            "length": self.length,
            "longest": self.longest,
            "bounds": None if self.bounds is None else encode_row([self.bounds[0], self.bounds[1]], kinds),
            "registers": self.distinct.registers(),
        }

    def _widen(self, values: pa.Array) -> None:
        """Extend the bounds by some values. The order is Spark's: NaN is greater than all numbers."""
        if self.bounds is not None:
            values = pa.concat_arrays([values, self.bounds])
        ranks = comparable(values)
        if pa.types.is_decimal(ranks.type):
            self.bounds = pa.array([end.as_py() for end in pc.min_max(ranks).values()], values.type)
            return
        if pa.types.is_fixed_size_binary(ranks.type):
            order = pc.array_sort_indices(ranks)
            self.bounds = values.take(pa.concat_arrays([order[:1], order[-1:]]))
            return
        ends = pc.min_max(ranks)
        indexes = [pc.index(ranks, ends[name]).as_py() for name in ("min", "max")]
        self.bounds = values.take(pa.array(indexes))


@dataclass
class RowSummary:
    """The number of rows, and the summary of each of some columns."""

    columns: tuple[DataField, ...]
    rows: int = 0
    summaries: list[ColumnSummary] = field(init=False)

    def __post_init__(self) -> None:
        self.summaries = [ColumnSummary(column.type) for column in self.columns]

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch, which has the columns in the engine's types."""
        self.rows += len(batch)
        for column, summary in zip(self.columns, self.summaries):
            summary.add(batch.column(column.name))

    def merge(self, batch: pa.RecordBatch) -> None:
        """Add the result of a task, a batch of `SUMMARY_SCHEMA`."""
        for row in batch.to_pylist():
            if row["column"] == _ROWS:
                self.rows += row["rows"]
            else:
                self.summaries[row["column"]].merge(row)

    def to_batch(self) -> pa.RecordBatch:
        """Return one row for the number of rows, then one for each column, in `SUMMARY_SCHEMA`."""
        head = {"column": _ROWS, "rows": self.rows}
        rows = [head, *(summary.to_row(index) for index, summary in enumerate(self.summaries))]
        return pa.RecordBatch.from_pylist(rows, SUMMARY_SCHEMA)


@dataclass(frozen=True)
class SummaryTask(Generic[Unit]):
    """The task that summarizes the rows of some units; ``scan`` yields the rows of one unit."""

    scan: Callable[[Unit], Iterator[pa.RecordBatch]]
    columns: tuple[DataField, ...]
    memory_bytes: int

    def __call__(self, units: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
        """Yield one batch of `SUMMARY_SCHEMA`."""
        summary = RowSummary(self.columns)
        for unit in units:
            for batch in self.scan(unit):
                summary.add(batch)
        yield summary.to_batch()

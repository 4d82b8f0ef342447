"""What a system table is: columns, and how their rows are made of the table's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, output_arrow, parse_columns
from lakelsm.types.python_arrays import array_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_TICKS = {"ms": 1_000, "us": 1_000_000}
#: The years 1 to 9999.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_800


@dataclass(frozen=True)
class TableState:
    """The state that a system table shows: ``snapshot`` is the newest or a chosen one, None for an empty table.

    In Arrow TIMESTAMP(7..9) of its rows have the form ``timestamps`` (`TIMESTAMP_FORMS`).
    """

    store: TableStore
    snapshot: Snapshot | None
    environment: Environment = SYSTEM
    timestamps: str = "ns"

    def wall_clock(self, epoch_millis: int) -> int:
        """A time as Paimon shows it: the local clock, in milliseconds."""
        return self.environment.local_wall_clock(epoch_millis)


@dataclass(frozen=True)
class SystemTable:
    """A system table by Paimon's name. ``ddl`` has its columns; ``make`` their values, in that order.

    ``can_time_travel``: it shows one snapshot, so another one can be chosen.
    """

    name: str
    ddl: str
    make: Callable[[TableState], Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]]
    can_time_travel: bool = False

    @cached_property
    def fields(self) -> tuple[DataField, ...]:
        """The columns."""
        return parse_columns(self.ddl)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return pa.schema([pa.field(each.name, output_arrow(each.type), each.type.nullable) for each in self.fields])

    def frame(self, spark: SparkSession, rows: pa.Table) -> DataFrame:
        """The rows on Spark, as Spark has the columns."""
        from lakelsm.frames.system_frames import system_frame

        return system_frame(spark, rows, self.fields)

    def rows(self, state: TableState) -> pa.Table:
        """The rows. Raises CorruptTableError for a time that no calendar has."""
        arrays = [_array(values, field.type) for values, field in zip(self.make(state), self.schema, strict=True)]
        for name, values in zip(self.schema.names, arrays):
            if pa.types.is_timestamp(values.type) and not _are_times(values):
                raise CorruptTableError(
                    f"Table {state.store.name} has a {name} in its {self.name} that lies outside the years 1 to 9999: "
                    "restore the metadata file that has it."
                )
        return pa.Table.from_arrays(arrays, schema=self.schema)


def columns_of(rows: Iterable[tuple[Any, ...]], count: int) -> Sequence[Sequence[Any]]:
    """The columns of a few rows of ``count`` values."""
    return list(zip(*rows)) or [()] * count


def _are_times(values: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all are times of the years 1 to 9999."""
    ends = pc.min_max(values.cast(pa.int64()))
    a_second = _TICKS[values.type.unit]
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (_FIRST_SECOND * a_second <= low and high < _LAST_SECOND * a_second)


def _array(values: pa.Array | pa.ChunkedArray | Sequence[Any], kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type.equals(kind) else values.cast(kind)
    return array_of(values, kind)

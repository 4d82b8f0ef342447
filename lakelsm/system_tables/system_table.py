"""A system table: its columns, and the function that makes its rows from the state of a table."""

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
#: The first second of year 1, and the first second after year 9999.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_800


@dataclass(frozen=True)
class TableState:
    """The state that a system table shows. ``snapshot``: the newest or a chosen one, None for an empty table.

    ``timestamps`` (`TIMESTAMP_FORMS`): the Arrow form of TIMESTAMP(7..9) in its rows.
    """

    store: TableStore
    snapshot: Snapshot | None
    environment: Environment = SYSTEM
    timestamps: str = "ns"

    def wall_clock(self, epoch_millis: int) -> int:
        """Return a time as Paimon shows it: milliseconds on the local wall clock."""
        return self.environment.local_wall_clock(epoch_millis)


@dataclass(frozen=True)
class SystemTable:
    """A system table with Paimon's name. ``ddl`` declares its columns, and ``make`` returns their values in this order.

    ``can_time_travel``: it shows one snapshot, so another snapshot can be chosen.
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
        """The columns as an Arrow schema."""
        return pa.schema([pa.field(each.name, output_arrow(each.type), each.type.nullable) for each in self.fields])

    def frame(self, spark: SparkSession, rows: pa.Table) -> DataFrame:
        """Return rows as a DataFrame."""
        from lakelsm.frames.system_frames import system_frame

        return system_frame(spark, rows, self.fields)

    def rows(self, state: TableState) -> pa.Table:
        """Return the rows. Raises CorruptTableError for a time outside the years 1 to 9999."""
        arrays = [_array(values, field.type) for values, field in zip(self.make(state), self.schema, strict=True)]
        for name, values in zip(self.schema.names, arrays):
            if pa.types.is_timestamp(values.type) and not _are_times(values):
                raise CorruptTableError(
                    f"Table {state.store.name}: system table {self.name} has a {name} outside the years 1 to 9999. "
                    "Restore the metadata file that contains it."
                )
        return pa.Table.from_arrays(arrays, schema=self.schema)


def columns_of(rows: Iterable[tuple[Any, ...]], count: int) -> Sequence[Sequence[Any]]:
    """Return the columns of rows with ``count`` values each."""
    return list(zip(*rows)) or [()] * count


def _are_times(values: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether all times are within the years 1 to 9999."""
    ends = pc.min_max(values.cast(pa.int64()))
    a_second = _TICKS[values.type.unit]
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (_FIRST_SECOND * a_second <= low and high < _LAST_SECOND * a_second)


def _array(values: pa.Array | pa.ChunkedArray | Sequence[Any], kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type.equals(kind) else values.cast(kind)
    return array_of(values, kind)

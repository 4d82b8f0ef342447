"""Record-level expiry: a compaction drops rows that are older than a retention time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.options import TableOptions
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP

#: A BIGINT of at least this value counts milliseconds, a smaller one seconds.
_FIRST_MILLIS = 1_000_000_000_000


@dataclass(frozen=True)
class RecordExpiry:
    """Rows expire ``seconds`` after the time in column ``column``."""

    column: str
    seconds: int

    @staticmethod
    def of(options: TableOptions) -> RecordExpiry | None:
        """Return the expiry of a table, None if it has none. Raises InvalidInputError if the time field is not set."""
        if options.record_level_expire_time is None:
            return None
        if options.record_level_time_field is None:
            raise InvalidInputError("option 'record-level.expire-time' needs 'record-level.time-field'. Set both.")
        return RecordExpiry(options.record_level_time_field, options.record_level_expire_time // 1000)

    def unexpired(self, rows: pa.Table, now_millis: int) -> pa.Table:
        """Return the rows that have not expired at ``now_millis``. Rows without a time never expire."""
        expired = self.expired(rows, now_millis)
        return rows.filter(pa.array(~expired)) if expired.any() else rows

    def expired(self, rows: pa.Table, now_millis: int) -> npt.NDArray[np.bool_]:
        """Return which rows have expired at ``now_millis``."""
        column = rows.column(self.column)
        valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy()
        return valid & (seconds_of(column) + self.seconds < now_millis // 1000)


def seconds_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return times as seconds since 1970, 0 for NULL.

    INT is in seconds, BIGINT in seconds or milliseconds. TIMESTAMP is rounded towards zero.
    """
    kind = column.type
    if kind == NANO_TIMESTAMP:
        column = cast_column(column, pa.timestamp("us"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        per_milli = {"ms": 1, "us": 1_000}[kind.unit]
        return _cut(pc.fill_null(column.cast(pa.int64()), 0).to_numpy() // per_milli)
    numbers: npt.NDArray[np.int64] = pc.fill_null(column, 0).to_numpy().astype(np.int64)
    if pa.types.is_int64(kind):
        return np.where(numbers >= _FIRST_MILLIS, _cut(numbers), numbers)
    return numbers


def _cut(millis: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Convert milliseconds to seconds, rounded towards zero."""
    seconds: npt.NDArray[np.int64] = np.where(millis < 0, -(-millis // 1000), millis // 1000)
    return seconds

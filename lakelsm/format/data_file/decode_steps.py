"""How many rows of a Parquet row group are decoded at once, so that memory follows what the values take decoded.

A footer does not tell: dictionaries and run lengths hide the width of values, and rows of one group can differ a
thousandfold. So few rows are decoded first, and each step is measured: the next one is at most a few times as long, and
no longer than fits. Steps stay short beside a batch, in case that its rows grow wide; long ones are hardly faster.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

_FIRST_ROWS = 32
_MOST_ROWS = 16384
_LEAST_MOST_ROWS = 256

#: A step is short enough to fit if its rows turn out to have so many bytes. Where memory is ample, longer steps are
#: faster, and cost less than the bound if they turn out so.
_WIDE_ROW, _WIDE_ROW_AMPLE = 4096, 1024
#: How many times as long as the step before the next one may be.
_GROWTH, _GROWTH_AMPLE = 2, 4
_AMPLE = 4 << 20

#: Bytes of one value that a footer's count of values stands for at least.
_VALUE_BYTES = 8

#: What a row costs beside its values: keys to compare, places, an order.
_ROW_BYTES = 32


def batch_bytes(rows: pa.Table) -> int:
    """The memory that rows cost a merge."""
    return int(rows.nbytes) + _ROW_BYTES * len(rows)


def decoded_bytes(step: pa.Table) -> int:
    """As `batch_bytes`, of one step: its buffers are its own, so it need not be asked which part of them it uses."""
    return int(step.get_total_buffer_size()) + _ROW_BYTES * len(step)


class DecodeSteps:
    """The length of the next step, in `rows`; ``allowance`` is bytes that the first one may have."""

    def __init__(self, group: pq.RowGroupMetaData, allowance: int) -> None:
        columns = map(group.column, range(group.num_columns))
        # No value is longer than its column's pages, so this many rows of any width fit.
        widest = sum(max(column.total_uncompressed_size, column.num_values * _VALUE_BYTES) for column in columns)
        self.rows = max(1, min(_FIRST_ROWS, allowance // max(widest, 1)))
        ample = allowance >= _AMPLE
        wide = _WIDE_ROW_AMPLE if ample else _WIDE_ROW
        self._growth = _GROWTH_AMPLE if ample else _GROWTH
        self._most = max(_LEAST_MOST_ROWS, min(_MOST_ROWS, allowance // wide))

    def decoded(self, rows: int, size: int, left: int) -> None:
        """Learn from a step of ``rows`` rows that took ``size`` bytes; ``left`` bytes may follow."""
        fitting = left * rows // max(size, 1)
        self.rows = max(1, min(self._growth * self.rows, self._most, fitting))

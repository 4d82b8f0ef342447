"""How many rows of a Parquet row group are decoded at once, so that memory follows what the values take decoded.

A footer does not show it: dictionaries and run lengths hide the width of values, and rows of one group can differ a
thousandfold. So few rows are decoded first, and each step is measured: the next one is at most a few times as long, and
no longer than fits. Steps stay short beside a batch, in case that its rows grow wide; long ones are hardly faster.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

_FIRST_ROWS = 32
_MAX_ROWS = 16384
_MIN_ROW_LIMIT = 256

#: A step is short enough to fit if its rows turn out to have so many bytes. Where memory is ample, longer steps are
#: faster, and cost less than the bound if they turn out so.
_WIDE_ROW, _WIDE_ROW_AMPLE = 4096, 1024
#: How many times as long as the step before the next one may be.
_GROWTH, _GROWTH_AMPLE = 2, 4
_AMPLE = 4 << 20

#: The share of a batch's bytes that steps do not try to fill: they would get ever shorter.
_SHARE_LEFT = 16

#: Bytes of one value that a footer's count of values stands for at least.
_VALUE_BYTES = 8

#: Memory of a row besides its values: keys to compare, row indexes, an order.
_ROW_BYTES = 32


def batch_bytes(rows: pa.Table) -> int:
    """The memory that rows cost a merge."""
    return int(rows.nbytes) + _ROW_BYTES * len(rows)


def decoded_bytes(step: pa.Table) -> int:
    """As `batch_bytes`, of one step: it uses its buffers completely."""
    return int(step.get_total_buffer_size()) + _ROW_BYTES * len(step)


class DecodeSteps:
    """How long the next step is, for batches of a row group that are put together from steps.

    ``allowance`` is bytes that the first batch may have; `begin` begins another one.
    """

    def __init__(self, group: pq.RowGroupMetaData, allowance: int) -> None:
        columns = map(group.column, range(group.num_columns))
        # No value is longer than its column's pages, so this many rows of any width fit.
        widest = sum(max(column.total_uncompressed_size, column.num_values * _VALUE_BYTES) for column in columns)
        self._first: int = max(1, min(_FIRST_ROWS, allowance // max(widest, 1)))
        self._longest = 0
        self._width = 0.0
        self.begin(allowance)

    def begin(self, allowance: int) -> None:
        """Begin a batch of so many bytes."""
        ample = allowance >= _AMPLE
        self._growth = _GROWTH_AMPLE if ample else _GROWTH
        self._most = max(_MIN_ROW_LIMIT, min(_MAX_ROWS, allowance // (_WIDE_ROW_AMPLE if ample else _WIDE_ROW)))
        self._left = allowance
        self._least_left = allowance // _SHARE_LEFT

    @property
    def rows(self) -> int:
        """The rows of the next step."""
        if not self._longest:
            return self._first
        return max(1, min(self._growth * self._longest, self._most, int(self._left / max(self._width, 1.0))))

    @property
    def full(self) -> bool:
        """Whether the batch is done: what fits yet is not worth a step."""
        return self._left <= self._least_left

    def decoded(self, rows: int, size: int) -> None:
        """Learn from a step of ``rows`` rows that took ``size`` bytes."""
        self._left -= size
        self._longest = max(self._longest, rows)
        self._width = size / max(rows, 1)

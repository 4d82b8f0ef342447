"""The number of rows of a Parquet row group that one step decodes, so that memory follows the decoded size of values.

A footer does not show that size: dictionaries and run lengths hide the width of values, and rows of one group can
differ a thousandfold. The first step is therefore short, and each step is measured. The next one is at most a few times
as long, and not longer than fits. A step stays short compared with a batch, because its rows can be wide. Long steps
are hardly faster.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

_FIRST_ROWS = 32
_MAX_ROWS = 16384
_MIN_ROW_LIMIT = 256

#: Assumed bytes of a wide row: a step of such rows must fit. With ample memory the assumption is smaller, because longer
#: steps are faster, and even wider rows stay within the bound.
_WIDE_ROW, _WIDE_ROW_AMPLE = 4096, 1024
#: Maximum ratio of the length of a step to the length of the step before it.
_GROWTH, _GROWTH_AMPLE = 2, 4
_AMPLE = 4 << 20

#: Steps do not fill the last 1/16 of a batch's bytes: they would become ever shorter.
_SHARE_LEFT = 16

#: Minimum bytes of a value, as an estimate from the footer's number of values.
_VALUE_BYTES = 8

#: Memory of a row in addition to its values: keys to compare, row indexes, an order.
_ROW_BYTES = 32


def batch_bytes(rows: pa.Table) -> int:
    """Return the memory that rows need in a merge."""
    return int(rows.nbytes) + _ROW_BYTES * len(rows)


def decoded_bytes(step: pa.Table) -> int:
    """Return the memory of one step's rows. A step uses its buffers completely, so this counts whole buffers."""
    return int(step.get_total_buffer_size()) + _ROW_BYTES * len(step)


class DecodeSteps:
    """Computes the length of each step for batches that consist of several steps of one row group.

    ``allowance`` is the maximum size of the first batch in bytes; `begin` starts the next batch.
    """

    def __init__(self, group: pq.RowGroupMetaData, allowance: int) -> None:
        columns = map(group.column, range(group.num_columns))
        # No value is longer than the pages of its column, so this number of rows fits at any width.
        widest = sum(max(column.total_uncompressed_size, column.num_values * _VALUE_BYTES) for column in columns)
        self._first: int = max(1, min(_FIRST_ROWS, allowance // max(widest, 1)))
        self._longest = 0
        self._width = 0.0
        self.begin(allowance)

    def begin(self, allowance: int) -> None:
        """Start a batch of at most ``allowance`` bytes."""
        ample = allowance >= _AMPLE
        self._growth = _GROWTH_AMPLE if ample else _GROWTH
        self._max_rows = max(_MIN_ROW_LIMIT, min(_MAX_ROWS, allowance // (_WIDE_ROW_AMPLE if ample else _WIDE_ROW)))
        self._left = allowance
        self._min_left = allowance // _SHARE_LEFT

    @property
    def rows(self) -> int:
        """The number of rows of the next step."""
        if not self._longest:
            return self._first
        return max(1, min(self._growth * self._longest, self._max_rows, int(self._left / max(self._width, 1.0))))

    @property
    def full(self) -> bool:
        """Whether the batch is complete: the remaining bytes are not worth a step."""
        return self._left <= self._min_left

    def decoded(self, rows: int, size: int) -> None:
        """Record a step of ``rows`` rows that took ``size`` bytes."""
        self._left -= size
        self._longest = max(self._longest, rows)
        self._width = size / max(rows, 1)

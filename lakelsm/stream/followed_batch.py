"""One batch of `Table.follow`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from lakelsm.stream.stream_offset import StreamOffset


class FollowedBatch:
    """Changes of a table that follow those of the batch before.

    ``rows`` is an Arrow table: the row kind (+I, -U, +U, -D), the columns, and the positions if they were requested. It
    is empty for a heartbeat. ``snapshot_id`` is the newest snapshot of which the batch has rows or changes.
    """

    def __init__(self, rows: pa.Table, offset: StreamOffset, snapshot_id: int, done: Callable[[], None]) -> None:
        self.rows = rows
        self.snapshot_id = snapshot_id
        self._offset = offset
        self._done = done

    @property
    def offset(self) -> Mapping[str, str | int | None]:
        """The offset after the batch, for JSON: ``follow(start=offset)`` continues from it.

        Within a large commit it is the offset before the commit, whose rows then come again.
        """
        return self._offset.to_json()

    def done(self) -> None:
        """Record that this batch and all earlier ones are processed. It has no effect without a consumer.

        Raises StreamOffsetError if a rollback removed the snapshot since.
        """
        self._done()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __repr__(self) -> str:
        return f"FollowedBatch(rows={len(self)}, snapshot_id={self.snapshot_id})"

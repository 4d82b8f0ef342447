"""A batch of `Table.follow`: its rows, the offset after it, and what is recorded when it is done."""

from __future__ import annotations

import json

import pyarrow as pa

from lakelsm.stream.followed_batch import FollowedBatch
from lakelsm.stream.stream_offset import StreamOffset, StreamPhase


def test_a_batch_has_rows_an_offset_for_json_and_done() -> None:
    calls: list[int] = []
    offset = StreamOffset("t", 3, "f", StreamPhase.CHANGES)
    batch = FollowedBatch(pa.table({"k": [1, 2]}), offset, 3, lambda: calls.append(1))
    assert (len(batch), batch.snapshot_id, repr(batch)) == (2, 3, "FollowedBatch(rows=2, snapshot_id=3)")
    assert StreamOffset.of_json(json.loads(json.dumps(batch.offset))) == offset
    batch.done()
    assert calls == [1]

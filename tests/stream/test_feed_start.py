"""A stream whose start does not exist is refused; one that has expired is an error with the choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from tests.stream.stream_reader import StreamReader, feed_of, put, table_of


def test_a_start_that_does_not_exist_or_has_expired_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(SnapshotNotFoundError, match=r"cannot start at snapshot 2, because the newest one is 0"):
        feed_of(table, scan_snapshot_id=2).first()
    assert feed_of(table, scan_snapshot_id=1).first().next_snapshot_id == 1
    for number in range(1, 7):
        put(table, ("+I", number, "a"))
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 8.*newest one is 6. Start at 7"):
        feed_of(table, scan_snapshot_id=8).first()
    table.tags.create("old", snapshot=1)
    table.maintenance.expire_snapshots(retain_last=2)
    expired: list[dict[str, object]] = [
        {"scan_snapshot_id": 4},
        {"scan_tag_name": "old"},
        {"scan_mode": "from-snapshot-full", "scan_snapshot_id": 4},
        {"incremental_between": "2,6"},
    ]
    for options in expired:
        with pytest.raises(SnapshotNotFoundError, match="expired"):
            StreamReader(table, **options).read()
    for options in expired[:2]:
        assert [row[1] for row in StreamReader(table, **options, failOnDataLoss=False).read()] == [5, 6]
    assert len(StreamReader(table, **expired[2], failOnDataLoss=False).read()) == 6
    assert [row[1] for row in StreamReader(table, scan_timestamp_millis=1).read()] == [5, 6]
    with pytest.raises(SnapshotNotFoundError, match="'nosuch'"):
        feed_of(table, scan_tag_name="nosuch").first()
    with pytest.raises(InvalidInputError, match=r"start: 6 .* is after end 5"):
        feed_of(table, incremental_between="6,5")

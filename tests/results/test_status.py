"""The text of a table's status: one screen, and no number for an unknown value."""

from __future__ import annotations

from lakelsm.results import BucketStatus, PlannedCompaction, TableStatus


def test_the_text_of_a_status_has_level_0_and_the_worst_buckets() -> None:
    due = PlannedCompaction(
        reasons=("file-number",), buckets=1, files=3, rows=9, bytes=2048, level0_files=3, level0_rows=9
    )
    worst = BucketStatus(partition="dt=1", bucket=2, sorted_runs=4, level0_files=3, level0_rows=9)
    status = TableStatus(
        table="d.t", snapshot_id=7, rows_masked=None, level0_hidden=True, next_compaction=due, worst_buckets=(worst,)
    )
    text = status.as_text()
    for part in ("Table d.t, snapshot 7", "not returned by reads", "3 files, 2,048 bytes in 1 bucket (file-number)"):
        assert part in text
    assert "masked rows          unknown" in text and "  dt=1 2: 4 sorted runs" in text
    assert "not due" in TableStatus(table="d.t", snapshot_id=None).as_text()

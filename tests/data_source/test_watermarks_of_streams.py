"""A stream's watermarks end to end: snapshots, tags of days that are complete, and partitions that are done."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=timezone.utc)


def add_events(folder: Path, number: int, *times: datetime) -> None:
    """Write a file of events; files are read in the order of their numbers."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.json"
    rows = [{"dt": f"{time:%Y-%m-%d}", "id": number * 10 + at, "at": time.isoformat()} for at, time in enumerate(times)]
    path.write_text("\n".join(map(json.dumps, rows)))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def run(spark: SparkSession, folder: Path, table: Table, *, native: bool) -> None:
    """Run the query, as `write_stream` or in the sink of the data source. The checkpoint is that of both."""
    source = spark.readStream.schema("dt STRING, id INT, at TIMESTAMP").option("maxFilesPerTrigger", 1)
    stream = source.json(str(folder / "events")).writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    stream = stream.trigger(availableNow=True)
    if native:
        query = table.write_stream(stream, event_time="at", event_time_delay="1 h")
    else:
        stream = stream.format("lakelsm").options(**{"event-time": "at", "event-time-delay": "1 h"})
        query = stream.start(table._store().paths.root)
    assert query.awaitTermination(120)


@pytest.mark.spark
def test_days_of_events_get_watermarks_tags_and_success_files(spark: SparkSession, tmp_path: Path) -> None:
    table = Catalog(str(tmp_path / "wh")).create_table(
        "db.t",
        "dt STRING, id INT, at TIMESTAMP_LTZ",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={
            "bucket": "1",
            "tag.automatic-creation": "watermark",
            "partition.mark-done-action.mode": "watermark",
            "partition.idle-time-to-done": "2 h",
            "partition.time-interval": "1 d",
        },
    )

    def watermarks() -> list[int]:
        """Return the hours from the first day to the watermark of each batch."""
        start = int(FIRST.timestamp() * 1000)
        batches = [each for each in table._store().snapshots.list() if each.commit_kind.value == "APPEND"]
        return [((each.watermark or 0) - start) // 3_600_000 for each in batches]

    def done() -> list[str]:
        return sorted(path.parent.name for path in (tmp_path / "wh").rglob("_SUCCESS"))

    events, hour = tmp_path / "events", timedelta(hours=1)
    add_events(events, 1, FIRST + 5 * hour, FIRST + 20 * hour)
    add_events(events, 2, FIRST + DAY + hour, FIRST + 23 * hour)  # Watermark: the start of the second day.
    run(spark, tmp_path, table, native=False)
    assert watermarks() == [19, 24]
    assert ([tag.name for tag in table.tags.list()], done()) == (["2026-02-28", "2026-03-01"], [])
    add_events(events, 3, FIRST + 2 * DAY + 5 * hour)
    run(spark, tmp_path, table, native=True)  # Nothing but the table knows which days are not done.
    assert watermarks() == [19, 24, 52]
    assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()][1:] == [("2026-03-01", 2), ("2026-03-02", 3)]
    assert done() == ["dt=2026-03-01", "dt=2026-03-02"]
    assert table.at(watermark=FIRST + DAY).count().rows == 4
    assert table.at(tag="2026-03-01").count("dt = '2026-03-01'").rows == 3

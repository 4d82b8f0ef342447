"""The options of a stream are checked before anything is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.options import ScanMode
from lakelsm.schema_changes import SetOption
from lakelsm.stream.feed_settings import FeedSettings, limits_of_options
from lakelsm.stream.stream_limits import StreamLimits
from tests.stream.stream_reader import table_of


def test_options_have_any_case_and_imply_the_mode(tmp_path: Path) -> None:
    store = table_of(tmp_path)._store()

    def settings(**options: str) -> FeedSettings:
        return FeedSettings.of_options(store, {key.replace("__", ".").replace("_", "-"): options[key] for key in options})

    assert settings() == FeedSettings(mode=ScanMode.LATEST_FULL)
    assert settings(scan__mode="Latest").mode is ScanMode.LATEST
    assert settings(SCAN__SNAPSHOT_ID="3") == FeedSettings(mode=ScanMode.FROM_SNAPSHOT, point=3)
    assert settings(scan__timestamp="2026-01-01").mode is ScanMode.FROM_TIMESTAMP
    assert str(settings(scan__timestamp_millis="0").point).startswith("1970-01-01 00:00:00")
    between = settings(incremental_between="0, tag:a")
    assert (between.mode, between.point, between.end) == (ScanMode.INCREMENTAL, 0, "a")
    assert settings(scan__mode="from-snapshot-full", scan__snapshot_id="2").loads
    found = settings(consumer_id="c", FailOnDataLoss="false", read__changelog="true")
    assert (found.consumer_id, found.divides_snapshots, found.fails_on_data_loss, found.has_kinds) == (
        "c", False, False, True,
    )  # fmt: skip
    assert settings(consumer_id="c", consumer__mode="at-least-once").divides_snapshots
    assert settings().divides_snapshots


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"scan.mode": "newest"}, InvalidInputError, "option 'scan.mode': 'newest' is not one of"),
        ({"scan.mode": "latest-delta"}, UnsupportedFeatureError, "'latest-delta' is not supported in a stream"),
        ({"scan.mode": "from-snapshot"}, InvalidInputError, "needs exactly one of scan.snapshot-id"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, InvalidInputError, "option 'scan.snapshot-id' cannot be"),
        ({"scan.snapshot-id": "1", "scan.timestamp": "2026-01-01"}, InvalidInputError, "cannot be combined"),
        ({"scan.snapshot-id": "0"}, InvalidInputError, "option 'scan.snapshot-id': 0 is less than 1"),
        ({"scan.snapshot-id": "one"}, InvalidInputError, "option 'scan.snapshot-id': 'one'"),
        ({"scan.timestamp": "yesterday"}, InvalidInputError, "option 'scan.timestamp': 'yesterday' is not a point"),
        ({"scan.timestamp-millis": str(10**18)}, InvalidInputError, "option 'scan.timestamp-millis'"),
        ({"incremental-between": "1"}, InvalidInputError, "'1' is not a start and an end"),
        ({"incremental-between": "1,2,3"}, InvalidInputError, "is not a start and an end"),
        ({"incremental-between-timestamp": "1,x"}, InvalidInputError, "'x' is not a point in time"),
        ({"consumer-id": "a/b"}, InvalidInputError, "option 'consumer-id'"),
        ({"consumer.mode": "at-least-once"}, InvalidInputError, "option 'consumer.mode' needs 'consumer-id'"),
        ({"consumer.ignore-progress": "true"}, InvalidInputError, "needs 'consumer-id'"),
        ({"consumer-id": "c", "consumer.mode": "once"}, InvalidInputError, "option 'consumer.mode': 'once'"),
        ({"failOnDataLoss": "maybe"}, InvalidInputError, "option 'failOnDataLoss'"),
        ({"streaming-read-overwrite": "true"}, InvalidInputError, "changes would be read twice"),
    ],
)
def test_wrong_options_raise_one_typed_error(
    tmp_path: Path, options: dict[str, str], kind: type[LakelsmError], message: str
) -> None:
    store = table_of(tmp_path, "lookup")._store()
    with pytest.raises(kind, match=message):
        FeedSettings.of_options(store, options)


def test_a_table_stores_options_of_its_streams(tmp_path: Path) -> None:
    table = table_of(tmp_path, streaming_read_overwrite="true")
    options = {
        "consumer-id": "c", "consumer.mode": "At-Least-Once", "scan.mode": "latest", "scan.bounded.watermark": "7",
        "streaming.read.snapshot.delay": "2 s",
    }  # fmt: skip
    Catalog(str(tmp_path)).alter_table("db.t", *(SetOption(key, options[key]) for key in options))
    store = table._store()
    stored = FeedSettings.of_options(store, {})
    assert (stored.mode, stored.consumer_id, stored.reads_overwrites) == (ScanMode.LATEST, "c", True)
    assert (stored.divides_snapshots, stored.delay, stored.max_watermark) == (True, 2000, 7)
    own = FeedSettings.of_options(store, {"scan.snapshot-id": "1", "streaming-read-overwrite": "false"})
    assert (own.mode, own.reads_overwrites) == (ScanMode.FROM_SNAPSHOT, False)


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "first-row"])
def test_appended_rows_that_are_no_rows_of_the_table_are_refused(tmp_path: Path, engine: str) -> None:
    catalog = Catalog(str(tmp_path))

    def created(producer: str) -> Table:
        options = {"merge-engine": engine, "changelog-producer": producer}
        return catalog.create_table(f"db.{producer}", {"id": "INT", "v": "INT"}, primary_key="id", options=options)

    table = created("none")
    message = f"merge engine '{engine}' makes of them. Set 'changelog-producer' to 'lookup'"
    with pytest.raises(UnsupportedFeatureError, match=message):
        FeedSettings.of_options(table._store(), {})
    with pytest.raises(UnsupportedFeatureError, match=message):
        next(table.follow(timeout=0), None)
    assert list(created("lookup").follow(timeout=0)) == []


def test_an_invalid_stored_value_is_refused_by_streams_alone(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    path = tmp_path / "db.db" / "t" / "schema" / "schema-0"
    values = json.loads(path.read_text())
    values["options"]["consumer.mode"] = "twice"
    path.write_text(json.dumps(values))
    store = table._store()
    for call in (lambda: FeedSettings.of_options(store, {}), lambda: table.follow(timeout=0)):
        with pytest.raises(InvalidInputError, match=r"option 'consumer\.mode': 'twice' is not one of"):
            call()
    assert table.to_arrow().num_rows == 0


def test_limits_have_paimons_names_and_units() -> None:
    given = {
        "read.stream.maxfilespertrigger": "3",
        "read.stream.maxBytesPerTrigger": "2 kb",
        "read.stream.maxRowsPerTrigger": "10",
        "read.stream.minRowsPerTrigger": "5",
        "read.stream.maxTriggerDelayMs": "1500",
    }
    expected = StreamLimits(max_files=3, max_bytes=2048, max_rows=10, min_rows=5, max_delay=1.5)
    assert limits_of_options(given) == expected
    assert limits_of_options({"scan.mode": "latest"}) == StreamLimits()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"read.stream.maxFilesPerTrigger": "0"}, "option 'read.stream.maxFilesPerTrigger': '0' is less than 1"),
        ({"read.stream.maxRowsPerTrigger": "many"}, "option 'read.stream.maxRowsPerTrigger'"),
        ({"read.stream.minRowsPerTrigger": "1"}, "are set together"),
        (
            {
                "read.stream.minRowsPerTrigger": "2",
                "read.stream.maxRowsPerTrigger": "1",
                "read.stream.maxTriggerDelayMs": "1",
            },
            "option 'read.stream.minRowsPerTrigger': 2 is more than",
        ),
    ],
)
def test_wrong_limits_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        limits_of_options(options)

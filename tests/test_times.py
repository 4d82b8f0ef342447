"""Each call with a time means the same instant, for every session, zone of the session, and zone of the machine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.cli.main import main
from lakelsm.errors import InvalidInputError
from lakelsm.schema_changes import RemoveOption, SetOption
from tests.cli.fake_table import last_object

UTC = timezone.utc
MACHINES = ("UTC", "Asia/Tokyo", "America/Los_Angeles")
NOON = "2024-11-20 12:00:00"
#: 12 o'clock in a table's zone that the table's option, the catalog's option, or the text itself sets.
TEXTS: Mapping[tuple[str | None, str | None, str], datetime] = {
    (None, None, NOON): datetime(2024, 11, 20, 12, tzinfo=UTC),
    ("Asia/Tokyo", None, NOON): datetime(2024, 11, 20, 3, tzinfo=UTC),
    (None, "America/Los_Angeles", NOON): datetime(2024, 11, 20, 20, tzinfo=UTC),
    ("Asia/Tokyo", "America/Los_Angeles", NOON): datetime(2024, 11, 20, 3, tzinfo=UTC),
    ("Asia/Tokyo", None, f"{NOON}Z"): datetime(2024, 11, 20, 12, tzinfo=UTC),
    (None, None, f"{NOON} Asia/Tokyo"): datetime(2024, 11, 20, 3, tzinfo=UTC),
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create table db.t, whose snapshots, tags, consumers and an orphan file are of every second hour of one UTC day."""
    root = tmp_path_factory.mktemp("times")
    options = {"bucket": "1", "write-only": "true", "snapshot.num-retained.min": "1"}
    table = Catalog(str(root)).create_table(
        "db.t", "dt STRING NOT NULL, id INT NOT NULL", primary_key=["dt", "id"], partition_by=["dt"], options=options
    )
    directory = root / "db.db" / "t"
    (directory / "consumer").mkdir()
    for number in range(1, 13):
        moment = datetime(2024, 11, 20, 2 * number - 2, 30, tzinfo=UTC)
        table.write(pa.table({"dt": [f"2024-11-20 {2 * number - 2:02}:30:00"], "id": pa.array([number], pa.int32())}))
        snapshot = directory / "snapshot" / f"snapshot-{number}"
        values = {**json.loads(snapshot.read_text()), "timeMillis": int(moment.timestamp() * 1000)}
        snapshot.write_text(json.dumps(values))
        table.tags.create(f"t{number:02}", number)
        table.consumers.record(f"c{number:02}", number)
        (directory / "manifest" / f"manifest-00000000-0000-0000-0000-{number:012}-0").write_bytes(b"x")
        for path in (
            directory / "tag" / f"tag-t{number:02}",
            directory / "consumer" / f"consumer-c{number:02}",
            directory / "manifest" / f"manifest-00000000-0000-0000-0000-{number:012}-0",
        ):
            os.utime(path, (moment.timestamp(), moment.timestamp()))
    return root


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def set_zone(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="module")
def open_table(warehouse: Path) -> Callable[[str | None, str | None], Table]:
    """Return a function that opens the table with these zones of the table and the catalog."""

    def opened(own: str | None, catalog: str | None) -> Table:
        plain = Catalog(str(warehouse))
        plain.alter_table("db.t", RemoveOption("lakelsm.time-zone"))
        if own is not None:
            plain.alter_table("db.t", SetOption("lakelsm.time-zone", own))
        return Catalog(str(warehouse), options=None if catalog is None else {"lakelsm.time-zone": catalog}).table("db.t")

    return opened


def _outcome(result: Any, name: str) -> tuple[object, object]:
    found = getattr(result, name)
    return (len(found) if isinstance(found, tuple) else found), result.older_than


def destroyed(table: Table, at: str | datetime) -> dict[str, tuple[object, object]]:
    """Return what each deleting call would delete, and the instant in its result."""
    back = table.rollback(to=at, dry_run=True)
    return {
        "expire_tags": _outcome(table.tags.expire(at, dry_run=True), "tags"),
        "expire_consumers": _outcome(table.consumers.expire(at, dry_run=True), "consumers"),
        "remove_orphans": _outcome(table.maintenance.remove_orphans(at, dry_run=True), "files"),
        "expire_snapshots": _outcome(table.maintenance.expire_snapshots(older_than=at, dry_run=True), "snapshots"),
        "rollback": (back.snapshot_id, back.timestamp),
    }


def chosen(table: Table, at: str | datetime) -> dict[str, object]:
    """Return the snapshot that each reading or tagging call chooses."""
    rows = {
        "to_arrow": table.at(timestamp=at).to_arrow().num_rows,
        "to_reader": table.at(timestamp=at).to_reader().read_all().num_rows,
        "to_pandas": len(table.at(timestamp=at).to_pandas()),
        "count": table.at(timestamp=at).count().snapshot_id,
        "count local": table.at(timestamp=at).count("id > 0", engine="local").rows,
        "plan": table.at(timestamp=at).explain().snapshot_id,
        "create_tag": table.tags.create("new", snapshot=at, dry_run=True).snapshot_id,
        "replace_tag": table.tags.replace("t01", snapshot=at, dry_run=True).snapshot_id,
    }
    if isinstance(at, datetime):
        rows["changelog start"] = 12 - table.changelog_reader(at).read_all().num_rows
        rows["changelog end"] = table.changelog_reader(end=at).read_all().num_rows
    return rows


def check(table: Table, at: str | datetime, instant: datetime) -> None:
    """Assert that each call interprets ``at`` as ``instant``."""
    earlier = sum(datetime(2024, 11, 20, hour, 30, tzinfo=UTC) <= instant for hour in range(0, 24, 2))
    found = destroyed(table, at)
    # Consumers protect all snapshots from the first one on. Expiry is checked without them below.
    assert found.pop("expire_snapshots") == (0, instant)
    assert found == dict.fromkeys(found, (earlier, instant))
    read = chosen(table, at)
    assert read == dict.fromkeys(read, earlier)


def test_a_text_means_the_same_on_every_machine_without_a_session(
    open_table: Callable[[str | None, str | None], Table], machine: Callable[[str], None]
) -> None:
    for (own, catalog, text), instant in TEXTS.items():
        table = open_table(own, catalog)
        for zone in MACHINES:
            machine(zone)
            check(table, text, instant)
        check(table, instant.astimezone(timezone(timedelta(hours=-3))), instant)


def test_the_zone_of_a_session_is_never_used(
    spark: SparkSession, open_table: Callable[[str | None, str | None], Table]
) -> None:
    table = open_table(None, None)
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in MACHINES[1:]:
            spark.conf.set("spark.sql.session.timeZone", zone)
            check(table, NOON, datetime(2024, 11, 20, 12, tzinfo=UTC))
            assert table.at(timestamp=NOON).read().count() == 6
            assert table.changelog(datetime(2024, 11, 20, 12, tzinfo=UTC)).count() == 6
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_expiry_deletes_snapshots_before_the_instant(
    warehouse: Path,
    open_table: Callable[[str | None, str | None], Table],
    machine: Callable[[str], None],
) -> None:
    table = open_table("Asia/Tokyo", None)
    held = {info.name: info.next_snapshot_id for info in table.consumers.list()}
    times = {path: path.stat().st_mtime for path in (warehouse / "db.db" / "t" / "consumer").iterdir()}
    for name in held:
        table.consumers.delete(name)
    try:
        for zone in MACHINES:
            machine(zone)
            for at, snapshots in ((NOON, 1), (f"{NOON}Z", 5), (f"{NOON} America/Los_Angeles", 9)):
                result = table.maintenance.expire_snapshots(older_than=at, dry_run=True)
                assert result.snapshots == snapshots
                assert result.as_dict()["older_than"] == str(result.older_than).replace(" ", "T")
            assert table.maintenance.expire_snapshots(3, dry_run=True).older_than is None, "numbers alone decide"
    finally:
        for name, number in held.items():
            table.consumers.record(name, number)
        for path, modified in times.items():
            os.utime(path, (modified, modified))


def test_values_of_partitions_are_times_in_the_tables_zone_or_else_local(
    open_table: Callable[[str | None, str | None], Table], machine: Callable[[str], None]
) -> None:
    for own, catalog in (("Asia/Tokyo", None), (None, "Asia/Tokyo")):
        table = open_table(own, catalog)
        for zone in MACHINES:
            machine(zone)
            for at, partitions in ((NOON, 6), (f"{NOON}-08:00", 12), ("2024-11-20 02:00:00Z", 6)):
                result = table.maintenance.expire_partitions(at, dry_run=True)
                assert len(result.partitions) == partitions, (zone, at)
    table = open_table(None, None)
    for zone, partitions in (("UTC", 6), ("Asia/Tokyo", 11), ("America/Los_Angeles", 2)):
        machine(zone)
        result = table.maintenance.expire_partitions(NOON, dry_run=True)
        assert (len(result.partitions), result.older_than) == (partitions, datetime(2024, 11, 20, 12, tzinfo=UTC))


def test_commands_print_the_instant_as_text_and_in_json(
    warehouse: Path,
    open_table: Callable[[str | None, str | None], Table],
    machine: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    open_table(None, None)
    verbs = (
        ["expire", "--older-than"],
        ["tag", "expire", "--older-than"],
        ["consumers", "expire", "--older-than"],
        ["partitions", "expire", "--older-than"],
        ["orphans", "--older-than"],
        ["rollback", "--timestamp"],
    )
    named = ["--warehouse", str(warehouse), "--table", "db.t", "--dry-run"]
    tokyo = ["--catalog-option", "lakelsm.time-zone=Asia/Tokyo"]
    for zone in MACHINES:
        machine(zone)
        for verb in verbs:
            for more, instant in (([], "2024-11-20T12:00:00+00:00"), (tokyo, "2024-11-20T03:00:00+00:00")):
                assert main([*verb, NOON, *named, *more]) == 0
                assert instant in capsys.readouterr().out
                assert main([*verb, NOON, *named, *more, "--report", "json"]) == 0
                found = last_object(capsys.readouterr().out)
                assert found["timestamp" if verb[0] == "rollback" else "older_than"] == instant
    with pytest.raises(SystemExit):
        main(["rollback", "--timestamp", "noon", *named])
    assert "Use a datetime, or a text such as '2025-01-31 08:00:00'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["expire", "--path", str(warehouse / "db.db" / "t"), *tokyo])
    assert "--catalog-option needs --warehouse" in capsys.readouterr().err


def test_a_zone_is_checked_when_it_is_set(warehouse: Path) -> None:
    catalog = Catalog(str(warehouse))
    for wrong in ("Nowhere/City", "", "+25:00"):
        with pytest.raises(InvalidInputError, match=r"lakelsm.time-zone"):
            catalog.alter_table("db.t", SetOption("lakelsm.time-zone", wrong))
        with pytest.raises(InvalidInputError, match=r"lakelsm.time-zone"):
            Catalog(str(warehouse), options={"lakelsm.time-zone": wrong})
    with pytest.raises(InvalidInputError, match=r"option 'lakelsm.time.zone' is not an option of catalogs"):
        Catalog(str(warehouse), options={"lakelsm.time.zone": "UTC"})

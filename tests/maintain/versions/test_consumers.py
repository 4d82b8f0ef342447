"""Consumers are recorded, listed, deleted and expired. A consumer can never skip changes."""

from __future__ import annotations

import json
import os
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.environment import Environment
from lakelsm.errors import CommitConflictError, CorruptTableError, InvalidInputError, SnapshotNotFoundError
from lakelsm.maintain.versions.consumers import consumer_start, expire_after_commit, reset_consumers_beyond
from tests.maintain.versioned_table import rows, versioned_table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with five snapshots, of which the first two have expired."""
    made = versioned_table(tmp_path, 5)
    for number in (1, 2):
        Path(made._store().paths.snapshot_file(number)).unlink()
    return made


def file_of(table: Table, name: str) -> Path:
    return Path(table._store().paths.consumer(name))


def aged(table: Table, name: str, days: float) -> None:
    """Set the age of a consumer's file."""
    now = file_of(table, name).stat().st_mtime - days * 86_400
    os.utime(file_of(table, name), (now, now))


def test_a_consumer_file_has_the_format_of_other_engines(table: Table) -> None:
    table.consumers.record("etl", 4)
    assert json.loads(file_of(table, "etl").read_text()) == {"nextSnapshot": 4}
    file_of(table, "flink").write_text('{"nextSnapshot":6}')
    found = table.consumers.list()
    assert [(each.name, each.next_snapshot_id) for each in found] == [("etl", 4), ("flink", 6)]
    assert found[0].recorded_at is not None and found[0].recorded_at.tzinfo is timezone.utc
    assert json.loads(json.dumps(found[0].as_dict()))["next_snapshot_id"] == 4
    table.consumers.record("etl", 3)
    assert table.consumers.list()[0].next_snapshot_id == 3, "a consumer may be set back"


def test_a_consumer_can_never_skip_changes(table: Table) -> None:
    table.consumers.record("etl", 6)
    with pytest.raises(InvalidInputError, match=r"next_snapshot: .* before 7\. The newest .* db\.t is 5: use at most 6"):
        table.consumers.record("etl", 7)
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 2 has expired.*Use 3 or later"):
        table.consumers.record("etl", 2)
    assert table.consumers.list()[0].next_snapshot_id == 6
    expired = Path(table._store().paths.changelog(2))
    expired.parent.mkdir()
    expired.write_bytes(b"")
    table.consumers.record("etl", 2)


@pytest.mark.parametrize("name", ["", " ", "a/b", "\0", "x" * 250, None, 5])
def test_invalid_consumer_ids_are_refused(table: Table, name: object) -> None:
    with pytest.raises(InvalidInputError, match="consumer_id"):
        table.consumers.record(name, 4)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="consumer_id"):
        table.consumers.delete(name)  # type: ignore[arg-type]


def test_a_consumer_is_deleted_and_an_error_lists_the_consumers(table: Table) -> None:
    table.consumers.record("etl", 4)
    table.consumers.delete("etl")
    assert table.consumers.list() == []
    with pytest.raises(InvalidInputError, match=r"consumer 'etl' does not exist\. Consumers: none"):
        table.consumers.delete("etl")


def test_consumers_expire_by_the_time_of_their_last_record(table: Table) -> None:
    for name in ("old", "young"):
        table.consumers.record(name, 4)
    aged(table, "old", 8)
    with pytest.raises(InvalidInputError, match=r"consumer\.expiration-time"):
        table.consumers.expire()
    assert table.consumers.expire("7 days", dry_run=True).consumers == ("old",)
    assert len(table.consumers.list()) == 2
    assert table.consumers.expire(timedelta(days=7)).consumers == ("old",)
    assert [each.name for each in table.consumers.list()] == ["young"]


def test_consumers_expire_after_a_commit_if_the_option_is_set(tmp_path: Path) -> None:
    kept, limited = versioned_table(tmp_path / "a", 1), versioned_table(
        tmp_path / "b", 1, **{"consumer.expiration-time": "7 d"}
    )
    for made in (kept, limited):
        for name in ("old", "young"):
            made.consumers.record(name, 2)
        aged(made, "old", 8)
        expire_after_commit(made._store(), Environment())
    assert [each.name for each in kept.consumers.list()] == ["old", "young"]
    assert [each.name for each in limited.consumers.list()] == ["young"]
    assert limited.consumers.expire().consumers == ()


def test_a_consumer_continues_from_its_record_and_a_new_one_from_the_given_start(table: Table) -> None:
    table.consumers.record("etl", 5)
    assert consumer_start(table._store(), "etl", 3) == 4
    assert consumer_start(table._store(), "new", 3) == 3
    file_of(table, "etl").write_text('{"nextSnapshot":9}')
    with pytest.raises(InvalidInputError, match="reads snapshot 9 next, but after a rollback the newest is 5"):
        consumer_start(table._store(), "etl", 3)
    reset_consumers_beyond(table._store(), 6)
    assert table.consumers.list()[0].next_snapshot_id == 6
    file_of(table, "etl").write_text("{")
    with pytest.raises(CorruptTableError, match="consumer-etl"):
        consumer_start(table._store(), "etl", 3)


def changed(table: Table, **more: object) -> list[str]:
    """Read the changes of consumer etl to the end; return their rows."""
    found: list[str] = []
    for batch in table.changelog_reader(consumer_id="etl", **more):  # type: ignore[arg-type]
        found += batch["v"].to_pylist()
    return found


def progress(table: Table) -> int | None:
    return table._store().consumers.try_get("etl")


def test_progress_is_recorded_after_a_whole_read_and_the_next_read_continues_from_it(table: Table) -> None:
    assert changed(table, start=3, end=4) == ["v4"] and progress(table) == 5
    assert changed(table) == ["v5"] and progress(table) == 6
    assert changed(table) == []
    table.write(rows((6, "v6")))
    assert changed(table, start=3) == ["v6"] and progress(table) == 7


def test_an_abandoned_read_records_its_start_and_a_complete_read_its_end(table: Table) -> None:
    reader = table.changelog_reader(start=3, consumer_id="etl")
    assert progress(table) == 4, "expiry keeps its snapshots"
    reader.read_next_batch()
    assert progress(table) == 4
    assert table.changelog_reader(consumer_id="etl").read_all().num_rows == 2 and progress(table) == 6


def test_a_new_consumer_without_a_start_reads_all_retained_changes(table: Table) -> None:
    assert changed(table, mode="delta") == ["v3", "v4", "v5"] and progress(table) == 6
    assert table.maintenance.expire_snapshots(retain_last=1).snapshots == 2
    table.consumers.record("etl", 5)
    table.write(rows((6, "v6")))
    assert table.maintenance.expire_snapshots(retain_last=1).snapshots == 0, "the consumer still reads them"
    assert changed(table, mode="delta") == ["v5", "v6"]


def test_progress_is_not_recorded_if_a_rollback_removed_the_snapshots_read(table: Table) -> None:
    for again in (False, True):
        table.consumers.record("etl", 5)
        reader = table.changelog_reader(consumer_id="etl")
        assert reader.read_next_batch().num_rows == 1
        table.rollback(4)
        if again:
            table.write(rows((5, "new")))
        with pytest.raises(CommitConflictError, match=r"removed snapshot 5, to which consumer 'etl' was reading"):
            reader.read_all()
        assert progress(table) == 5
        if not again:
            table.write(rows((5, "v5")))
    assert changed(table) == ["new"]


def test_a_refused_call_records_no_consumer(table: Table) -> None:
    for wrong in ({"start": 9}, {"mode": "x"}, {"start": 3, "where": "nope = 1"}):
        with pytest.raises(InvalidInputError):
            table.changelog_reader(consumer_id="etl", **wrong)  # type: ignore[arg-type]
    assert table.consumers.list() == []


def test_changes_between_two_tags_are_read_after_their_snapshots_expired(table: Table) -> None:
    table.tags.create("three", 3)
    table.tags.create("four", 4)
    table.maintenance.expire_snapshots(retain_last=1)
    assert list(table._store().snapshots.ids()) == [5]
    assert table.changelog_reader("three", "four").read_all()["v"].to_pylist() == ["v4"]

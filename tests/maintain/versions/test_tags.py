"""Tags: a tag never replaces another tag by accident, and is never created of an expired snapshot."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.environment import Environment
from lakelsm.errors import CorruptTableError, InvalidInputError, SnapshotNotFoundError
from lakelsm.maintain.versions.tags import create_tag, expire_tags, rename_tag, replace_tag, tag_snapshot
from lakelsm.results import TagInfo
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG
from tests.acting_file_io import ActingFileIO
from tests.failing_file_io import Plan, failing_table
from tests.maintain.versioned_table import rows, versioned_table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with three snapshots, which have one, two and three rows."""
    return versioned_table(tmp_path, 3)


def store_of(table: Table) -> TableStore:
    return table._store()


def file_of(table: Table, name: str) -> Path:
    return Path(store_of(table).paths.tag(name))


def lose_snapshot(table: Table, number: int) -> None:
    """Delete a snapshot file, as expiry or a rollback does. Before the newest is deleted, LATEST names an older one."""
    store = store_of(table)
    if number == store.snapshots.latest_id():
        store.file_io.write(store.paths.latest_hint, str(number - 1).encode())
    Path(store.paths.snapshot_file(number)).unlink()


def interrupted(table: Table, act: Callable[[], object], path: str = "", after: bool = False) -> TableStore:
    """Return a store that runs ``act`` just before (or after) the first file whose path contains ``path`` is created."""
    store = store_of(table)
    acting = ActingFileIO(act, "create_if_absent", "write", path=path, after=after)
    return replace(store, file_io=acting.within(store.paths.root))


def test_a_tag_keeps_the_rows_of_its_snapshot(table: Table) -> None:
    first = table.tags.create("2026-Q3", 2)
    assert (first.name, first.snapshot_id, first.rows, first.time_retained, first.created_at) == (
        "2026-Q3", 2, 2, None, None,
    )
    assert first.committed_at.tzinfo is timezone.utc
    assert table.tags.create("newest").snapshot_id == 3
    assert [tag.name for tag in table.tags.list()] == ["2026-Q3", "newest"]
    assert table.at(tag="2026-Q3").to_arrow(ordered=True)["v"].to_pylist() == ["v1", "v2"]
    assert json.loads(json.dumps(first.as_dict()))["snapshot_id"] == 2


def test_a_tag_without_a_retention_time_has_the_text_of_its_snapshot(table: Table) -> None:
    table.tags.create("plain", 1)
    assert file_of(table, "plain").read_bytes() == Path(store_of(table).paths.snapshot_file(1)).read_bytes()


def test_a_retention_time_is_stored_with_the_writers_wall_clock(table: Table) -> None:
    clock = Environment(clock=lambda: 1_767_225_599_123, local_offset=lambda seconds: 3600)
    info = create_tag(store_of(table), "q", store_of(table).snapshots.get(3), time_retained=90.5, environment=clock)
    stored = json.loads(file_of(table, "q").read_text())
    assert stored["tagCreateTime"] == [2026, 1, 1, 0, 59, 59, 123_000_000]
    assert stored["tagTimeRetained"] == 90.5
    assert (info.created_at, info.time_retained) == (datetime(2026, 1, 1, 0, 59, 59, 123_000), timedelta(seconds=90.5))
    assert table.tags.list() == [info]


def test_fields_that_another_writer_omits_from_a_time_are_zero(table: Table) -> None:
    table.tags.create("q", time_retained="1 d")
    stored = json.loads(file_of(table, "q").read_text())
    file_of(table, "q").write_text(json.dumps({**stored, "tagCreateTime": [2026, 2, 3, 0, 0]}))
    assert table.tags.list()[0].created_at == datetime(2026, 2, 3)
    file_of(table, "q").write_text(json.dumps({**stored, "tagCreateTime": [2026, 2, 30, 0, 0]}))
    with pytest.raises(CorruptTableError, match=r"'q'.*tagCreateTime"):
        table.tags.list()


def test_a_new_tag_never_replaces_another(table: Table) -> None:
    table.tags.create("q", 1)
    before = file_of(table, "q").read_bytes()
    for snapshot_id in (1, 2):
        with pytest.raises(InvalidInputError, match=r"db\.t: tag 'q' already exists \(snapshot 1\)"):
            table.tags.create("q", snapshot_id)
    assert table.tags.create("q", 2, if_not_exists=True).snapshot_id == 1
    racing = interrupted(table, lambda: table.tags.create("raced", 1))
    with pytest.raises(InvalidInputError, match=r"'raced' already exists \(snapshot 1\)"):
        create_tag(racing, "raced", racing.snapshots.get(2))
    assert file_of(table, "q").read_bytes() == before


def test_no_tag_is_created_of_a_snapshot_that_expires_concurrently(table: Table) -> None:
    racing = interrupted(table, lambda: lose_snapshot(table, 1))
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 1 expired .* during the creation of tag 'q'"):
        create_tag(racing, "q", racing.snapshots.get(1))
    assert table.tags.list() == []
    table.tags.create("kept", 2)
    racing = interrupted(table, lambda: lose_snapshot(table, 2))
    create_tag(racing, "q", racing.snapshots.get(2))
    assert [tag.name for tag in table.tags.list()] == ["kept", "q"], "another tag keeps the files"


@pytest.mark.parametrize("make", [create_tag, replace_tag])
@pytest.mark.parametrize("snapshot_id", [None, 3])
def test_if_the_newest_snapshot_is_removed_the_tag_is_of_the_next_newest(
    table: Table, make: Callable[..., TagInfo], snapshot_id: int | None
) -> None:
    if make is replace_tag:
        table.tags.create("q", 1)
    racing = interrupted(table, lambda: table.rollback(2))
    if snapshot_id is None:
        assert tag_snapshot(racing, None, partial(make, racing, "q")).snapshot_id == 2
    else:
        with pytest.raises(SnapshotNotFoundError, match="snapshot 3 expired or was rolled back"):
            tag_snapshot(racing, snapshot_id, partial(make, racing, "q"))
    assert [tag.snapshot_id for tag in table.tags.list()] == ([2] if snapshot_id is None else [1] * (make is replace_tag))


def test_a_new_tag_is_of_the_newest_snapshot_by_default(table: Table) -> None:
    racing = Table(interrupted(table, lambda: table.rollback(2)))
    assert racing.tags.create("q").snapshot_id == 2


def test_no_tag_is_created_of_a_rolled_back_snapshot_whose_id_is_used_again(table: Table) -> None:
    def again() -> None:
        table.rollback(2)
        table.write(rows((9, "other")))

    racing = interrupted(table, again)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 3 expired or was rolled back"):
        create_tag(racing, "q", racing.snapshots.get(3))
    assert table.tags.list() == []


def test_an_expired_snapshot_that_a_tag_keeps_can_be_tagged_again(table: Table) -> None:
    table.tags.create("old", 1)
    lose_snapshot(table, 1)
    assert table.tags.create("copy", 1).snapshot_id == 1
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 7 does not exist"):
        table.tags.create("none", 7)


def test_a_time_selects_the_newest_snapshot_that_is_not_later(table: Table) -> None:
    assert table.tags.create("q", snapshot=datetime(2999, 1, 1)).snapshot_id == 3
    with pytest.raises(SnapshotNotFoundError, match=r"no snapshot at or before"):
        table.tags.create("early", snapshot=datetime(1999, 1, 1))


def test_a_table_without_snapshots_has_nothing_to_tag(tmp_path: Path) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"db\.t has no snapshot to tag"):
        versioned_table(tmp_path, 0).tags.create("q")


def test_a_retention_time_of_thousands_of_years_is_kept_and_shown(table: Table) -> None:
    table.tags.create("q", time_retained="3000000 d")
    path = file_of(table, "q")
    assert table.tags.expire().tags == table.tags.expire(older_than="3000000 d").tags == ()
    path.write_text(json.dumps({**json.loads(path.read_text()), "tagTimeRetained": 9e18}), encoding="utf-8")
    assert table.tags.expire().tags == () and table.tags.list()[0].time_retained == timedelta(days=999_999_999)


@pytest.mark.parametrize("name", ["", " ", "a/b", "\0", "x" * 252, None, 5])
def test_invalid_names_are_refused(table: Table, name: object) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        table.tags.create(name)  # type: ignore[arg-type]
    assert not Path(store_of(table).paths.tag_dir).exists()


def test_a_tag_is_renamed_to_an_unused_name(table: Table) -> None:
    table.tags.create("a", 1, time_retained="1 d")
    table.tags.create("b", 2)
    content = file_of(table, "a").read_bytes()
    for taken in ("b", "a"):
        with pytest.raises(InvalidInputError, match=f"tag {taken!r} already exists"):
            table.tags.rename("a", taken)
    with pytest.raises(SnapshotNotFoundError, match=r"tag 'x' does not exist\. Tags: a, b"):
        table.tags.rename("x", "y")
    assert table.tags.rename("a", "c").snapshot_id == 1
    assert file_of(table, "c").read_bytes() == content and not file_of(table, "a").exists()


def test_a_tag_that_is_deleted_during_its_renaming_is_not_created_again(table: Table) -> None:
    table.tags.create("a", 1)
    lose_snapshot(table, 1)
    racing = interrupted(table, lambda: file_of(table, "a").unlink())
    with pytest.raises(SnapshotNotFoundError, match="renaming of tag 'a' to 'b'"):
        rename_tag(racing, "a", "b")
    assert table.tags.list() == []


def test_only_an_existing_tag_is_replaced_and_only_by_a_retained_snapshot(table: Table) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"tag 'q' does not exist\. Tags: none"):
        table.tags.replace("q", 2)
    table.tags.create("q", 1)
    assert table.tags.replace("q", 2, time_retained=60).time_retained == timedelta(seconds=60)
    assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()] == [("q", 2)]
    racing = interrupted(table, lambda: lose_snapshot(table, 3))
    with pytest.raises(SnapshotNotFoundError, match="Nothing was changed"):
        replace_tag(racing, "q", racing.snapshots.get(3))
    assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()] == [("q", 2)]
    table.maintenance.expire_snapshots(retain_last=1)
    assert table.tags.replace("q", 2, time_retained=90).time_retained == timedelta(seconds=90), "the tag keeps it"


def test_a_tag_that_a_rollback_deletes_during_its_replacement_is_not_created_again(table: Table) -> None:
    table.tags.create("q", 3)

    def roll_back() -> None:
        table.rollback(2)
        assert [tag.name for tag in table.tags.list()] == []

    with pytest.raises(SnapshotNotFoundError, match="rolled back during the replacement of tag 'q'"):
        replace_tag(interrupted(table, roll_back), "q", table._store().snapshots.get(3))
    assert table.tags.list() == [] and table.maintenance.check().findings == ()


def test_a_rollback_keeps_the_files_of_a_snapshot_that_is_being_tagged(table: Table) -> None:
    """The rollback runs when the file of the tag is about to be created."""
    store = interrupted(table, lambda: table.rollback(2), "/tag-q$")
    create_tag(store, "q", store.snapshots.get(3))
    assert [tag.name for tag in table.tags.list()] == ["q"] and table.at(tag="q").to_arrow().num_rows == 3
    assert table.to_arrow().num_rows == 2 and not table.tags.delete("q").failures


def test_a_holding_tag_of_a_killed_process_is_not_relied_on_and_expires(table: Table) -> None:
    """The holding tag exists before its creator knows that the files of the snapshot exist."""
    table.tags.create("q", 1, time_retained="1 h")
    file_of(table, "q").rename(file_of(table, f"{HOLDING_TAG}9"))
    lose_snapshot(table, 1)
    for refused in (lambda: table.tags.create("late", 1), lambda: table.rollback(1)):
        with pytest.raises(SnapshotNotFoundError, match=r"snapshot 1 has expired\. The table has snapshots 2 to 3"):
            refused()
    paths, first = store_of(table).paths, store_of(table).tags.get(f"{HOLDING_TAG}9").snapshot
    for name in (first.base_manifest_list, first.delta_manifest_list):
        Path(paths.manifest(name)).unlink()
    assert table.maintenance.expire_snapshots(retain_last=1).snapshots, "expiry does not depend on the holding tag"
    assert table.maintenance.remove_orphans(0, force=True).files >= 0, "orphan removal does not either"
    assert [finding.rule for finding in table.maintenance.check().findings] == ["tag-unfinished"]
    assert table.tags.expire(older_than=datetime(2000, 1, 1, tzinfo=timezone.utc)).tags == ()
    later = Environment(clock=lambda: Environment().clock() + 3_700_000)
    assert expire_tags(store_of(table), environment=later).tags == (f"{HOLDING_TAG}9",)


def test_a_tag_that_outlasts_its_holding_tag_is_not_created(table: Table) -> None:
    def delete_holding_tag() -> None:
        for held in file_of(table, "q").parent.glob(f"tag-{HOLDING_TAG}*"):
            held.unlink()

    store = interrupted(table, delete_holding_tag, "/tag-q$", after=True)
    with pytest.raises(SnapshotNotFoundError, match="took longer than 3600 s"):
        create_tag(store, "q", store.snapshots.get(3))
    assert table.tags.list() == []


def test_a_replaced_tag_of_an_expired_snapshot_starts_its_retention_time_again(table: Table) -> None:
    table.tags.create("q", 1, time_retained="1 d")
    table.maintenance.expire_snapshots(retain_last=1)
    assert table.tags.replace("q", 1, time_retained="2 d").time_retained == timedelta(days=2)
    assert table.at(tag="q").to_arrow().num_rows == 1


def test_names_of_the_maximum_length_are_accepted(table: Table) -> None:
    table.tags.create("x" * 251)
    table.tags.rename("x" * 251, "é" * 125)
    table.consumers.record("y" * 246, 1)
    assert [tag.name for tag in table.tags.list()] == ["é" * 125]
    assert not list(Path(store_of(table).paths.root).rglob(".*"))


def test_times_beyond_the_calendar_are_compared(table: Table) -> None:
    table.tags.create("ever", time_retained="3285000 d")
    table.tags.create("longer", time_retained=1)
    path = file_of(table, "longer")
    path.write_text(path.read_text().replace('"tagTimeRetained" : 1.0', '"tagTimeRetained" : 1e18'))
    assert table.tags.expire().tags == ()
    assert [tag.time_retained for tag in table.tags.list()] == [
        timedelta(days=3285000),
        timedelta(days=timedelta.max.days),
    ]
    assert table.tags.expire(datetime.max.replace(tzinfo=timezone.utc), dry_run=True).tags == ("ever", "longer")


@pytest.mark.parametrize("retained", ["NaN", '"NaN"', '"7"', "true", "-1", "[1]", "{}"])
def test_an_invalid_retention_time_is_damage(table: Table, retained: str) -> None:
    table.tags.create("q", time_retained=7)
    path = file_of(table, "q")
    path.write_text(path.read_text().replace("7.0", retained))
    with pytest.raises(CorruptTableError, match="tag-q"):
        table.tags.list()


def test_a_tag_is_deleted_and_an_error_lists_the_tags(table: Table) -> None:
    table.tags.create("q", 1)
    assert table.tags.delete("q", dry_run=True).tags == ("q",)
    assert [tag.name for tag in table.tags.list()] == ["q"]
    done = table.tags.delete("q")
    assert (done.tags, done.files, table.tags.list()) == (("q",), 0, [])
    with pytest.raises(SnapshotNotFoundError, match=r"tag 'q' does not exist\. Tags: none"):
        table.tags.delete("q")


def test_a_warning_of_a_tag_names_the_step_that_succeeded_and_never_a_commit(table: Table, tmp_path: Path) -> None:
    table.tags.create("a")
    table.write(rows((4, "v4")))
    table.compact(full=True, engine="local")
    table.maintenance.expire_snapshots(retain_last=1)
    changes: dict[str, Callable[[Table], object]] = {
        "the creation of tag 'new' succeeded, and the check": lambda table: table.tags.create("new"),
        "the creation of tag 'new' succeeded, and the deletion of tag 'a'": lambda table: table.tags.rename("a", "new"),
        "the replacement of tag 'a' succeeded": lambda table: table.tags.replace("a"),
        "the deletion of tags succeeded": lambda table: table.tags.delete("a"),
    }
    for number, (text, change) in enumerate(changes.items()):
        every = Plan(1 << 30, MemoryError, published=True)
        shutil.copytree(tmp_path / "db.db" / "t", tmp_path / f"{number}")
        change(failing_table(tmp_path / f"{number}", every))
        found: list[str] = []
        for first in range(every.seen, 0, -1):
            root = tmp_path / f"{number}-{first}"
            shutil.copytree(tmp_path / "db.db" / "t", root)
            with warnings.catch_warnings(record=True) as warned, suppress(MemoryError):
                warnings.simplefilter("always")
                change(failing_table(root, Plan(first, MemoryError, 1, published=True)))
            found += [str(each.message) for each in warned]
            if any(text in each for each in found):
                break
        else:
            pytest.fail(f"no warning that {text}: {found}")
        assert not any("commit succeeded" in each for each in found)

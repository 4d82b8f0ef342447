"""Properties of lakelsm in a snapshot of another engine are copies and say nothing about that snapshot.

Java copies the properties of the newest snapshot if it compacts manifests or replaces a manifest list, and those of an
older one if it rolls back to a tag as the latest snapshot.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.replay import HIGHEST_IDENTIFIER_PROPERTY
from lakelsm.format.snapshot import BASE_PROPERTY, CommitKind, Snapshot
from lakelsm.plan.compaction_plan import FULL_COMPACTION_PROPERTY, commits_since_full_compaction
from lakelsm.snapshots.inheritance import TOTAL_BUCKETS_PROPERTY, inherited_property, recorded_total_buckets
from lakelsm.snapshots.maintenance_record import MAINTENANCE_PROPERTY, MaintenanceRecord, records_of
from lakelsm.snapshots.sequence_base import MAX_SEQUENCE_PROPERTY, recorded_max_sequence, table_max_sequence
from tests.commit.commit_table import CommitTable, add, file, upgrade

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    """A table with two snapshots of lakelsm."""
    table = CommitTable(tmp_path / "t")
    for number in range(2):
        table.append(add(file(f"f{number}", seq=(10 * number, 10 * number + 9))))
    return table


def sequence(table: CommitTable) -> int:
    return table_max_sequence(table.file_io, table.paths, table.snapshots.latest())


@pytest.mark.parametrize("kind", [COMPACT, OVERWRITE])
@pytest.mark.parametrize("hint", [b"3", b"2", None])
def test_a_commit_can_follow_a_snapshot_of_java_with_copied_properties(
    table: CommitTable, kind: CommitKind, hint: bytes | None
) -> None:
    copy = table.copied_by_java(kind)
    assert BASE_PROPERTY in (copy.properties or {}) and not copy.is_ours and table.snapshots.is_linked(copy)
    if hint is None:
        table.file_io.delete(table.paths.latest_hint)
    else:
        table.file_io.write(table.paths.latest_hint, hint)
    added = table.append(add(file("after", seq=(20, 29))))
    assert list(table.snapshots.ids()) == [1, 2, 3, 4] and added.is_ours and added.follows(copy)
    assert table.live_names() == {"f0@0", "f1@0", "after@0"} and sequence(table) == 29


def test_a_snapshot_that_another_engine_restores_from_a_tag_keeps_its_properties(table: CommitTable) -> None:
    snapshot = table.snapshots.get(2)
    assert snapshot.is_ours and recorded_max_sequence(snapshot) == 19
    table.rewrite(2)
    assert table.snapshots.get(2).is_ours
    table.rewrite(2, uuid=None)  # Some engines write no uuid.
    assert table.snapshots.get(2).is_ours
    for changed in ({"id": 3}, {"uuid": "other"}, {"base_manifest_list": "other"}, {"commit_user": "java"}):
        assert not replace(snapshot, **changed).is_ours, changed  # type: ignore[arg-type]


def test_a_copied_maximum_of_sequence_numbers_is_not_used(table: CommitTable) -> None:
    """Otherwise rows of the next batch, with too low numbers, would lose to older rows."""
    java = add(file("java", seq=(500, 509)))
    table.append(java)
    table.rewrite(3, properties=table.snapshots.get(2).properties, commit_user="java", uuid="j", writer_version="1.4.2")
    assert recorded_max_sequence(table.snapshots.get(3)) is None and sequence(table) == 509
    added = table.append(add(file("after", seq=(510, 519))))
    assert recorded_max_sequence(added) == 519


def test_files_of_a_list_that_java_replaced_count_for_the_maximum(table: CommitTable) -> None:
    """Java's replacement of a manifest list has files that no delta adds."""
    table.append(add(file("high", seq=(500, 509))))
    replaced = table.copied_by_java(OVERWRITE, of=2)
    table.rewrite(3, properties=None, base_manifest_list=table.snapshots.get(1).base_manifest_list)
    table.rewrite(3, delta_manifest_list=table.snapshots.get(2).delta_manifest_list)
    assert (replaced.properties or {})[MAX_SEQUENCE_PROPERTY] == "19" and sequence(table) == 509


def test_a_higher_maximum_of_java_is_kept(table: CommitTable) -> None:
    """Java continues after it with ``write.sequence-number-init-mode`` = ``snapshot``; files with it may be deleted."""
    table.append(add(file("java", seq=(20, 29))))
    table.rewrite(3, properties={MAX_SEQUENCE_PROPERTY: "700"}, uuid="j", commit_user="java")
    assert sequence(table) == 700


def test_a_rollback_of_java_to_a_tag_does_not_lower_the_maximum(table: CommitTable) -> None:
    table.append(add(file("f2", seq=(20, 29))))
    table.copied_by_java(OVERWRITE, of=1)
    assert sequence(table) == 29
    table.append(add(file("after", seq=(30, 39))))
    assert list(table.snapshots.ids()) == [1, 2, 3, 4, 5]


def test_a_copied_number_of_buckets_is_not_used(table: CommitTable) -> None:
    copy = table.copied_by_java()
    assert (copy.properties or {})[TOTAL_BUCKETS_PROPERTY] == "2" and recorded_total_buckets(copy) is None
    assert recorded_total_buckets(table.append(add(file(seq=(20, 29))))) is None, "no manifest was read"
    table.rewrite(4, properties=copy.properties)
    added = table.append(add(file(seq=(30, 39))), base_total_buckets=2)
    assert recorded_total_buckets(added) == 2


def test_a_copied_property_of_a_full_compaction_does_not_end_the_count(table: CommitTable) -> None:
    message = CommitMessage(upgrade(table.live()[0], 5))
    table.committer().commit(COMPACT, message, "c", properties={FULL_COMPACTION_PROPERTY: "true"})
    table.append(add(file(seq=(20, 29))))
    table.copied_by_java(OVERWRITE, of=3)
    assert commits_since_full_compaction(reversed(table.snapshots.list())) == 2


def test_copied_records_of_maintenance_do_not_hide_newer_ones(table: CommitTable) -> None:
    record = MaintenanceRecord(run="a", operation="compact", user="u", host="h", started=1, seconds=1.0)
    for level, run in ((3, "a"), (4, "b")):
        message = CommitMessage(upgrade(next(each for each in table.live() if each.file.file_name == "f0"), level))
        table.committer().commit(COMPACT, message, "c", properties=replace(record, run=run).as_property())
    table.copied_by_java(OVERWRITE, of=3)
    found = records_of(inherited_property(table.snapshots.latest(), table.snapshots.try_get, MAINTENANCE_PROPERTY))
    assert [each.run for each in found] == ["b", "a"]


def batch(table: CommitTable, identifier: int) -> Snapshot | None:
    """Commit a batch of the user 'job'; return its snapshot, or None if it was committed before."""
    base = table.snapshots.latest_id() or 0
    entry = add(file(f"job-{identifier}-{base}", seq=(100 * base, 100 * base + 9)))
    message = CommitMessage([entry], base_snapshot_id=base)
    outcome = table.committer().commit(APPEND, message, "job", identifier)
    return None if outcome.already_committed else outcome.snapshot


def test_a_batch_is_committed_once_if_another_engine_wrote_as_the_same_user(table: CommitTable) -> None:
    for identifier in (5, 3):
        assert batch(table, identifier) is not None
    java = batch(table, 4)
    assert java is not None and (java.properties or {})[HIGHEST_IDENTIFIER_PROPERTY] == "5"
    table.rewrite(java.id, properties=None, writer_version="1.4.2")
    table.copied_by_java()
    assert [batch(table, identifier) is not None for identifier in (5, 3, 4, 6, 6)] == [False, False, False, True, False]


def test_batches_of_a_user_of_other_engines_are_assumed_to_ascend(table: CommitTable) -> None:
    for identifier in (1, 2):
        found = batch(table, identifier)
        assert found is not None
        table.rewrite(found.id, properties=None, writer_version="1.4.2")
    table.expire(1, 2, 3)
    assert batch(table, 3) is not None and batch(table, 2) is None

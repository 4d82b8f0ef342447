"""The values of a new snapshot, and those that it inherits from its base."""

from __future__ import annotations

import dataclasses
import json

import lakelsm
from lakelsm.commit.commit_message import CommitMessage
from lakelsm.format.snapshot import BASE_PROPERTY, SIGNATURE_PROPERTY, CommitKind, Snapshot
from lakelsm.snapshots.inheritance import TOTAL_BUCKETS_PROPERTY
from lakelsm.snapshots.sequence_base import MAX_SEQUENCE_PROPERTY
from tests.commit.commit_table import CommitTable, add, delete, file, upgrade

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE

BUCKETS = {TOTAL_BUCKETS_PROPERTY: "2"}


def own(snapshot: Snapshot) -> dict[str, str]:
    """The properties of a snapshot without those that name the snapshot and its base."""
    return {k: v for k, v in snapshot.own_properties.items() if k not in (BASE_PROPERTY, SIGNATURE_PROPERTY)}


def test_counts_follow_adds_deletes_and_upgrades(table: CommitTable) -> None:
    a, b = add(file("a", rows=3, seq=(0, 2))), add(file("b", rows=2, seq=(3, 4)))
    table.append(a)
    table.append(b)
    table.append(add(file("c", rows=1, seq=(5, 5))))
    table.compact([delete(a), delete(b), add(file("d", rows=2, level=4, seq=(0, 4)))])
    table.compact(upgrade(add(file("d", rows=2, level=4, seq=(0, 4))), 5))
    found = [(s.total_record_count, s.delta_record_count) for s in table.snapshots.list()]
    assert found == [(3, 3), (5, 2), (6, 1), (3, -3), (3, 0)]
    assert table.live_names() == {"c@0", "d@5"}


def test_a_snapshot_records_user_kind_and_time(table: CommitTable) -> None:
    message = CommitMessage([add()])
    outcome = table.committer().commit(APPEND, message, "job", 7, properties={"k": "v"}, operation="MERGE")
    snapshot = outcome.snapshot
    assert snapshot is not None and outcome.attempts == 1 and outcome.files_published
    assert (snapshot.id, snapshot.version, snapshot.commit_user, snapshot.commit_identifier) == (
        1,
        3,
        "job",
        7,
    )
    assert (snapshot.commit_kind, snapshot.operation, snapshot.watermark) == (APPEND, "MERGE", None)
    assert own(snapshot) == {"k": "v", **BUCKETS, MAX_SEQUENCE_PROPERTY: "9"}
    assert snapshot.uuid and snapshot.writer_version == f"lakelsm-{lakelsm.__version__}"
    assert (snapshot.next_row_id, snapshot.changelog_record_count, snapshot.index_manifest) == (0, None, None)
    assert snapshot == table.snapshots.get(1)
    assert table.file_io.read(table.paths.latest_hint) == b"1"


def test_watermark_time_and_sequence_bound_never_go_back(table: CommitTable) -> None:
    committer = table.committer(clock=lambda: 5000)
    committer.commit(APPEND, CommitMessage([add(file(seq=(0, 99)))]), "u")
    table.rewrite(1, watermark=50)
    committer = table.committer(clock=lambda: 4000)
    committer.commit(OVERWRITE, CommitMessage([add(file(seq=(3, 4)))]), "u")
    latest = table.snapshots.get(2)
    assert (latest.watermark, latest.time_millis) == (50, 5000)
    assert own(latest) == {**BUCKETS, MAX_SEQUENCE_PROPERTY: "99"}


def test_properties_of_the_caller_are_not_carried_over(table: CommitTable) -> None:
    table.committer().commit(APPEND, CommitMessage([add()]), "u", properties={"k": "v"})
    assert own(table.append(add(file(seq=(10, 11))))) == {**BUCKETS, MAX_SEQUENCE_PROPERTY: "11"}


def test_the_sequence_bound_is_restored_after_a_writer_without_it(table: CommitTable) -> None:
    table.append(add(file(seq=(0, 70))))
    table.append(add(file(seq=(71, 80))))
    table.rewrite(2, properties=None)
    assert own(table.append(add(file(seq=(81, 82), rows=1)))) == {MAX_SEQUENCE_PROPERTY: "82"}
    table.rewrite(3, properties=None)
    assert own(table.compact(upgrade(table.live()[0], 5))) == {MAX_SEQUENCE_PROPERTY: "82"}


def test_a_commit_names_the_schema_of_its_writer_but_none_before_that_of_the_last_snapshot(table: CommitTable) -> None:
    opened_before = table.committer()
    table.schema = table.schemas.change(lambda schema: dataclasses.replace(schema, id=schema.id + 1))
    opened_after = table.committer()
    for committer, expected in ((opened_before, 0), (opened_after, 1), (opened_before, 1)):
        message = CommitMessage((add(),), base_snapshot_id=table.snapshots.latest_id())
        outcome = committer.commit(CommitKind.APPEND, message, "u")
        assert outcome.snapshot is not None and outcome.snapshot.schema_id == expected


def test_statistics_are_inherited_while_the_schema_stays(table: CommitTable) -> None:
    table.append(add())
    table.file_io.write(table.paths.statistics("stat-x-0"), json.dumps({"schemaId": 0}).encode())
    outcome = table.committer().commit(CommitKind.ANALYZE, CommitMessage(), "u", statistics="stat-x-0")
    assert outcome.snapshot is not None and outcome.snapshot.commit_kind is CommitKind.ANALYZE
    assert table.append(add(file(seq=(10, 11)))).statistics == "stat-x-0"
    table.schema = table.schemas.change(lambda schema: dataclasses.replace(schema, id=schema.id + 1))
    assert table.append(add(file(seq=(12, 13)))).statistics is None


def test_missing_statistics_do_not_make_a_commit_fail(table: CommitTable) -> None:
    table.append(add())
    table.rewrite(1, statistics="stat-gone-0")
    assert table.append(add(file(seq=(10, 11)))).statistics is None


def test_changelog_files_get_a_list_and_a_count(table: CommitTable) -> None:
    table.append(add())
    live = table.live()[0]
    message = CommitMessage(upgrade(live, 5), changelog_entries=[add(file("changelog-0", rows=4))])
    snapshot = table.committer().commit(COMPACT, message, "u").snapshot
    assert snapshot is not None and snapshot.changelog_manifest_list and snapshot.changelog_record_count == 4
    assert table.append(add(file(seq=(10, 11)))).changelog_manifest_list is None

"""Deletes: rows that match at the commit are deleted, and rows that others changed since the read are checked again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.results import CommitResult
from tests.engines import TableEngine, each_case
from tests.table_files import live_files, stored_files


def create(engine: TableEngine, folder: Path, bucket: str = "1") -> Table:
    return engine.create(folder, "k INT, v STRING", ["k"], options={"bucket": bucket})


def read(engine: TableEngine, table: Table) -> dict[int, str]:
    return dict(engine.rows(table))


def delete(
    monkeypatch: pytest.MonkeyPatch,
    engine: TableEngine,
    table: Table,
    where: str,
    at: str,
    others: Callable[[], Any],
    times: int = 1,
    steps: list[str] | None = None,
) -> CommitResult:
    """Delete while others commit first, after each of the given steps; ``steps`` records all steps."""
    from lakelsm.write.batch_write import BatchWriter

    made, left = "lakelsm.table.writable_table.BatchWriter", [times]

    def step(name: str) -> None:
        if steps is not None:
            steps.append(name)
        if name == at and left[0]:
            left[0] -= 1
            with monkeypatch.context() as undone:
                undone.setattr(made, BatchWriter)
                others()

    with monkeypatch.context() as patched:
        patched.setattr(made, lambda writer, store, query_id: BatchWriter(writer, store, step, query_id=query_id))
        return engine.delete(table, where)


@each_case("bucket", ["1", "-1"], on_spark=["1"])
def test_a_row_that_stops_or_begins_to_match_before_the_commit_is_checked_again(
    monkeypatch: pytest.MonkeyPatch, engine: TableEngine, tmp_path: Path, bucket: str
) -> None:
    table = create(engine, tmp_path, bucket)
    engine.write(table, [(1, "old"), (2, "old"), (3, "new"), (4, "old")])
    rival = [(2, "new"), (3, "old"), (5, "old")]
    for at in ("data-files-written", "delta-list-written"):
        result = delete(monkeypatch, engine, table, "v = 'old'", at, lambda: engine.write(table, rival))
        assert result.rows == 4 and read(engine, table) == {2: "new"}
        engine.write(table, [(1, "old"), (2, "old"), (3, "new"), (4, "old")])
    assert stored_files(table) == live_files(table)


def test_a_delete_is_not_redone_after_a_later_commit_or_one_of_other_keys(
    monkeypatch: pytest.MonkeyPatch, local: TableEngine, tmp_path: Path
) -> None:
    table = create(local, tmp_path)
    local.write(table, [(1, "old"), (2, "old")])
    count = [0]

    def other() -> None:
        count[0] += 1
        local.write(table, [(7, "old"), (8, "old")])

    # Their sequence numbers equal ours once, so the batch is computed twice. Rows that did not exist at the read stay.
    delete(monkeypatch, local, table, "k < 3", "data-files-written", other, times=5)
    assert count == [2] and read(local, table) == {7: "old", 8: "old"}
    delete(monkeypatch, local, table, "k = 7", "snapshot-published", lambda: local.write(table, [(7, "after")]))
    assert read(local, table) == {7: "after", 8: "old"}


def test_writes_of_keys_between_those_of_a_delete_do_not_delay_it(
    monkeypatch: pytest.MonkeyPatch, local: TableEngine, tmp_path: Path
) -> None:
    table = create(local, tmp_path)
    local.write(table, [(1, "a"), (5, "a")])
    others = [(0, "b"), (3, "b"), (9, "b")]
    steps: list[str] = []
    rival = partial(local.write, table, others)
    delete(monkeypatch, local, table, "v = 'a'", "delta-list-written", rival, times=3, steps=steps)
    # Their sequence numbers equal ours, once.
    assert steps.count("data-files-written") == 2 and steps.count("snapshot-published") == 1
    assert read(local, table) == {0: "b", 3: "b", 9: "b"}


def test_an_empty_delete_commits_nothing_and_one_that_always_loses_raises_an_error(
    monkeypatch: pytest.MonkeyPatch, local: TableEngine, tmp_path: Path
) -> None:
    table = create(local, tmp_path)
    assert local.delete(table, "k = 1").snapshot_id is None
    local.write(table, [(1, "a")])
    assert local.delete(table, "k = 2").snapshot_id is None and table._store().snapshots.ids() == [1]
    with pytest.raises(InvalidInputError, match="kk"):
        local.delete(table, "kk = 2")
    monkeypatch.setattr("lakelsm.write.batch_write._MAX_REDO", 2)
    with pytest.raises(CommitConflictError, match="2 times in a row"):
        delete(
            monkeypatch, local, table, "k = 1", "data-files-written", lambda: local.write(table, [(1, "b")]), times=9
        )
    assert read(local, table) == {1: "b"}


def test_a_repeated_delete_reports_a_replay(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    local.write(table, [(1, "a"), (2, "b")], commit_user="u", batch_id=1)
    first = local.delete(table, "k = 1", commit_user="u", batch_id=2)
    local.write(table, [(1, "back")], commit_user="u", batch_id=3)
    again = local.delete(table, "k = 1", commit_user="u", batch_id=2)
    assert (again.snapshot_id, again.already_committed) == (first.snapshot_id, True)
    assert read(local, table) == {1: "back", 2: "b"}


def test_a_delete_in_a_table_with_row_kinds_and_partitions_removes_matching_rows(
    engine: TableEngine, tmp_path: Path
) -> None:
    table = engine.create(
        tmp_path,
        "dt STRING, k INT, v STRING, op STRING",
        ["dt", "k"],
        ["dt"],
        {"bucket": "2", "rowkind.field": "op"},
    )
    values = [(dt, k, "v", "+I") for dt in ("a", "b") for k in range(4)]
    engine.write(table, values)
    assert engine.delete(table, "dt = 'a' AND k > 1 AND op = '+I'").rows == 2
    engine.compact(table, full=True)
    assert engine.rows(table, columns=["dt", "k"]) == [("a", 0), ("a", 1), *(("b", k) for k in range(4))]


def test_a_delete_without_effect_on_any_sequence_group_is_refused(local: TableEngine, tmp_path: Path) -> None:
    options = {
        "merge-engine": "partial-update",
        "fields.s.sequence-group": "v",
        "partial-update.remove-record-on-sequence-group": "s",
    }
    table = local.create(tmp_path, "k INT, v STRING, s INT", ["k"], options=options)
    local.write(table, [(1, "a", 1), (2, "b", None)])
    message = r"no sequence in any group of 'partial-update\.remove-record.* the delete would have no effect"
    for refused in (lambda: local.delete(table, "k > 0"), lambda: table.delete(keys=[2])):
        with pytest.raises(InvalidInputError, match=message):
            refused()
    assert local.delete(table, "s = 1").matched_rows == 1
    assert local.rows(table) == [(2, "b", None)]


def test_rows_of_the_keys_in_a_frame_are_deleted(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path)
    engine.write(table, [(1, "a"), (2, "b"), (3, "c")])
    assert table.delete(keys=engine.frame([(2,), (2,), (9,)], "K INT")).matched_rows == 1
    assert read(engine, table) == {1: "a", 3: "c"}
    with pytest.raises(InvalidInputError, match=r"keys: expected the columns of the primary key \(k\)"):
        table.delete(keys=engine.frame([(1, "a")], "k INT, v STRING"))
    with pytest.raises(InvalidInputError, match="key column 'k' is NULL in a row"):
        table.delete(keys=engine.frame([(None,)], "k INT"))

"""Deletion vectors can be enabled if all rows are merged, and disabled if no row is masked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.format.manifest import DataFileMeta
from lakelsm.format.snapshot import CommitKind
from lakelsm.options import TableOptions
from lakelsm.plan.vector_switch import check_vector_switch
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, delete, file, vector_index

MODIFIABLE = {"deletion-vectors.modifiable": "true"}


def store_of(table: CommitTable) -> TableStore:
    return TableStore(
        file_io=table.file_io,
        paths=table.paths,
        schema=table.schema,
        options=TableOptions.parse(dict(table.schema.options)),
    )


def with_vectors(schema: TableSchema, text: str | None, **more: str) -> TableSchema:
    options = {**schema.options, **more}
    options.pop("deletion-vectors.enabled", None)
    return replace(schema, options=options if text is None else {**options, "deletion-vectors.enabled": text})


def switch(table: CommitTable, on: bool) -> None:
    off, enabled = with_vectors(table.schema, None), with_vectors(table.schema, "true")
    check_vector_switch(store_of(table), *((off, enabled) if on else (enabled, off)))


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path / "t", options=MODIFIABLE)


def top(name: str, keys: tuple[int, int] = (1, 4), level: int = 5, deletes: int = 0) -> DataFileMeta:
    return replace(file(name, level=level, keys=keys), delete_row_count=deletes)


def fill(table: CommitTable, *files: DataFileMeta) -> None:
    """Files of bucket 1 of partition a, added by a compaction, and another bucket of merged rows."""
    table.append(add(file("l0")))
    table.compact([delete(add(file("l0"))), add(top("m")), *(add(meta, bucket=1) for meta in files)])


def test_a_table_without_data_may_switch_vectors(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    for on in (True, False):
        switch(table, on)


def test_a_table_with_data_needs_a_permission_first(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    fill(table)
    for on in (True, False):
        with pytest.raises(InvalidInputError, match=r"vectors.enabled.* 'deletion-vectors.modifiable' = 'true' first"):
            switch(table, on)
    schema = with_vectors(table.schema, "false")
    check_vector_switch(store_of(table), with_vectors(table.schema, None), schema)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [top("a"), top("b", (5, 9))],
        [top("a", (1, 4), level=3), top("b", (5, 9), level=4)],
    ],
)
def test_merged_rows_keep_their_files_when_vectors_are_enabled(table: CommitTable, files: list[DataFileMeta]) -> None:
    fill(table, *files)
    switch(table, on=True)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([file("n", level=0)], "1 files on level 0"),
        ([file("n", level=0), file("o", level=0), top("a")], "2 files on level 0"),
        ([top("a"), top("b", (4, 9), level=4)], "files above level 0 overlap"),
        ([top("a", level=4, deletes=2)], "retractions above level 0"),
    ],
)
def test_rows_that_are_not_merged_must_be_compacted_first(
    table: CommitTable, files: list[DataFileMeta], reason: str
) -> None:
    fill(table, *files)
    with pytest.raises(InvalidInputError, match=r"compact\(full=True\)") as caught:
        switch(table, on=True)
    assert f" bucket 1 of partition dt=a ({reason}). Call compact(full=True)" in str(caught.value)
    assert "force-rewrite" not in str(caught.value)
    assert "bucket 0" not in str(caught.value)


def test_retractions_on_the_highest_level_need_a_forced_rewrite(table: CommitTable) -> None:
    fill(table, top("a", deletes=1))
    with pytest.raises(InvalidInputError, match=r"'compaction.force-rewrite-all-files' = 'true'"):
        switch(table, on=True)


def test_only_the_first_of_many_buckets_are_named(table: CommitTable) -> None:
    table.append(*(add(file(), dt=f"{day:02}") for day in range(13)))
    with pytest.raises(InvalidInputError, match=r"partition dt=09 \(1 files on level 0\) and 3 more\."):
        switch(table, on=True)


def test_masked_rows_must_be_rewritten_before_vectors_are_disabled(table: CommitTable) -> None:
    fill(table, top("a"), top("b", (5, 9)))
    switch(table, on=False)
    base = table.snapshots.latest_id()
    table.file_io.mkdirs(table.paths.index_dir)
    table.file_io.write(table.paths.index("i"), b"")
    table.compact([], base_snapshot_id=base, index_adds=[vector_index("i", "a", "b", bucket=1)])
    with pytest.raises(InvalidInputError, match=r"2 data files .* bucket 1 of partition dt=a\. Call compact\(full=True"):
        switch(table, on=False)
    switched = [delete(add(top("a"), bucket=1)), delete(add(top("b", (5, 9)), bucket=1)), add(top("c"), bucket=1)]
    table.compact(switched, base_snapshot_id=table.snapshots.latest_id())
    switch(table, on=False)


def test_a_compaction_that_was_planned_before_the_switch_loses(table: CommitTable) -> None:
    fill(table, file("n", level=0))
    before = table.committer()
    changed = replace(with_vectors(table.schema, "true"), id=1)
    table.schemas.change(lambda schema: changed)
    delta = [delete(add(file("n"), bucket=1)), add(top("x"), bucket=1)]
    with pytest.raises(CommitConflictError, match=r"schema 1 set deletion-vectors.enabled to true while this"):
        before.commit(CommitKind.COMPACT, CommitMessage(delta), "c")
    before.commit(CommitKind.APPEND, CommitMessage([add(file("later", seq=(50, 51)))], base_snapshot_id=2), "w")
    table.schema = changed
    table.compact(delta)
    same = replace(changed, id=2, comment="another schema of the same kind")
    table.schemas.change(lambda schema: same)
    table.compact([add(top("y"), dt="c")])

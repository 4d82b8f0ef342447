"""The schema files of a table: changes, races, checksums."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ALWAYS, ActingFileIO, raising
from tests.commit.commit_table import CommitTable, add


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path / "t")


def commented(text: str) -> Callable[[TableSchema], TableSchema]:
    return lambda schema: replace(schema, id=schema.id + 1, comment=f"{schema.comment or ''}{text}")


def test_changes_follow_one_another(table: CommitTable) -> None:
    assert table.schemas.change(commented("x")).comment == "x"
    assert table.schemas.change(commented("y")).comment == "xy"
    assert table.schemas.ids() == [0, 1, 2]
    assert table.schemas.latest() == table.schemas.get(2)
    assert table.schemas.get(0).comment is None


def test_a_change_without_effect_adds_no_file(table: CommitTable) -> None:
    assert table.schemas.change(lambda schema: schema).id == 0
    assert table.schemas.ids() == [0]


def test_a_lost_race_repeats_the_change(table: CommitTable) -> None:
    seen: list[int] = []

    def change(schema: TableSchema) -> TableSchema:
        seen.append(schema.id)
        if len(seen) == 1:
            table.schemas.change(commented("theirs "))
        return replace(schema, id=schema.id + 1, comment=f"{schema.comment or ''}ours")

    assert table.schemas.change(change).comment == "theirs ours"
    assert seen == [0, 1]


def test_a_race_that_is_always_lost_is_a_conflict(table: CommitTable) -> None:
    def change(schema: TableSchema) -> TableSchema:
        table.schemas.change(commented("theirs "))
        return replace(schema, id=schema.id + 1)

    with pytest.raises(CommitConflictError, match="changed the schema"):
        table.schemas.change(change)


def test_a_table_is_created_once(table: CommitTable) -> None:
    with pytest.raises(TableAlreadyExistsError):
        table.schemas.create_table(table.schema)


def test_a_path_without_a_table_is_named(tmp_path: Path) -> None:
    store = SchemaStore(LocalFileIO(), TablePaths(str(tmp_path / "nothing")))
    assert store.ids() == []
    with pytest.raises(TableNotFoundError, match=r"Table .*nothing does not exist"):
        store.latest()


def test_a_missing_damaged_or_misnamed_schema_is_named(table: CommitTable) -> None:
    with pytest.raises(CorruptTableError, match="schema-4 is missing"):
        table.schemas.get(4)
    table.file_io.write(table.paths.schema_file(5), table.schema.to_json().encode())
    with pytest.raises(CorruptTableError, match="schema-5 is damaged: it contains schema 0"):
        table.schemas.get(5)
    table.file_io.write(table.paths.schema_file(1), b"{")
    with pytest.raises(CorruptTableError, match="schema-1"):
        table.schemas.latest()


def test_a_creation_whose_answer_was_lost_is_a_success(tmp_path: Path) -> None:
    lossy = ActingFileIO(raising(TimeoutError("answer lost")), "create_if_absent", times=ALWAYS, after=True)
    table = CommitTable(tmp_path / "t", file_io=lossy)
    assert table.schemas.ids() == [0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"comment": "\ud800"}, "surrogates"),
        ({"comment": b"x"}, "JSON"),
        ({"options": {"bucket": "1", "k": 5}}, "another value"),
        ({"time_millis": 1.5}, "another value"),
        ({"options": {"bucket": "1", "k": "x" * (65 << 20)}}, "readers accept"),
    ],
)
def test_a_schema_that_would_not_read_back_is_not_written(table: CommitTable, change: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"schema-1 was not written: .*{text}"):
        table.schemas.change(lambda schema: replace(schema, id=1, **change))
    assert table.schemas.ids() == [0]


class Unlisted(LocalFileIO):
    """A store that records the listed directories."""

    lists: ClassVar[list[str]] = []

    def list(self, path: str) -> list[str]:
        self.lists.append(path)
        return super().list(path)


def test_the_newest_schema_is_found_without_a_list_also_after_many_changes(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t", file_io=Unlisted())
    for number in range(12):
        table.schemas.change(commented(str(number)))
    Unlisted.lists.clear()
    assert table.schemas.latest(known=9).id == 12 and table.schemas.latest_id(10) == 12
    assert Unlisted.lists == []
    assert table.schemas.latest().id == 12, "no snapshot names a schema"
    assert table.schemas.latest_id(0) == 12 and table.schemas.latest(known=40).id == 12


def test_the_search_for_the_newest_schema_begins_at_the_newest_snapshot(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t", file_io=Unlisted())
    for number in range(12):
        table.schema = table.schemas.change(commented(str(number)))
    table.append(add())
    table.schemas.change(commented("after"))
    Unlisted.lists.clear()
    assert table.schemas.latest().id == 13
    assert Unlisted.lists == []


def altered(tmp_path: Path) -> Table:
    """A table with two schemas, whose snapshots were written in both."""
    catalog = Catalog(str(tmp_path))
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("db.t", "id INT, v INT", primary_key=["id"], options=options)
    table.write(pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([1], pa.int32())}))
    catalog.alter_table("db.t", AddColumn("w", "STRING"))
    table.write(pa.table({"id": pa.array([2], pa.int32()), "v": pa.array([2], pa.int32()), "w": ["x"]}))
    return table


def uses(table: Table) -> list[Callable[[], object]]:
    """Operations that open a table and read or change it."""
    path = str(table._opened.paths.root)
    rows = pa.table({"id": pa.array([3], pa.int32()), "v": pa.array([3], pa.int32()), "w": ["y"]})
    return [
        lambda: Table.for_path(path).to_arrow(),
        lambda: Table.for_path(path).count(engine="local"),
        lambda: Table.for_path(path).changelog_reader(1, 2).read_all(),
        lambda: Table.for_path(path).write(rows),
        lambda: Table.for_path(path).overwrite(rows),
        lambda: Table.for_path(path).delete("id = 1", engine="local"),
        lambda: Table.for_path(path).compact(full=True, engine="local"),
    ]


@pytest.mark.parametrize(
    ("schema_id", "damage"),
    [
        (1, lambda text: text.replace('"INT"', '"DATE"')),
        (1, lambda text: text.replace('"v"', '"u"')),
        (1, lambda text: text.replace('"bucket" : "1"', '"bucket" : "1", "merge-engine" : "first-row"')),
        (1, None),
        (0, lambda text: text.replace('"v"', '"u"')),
    ],
    ids=["type", "name", "option", "missing", "older"],
)
def test_a_schema_file_that_differs_from_that_of_a_snapshot_is_damage(
    tmp_path: Path, schema_id: int, damage: Callable[[str], str] | None
) -> None:
    table = altered(tmp_path)
    file = Path(table._opened.paths.schema_file(schema_id))
    content = file.read_text()
    if damage is None:
        file.unlink()
    else:
        assert damage(content) != content
        file.write_text(damage(content))
    refused = uses(table) if schema_id else [uses(table)[position] for position in (0, 6)]
    for use in refused:
        with pytest.raises((CorruptTableError, InvalidInputError), match=rf"schema-{schema_id} is|[Cc]olumn|first-row"):
            use()
    for use in refused[:3]:  # Rows to write are compared with the columns first.
        with pytest.raises(CorruptTableError, match=f"schema-{schema_id} is"):
            use()
    assert len(snapshots_of(table)) == 2
    if schema_id:
        findings = table.maintenance.check(data="none", engine="local").findings
        assert "schema-unreadable" in {finding.rule for finding in findings}
    file.write_text(content)
    for use in uses(table):
        use()
    assert table.maintenance.check(data="full", engine="local").findings == ()


def test_schemas_are_checked_for_snapshots_of_their_writer_alone(tmp_path: Path) -> None:
    """Java omits the checksums; an engine that copied them to its own snapshots would name another schema."""
    table = altered(tmp_path)
    paths = table._opened.paths
    file = Path(paths.schema_file(1))
    file.write_text(file.read_text().replace('"STRING"', '"VARCHAR(9)"'))
    newest = Path(paths.snapshot_file(snapshots_of(table)[-1].id))
    document = json.loads(newest.read_text())
    document["uuid"] = "another"
    newest.write_text(json.dumps(document))
    assert Table.for_path(paths.root).to_arrow().num_rows == 2
    del document["lakelsm.checksums"], document["properties"]
    newest.write_text(json.dumps(document))
    assert Table.for_path(paths.root).to_arrow().num_rows == 2


def snapshots_of(table: Table) -> Sequence[Snapshot]:
    return table._opened.snapshots.list()


def test_a_branch_keeps_the_schema_files_of_its_snapshots(tmp_path: Path) -> None:
    """The files have the format of another engine, because a fast-forward copies them unchanged."""
    table = altered(tmp_path)
    paths = table._opened.paths
    for number in (0, 1):
        file = Path(paths.schema_file(number))
        file.write_text(json.dumps(json.loads(file.read_text())))
    for snapshot in snapshots_of(table):
        Path(paths.snapshot_file(snapshot.id)).write_text(replace(snapshot, extra={}).to_json())
    table.tags.create("t")
    table.branches.create("b", "t")
    Catalog(str(tmp_path)).alter_table("db.t$branch_b", AddColumn("z", "INT"))
    branch = Catalog(str(tmp_path)).table("db.t$branch_b")
    one = pa.array([9], pa.int32())
    branch.write(pa.table({"id": one, "v": one, "w": ["w"], "z": one}))
    table.branches.fast_forward("b")
    for opened in (branch, Table.for_path(paths.root)):
        assert opened.to_arrow().num_rows == 3 and opened.maintenance.check(data="full", engine="local").findings == ()

"""Schema files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lakelsm.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from lakelsm.format.paths import TablePaths
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.storage import LocalFileIO
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


def test_a_change_that_changes_nothing_adds_no_file(table: CommitTable) -> None:
    assert table.schemas.change(lambda schema: schema).id == 0
    assert table.schemas.ids() == [0]


def test_a_lost_race_asks_for_the_change_again(table: CommitTable) -> None:
    seen: list[int] = []

    def change(schema: TableSchema) -> TableSchema:
        seen.append(schema.id)
        if len(seen) == 1:
            table.schemas.change(commented("theirs "))
        return replace(schema, id=schema.id + 1, comment=f"{schema.comment or ''}ours")

    assert table.schemas.change(change).comment == "theirs ours"
    assert seen == [0, 1]


def test_a_race_lost_for_ever_is_a_conflict(table: CommitTable) -> None:
    def change(schema: TableSchema) -> TableSchema:
        table.schemas.change(commented("theirs "))
        return replace(schema, id=schema.id + 1)

    with pytest.raises(CommitConflictError, match="changed the schema"):
        table.schemas.change(change)


def test_a_table_is_created_once(table: CommitTable) -> None:
    with pytest.raises(TableAlreadyExistsError):
        table.schemas.create_table(table.schema)


def test_a_path_that_is_no_table_is_named(tmp_path: Path) -> None:
    store = SchemaStore(LocalFileIO(), TablePaths(str(tmp_path / "nothing")))
    assert store.ids() == []
    with pytest.raises(TableNotFoundError, match=r"Table .*nothing does not exist"):
        store.latest()


def test_a_missing_damaged_or_misnamed_schema_is_named(table: CommitTable) -> None:
    with pytest.raises(CorruptTableError, match="schema-4 is missing"):
        table.schemas.get(4)
    table.file_io.write(table.paths.schema_file(5), table.schema.to_json().encode())
    with pytest.raises(CorruptTableError, match="schema-5 holds schema 0"):
        table.schemas.get(5)
    table.file_io.write(table.paths.schema_file(1), b"{")
    with pytest.raises(CorruptTableError, match="schema-1"):
        table.schemas.latest()


def test_a_creation_whose_answer_was_lost_is_a_success(tmp_path: Path) -> None:
    class Lossy(LocalFileIO):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            super().create_if_absent(path, data)
            raise TimeoutError("answer lost")

    table = CommitTable(tmp_path / "t", file_io=Lossy())
    assert table.schemas.ids() == [0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"comment": "\ud800"}, "surrogates"),
        ({"comment": b"x"}, "JSON"),
        ({"options": {"bucket": "1", "k": 5}}, "another one"),
        ({"time_millis": 1.5}, "another one"),
        ({"options": {"bucket": "1", "k": "x" * (65 << 20)}}, "longer"),
    ],
)
def test_a_schema_that_would_not_read_back_is_not_written(table: CommitTable, change: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"schema-1 was not written: .*{text}"):
        table.schemas.change(lambda schema: replace(schema, id=1, **change))
    assert table.schemas.ids() == [0]


class Unlisted(LocalFileIO):
    """A store that counts what is listed."""

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
    assert table.schemas.latest().id == 12, "no snapshot says where to begin"
    assert table.schemas.latest_id(0) == 12 and table.schemas.latest(known=40).id == 12


def test_the_newest_snapshot_says_where_to_look_for_the_newest_schema(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t", file_io=Unlisted())
    for number in range(12):
        table.schema = table.schemas.change(commented(str(number)))
    table.append(add())
    table.schemas.change(commented("after"))
    Unlisted.lists.clear()
    assert table.schemas.latest().id == 13
    assert Unlisted.lists == []

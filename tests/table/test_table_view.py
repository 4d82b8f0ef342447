"""A view is a table at one snapshot: it does not change, and has no writes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lakelsm import Catalog, TableView
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.schema_changes import AddColumn
from tests.maintain.versions.branched_table import new_table, put


def test_a_view_has_the_rows_and_columns_of_its_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    table.tags.create("first")
    view = table.at(tag="first")
    put(table, {1: "b", 2: "c"})
    Catalog(str(tmp_path)).alter_table("db.t", AddColumn("later", "INT"))
    table.tags.replace("first")
    assert isinstance(view, TableView) and (view.snapshot_id, view.schema.field_names) == (1, ("id", "v"))
    assert view.to_arrow().to_pylist() == [{"id": 1, "v": "a"}] and view.count().rows == 1
    assert view.explain().snapshot_id == 1 and len(view.inspect.files()) == 1 and len(view.head(5)) == 1
    assert table.schema.field_names == ("id", "v", "later")
    assert repr(view) == "TableView('db.t' at snapshot 1)"
    assert not {"write", "overwrite", "update", "delete", "compact", "rollback", "maintenance"} & set(dir(view))


def test_changes_of_a_view_end_at_its_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in (1, 2, 3):
        put(table, {number: "a"})
    found = table.at(snapshot=2).changelog_reader().read_all()
    assert found["id"].to_pylist() == [1, 2]
    assert table.at(snapshot=2).changelog_reader(1, mode="diff").read_all()["id"].to_pylist() == [2]


def test_a_point_is_named_once_and_exists(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    for wrong in ({}, {"snapshot": 1, "tag": "x"}, {"snapshot": 0}, {"timestamp": "soon"}):
        with pytest.raises(InvalidInputError):
            table.at(**wrong)  # type: ignore[arg-type]
    for missing in ({"snapshot": 9}, {"tag": "x"}, {"timestamp": "1999-01-01"}):
        with pytest.raises(SnapshotNotFoundError):
            table.at(**missing)  # type: ignore[arg-type]


def test_without_polars_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InvalidInputError, match=r"Install lakelsm\[polars\]"):
        new_table(tmp_path).to_polars()

"""The snapshot of a new tag is given by its id, a time, or another tag."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from tests.maintain.versions.branched_table import new_table, put


def test_a_tag_is_created_of_an_id_a_time_or_another_tag(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    put(table, {2: "b"})
    first, newest = table._store().snapshots.earliest_id(), table._store().snapshots.latest_id()
    assert first is not None and newest is not None and first < newest
    assert table.tags.create("one", first).snapshot_id == first
    assert table.tags.create("same", "one").snapshot_id == table.tags.create("again", "tag:one").snapshot_id == first
    assert table.tags.create("now", "2999-01-01 00:00:00").snapshot_id == newest
    assert table.tags.create("newest").snapshot_id == newest
    assert [tag.name for tag in table.tags.list()] == ["again", "one", "same", "newest", "now"]


def test_a_text_that_is_a_time_and_a_tag_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    table.tags.create("2999-01-01", 1)
    for call in (table.tags.create, lambda name, at: table.tags.replace("2999-01-01", at)):
        with pytest.raises(InvalidInputError, match=r"both a time and the name of a tag. Write 'tag:2999-01-01'"):
            call("b", "2999-01-01")
    assert table.tags.create("b", "tag:2999-01-01").snapshot_id == 1

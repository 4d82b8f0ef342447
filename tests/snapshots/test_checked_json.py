"""A file is made only of what its reader turns into the very same document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.snapshots.checked_json import checked_bytes
from tests.commit.commit_table import CommitTable, add


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return CommitTable(tmp_path / "t").append(add())


SCHEMA = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1"})


def test_the_bytes_are_those_that_read_back(snapshot: Snapshot) -> None:
    for document in (snapshot, SCHEMA):
        data = checked_bytes(document, "/t/x-1", 1 << 20)
        assert data == document.to_json().encode() and type(document).from_json(data, "x") == document


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"commit_user": "\ud800"}, "cannot be read back .*surrogates"),
        ({"properties": {"a": b"x"}}, "cannot be read back .*JSON"),
        ({"watermark": 1 << 63}, "cannot be read back .*watermark"),
        ({"extra": {"a": (1,)}}, "reads back as another one"),
    ],
)
def test_a_value_that_would_stop_or_deceive_every_reader_is_refused(
    snapshot: Snapshot, change: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"^/t/snapshot-1 was not written: .*{fault}"):
        checked_bytes(replace(snapshot, **change), "/t/snapshot-1", 1 << 20)


def test_a_schema_is_held_to_the_same() -> None:
    broken: TableSchema = replace(SCHEMA, comment="\udc00")
    with pytest.raises(InvalidInputError, match=r"^/t/schema-0 was not written: "):
        checked_bytes(broken, "/t/schema-0", 1 << 20)


def test_a_file_may_be_as_long_as_readers_take_and_not_a_byte_longer() -> None:
    size = len(SCHEMA.to_json().encode())
    assert len(checked_bytes(SCHEMA, "x", size)) == size
    with pytest.raises(InvalidInputError, match=f"with {size} bytes it is longer than readers take"):
        checked_bytes(SCHEMA, "x", size - 1)

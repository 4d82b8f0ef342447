"""The newest batch of each streaming query: inherited by snapshots, bounded, and refused if it is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.stream_progress import (
    STREAM_PROGRESS_PROPERTY,
    StreamProgress,
    stream_progress,
    with_stream_progress,
)
from tests.commit.commit_table import CommitTable, add


def of_text(snapshot: Snapshot, text: str) -> dict[str, StreamProgress]:
    """Return the progress of a snapshot of lakelsm with another property."""
    changed = replace(snapshot, properties={**(snapshot.properties or {}), STREAM_PROGRESS_PROPERTY: text}).signed()
    assert changed.is_ours
    return stream_progress(changed, lambda number: None)


def test_a_batch_replaces_that_of_its_user_and_becomes_the_last() -> None:
    first = with_stream_progress({"a": "b"}, {}, "one", StreamProgress("q1", 7))
    assert json.loads(first[STREAM_PROGRESS_PROPERTY]) == {"one": ["q1", 7]} and first["a"] == "b"
    known = {"one": StreamProgress("q1", 7), "two": StreamProgress("q2", 0)}
    text = with_stream_progress({}, known, "one", StreamProgress("q1", 3))[STREAM_PROGRESS_PROPERTY]
    assert list(json.loads(text).items()) == [("two", ["q2", 0]), ("one", ["q1", 7])]
    assert with_stream_progress({}, {}, "one", None) == {}


def test_the_users_of_the_oldest_batches_are_left_out() -> None:
    many = {f"user {number}": StreamProgress("q", number) for number in range(150)}
    found = json.loads(with_stream_progress({}, many, "new", StreamProgress("q", 1))[STREAM_PROGRESS_PROPERTY])
    assert list(found) == [*(f"user {number}" for number in range(51, 150)), "new"]
    long = {f"{number}{'ü' * 990}": StreamProgress("q", number) for number in range(9)}
    text = with_stream_progress({}, long, "new", StreamProgress("q", 1))[STREAM_PROGRESS_PROPERTY]
    assert len(text) <= 8192 and list(json.loads(text))[-1] == "new"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"u": 1}', '{"u": ["q"]}', '{"u": [1, 2]}', '{"u": ["q", true]}'])
def test_a_damaged_property_is_an_error(tmp_path: Path, text: str) -> None:
    table = CommitTable(tmp_path)
    table.append(add())
    snapshot = table.snapshots.latest()
    assert snapshot is not None and stream_progress(snapshot, table.snapshots.try_get) == {}
    assert of_text(snapshot, '{"u": ["q", 3]}') == {"u": StreamProgress("q", 3)}
    with pytest.raises(CorruptTableError, match=f"Snapshot 1: property '{STREAM_PROGRESS_PROPERTY}'"):
        of_text(snapshot, text)

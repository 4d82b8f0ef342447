"""Snapshot and schema files read back as the same document; each answer of a store to a publication is handled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import CommitOutcomeUnknownError, InvalidInputError, StorageError, UnsupportedFeatureError
from lakelsm.format.snapshot import Snapshot
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.snapshots.json_file import checked_bytes, publish
from lakelsm.storage import LocalFileIO
from tests.commit.commit_table import CommitTable, add


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return CommitTable(tmp_path / "t").append(add())


SCHEMA = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1"})


def test_the_bytes_read_back_as_the_same_document(snapshot: Snapshot) -> None:
    for document in (snapshot, SCHEMA):
        data = checked_bytes(document, "/t/x-1", 1 << 20)
        assert data == document.to_json().encode() and type(document).from_json(data, "x") == document


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"commit_user": "\ud800"}, "cannot be read back .*surrogates"),
        ({"properties": {"a": b"x"}}, "cannot be read back .*JSON"),
        ({"watermark": 1 << 63}, "cannot be read back .*watermark"),
        ({"extra": {"a": (1,)}}, "read back as another value"),
    ],
)
def test_a_value_that_does_not_read_back_is_refused(
    snapshot: Snapshot, change: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"^/t/snapshot-1 was not written: .*{fault}"):
        checked_bytes(replace(snapshot, **change), "/t/snapshot-1", 1 << 20)


def test_a_schema_that_does_not_read_back_is_refused() -> None:
    broken: TableSchema = replace(SCHEMA, comment="\udc00")
    with pytest.raises(InvalidInputError, match=r"^/t/schema-0 was not written: "):
        checked_bytes(broken, "/t/schema-0", 1 << 20)


def test_a_file_may_have_the_maximum_size_and_no_byte_more() -> None:
    size = len(SCHEMA.to_json().encode())
    assert len(checked_bytes(SCHEMA, "x", size)) == size
    with pytest.raises(InvalidInputError, match=f"would have {size} bytes; readers accept {size - 1}"):
        checked_bytes(SCHEMA, "x", size - 1)


OURS, THEIRS = b"ours", b"theirs"


class ScriptedStore(LocalFileIO):
    """A store with given answers: an error or None (normal) for each request; ``lands``: failed requests take effect."""

    def __init__(self, creates: list[Exception | None], reads: list[Exception | None] | None = None) -> None:
        self.creates, self.reads = creates, reads or []
        self.content: bytes | None = None
        self.lands = True

    def create_if_absent(self, path: str, data: bytes) -> bool:
        failure = self.creates.pop(0) if self.creates else None
        if isinstance(failure, (StorageError, UnsupportedFeatureError)) or (failure and not self.lands):
            raise failure
        created, self.content = self.content is None, self.content or data
        if failure:
            raise failure
        return created

    def read(self, path: str, limit: int | None = None) -> bytes:
        failure = self.reads.pop(0) if self.reads else None
        if failure:
            raise failure
        if self.content is None:
            raise FileNotFoundError(path)
        return self.content


@pytest.fixture
def waits() -> list[float]:
    return []


def test_a_snapshot_that_is_created_is_published_without_reading_or_waiting(waits: list[float]) -> None:
    assert publish(ScriptedStore([], [AssertionError()]), "s", OURS, waits.append)
    assert waits == []


@pytest.mark.parametrize(("content", "published"), [(OURS, True), (THEIRS, False)])
@pytest.mark.parametrize("failure", [None, TimeoutError("lost")])
def test_the_content_of_the_existing_file_decides_the_outcome(
    content: bytes, published: bool, failure: Exception | None, waits: list[float]
) -> None:
    store = ScriptedStore([failure])
    store.content = content
    assert publish(store, "s", OURS, waits.append) is published


def test_a_lost_request_is_sent_again_with_growing_waits(waits: list[float]) -> None:
    store = ScriptedStore([TimeoutError("lost")] * 3)
    store.lands = False
    assert publish(store, "s", OURS, waits.append)
    assert store.content == OURS and waits == [0.2, 0.4, 0.8]


def test_a_failed_read_back_is_repeated(waits: list[float]) -> None:
    store = ScriptedStore([TimeoutError("lost")], [TimeoutError("down"), None])
    assert publish(store, "s", OURS, waits.append)
    assert waits == [0.2]


@pytest.mark.parametrize("lands", [True, False])
def test_an_unknown_outcome_is_reported_with_the_first_failure(lands: bool, waits: list[float]) -> None:
    store = ScriptedStore([TimeoutError("no route")] * 9, [TimeoutError("down")] * 9)
    store.lands = lands
    with pytest.raises(CommitOutcomeUnknownError, match=r"^s: the publication failed .*\(no route\), so no file was del"):
        publish(store, "s", OURS, waits.append)
    assert len(waits) == 3


@pytest.mark.parametrize("refusal", [StorageError("full"), UnsupportedFeatureError("no such operation")])
def test_a_refusal_before_anything_was_sent_is_certain(refusal: Exception, waits: list[float]) -> None:
    with pytest.raises(type(refusal)):
        publish(ScriptedStore([refusal]), "s", OURS, waits.append)
    assert waits == []


def test_a_refusal_after_a_request_that_may_have_succeeded_is_not_certain(waits: list[float]) -> None:
    store = ScriptedStore([TimeoutError("lost"), StorageError("full")], [TimeoutError("down"), None])
    assert publish(store, "s", OURS, waits.append)

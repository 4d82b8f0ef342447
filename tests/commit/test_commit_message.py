"""What a message publishes is told from its entries."""

from __future__ import annotations

import pytest

from lakelsm.commit.commit_message import MESSAGE_SCHEMA, CommitMessage, TaskMessages
from lakelsm.format.index.index_manifest import (
    DELETION_VECTORS_INDEX,
    IndexFileMeta,
    IndexManifestEntry,
    decode_index_manifest,
)
from lakelsm.format.manifest import FileKind, decode_entries
from tests.commit.commit_table import add, delete, file, hash_index, partition, upgrade

VECTORS = IndexManifestEntry(FileKind.ADD, partition("a"), 0, IndexFileMeta(DELETION_VECTORS_INDEX, "v", 1, 1))
A, B = add(file("a")), add(file("b"))


@pytest.mark.parametrize(
    ("message", "empty", "removes"),
    [
        (CommitMessage(), True, False),
        (CommitMessage(base_snapshot_id=3, overwrite_partitions=lambda stored: True), True, False),
        (CommitMessage([A]), False, False),
        (CommitMessage([A, delete(B)]), False, True),
        (CommitMessage(changelog_entries=[A]), False, False),
        (CommitMessage(index_adds=[hash_index("i")]), False, False),
        (CommitMessage(index_deletes=[hash_index("i")]), False, False),
        (CommitMessage(index_adds=[VECTORS]), False, True),
        (CommitMessage(index_deletes=[VECTORS]), False, True),
    ],
)
def test_a_message_tells_whether_it_publishes_and_removes(message: CommitMessage, empty: bool, removes: bool) -> None:
    assert (message.is_empty, message.removes) == (empty, removes)


def test_a_file_that_moves_up_is_not_a_new_one() -> None:
    assert CommitMessage([A, *upgrade(B, 5), delete(add(file("c")))]).new_file_names == {"a"}


def test_a_batch_has_the_columns_of_the_schema_and_each_its_own_entries() -> None:
    messages = TaskMessages([add(file("a")), delete(add(file("b")))], [hash_index("i")], [add(file("c"))])
    batch = messages.to_batch()
    assert ", ".join(f"{column.name} {column.type}" for column in batch.schema) == MESSAGE_SCHEMA
    entries, index_entries, changelog_entries = (column[0].as_py() for column in batch.columns)
    assert decode_entries(entries) == messages.entries
    assert decode_index_manifest(index_entries, "i") == messages.index_entries
    assert decode_entries(changelog_entries) == messages.changelog_entries


def test_messages_of_several_tasks_follow_one_another() -> None:
    a, b, c, i = add(file("a")), add(file("b")), add(file("c")), hash_index("i")
    messages, other = TaskMessages([a]), TaskMessages([b], [i], [c])
    messages.add(other)
    assert messages == TaskMessages([a, b], [i], [c])
    assert other == TaskMessages([b], [i], [c]) and TaskMessages() == TaskMessages([], [], [])

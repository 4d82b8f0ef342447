"""What a message publishes is told from its entries."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from lakelsm.commit.commit_message import MESSAGE_SCHEMA, CommitMessage, Marks, TaskMessages
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexFileMeta, IndexManifestEntry
from lakelsm.format.manifest import FileKind
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
    a, b = (partition("a"), 3), (partition("b"), 0)
    marks: Marks = {a: {"d-1": BitMap([1, 7]), "d-2": BitMap([0])}, b: {"e": BitMap([9])}}
    messages = TaskMessages([add(file("a")), delete(add(file("b")))], [hash_index("i")], [add(file("c"))], marks)
    batch = messages.to_batch()
    columns = ", ".join(f"{column.name} {column.type}" for column in list(batch.schema)[:3])
    assert MESSAGE_SCHEMA.startswith(f"{columns}, marks array<")
    assert TaskMessages.of_row([column[0].as_py() for column in batch.columns]) == messages


def test_marks_of_one_data_file_from_several_tasks_are_united() -> None:
    bucket = partition("a"), 0
    messages = TaskMessages(marks={bucket: {"d": BitMap([1])}})
    messages.add(TaskMessages(marks={bucket: {"d": BitMap([2]), "e": BitMap([0])}}))
    assert messages.marks == {bucket: {"d": BitMap([1, 2]), "e": BitMap([0])}}


def test_messages_of_several_tasks_follow_one_another() -> None:
    a, b, c, i = add(file("a")), add(file("b")), add(file("c")), hash_index("i")
    messages, other = TaskMessages([a]), TaskMessages([b], [i], [c])
    messages.add(other)
    assert messages == TaskMessages([a, b], [i], [c])
    assert other == TaskMessages([b], [i], [c]) and TaskMessages() == TaskMessages([], [], [])

"""What tasks tell of their files arrives at the driver as they told it."""

from __future__ import annotations

from lakelsm.commit.task_messages import MESSAGE_SCHEMA, TaskMessages
from lakelsm.format.index.index_manifest import decode_index_manifest
from lakelsm.format.manifest import decode_entries
from tests.commit.commit_table import add, delete, file, hash_index


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

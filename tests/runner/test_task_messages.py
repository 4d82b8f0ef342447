"""Messages of tasks are combined, and reach the driver unchanged."""

from __future__ import annotations

from pyroaring import BitMap

from lakelsm.runner.task_messages import MESSAGE_SCHEMA, MaskedPositions, TaskMessages
from tests.commit.commit_table import add, delete, file, hash_index, partition


def test_a_batch_has_the_columns_of_the_schema_and_each_its_own_entries() -> None:
    a, b = (partition("a"), 3), (partition("b"), 0)
    positions: MaskedPositions = {a: {"d-1": BitMap([1, 7]), "d-2": BitMap([0])}, b: {"e": BitMap([9])}}
    messages = TaskMessages(
        [add(file("a")), delete(add(file("b")))],
        [hash_index("i")],
        [add(file("c"))],
        positions,
        ignored_rows=5,
        ignored_deletes=3,
    )
    batch = messages.to_batch()
    columns = ", ".join(f"{column.name} {column.type}" for column in list(batch.schema)[:3])
    assert MESSAGE_SCHEMA.startswith(f"{columns}, positions array<")
    assert TaskMessages.of_row([column[0].as_py() for column in batch.columns]) == messages


def test_positions_of_one_data_file_from_several_tasks_are_united() -> None:
    bucket = partition("a"), 0
    messages = TaskMessages(positions={bucket: {"d": BitMap([1])}})
    messages.add(TaskMessages(positions={bucket: {"d": BitMap([2]), "e": BitMap([0])}}))
    assert messages.positions == {bucket: {"d": BitMap([1, 2]), "e": BitMap([0])}}


def test_messages_of_several_tasks_are_appended() -> None:
    a, b, c, i = add(file("a")), add(file("b")), add(file("c")), hash_index("i")
    messages, other = (
        TaskMessages([a], ignored_rows=4, ignored_deletes=1),
        TaskMessages([b], [i], [c], {}, ignored_rows=2, ignored_deletes=2),
    )
    messages.add(other)
    assert messages == TaskMessages([a, b], [i], [c], {}, ignored_rows=6, ignored_deletes=3)
    assert other == TaskMessages(
        [b], [i], [c], {}, ignored_rows=2, ignored_deletes=2
    ) and TaskMessages() == TaskMessages([], [], [])

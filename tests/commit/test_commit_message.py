"""The properties of a commit message follow from its entries."""

from __future__ import annotations

import pytest

from lakelsm.commit.commit_message import CommitMessage
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
def test_a_message_knows_whether_it_publishes_and_deletes(message: CommitMessage, empty: bool, removes: bool) -> None:
    assert (message.is_empty, message.removes) == (empty, removes)


def test_an_upgraded_file_is_not_a_new_file() -> None:
    assert CommitMessage([A, *upgrade(B, 5), delete(add(file("c")))]).new_file_names == {"a"}

"""Changelogs that Java Paimon writes, read by Java and pypaimon: the basis of the tests of lakelsm's changelogs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.peers import Batch, Changes, JavaPaimon, Peer
from tests.interop.samples import rows_of
from tests.interop.value_form import in_order

COLUMNS = "k INT, v STRING"
BATCHES: list[Batch] = [
    (rows_of(COLUMNS, {"k": [1, 2], "v": ["a", "b"]}), None),
    (rows_of(COLUMNS, {"k": [1, 2, 3, 2], "v": ["c", "b", "x", "q"]}), ["+U", "-D", "+I", "+I"]),
    (rows_of(COLUMNS, {"k": [3], "v": ["x"]}), ["-D"]),
]

MERGED: list[Changes] = [
    [("+I", 1, "a"), ("+I", 2, "b")],
    [("-U", 1, "a"), ("+U", 1, "c"), ("-U", 2, "b"), ("+U", 2, "q"), ("+I", 3, "x")],
    [("-D", 3, "x")],
]
#: The changes of each commit. Without a producer they are the rows of its files, with `input` the rows as they came.
CHANGES: dict[str, list[Changes]] = {
    "none": [MERGED[0], [("+U", 1, "c"), ("+I", 2, "q"), ("+I", 3, "x")], MERGED[2]],
    "input": [MERGED[0], [("+U", 1, "c"), ("-D", 2, "b"), ("+I", 2, "q"), ("+I", 3, "x")], MERGED[2]],
    "lookup": MERGED,
    "full-compaction": MERGED,
}


@pytest.mark.parametrize("producer", CHANGES)
def test_java_and_pypaimon_read_the_changelog_that_java_wrote(
    java: JavaPaimon, peers: Callable[[str], Peer], path: Path, producer: str
) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1", "changelog-producer": producer})
    java.write_all(path, BATCHES, full=producer == "full-compaction")
    # Two producers write the changes to the snapshot of the compaction after each commit.
    step = 2 if producer in ("lookup", "full-compaction") else 1
    per_commit = CHANGES[producer]
    for commit, changes in enumerate(per_commit):
        after, upto = step * commit, step * (commit + 1)
        assert java.changes(path, after, upto) == changes
        assert peers("pypaimon").changes(path, after, upto) == changes
    everything = [change for changes in per_commit for change in changes]
    assert in_order(java.changes(path, 0, 3 * step)) == in_order(everything)
    assert java.stream(path, 1) == per_commit
    assert java.stream(path, step + 1) == per_commit[1:]
    assert java.read(path) == [(1, "c"), (2, "q")]


def test_a_difference_of_two_snapshots_needs_no_changelog(java: JavaPaimon, path: Path) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1"})
    java.write_all(path, BATCHES)
    assert java.changes(path, 1, 2, "diff") == [("+U", 1, "c"), ("+I", 2, "q"), ("+I", 3, "x")]
    assert java.changes(path, 1, 3, "diff") == [("+U", 1, "c"), ("+I", 2, "q"), ("-D", 3, "x")]

"""Overwrites of Java Paimon and lakelsm have the same rows, levels and changelog, also after later commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.snapshots.table_store import TableStore
from tests.interop.arrow_merge import file_levels
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k INT, v STRING"
BEFORE = rows_of(COLUMNS, {"k": [1, 2, 3], "v": ["a", "b", "c"]})
REPLACED = rows_of(COLUMNS, {"k": [4, 2], "v": ["d", "e"]})
AFTER = rows_of(COLUMNS, {"k": [2, 5], "v": ["f", "g"]})


def newest(path: Path) -> int:
    """Return the id of a table's newest snapshot."""
    return TableStore.open(str(path)).snapshots.latest_id() or 0


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "first-row", "write-only": "true"},
        {"changelog-producer": "lookup", "write-only": "true"},
        {"changelog-producer": "lookup"},
    ],
    ids=lambda options: ",".join(options.values()),
)
def test_an_overwrite_has_the_result_of_javas(
    ours: LakelsmTables, java: JavaPaimon, path: Path, options: dict[str, str]
) -> None:
    theirs = path.with_name(f"{path.name}_of_java")
    java.create(theirs, COLUMNS, ["k"], options={"bucket": "1", **options})
    ours.create(path, COLUMNS, ["k"], options={"bucket": "1", **options})
    for where, engine in ((theirs, java), (path, ours)):
        engine.write(where, BEFORE)
        engine.overwrite(where, REPLACED)
    assert java.read(path) == java.read(theirs) == ours.read(path) == ours.read(theirs)
    assert file_levels(str(path)) == file_levels(str(theirs))

    last = {where: newest(where) for where in (path, theirs)}
    for where, engine in ((theirs, java), (path, ours)):
        engine.compact(where)
        engine.write(where, AFTER)
        engine.compact(where)
    assert java.read(path) == java.read(theirs) == ours.read(path)
    if "changelog-producer" in options:
        changes = {where: java.changes(where, last[where], newest(where)) for where in last}
        assert changes[path] == changes[theirs] != []


def test_a_named_partition_is_overwritten_by_no_rows(either: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    """Java keeps the partition if partitions are dynamic, and empties it otherwise, as its Spark connector requests."""
    columns = "dt STRING NOT NULL, k INT"
    rows = rows_of(columns, {"dt": ["x", "y"], "k": [1, 1]})
    java.create(path, columns, ["dt", "k"], ["dt"], options={"bucket": "1"})
    java.write(path, rows)
    java.overwrite(path, rows.slice(0, 0), {"dt": "x"})
    assert java.read(path) == [("x", 1), ("y", 1)]
    java.overwrite(path, rows.slice(0, 0), {"dt": "x"}, {"dynamic-partition-overwrite": "false"})
    assert java.read(path) == [("y", 1)]
    either.overwrite(path, rows.slice(0, 0), {"dt": "y"})
    assert either.read(path) == java.read(path) == []


def test_rows_of_some_partitions_replace_all_named_partitions(
    either: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    """With dynamic partitions Java's API replaces the partitions of the rows; lakelsm, like SQL, the named ones."""
    columns = "dt STRING NOT NULL, h INT NOT NULL, k INT"
    before = rows_of(columns, {"dt": ["x", "x", "y"], "h": [1, 2, 1], "k": [1, 1, 1]})
    rows = rows_of(columns, {"dt": ["x"], "h": [3], "k": [9]})
    theirs = path.with_name(f"{path.name}_of_java")
    for where in (path, theirs):
        java.create(where, columns, ["dt", "h", "k"], ["dt", "h"], options={"bucket": "1"})
        java.write(where, before)
    java.overwrite(theirs, rows, {"dt": "x"})
    assert java.read(theirs) == [("x", 1, 1), ("x", 2, 1), ("x", 3, 9), ("y", 1, 1)]
    java.overwrite(theirs, rows, {"dt": "x"}, {"dynamic-partition-overwrite": "false"})
    either.overwrite(path, rows, {"dt": "x"})
    assert either.read(path) == java.read(path) == java.read(theirs) == [("x", 3, 9), ("y", 1, 1)]
    with pytest.raises(InvalidInputError, match="a row is not in the overwritten partition, where column 'dt' is 'x'"):
        either.overwrite(path, rows_of(columns, {"dt": ["y"], "h": [1], "k": [9]}), {"dt": "x"})
    assert either.read(path) == [("x", 3, 9), ("y", 1, 1)]

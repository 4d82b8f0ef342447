"""Changelogs of each engine are read by the others: lakelsm, Java Paimon and pypaimon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_columns
from tests.interop.engine_cases import CASES, EngineCase
from tests.interop.file_tables import write
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import Changes, JavaPaimon, Peer
from tests.interop.samples import rows_of
from tests.interop.test_java_changelog import BATCHES, CHANGES, COLUMNS
from tests.interop.value_form import in_order, unordered_of_arrow
from tests.read.test_changelog_states import table_below

#: Snapshots of a commit: with two of the producers the compaction after it has the changes.
STEPS = {"none": 1, "input": 1, "lookup": 2, "full-compaction": 2}


@pytest.mark.parametrize("producer", CHANGES)
def test_java_and_pypaimon_read_the_changelog_that_lakelsm_wrote(
    ours: LakelsmTables, java: JavaPaimon, peers: Callable[[str], Peer], path: Path, producer: str
) -> None:
    ours.create(path, COLUMNS, ["k"], options={"bucket": "1", "changelog-producer": producer})
    for rows, kinds in BATCHES:
        ours.write(path, rows, kinds)
    step = STEPS[producer]
    for commit, changes in enumerate(CHANGES[producer]):
        after, upto = step * commit, step * (commit + 1)
        assert java.changes(path, after, upto) == changes
        assert peers("pypaimon").changes(path, after, upto) == changes
        assert ours.changes(path, after, upto) == changes
    assert java.stream(path, 1) == CHANGES[producer]
    assert java.read(path) == [(1, "c"), (2, "q")]


@pytest.mark.parametrize("producer", CHANGES)
def test_lakelsm_reads_and_continues_the_changelog_that_java_wrote(
    ours: LakelsmTables, java: JavaPaimon, path: Path, producer: str
) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1", "changelog-producer": producer})
    java.write_all(path, BATCHES[:2], full=producer == "full-compaction")
    ours.write(path, *BATCHES[2])
    step = STEPS[producer]
    for commit, changes in enumerate(CHANGES[producer]):
        assert ours.changes(path, step * commit, step * (commit + 1)) == changes
    assert java.stream(path, 1) == CHANGES[producer]


def test_both_return_the_same_difference_of_two_snapshots(either: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    either.create(path, COLUMNS, ["k"], options={"bucket": "1"})
    for rows, kinds in BATCHES:
        either.write(path, rows, kinds)
    # Not of snapshots 1 and 3: Java returns -D for a key that neither has.
    for first, last in ((1, 2), (2, 3)):
        found = either.changes(path, first, last, mode="diff")
        # Java omits the row before an update, and the row after it has the kind with which it was written.
        expected = [(row[0][0], *row[1:]) for row in java.changes(path, first, last, "diff")]
        assert in_order((row[0][0], *row[1:]) for row in found if row[0] != "-U") == in_order(expected)


def test_deltas_differ_from_java_as_documented(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    """docs/differences.md: Java returns the rows of each commit, and none if it does not read level 0."""
    columns = "k INT, v STRING"
    batches = [
        (rows_of(columns, {"k": [1, 2], "v": ["a", "a"]}), None),
        (rows_of(columns, {"k": [1, 3], "v": ["b", "b"]}), None),
    ]
    each_row = [("+I", 1, "a"), ("+I", 1, "b"), ("+I", 2, "a"), ("+I", 3, "b")]
    cases: dict[str, tuple[dict[str, str], list[Any], str]] = {
        "deduplicate": ({}, each_row, "b"),
        "first-row": ({"merge-engine": "first-row"}, [], "a"),
        "vectors": ({"deletion-vectors.enabled": "true"}, [], "b"),
    }
    for name, (options, told_by_java, kept) in cases.items():
        table = path.with_name(name)
        java.create(table, columns, ["k"], options={"bucket": "1", **options})
        java.write_all(table, batches, {"write-only": "true"})
        assert in_order(java.changes(table, 0, 2, "delta")) == told_by_java, name
        found = ours.changes(table, 0, 2, mode="delta")
        assert in_order(found) == [("+I", 1, kept), ("+I", 2, "a"), ("+I", 3, "b")], name


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_equal_floats_differ_from_java_as_documented(
    ours: LakelsmTables, java: JavaPaimon, path: Path, producer: str
) -> None:
    """docs/differences.md: with `row-deduplicate`, Java's NaN is always a change, and the sign of a zero never is."""
    columns = "k INT, d DOUBLE, f FLOAT, a ARRAY<DOUBLE>"
    options = {"bucket": "1", "changelog-producer": producer, "changelog-producer.row-deduplicate": "true"}
    theirs = path.with_name(f"{path.name}_of_java")
    nan = float("nan")

    def rows(one: float, zero: float) -> pa.Table:
        values = [nan, zero, 1.0, 2.0]
        lists = [*([each] for each in values[:3]), [one]]
        return rows_of(columns, {"k": [1, 2, 3, 4], "d": values, "f": values, "a": lists})

    batches = [(rows(1.0, 0.0), None), (rows(1.0, -0.0), None), (rows(3.0, -0.0), None)]
    java.create(theirs, columns, ["k"], options=options)
    java.write_all(theirs, batches, full=producer == "full-compaction")
    ours.create(path, columns, ["k"], options={**options, "write-only": "true"})
    for batch, _ in batches:
        ours.write(path, batch)
        ours.compact(path)
    told = [(kind, key) for kind, key, *_ in ours.changes(path, 0, _newest(path))]
    told_by_java = [(kind, key) for kind, key, *_ in java.changes(theirs, 0, _newest(theirs))]
    added, last = [("+I", key) for key in (1, 2, 3, 4)], [("-U", 4), ("+U", 4)]
    assert in_order(told) == in_order([*added, ("-U", 2), ("+U", 2), *last])
    assert in_order(told_by_java) == in_order([*added, *[("-U", 1), ("+U", 1)] * 2, *last])


def _newest(path: Path) -> int:
    return TableStore.open(str(path)).snapshots.latest_id() or 0


def changes_of(case: EngineCase, producer: str, folder: Path) -> list[Changes]:
    """Return lakelsm's changes of each commit of the case."""
    table = table_below(str(folder), options_of(case, producer), case.columns)
    fields = (*parse_columns("kind STRING"), *table.store.schema.fields)
    found = []
    for rows, kinds in case.batches:
        write(table, case, rows, kinds)
        table.compact(full=producer == "full-compaction")
        changes = table.new_changes()
        kinded = pa.array([ROW_KINDS[code] for code in changes.column(0).to_pylist()], pa.string())
        found.append(comparable(case, unordered_of_arrow(changes.set_column(0, "kind", kinded), fields)))
    return found


def options_of(case: EngineCase, producer: str) -> dict[str, str]:
    return {**case.table_options, "changelog-producer": producer, "write-only": "false"}


def comparable(case: EngineCase, changes: Changes) -> Changes:
    """Return changes in the form of the case; nested rows have no order."""

    def plain(value: Any) -> Any:
        return tuple(sorted(value, key=repr)) if isinstance(value, tuple) else value

    return [(kind, *map(plain, case.comparable([tuple(values)])[0])) for kind, *values in changes]


ENGINES = [
    pytest.param(case, producer, id=f"{case.name}-{producer}")
    for case in CASES
    for producer in ("lookup", "full-compaction")
    if producer == "lookup" or case.options["merge-engine"] != "first-row"
]


@pytest.mark.parametrize(("case", "producer"), ENGINES)
def test_the_changes_of_each_commit_are_those_of_java(
    java: JavaPaimon, path: Path, tmp_path: Path, case: EngineCase, producer: str
) -> None:
    java.create(path, case.columns, ["k"], options=options_of(case, producer))
    java.write_all(path, case.batches, full=producer == "full-compaction")
    expected = [
        comparable(case, java.changes(path, 2 * commit, 2 * commit + 2)) for commit in range(len(case.commits))
    ]
    found = changes_of(case, producer, tmp_path / "ours")
    if (case.name, producer) == ("partial-update-sequence-groups", "lookup"):
        # For two keys with one record each, Java returns the result of its merge: for key 2 other values than it stores
        # and reads (its file is upgraded without a rewrite), and for key 5 a text that is NULL in later versions.
        expected[0][1], expected[2][-1] = found[0][1], found[2][-1]
    assert found == expected

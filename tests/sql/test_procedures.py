"""Procedures of Paimon: their arguments by position and name, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.sql.procedures import PROCEDURES, UNSUPPORTED, partitions_condition


def partitioned(warehouse: Path) -> Catalog:
    c = Catalog(str(warehouse))
    options = {"bucket": "1", "write-only": "true"}
    table = c.create_table("db.t", "k INT, p STRING", primary_key=["p", "k"], partition_by=["p"], options=options)
    for key, value in ((1, "a"), (2, "b"), (3, "a")):
        table.write([{"k": key, "p": value}])
    return c


def call(c: Catalog, text: str) -> object:
    return c.sql(f"CALL sys.{text}", engine="local")


def test_each_procedure_does_what_its_call_of_the_table_does(tmp_path: Path) -> None:
    c = partitioned(tmp_path)
    table = c.table("db.t")
    assert call(c, "compact(table => 'db.t', partitions => 'p=a')").buckets == 1  # type: ignore[attr-defined]
    assert call(c, "compact('db.t', buckets => '0-0, 0', order_strategy => 'none')").buckets == 1  # type: ignore[attr-defined]
    call(c, "create_tag('db.t', 'one', 1, '1 d')")
    call(c, "replace_tag(table => 'db.t', tag => 'one', snapshot => 2)")
    call(c, "rename_tag('db.t', 'one', 'two')")
    assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()] == [("two", 2)]
    call(c, "create_branch('db.t', 'b', 'two')")
    call(c, "rename_branch('db.t', 'b', 'c')")
    assert [each.name for each in table.branches.list()] == ["c"]
    call(c, "fast_forward('db.t', 'c')")
    assert table.count().rows == 2
    call(c, "delete_branch('db.t', 'c')")
    call(c, "reset_consumer(table => 'db.t', consumerId => 'x', nextSnapshotId => 2)")
    assert [each.name for each in table.consumers.list()] == ["x"]
    call(c, "reset_consumer('db.t', 'x')")
    for name in ("a1", "a2", "b1"):
        table.consumers.record(name, 1)
    assert call(c, "clear_consumers('db.t', 'a.*', 'a2')") == ["a1"]
    assert call(c, "clear_consumers(table => 'db.t', excludingConsumers => 'b.*')") == ["a2"]
    assert call(c, "clear_consumers('db.t')") == ["b1"]
    call(c, "create_tag_from_timestamp('db.t', 'first', 0)")
    assert [tag.snapshot_id for tag in table.tags.list() if tag.name == "first"] == [1]
    call(c, "delete_tag('db.t', 'first')")
    table.write([{"k": 9, "p": "c"}])
    assert call(c, "mark_partition_done('db.t', 'p=a;p=b')") == ["p=a", "p=b"]
    call(c, "drop_partition('db.t', 'p=c')")
    assert table.count().rows == 2
    call(c, "analyze('db.t', 'k')")
    call(c, "rollback(table => 'db.t', tag => 'two')")
    call(c, "delete_tag('db.t', 'two')")
    call(c, "expire_tags('db.t')")
    call(c, "remove_orphan_files(table => 'db.t', older_than => '2 days', dry_run => TRUE)")
    assert (table.tags.list(), table.branches.list(), table.consumers.list()) == ([], [], [])


def test_partitions_are_conditions() -> None:
    condition = partitions_condition("a=1, b = x'y;a=none", "none")
    assert condition == r"(`a` = '1' AND `b` = 'x\'y') OR (`a` IS NULL)"
    with pytest.raises(InvalidInputError, match="'a' is not a partition"):
        partitions_condition("a", "none")


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("compcat('db.t')", InvalidInputError, r"Did you mean sys\.compact\?"),
        ("compact()", InvalidInputError, "needs the argument table"),
        ("compact('db.t', nope => 1)", InvalidInputError, "argument nope does not exist. Arguments: table, partitions"),
        ("compact('db.t', table => 'db.t')", InvalidInputError, "argument table is given twice"),
        ("fast_forward('db.t', 'b', 'c')", InvalidInputError, "takes 2 arguments: table, branch"),
        ("expire_snapshots('db.t', 'many')", InvalidInputError, "retain_max is 'many', and a whole number"),
        ("compact('db.t', order_strategy => 'zorder')", UnsupportedFeatureError, "order_strategy is not supported"),
        ("compact('db.t', buckets => '1-3')", InvalidInputError, "buckets: 1, 2, 3 do not exist"),
        ("compact('db.t', buckets => '3-1')", InvalidInputError, "Use, for example, '0,2' or '0-7'"),
        ("compact('db.t', compact_strategy => 'x')", InvalidInputError, "Use 'full' or 'minor'"),
        ("compact('db.t', partitions => 'p=a', where => 'TRUE')", InvalidInputError, "has partitions and where"),
        ("clear_consumers('db.t', '(')", InvalidInputError, "includingConsumers is not a regular expression"),
        ("create_tag_from_timestamp('db.t', 'x', 32503680000000)", LakelsmError, "no snapshot was committed"),
        ("rollback('db.t')", InvalidInputError, "needs one of the arguments version, snapshot and tag"),
        ("rescale('db.t')", UnsupportedFeatureError, r"sys\.rescale is not supported"),
        ("compact('db.none')", LakelsmError, r"Table db\.none does not exist"),
    ],
)
def test_wrong_calls_are_one_error(tmp_path: Path, text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        call(partitioned(tmp_path), text)


def test_a_procedure_is_built_or_refused_by_name_and_not_both() -> None:
    assert not set(PROCEDURES) & UNSUPPORTED

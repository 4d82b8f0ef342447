"""JoinTask: facts with the rows of their keys, batch by batch; no JVM."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.join import join_task
from lakelsm.lookup.join.executor_lookups import LOOKUPS, SharedLookup
from lakelsm.lookup.join.join_task import JoinTask
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from lakelsm.schema_changes import SetOption, UpdateColumnType
from lakelsm.write.fixed_buckets import FixedBuckets
from tests.compact.local_table import LocalTable
from tests.lookup.scanned_cache import ScannedCache

ALL = pa.schema([("name", pa.string()), ("tier", pa.int32())])


@pytest.fixture(autouse=True)
def _no_lookup_is_kept() -> Iterator[None]:
    yield
    LOOKUPS.close()


def scanned(spec: LookupSpec, shared: Path | None) -> ScannedCache:
    return ScannedCache(spec)


def task_of(table: LocalTable, key: Sequence[str] = ("id",), opens: Any = scanned, **more: Any) -> JoinTask:
    definition = LookupDefinition(("name", "tier"), key=tuple(key), options={})
    lookup = SharedLookup(table.store, definition, RefreshPolicy(interval=more.pop("interval", 600.0)), opens=opens)
    fields = tuple(map(table.store.schema.field, ("name", "tier")))
    keys = tuple(range(1, len(key) + 1))
    return JoinTask(lookup, fields, keys, ALL, **{"inner": False, **more})


def joined(task: JoinTask, facts: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The joined rows as tuples: the number of the fact, then what was found."""
    rows = list(task(facts))
    for batch in rows:
        batch.validate(full=True)
        assert batch.schema.names == [*facts.schema.names, "name", "tier"]
    return [(row["n"], row["name"], row["tier"]) for batch in rows for row in batch.to_pylist()]


def facts_of(*columns: pa.Array) -> pa.RecordBatch:
    names = ["n", *(f"k{at}" for at in range(len(columns)))]
    return pa.RecordBatch.from_arrays([pa.array(range(len(columns[0]))), *columns], names=names)


@pytest.fixture
def customers(tmp_path: Path) -> LocalTable:
    table = LocalTable(tmp_path / "t", "id BIGINT NOT NULL, name STRING, tier INT", ["id"])
    table.write((1, "ann", 5), (2, None, 6), (3, "cem", 5))
    table.delete((3, "cem", 5))
    return table


FACTS = facts_of(pa.array([2, None, 1, 3, 9, 1], pa.int32()))


def test_a_left_join_keeps_facts_without_a_row(customers: LocalTable) -> None:
    expected = [(0, None, 6), (1, None, None), (2, "ann", 5), (3, None, None), (4, None, None), (5, "ann", 5)]
    assert joined(task_of(customers), FACTS) == expected


def test_an_inner_join_leaves_them_out(customers: LocalTable) -> None:
    assert joined(task_of(customers, inner=True), FACTS) == [(0, None, 6), (2, "ann", 5), (5, "ann", 5)]


def test_a_fact_comes_once_for_each_row_of_a_key_that_is_not_unique(customers: LocalTable) -> None:
    customers.write((4, "dee", 5))
    facts = facts_of(pa.array([5, 7, 5, None, 6], pa.int32()))
    found = joined(task_of(customers, ["tier"]), facts)
    assert [row[0] for row in found] == [0, 0, 1, 2, 2, 3, 4]
    both = [("ann", 5), ("dee", 5)]
    assert [row[1:] for row in found if row[0] not in (0, 2)] == [(None, None), (None, None), (None, 6)]
    assert all(sorted(row[1:] for row in found if row[0] == fact) == both for fact in (0, 2))


def test_many_rows_of_a_key_are_handed_on_in_parts(customers: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_task, "_HANDED_ROWS", 4)
    customers.write(*((id, str(id), 7) for id in range(10, 20)))
    facts = facts_of(pa.array([7, 8, 7], pa.int32()))
    parts = list(task_of(customers, ["tier"])(facts))
    assert [len(part) for part in parts] == [4, 4, 4, 4, 4, 1]
    assert pa.Table.from_batches(parts).column("n").to_pylist() == [0] * 10 + [1] + [2] * 10


def test_a_composite_key_may_have_its_columns_in_any_order(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "day DATE NOT NULL, code STRING NOT NULL, name STRING, tier INT", ["day", "code"])
    days = pa.array([10, 11, 10], pa.int32()).cast(pa.date32())
    table.write(*((day, "x", f"x{at}", at) for at, day in enumerate(days.to_pylist()[:2])))
    facts = facts_of(pa.array(["x", "x", "y"]), days)
    assert joined(task_of(table, ["code", "day"]), facts) == [(0, "x0", 0), (1, "x1", 1), (2, None, None)]


def test_an_empty_table_has_no_row_of_any_key(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, name STRING, tier INT", ["id"])
    assert joined(task_of(table), FACTS) == [(at, None, None) for at in range(len(FACTS))]
    assert joined(task_of(table, inner=True), FACTS) == []


def test_a_batch_without_facts_gives_none(customers: LocalTable) -> None:
    assert joined(task_of(customers), FACTS.slice(0, 0)) == []


def test_a_task_pickles_and_shares_its_lookup_with_the_copy(customers: LocalTable) -> None:
    task = task_of(customers)
    copied = pickle.loads(cloudpickle.dumps(task))
    assert joined(copied, FACTS) == joined(task, FACTS)
    assert len(LOOKUPS._open) == 1


@pytest.mark.parametrize("function", ["default", "mod"])
def test_by_bucket_a_task_opens_the_buckets_of_its_groups_alone(function: str, tmp_path: Path) -> None:
    columns = "id BIGINT NOT NULL, name STRING, tier INT"
    table = LocalTable(tmp_path, columns, ["id"], bucket="8", bucket_function__type=function)
    table.write(*((id, f"c{id}", id) for id in range(50)))
    asked: list[frozenset[int] | None] = []

    def opens(spec: LookupSpec, shared: Path | None) -> ScannedCache:
        asked.append(spec.buckets)
        return scanned(spec, shared)

    store = table.store
    task = task_of(table, opens=opens, inner=True, groups=3)
    facts = FixedBuckets.of(store.schema, store.options).added(
        pa.RecordBatch.from_arrays([pa.array([7, 7, 60]), pa.array([7, 7, 60])], names=["n", "id"])
    )
    found = [row for batch in task(facts) for row in batch.to_pylist()]
    assert sorted((row["n"], row["name"]) for row in found) == [(7, "c7"), (7, "c7")]
    buckets = np.unique(facts.column(2).to_numpy())
    groups = {int(bucket) % 3 for bucket in buckets}
    assert asked == [frozenset(range(group, 8, 3)) for group in sorted(groups)]
    assert len(asked) < 3


def test_by_bucket_a_null_key_opens_nothing_of_its_own(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, name STRING, tier INT", ["id"], bucket="4")
    table.write((1, "ann", 5))
    facts = facts_of(pa.array([None, 1], pa.int64()))
    facts = facts.append_column("bucket", pa.array([None, 3], pa.int32()))
    asked: list[frozenset[int] | None] = []

    def opens(spec: LookupSpec, shared: Path | None) -> ScannedCache:
        asked.append(spec.buckets)
        return scanned(spec, shared)

    task = task_of(table, opens=opens, groups=4)
    assert [row["n"] for batch in task(facts) for row in batch.to_pylist()] == [0, 1]
    assert asked == [frozenset([3])]


def test_a_table_whose_buckets_are_others_by_now_is_refused(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, name STRING, tier INT", ["id"], bucket="4")
    table.write((1, "ann", 5))
    task = task_of(table, groups=2)
    table.overwrite((1, "ann", 5))
    rescaled = LocalTable(tmp_path)
    rescaled.alter(SetOption("bucket", "2"))
    rescaled.overwrite((1, "ann", 5))
    facts = facts_of(pa.array([1])).append_column("bucket", pa.array([0], pa.int32()))
    with pytest.raises(InvalidInputError, match="has files of 2 buckets in snapshot 3, and by_bucket places rows by 4"):
        list(task(facts))


def test_columns_of_another_type_than_the_query_has_are_refused(customers: LocalTable) -> None:
    task = task_of(customers, interval=0.0)
    assert joined(task, FACTS)
    customers.alter(UpdateColumnType("tier", "BIGINT"))
    with pytest.raises(InvalidInputError, match="has become BIGINT, and was INT when the join with"):
        joined(task, FACTS)


def test_a_lookup_follows_the_table_within_its_interval(customers: LocalTable) -> None:
    task = task_of(customers, interval=0.0)
    assert joined(task, FACTS)[3] == (3, None, None)
    customers.write((3, "cam", 8))
    customers.delete((2, None, 6))
    assert joined(task, FACTS)[:4] == [(0, None, None), (1, None, None), (2, "ann", 5), (3, "cam", 8)]

"""Table.lookup_join: its arguments, and joins of batches and streams with a changing table."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.join import lookup_join
from lakelsm.lookup.join.executor_lookups import LOOKUPS, SharedLookup
from lakelsm.lookup.join.lookup_join import JoinColumns, JoinTask
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import AddColumn, SetOption, UpdateColumnType
from lakelsm.write.fixed_buckets import FixedBuckets
from tests.compact.local_table import LocalTable
from tests.lookup.scanned_cache import Opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "region STRING NOT NULL, id BIGINT NOT NULL, name STRING, tier INT, tags ARRAY<STRING>"
ROWS = [("eu", 1, "ann", 5), ("eu", 2, "bob", 6), ("us", 1, "cem", 5), ("us", 2, "dee", None)]


@pytest.fixture
def customers(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path / "warehouse"))
    table = catalog.create_table("db.c", COLUMNS, primary_key=["region", "id"], options={"bucket": "2"})
    write(table, *ROWS)
    return table


def write(table: Table, *rows: tuple[Any, ...], kind: str | None = None) -> None:
    types = {"region": pa.string(), "id": pa.int64(), "name": pa.string(), "tier": pa.int32()}
    given = pa.table({name: pa.array(values, types[name]) for name, values in zip(types, zip(*rows))})
    given = given.append_column("tags", pa.nulls(len(rows), pa.list_(pa.string())))
    if kind is None:
        table.write(given)
    else:
        table.write(given.append_column("kind", pa.array([kind] * len(rows))), "kind")


ON = {"r": "region", "i": "id"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"how": "outer"}, "how: expected 'left' or 'inner'"),
        ({"how": None}, "how: .*None"),
        ({"on": {"r": "nothing"}}, "column 'nothing' does not exist. Columns: region"),
        ({"on": {"t": "tags"}}, "column 'tags' has type ARRAY<STRING>"),
        ({"columns": {"name": 5}}, "columns: .*5"),
        ({"refresh": "never"}, "refresh: expected seconds or a duration such as '10 s'"),
        ({"refresh": -1}, "refresh: .*-1"),
        ({"cache": "some"}, "cache: .*'some'"),
        ({"options": {"bucket": "4"}}, "options"),
        ({"where": 5}, "where: .*5"),
        ({"where": "nothing = 1"}, "column 'nothing' does not exist"),
        ({"by_bucket": 1}, "by_bucket: .*1"),
        ({"on": {"i": "id"}, "by_bucket": True}, r"on lacks region of the bucket key of table db.c \(region, id\)"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], text: str, customers: Table) -> None:
    with pytest.raises(InvalidInputError, match=text):
        customers.lookup_join(**{"on": ON, **arguments})


def test_a_condition_that_cannot_be_parsed_is_refused(customers: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="soundex"):
        customers.lookup_join(ON, where="soundex(name) = 'A500'")


def test_by_bucket_needs_a_fixed_number_of_buckets(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    table = catalog.create_table("db.t", "k INT NOT NULL, v INT", primary_key=["k"], options={"bucket": "-1"})
    with pytest.raises(InvalidInputError, match=r"table db\.t has 'bucket' = '-1', not a fixed number"):
        table.lookup_join("k", by_bucket=True)


def test_a_batch_of_facts_is_joined_by_a_composite_key(spark: SparkSession, customers: Table) -> None:
    facts = spark.createDataFrame([(0, "us", 1), (1, "eu", 9), (2, None, 1), (3, "us", 2)], "n INT, r STRING, i INT")
    left = facts.transform(customers.lookup_join(ON, ["name", "tier"]))
    expected = [(0, "cem", 5), (1, None, None), (2, None, None), (3, "dee", None)]
    assert sorted((row.n, row.name, row.tier) for row in left.collect()) == expected
    inner = facts.transform(customers.lookup_join(ON, {"name": "who"}, "inner", where="tier = 5", by_bucket=True))
    assert [tuple(row) for row in inner.collect()] == [(0, "us", 1, "cem")]


def test_a_stream_is_joined_with_changing_rows(spark: SparkSession, customers: Table, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    found: list[list[tuple[Any, ...]]] = []

    def take(batch: DataFrame, number: int) -> None:
        found.append(sorted((row.r, row.i, row.name) for row in batch.collect()))

    def deliver() -> list[tuple[Any, ...]]:
        pq.write_table(pa.table({"r": ["eu", "eu", "us"], "i": [1, 2, 3]}), landing / f"{len(found)}.parquet")
        query.processAllAvailable()
        return found[-1]

    facts = spark.readStream.schema("r STRING, i BIGINT").parquet(str(landing))
    joined = facts.transform(customers.lookup_join(ON, ["name"], refresh="300 ms"))
    query = joined.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert deliver() == [("eu", 1, "ann"), ("eu", 2, "bob"), ("us", 3, None)]
        write(customers, ("eu", 1, "anna", 5), ("us", 3, "eve", 7))
        write(customers, ("eu", 2, "bob", 6), kind="-D")
        Catalog(str(tmp_path / "warehouse")).alter_table("db.c", AddColumn("more", "INT"))
        time.sleep(0.3)
        assert deliver() == [("eu", 1, "anna"), ("eu", 2, None), ("us", 3, "eve")]
    finally:
        query.stop()


_SCHEMA = create_schema("id INT NOT NULL, name STRING, tier STRING", ["id"], [], {"bucket": "1"}, None, 0)


def named(on: Any, columns: Any = None) -> tuple[dict[str, str], dict[str, str]]:
    found = JoinColumns.of(_SCHEMA, on, columns)
    return {fact: key.name for fact, key in found.keys.items()}, {name: own.name for name, own in found.added.items()}


@pytest.mark.parametrize("on", ["id", ["id"], {"id": "id"}, {"id": "ID"}])
def test_a_key_is_given_as_a_list_or_as_a_mapping_from_fact_columns(on: object) -> None:
    assert named(on) == ({"id": "id"}, {"name": "name", "tier": "tier"})


def test_fact_columns_may_have_other_names() -> None:
    assert named({"customer": "id"}, ["tier"]) == ({"customer": "id"}, {"tier": "tier"})


def test_added_columns_may_be_renamed_and_the_key_may_be_among_them() -> None:
    assert named("id", {"NAME": "customer_name", "id": "found"})[1] == {"customer_name": "name", "found": "id"}


@pytest.mark.parametrize(
    ("on", "columns", "text"),
    [
        ({}, None, "on: .*{}"),
        ([], None, r"on: .*\[\]"),
        (5, None, "on: .*5"),
        ({"a": "id", "b": "id"}, None, "each of the table's columns once"),
        ("nothing", None, "column 'nothing' does not exist. Columns: id, name, tier"),
        ("id", [], r"columns: .*\[\]"),
        ("id", "name", "a list of column names, got 'name'. Write"),
        ("id", ["name", "name"], "each once"),
        ("id", ["name", "NAME"], "each name once"),
        ("id", {"name": "a", "tier": "A"}, "each name once"),
        ("id", ["nothing"], "column 'nothing' does not exist"),
        (["id", "name", "tier"], None, "Name one, such as columns={'id': 'found'}"),
    ],
)
def test_wrong_columns_are_refused_by_name(on: Any, columns: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        JoinColumns.of(_SCHEMA, on, columns)


ALL = pa.schema([("name", pa.string()), ("tier", pa.int32())])


@pytest.fixture(autouse=True)
def _no_lookup_is_kept() -> Iterator[None]:
    yield
    LOOKUPS.close()


def task_of(table: LocalTable, key: Sequence[str] = ("id",), opens: Any = None, **more: Any) -> JoinTask:
    definition, policy = LookupDefinition(("name", "tier"), key=tuple(key), options={}), more.pop("interval", 600.0)
    lookup = SharedLookup(table.store, definition, RefreshPolicy(interval=policy), opens=opens or Opened())
    fields = tuple(map(table.store.schema.field, ("name", "tier")))
    keys = tuple(range(1, len(key) + 1))
    return JoinTask(lookup, fields, keys, ALL, **{"inner": False, **more})


def joined(task: JoinTask, facts: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return the joined rows as tuples: the number of the fact, then the found values."""
    rows = list(task(facts))
    for batch in rows:
        batch.validate(full=True)
        assert batch.schema.names == [*facts.schema.names, "name", "tier"]
    return [(row["n"], row["name"], row["tier"]) for batch in rows for row in batch.to_pylist()]


def facts_of(*columns: pa.Array) -> pa.RecordBatch:
    names = ["n", *(f"k{at}" for at in range(len(columns)))]
    return pa.RecordBatch.from_arrays([pa.array(range(len(columns[0]))), *columns], names=names)


@pytest.fixture
def local(tmp_path: Path) -> LocalTable:
    table = LocalTable(tmp_path / "t", "id BIGINT NOT NULL, name STRING, tier INT", ["id"])
    table.write((1, "ann", 5), (2, None, 6), (3, "cem", 5))
    table.delete((3, "cem", 5))
    return table


FACTS = facts_of(pa.array([2, None, 1, 3, 9, 1], pa.int32()))


def test_a_left_join_keeps_facts_without_a_row(local: LocalTable) -> None:
    expected = [(0, None, 6), (1, None, None), (2, "ann", 5), (3, None, None), (4, None, None), (5, "ann", 5)]
    assert joined(task_of(local), FACTS) == expected


def test_an_inner_join_leaves_out_facts_without_a_row(local: LocalTable) -> None:
    assert joined(task_of(local, inner=True), FACTS) == [(0, None, 6), (2, "ann", 5), (5, "ann", 5)]


def test_a_fact_is_repeated_for_each_row_of_a_key_that_is_not_unique(local: LocalTable) -> None:
    local.write((4, "dee", 5))
    facts = facts_of(pa.array([5, 7, 5, None, 6], pa.int32()))
    found = joined(task_of(local, ["tier"]), facts)
    assert [row[0] for row in found] == [0, 0, 1, 2, 2, 3, 4]
    both = [("ann", 5), ("dee", 5)]
    assert [row[1:] for row in found if row[0] not in (0, 2)] == [(None, None), (None, None), (None, 6)]
    assert all(sorted(row[1:] for row in found if row[0] == fact) == both for fact in (0, 2))


def test_many_rows_of_a_key_are_returned_in_several_batches(local: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_join, "_HANDED_ROWS", 4)
    local.write(*((id, str(id), 7) for id in range(10, 20)))
    facts = facts_of(pa.array([7, 8, 7], pa.int32()))
    parts = list(task_of(local, ["tier"])(facts))
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
    assert joined(task_of(table, inner=True), FACTS) == joined(task_of(table), FACTS.slice(0, 0)) == []


def test_a_task_pickles_and_shares_its_lookup_with_the_copy(local: LocalTable) -> None:
    task = task_of(local)
    copied = pickle.loads(cloudpickle.dumps(task))
    assert joined(copied, FACTS) == joined(task, FACTS)
    assert len(LOOKUPS._open) == 1


@pytest.mark.parametrize("function", ["default", "mod"])
def test_by_bucket_a_task_opens_only_the_buckets_of_its_groups(function: str, tmp_path: Path) -> None:
    columns = "id BIGINT NOT NULL, name STRING, tier INT"
    table = LocalTable(tmp_path, columns, ["id"], bucket="8", bucket_function__type=function)
    table.write(*((id, f"c{id}", id) for id in range(50)))
    opened = Opened()
    store = table.store
    task = task_of(table, opens=opened, inner=True, groups=3)
    facts = FixedBuckets.of(store.schema, store.options).added(
        pa.RecordBatch.from_arrays([pa.array([7, 7, 60]), pa.array([7, 7, 60])], names=["n", "id"])
    )
    found = [row for batch in task(facts) for row in batch.to_pylist()]
    assert sorted((row["n"], row["name"]) for row in found) == [(7, "c7"), (7, "c7")]
    buckets = np.unique(facts.column(2).to_numpy())
    groups = {int(bucket) % 3 for bucket in buckets}
    assert [cache.spec.buckets for cache in opened.caches] == [frozenset(range(group, 8, 3)) for group in sorted(groups)]
    assert len(opened.caches) < 3


def test_by_bucket_a_null_key_opens_no_bucket(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, name STRING, tier INT", ["id"], bucket="4")
    table.write((1, "ann", 5))
    facts = facts_of(pa.array([None, 1], pa.int64()))
    facts = facts.append_column("bucket", pa.array([None, 3], pa.int32()))
    opened = Opened()
    task = task_of(table, opens=opened, groups=4)
    assert [row["n"] for batch in task(facts) for row in batch.to_pylist()] == [0, 1]
    assert [cache.spec.buckets for cache in opened.caches] == [frozenset([3])]


def test_a_table_whose_bucket_count_has_changed_is_refused(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, name STRING, tier INT", ["id"], bucket="4")
    table.write((1, "ann", 5))
    task = task_of(table, groups=2)
    table.overwrite((1, "ann", 5))
    rescaled = LocalTable(tmp_path)
    rescaled.alter(SetOption("bucket", "2"))
    rescaled.overwrite((1, "ann", 5))
    facts = facts_of(pa.array([1])).append_column("bucket", pa.array([0], pa.int32()))
    with pytest.raises(InvalidInputError, match="has files with 2 buckets, but by_bucket distributes rows to 4"):
        list(task(facts))


def test_columns_whose_type_has_changed_since_the_query_are_refused(local: LocalTable) -> None:
    task = task_of(local, interval=0.0)
    assert joined(task, FACTS)
    local.alter(UpdateColumnType("tier", "BIGINT"))
    with pytest.raises(InvalidInputError, match="has changed from INT to BIGINT since the join"):
        joined(task, FACTS)


def test_a_lookup_follows_the_table_within_its_interval(local: LocalTable) -> None:
    task = task_of(local, interval=0.0)
    assert joined(task, FACTS)[3] == (3, None, None)
    local.write((3, "cam", 8))
    local.delete((2, None, 6))
    assert joined(task, FACTS)[:4] == [(0, None, None), (1, None, None), (2, "ann", 5), (3, "cam", 8)]

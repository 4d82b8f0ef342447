"""Table.lookup_join: its arguments, and joins of batches and streams with a table that changes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.join.lookup_join import JoinColumns
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import AddColumn

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
        ({"how": "outer"}, "how is 'outer'; it must be 'left' or 'inner'"),
        ({"how": None}, "how is None"),
        ({"on": {"r": "nothing"}}, "no column 'nothing'; the columns are region"),
        ({"on": {"t": "tags"}}, "column 'tags', which is ARRAY<STRING>: look rows up by columns of plain types"),
        ({"columns": {"name": 5}}, "columns is 5"),
        ({"refresh": "never"}, "refresh is 'never'; it must be seconds or a duration such as '10 s'"),
        ({"refresh": -1}, "refresh is -1"),
        ({"cache": "some"}, "cache is 'some'"),
        ({"options": {"bucket": "4"}}, "options"),
        ({"where": 5}, "where is 5"),
        ({"where": "nothing = 1"}, "column 'nothing' of the predicate"),
        ({"by_bucket": 1}, "by_bucket is 1"),
        ({"on": {"i": "id"}, "by_bucket": True}, r"on lacks region of the bucket key of table db.c \(region, id\)"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], text: str, customers: Table) -> None:
    with pytest.raises(InvalidInputError, match=text):
        customers.lookup_join(**{"on": ON, **arguments})


def test_a_condition_that_is_not_understood_is_refused(customers: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="soundex"):
        customers.lookup_join(ON, where="soundex(name) = 'A500'")


def test_by_bucket_needs_a_fixed_number_of_buckets(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    table = catalog.create_table("db.t", "k INT NOT NULL, v INT", primary_key=["k"], options={"bucket": "-1"})
    with pytest.raises(InvalidInputError, match=r"table db\.t has 'bucket' = '-1', no fixed number: leave by_bucket out"):
        table.lookup_join("k", by_bucket=True)


def test_facts_of_a_batch_meet_the_rows_of_a_composite_key(spark: SparkSession, customers: Table) -> None:
    facts = spark.createDataFrame([(0, "us", 1), (1, "eu", 9), (2, None, 1), (3, "us", 2)], "n INT, r STRING, i INT")
    left = facts.transform(customers.lookup_join(ON, ["name", "tier"]))
    expected = [(0, "cem", 5), (1, None, None), (2, None, None), (3, "dee", None)]
    assert sorted((row.n, row.name, row.tier) for row in left.collect()) == expected
    inner = facts.transform(customers.lookup_join(ON, {"name": "who"}, "inner", where="tier = 5", by_bucket=True))
    assert [tuple(row) for row in inner.collect()] == [(0, "us", 1, "cem")]


def test_facts_of_a_key_that_is_not_unique_meet_all_its_rows(spark: SparkSession, customers: Table) -> None:
    facts = spark.range(0, 4, 1, 2).selectExpr("id AS n", "IF(id = 3, 9L, id) AS i")
    found = facts.transform(customers.lookup_join({"i": "id"}, ["region", "name"])).collect()
    expected = [(1, "eu", "ann"), (1, "us", "cem"), (2, "eu", "bob"), (2, "us", "dee")]
    assert sorted((row.n, row.region, row.name) for row in found if row.name) == expected
    assert sorted(row.n for row in found if not row.name) == [0, 3]


def test_a_stream_meets_rows_that_change_while_it_runs(spark: SparkSession, customers: Table, tmp_path: Path) -> None:
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
def test_a_key_is_named_by_itself_in_a_list_or_by_the_facts_column(on: object) -> None:
    assert named(on) == ({"id": "id"}, {"name": "name", "tier": "tier"})


def test_fact_columns_may_have_names_of_their_own() -> None:
    assert named({"customer": "id"}, ["tier"]) == ({"customer": "id"}, {"tier": "tier"})


def test_added_columns_may_be_renamed_and_the_key_may_be_among_them() -> None:
    assert named("id", {"NAME": "customer_name", "id": "found"})[1] == {"customer_name": "name", "found": "id"}


@pytest.mark.parametrize(
    ("on", "columns", "text"),
    [
        ({}, None, "on is {}"),
        ([], None, r"on is \[\]"),
        (5, None, "on is 5"),
        ({"a": "id", "b": "id"}, None, "each of the table's columns once"),
        ("nothing", None, "no column 'nothing'; the columns are id, name, tier"),
        ("id", [], r"columns is \[\]"),
        ("id", "name", "a list: write"),
        ("id", ["name", "name"], "each once"),
        ("id", ["name", "NAME"], "each name once"),
        ("id", {"name": "a", "tier": "A"}, "each name once"),
        ("id", ["nothing"], "no column 'nothing'"),
        (["id", "name", "tier"], None, "name one, such as columns={'id': 'found'}"),
    ],
)
def test_wrong_columns_are_refused_by_name(on: Any, columns: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        JoinColumns.of(_SCHEMA, on, columns)

"""FrameJoin: its checks of the facts, its result types, and its use of Spark: batches, buckets, errors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.join.executor_lookups import SharedLookup
from lakelsm.lookup.join.lookup_join import JoinColumns, JoinTask
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from lakelsm.write.fixed_buckets import FixedBuckets
from tests.lookup.scanned_cache import ScannedCache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelsm.frames.lookup_join_frame import FrameJoin

COLUMNS = "id BIGINT NOT NULL, code STRING NOT NULL, name STRING, opened TIME, seen TIMESTAMP_LTZ(3), tags ARRAY<STRING>"


@pytest.fixture
def customers(tmp_path: Path) -> Table:
    options = {"bucket": "4", "bucket-key": "id"}
    table = Catalog(str(tmp_path)).create_table("db.customers", COLUMNS, primary_key=["id", "code"], options=options)
    table.write(
        pa.table(
            {
                "id": pa.array(range(20)),
                "code": ["x"] * 20,
                "name": [f"c{at}" for at in range(20)],
                "opened": pa.array(range(20), pa.time32("ms")),
                "seen": pa.array(range(20), pa.timestamp("ms", "UTC")),
                "tags": [["a", None]] * 20,
            }
        )
    )
    return table


def scanned(spec: LookupSpec, shared: Path | None) -> ScannedCache:
    assert shared is not None and shared.parent.name.startswith("blockmgr")
    return ScannedCache(spec)


def join_of(table: Table, on: Any, columns: Any, opens: Any = scanned, *, by_bucket: bool = False) -> FrameJoin:
    from lakelsm.frames.lookup_join_frame import FrameJoin

    store = table._store()
    named = JoinColumns.of(store.schema, on, columns)
    key, found = (tuple(field.name for field in part.values()) for part in (named.keys, named.added))
    definition = LookupDefinition(found, key=key, options={})
    lookup = SharedLookup(store, definition, RefreshPolicy(interval=600.0), opens=opens)
    task = partial(JoinTask, lookup, tuple(named.added.values()), inner=False)
    buckets = FixedBuckets.of(store.schema, store.options) if by_bucket else None
    return FrameJoin(table.name, store.schema, keys=named.keys, columns=named.added, task=task, buckets=buckets)


ON = {"customer.id": "id", "c": "code"}


def test_facts_get_the_columns_in_the_types_of_a_read(spark: SparkSession, customers: Table) -> None:
    facts = spark.createDataFrame([(3, "x"), (None, "x"), (4, "y")], "`customer.id` INT, C STRING")
    found = facts.transform(join_of(customers, ON, None))
    read = customers.read()
    assert found.dtypes == [*facts.dtypes, *((name, kind) for name, kind in read.dtypes if name not in ("id", "code"))]
    expected = tuple(read.where("id = 3").select("name", "opened", "seen", "tags").first() or ())
    nothing = (None,) * 4
    assert [tuple(row) for row in found.collect()] == [(3, "x", *expected), (None, "x", *nothing), (4, "y", *nothing)]


@pytest.mark.parametrize("kind", ["INT", "STRING"])
def test_by_bucket_every_fact_finds_its_row(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark hashes INT keys, Arrow hashes STRING keys."""
    table = Catalog(str(tmp_path)).create_table(
        "db.t", f"k {kind} NOT NULL, v STRING", primary_key=["k"], options={"bucket": "5"}
    )
    keys = pa.array(range(40), pa.int32()).cast(pa.int32() if kind == "INT" else pa.string())
    table.write(pa.table({"k": keys, "v": [f"v{at}" for at in range(40)]}))
    facts = spark.range(45).selectExpr("id AS n", f"CAST(IF(id = 1, NULL, id) AS {kind}) AS k")
    found = facts.transform(join_of(table, "k", ["v"], by_bucket=True)).collect()
    missing = {1, *range(40, 45)}
    assert sorted((row.n, row.v) for row in found) == [(n, None if n in missing else f"v{n}") for n in range(45)]


@pytest.mark.usefixtures("classic_functions")
def test_each_group_of_buckets_is_a_separate_partition(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from lakelsm.frames.lookup_join_frame import _partition_of

    for groups in (1, 2, 7):
        rows = spark.range(0, 50, 1, 1).select(F.col("id").cast("int") % groups)
        shuffled = rows.toDF("g").repartition(groups, _partition_of(F.col("g"), groups))
        found = shuffled.select("g", F.spark_partition_id().alias("p")).distinct().collect()
        assert len({row.p for row in found}) == len(found) == groups


def test_an_error_of_a_task_reaches_the_user_with_its_text(spark: SparkSession, customers: Table) -> None:
    facts = spark.createDataFrame([(3, "x")], "id INT NOT NULL, code STRING NOT NULL")
    with pytest.raises(Exception, match=r"^\[USER_RAISED_EXCEPTION\] lakelsm.errors.CorruptTableError: file f is lost"):
        facts.transform(join_of(customers, ["id", "code"], ["name"], _broken)).collect()


def _broken(spec: LookupSpec, shared: Path | None) -> ScannedCache:
    raise CorruptTableError("file f is lost")


@pytest.mark.parametrize(
    ("facts", "columns", "text"),
    [
        ("id BIGINT", None, "on: the facts have no column 'code'. Columns: id. If the names"),
        ("id STRING, code STRING", None, "on: fact column 'id' is string, but column 'id' of db.customers, BIGINT NOT"),
        ("id DOUBLE, code STRING", None, r"Cast it before the join: F.col\('id'\).cast\('bigint'\)"),
        ("id BIGINT, code STRING, Name INT", None, "columns: 'name' of db.customers is also a column of the facts"),
        ("id BIGINT, code STRING", ["id"], "columns={'id': 'id_of_table', ...}"),
        ("id BIGINT, code STRING, ID INT", ["name"], "facts: column ID, id occurs more than once"),
    ],
)
def test_unsuitable_facts_are_refused_before_the_query_runs(
    facts: str, columns: Any, text: str, spark: SparkSession, customers: Table
) -> None:
    with pytest.raises(InvalidInputError, match=text):
        spark.createDataFrame([], facts).transform(join_of(customers, ["id", "code"], columns))


def test_facts_that_are_not_a_frame_are_refused(spark: SparkSession, customers: Table) -> None:
    with pytest.raises(InvalidInputError, match=r"facts: expected a Spark DataFrame"):
        join_of(customers, ["id", "code"], ["name"])(pa.table({"id": [1]}))  # type: ignore[arg-type]

"""Random conditions on tables of all kinds: reads, counts, lookups, changes, updates and deletes find Spark's rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from tests.chance import seeds
from tests.expressions.random_conditions import RandomCondition

#: Conditions on each table; `make fuzz` has other ones.
COUNT = 15
COLUMNS = (
    "id INT, p STRING, n INT, t STRING, d DATE, x DOUBLE, m TIMESTAMP(6), flag BOOLEAN, a ARRAY<STRING>, "
    "r ROW<q INT, s STRING>"
)
SCHEMA = pa.schema(
    [("id", pa.int32()), ("p", pa.string()), ("n", pa.int32()), ("t", pa.string()), ("d", pa.date32()),
     ("x", pa.float64()), ("m", pa.timestamp("us")), ("flag", pa.bool_()), ("a", pa.list_(pa.string())),
     ("r", pa.struct([("q", pa.int32()), ("s", pa.string())]))]
)  # fmt: skip
#: Kinds of tables: their options, and whether they have partitions and deletes.
KINDS: Mapping[str, tuple[Mapping[str, str], bool, bool]] = {
    "fixed buckets": ({"bucket": "3"}, False, True),
    "partitions": ({"bucket": "2"}, True, True),
    "dynamic buckets": ({"bucket": "-1", "dynamic-bucket.target-row-num": "8"}, True, True),
    "deletion vectors": ({"bucket": "2", "deletion-vectors.enabled": "true"}, True, True),
    "first-row": ({"bucket": "2", "merge-engine": "first-row"}, True, False),
    "partial-update": ({"bucket": "2", "merge-engine": "partial-update"}, True, False),
    "bloom filters": ({"bucket": "1", "file-index.bloom-filter.columns": "t,n"}, False, True),
}


def some_rows(choice: random.Random, count: int) -> pa.Table:
    """Return rows of random keys; values can be NULL, arrays have an element."""

    def value(found: Any) -> Any:
        return None if choice.random() < 0.15 else found

    rows = []
    for number in choice.sample(range(40), count):
        text = choice.choice(["a", "b", "x", "aX"])
        rows.append(
            {"id": number, "p": "abc"[number % 3], "n": value(choice.randint(-5, 5)), "t": value(text),
             "d": value(date(2024, 1, 1) + timedelta(days=choice.randint(0, 40))),
             "x": value(choice.choice([0.5, -0.0, float("nan"), 3.0])),
             "m": value(datetime(2024, 1, 1) + timedelta(hours=choice.randint(0, 800))), "flag": value(number % 2 == 0),
             "a": value([text, None]), "r": value({"q": number, "s": value(text)})}
        )  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA)


def filled(catalog: Catalog, kind: str) -> Table:
    """Return a table of a kind with several commits, the rows of which overlap."""
    options, partitioned, deletes = KINDS[kind]
    table = catalog.create_table(
        f"db.{kind.replace(' ', '_').replace('-', '_')}",
        COLUMNS,
        primary_key=["id", "p"] if partitioned else ["id"],
        partition_by=["p"] if partitioned else [],
        options={"num-sorted-run.compaction-trigger": "3", "changelog-producer": "none", **options},
    )
    choice = random.Random(7)
    for _ in range(4):
        table.write(some_rows(choice, 15))
        if deletes:
            table.delete(f"id % 11 = {choice.randint(0, 10)}", engine="local")
    return table


def expected_ids(spark: SparkSession, rows: pa.Table, conditions: list[str]) -> list[list[int]]:
    """Return the keys for which each condition is TRUE on Spark."""
    frame = spark.createDataFrame(rows).coalesce(1)
    found = frame.selectExpr("id", *(f"({text}) AS c{at}" for at, text in enumerate(conditions))).toArrow()
    ids = found.column("id").to_pylist()
    masks = [found.column(f"c{at}").to_pylist() for at in range(len(conditions))]
    return [sorted(key for key, one in zip(ids, mask) if one) for mask in masks]


@pytest.mark.parametrize("kind", KINDS)
def test_random_conditions_find_spark_s_rows(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    before = spark.conf.get("spark.sql.codegen.wholeStage"), spark.conf.get("spark.sql.codegen.factoryMode")
    catalog = Catalog(str(tmp_path))
    table = filled(catalog, kind)
    conditions = [RandomCondition(seed).text for seed in seeds(COUNT)]
    rows = table.to_arrow()
    assert len(rows) > 15
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    try:
        expected = dict(zip(conditions, expected_ids(spark, rows, conditions)))
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", str(before[0]))
        spark.conf.set("spark.sql.codegen.factoryMode", str(before[1]))
    assert sum(0 < len(ids) < len(rows) for ids in expected.values()) > COUNT / 3

    def ids(text: str) -> list[int]:
        return sorted(table.to_arrow(where=text, columns=["id"]).column(0).to_pylist())

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(expected, pool.map(ids, expected)))
    assert {text: (ids, expected[text]) for text, ids in found.items() if ids != expected[text]} == {}
    some = [text for text, ids in expected.items() if 0 < len(ids) < len(rows)][:2]
    for text in some:
        assert table.count(where=text, engine="local").rows == len(expected[text]), text
        assert table.to_reader(where=text, columns=["t"], ordered=True).read_all().num_rows == len(expected[text])
    if "-" not in kind and kind != "dynamic buckets":
        _check_changes(table, rows, {text: expected[text] for text in some})


def _check_changes(table: Table, rows: pa.Table, expected: Mapping[str, list[int]]) -> None:
    """Update and delete the rows of conditions, each on a branch of its own."""
    before = {row["id"]: row for row in rows.to_pylist()}
    table.tags.create("before")
    for at, (text, ids) in enumerate(expected.items()):
        table.branches.create(f"b{at}", "before")
        branch = table.branches.open(f"b{at}")
        result = branch.update({"t": "upper(concat(coalesce(t, '-'), CAST(id AS STRING)))"}, text, engine="local")
        assert result.matched_rows == len(ids), text
        changed = {row["id"]: row["t"] for row in branch.to_arrow().to_pylist()}
        assert changed == {
            key: f"{row['t'] or '-'}{key}".upper() if key in ids else row["t"] for key, row in before.items()
        }
    for at, (text, ids) in enumerate(expected.items()):
        table.branches.create(f"d{at}", "before")
        branch = table.branches.open(f"d{at}")
        branch.delete(text, engine="local")
        assert set(branch.to_arrow(columns=["id"]).column(0).to_pylist()) == set(before) - set(ids), text

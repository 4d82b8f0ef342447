"""The sort order of writing tasks: key order, and when rows of buckets may be interleaved."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm.environment import SYSTEM
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.storage import LocalFileIO
from lakelsm.write.level0_task import Level0Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "p STRING, t TINYINT, s SMALLINT, i INT, j INT, d DATE, m TIME(3), l BIGINT, v STRING"


def job_of(schema: TableSchema, **changes: Any) -> Level0Job:
    options = TableOptions.parse(schema.options)
    job = Level0Job(
        file_io=LocalFileIO(),
        paths=TablePaths("/nowhere"),
        layout=FileLayout.of(schema, options),
        spec=MergeSpec.of(schema, options),
        first_sequence=0,
        total_buckets=options.bucket,
        partition_default_name="__DEFAULT_PARTITION__",
        partition_legacy_name=True,
        batch_bytes=1 << 20,
        names=AttemptNames.new(SYSTEM.new_uuid),
    )
    return replace(job, **changes)


def schema_of(keys: tuple[str, ...], partitions: tuple[str, ...] = (), **options: str) -> TableSchema:
    return create_schema(COLUMNS, [*partitions, *keys], list(partitions), {"bucket": "4", **options})


@pytest.mark.usefixtures("classic_functions")
@pytest.mark.parametrize("keys", [("i", "j"), ("t", "s", "i"), ("d", "i"), ("m", "t"), ("t", "d", "s", "t2")])
def test_narrow_keys_are_ordered_by_one_number(spark: SparkSession, keys: tuple[str, ...]) -> None:
    from pyspark.sql import functions as F

    from lakelsm.frames.row_order import row_order

    columns = COLUMNS + ", t2 TINYINT"
    schema = create_schema(columns, list(keys), [], {"bucket": "4"})
    ends = {
        "t": [-128, -1, 0, 127],
        "t2": [-128, 0, 127],
        "s": [-32768, 0, 1, 32767],
        "i": [-(2**31), -1, 0, 2**31 - 1],
        "j": [-(2**31), -1, 0, 5, 2**31 - 1],
        "d": [
            date(1, 1, 1),
            date(1969, 12, 31),
            date(1970, 1, 1),
            date(9999, 12, 31),
        ],
        "m": [0, 86_399_999],
    }
    types = {"t": "tinyint", "t2": "tinyint", "s": "smallint", "d": "date"}
    rows = [()]
    for key in keys:
        rows = [(*row, value) for row in rows for value in ends[key]]
    declared = ", ".join(f"{key} {types.get(key, 'int')}" for key in keys)
    order = row_order(schema, job_of(schema))
    assert order.interleaved and len(order.columns) == 1
    frame = spark.createDataFrame(rows[::-1], declared).coalesce(1).select("*", order.columns[0].alias("o"))
    found = frame.orderBy(F.col("o")).collect()
    assert [tuple(row)[:-1] for row in found] == rows
    assert len({row.o for row in found}) == len(rows)


@pytest.mark.usefixtures("classic_functions")
def test_rows_of_few_buckets_are_interleaved_and_others_are_sorted_by_bucket(spark: SparkSession) -> None:
    from lakelsm.frames.row_order import MAX_INTERLEAVED, row_order

    def of(schema: TableSchema, **changes: Any) -> tuple[bool, int]:
        order = row_order(schema, job_of(schema, **changes))
        return order.interleaved, len(order.columns)

    assert of(schema_of(("l",), bucket=str(MAX_INTERLEAVED))) == (True, 1)
    assert of(schema_of(("l", "i"), bucket="1")) == (True, 2)
    assert of(schema_of(("l",), bucket=str(MAX_INTERLEAVED + 1))) == (False, 2)
    assert of(schema_of(("l",), bucket="-1")) == (False, 2)
    assert of(schema_of(("l",), ("p",))) == (False, 3)


@pytest.mark.usefixtures("classic_functions")
def test_rows_that_are_all_kept_or_merged_in_pieces_are_in_input_order(spark: SparkSession) -> None:
    from lakelsm.frames.row_order import row_order

    schema = schema_of(("l",))
    layout = job_of(schema).layout
    assert len(row_order(schema, job_of(schema, changelog_layout=layout)).columns) == 2
    added = schema_of(("l",), **{"merge-engine": "aggregation", "fields.v.aggregate-function": "first_value"})
    assert len(row_order(added, job_of(added)).columns) == 2


@pytest.mark.parametrize(
    ("key", "expressions"),
    [
        (("v",), ["concat(repeat('x', 20), cast(id % 500 as string)) AS v"]),
        (("i", "j"), ["cast(id % 500 - 250 as int) AS i", "cast(id % 7 as int) AS j"]),
    ],
    ids=["text with one beginning", "two numbers"],
)
def test_the_last_row_of_a_key_wins_from_any_partition_of_the_input(
    spark: SparkSession, tmp_path: Path, key: tuple[str, ...], expressions: list[str]
) -> None:
    import lakelsm

    catalog = lakelsm.Catalog(tmp_path.as_uri(), spark=spark)
    declared = "v STRING NOT NULL" if key == ("v",) else "i INT NOT NULL, j INT NOT NULL"
    table = catalog.create_table("d.t", f"{declared}, l BIGINT", primary_key=list(key), options={"bucket": "4"})
    table.write(spark.range(0, 7000, 1, 8).selectExpr(*expressions, "id AS l"))
    last: dict[tuple[Any, ...], int] = {}
    for row in range(7000):
        last[("x" * 20 + str(row % 500),) if key == ("v",) else (row % 500 - 250, row % 7)] = row
    assert {tuple(row[:-1]): row.l for row in table.read().select(*key, "l").collect()} == last

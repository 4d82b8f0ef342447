"""What a table shows after any sequence of commits is what the oracle says, before and after compactions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.spark.spark_types import to_struct
from lakelsm.types import parse_columns, to_arrow
from tests.oracle import KINDS, Deduplicate, Model, sort_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
KIND_COLUMN = "op"
#: SQL conditions and the same in Python, on columns that every scenario has.
CONDITIONS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("v >= 5", lambda row: row["v"] is not None and row["v"] >= 5),
    ("v IS NULL", lambda row: row["v"] is None),
    ("id = 3", lambda row: row["id"] == 3),
    ("id < 6 AND NOT v = 2", lambda row: row["id"] < 6 and row["v"] is not None and row["v"] != 2),
    ("v = 7 OR id IN (1, 11)", lambda row: row["v"] == 7 or row["id"] in (1, 11)),
    ("v = 1234", lambda row: False),
)


@dataclass(frozen=True)
class Scenario:
    """One kind of table."""

    name: str
    columns: str = "id INT, v INT, s STRING"
    key: tuple[str, ...] = ("id",)
    partition: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    sequence: tuple[str, ...] = ()
    engine: Deduplicate = field(default_factory=Deduplicate)
    kinds: bool = True


SCENARIOS = (
    Scenario("one bucket", options={"bucket": "1"}),
    Scenario("several buckets", options={"bucket": "3", "write-only": "true"}),
    Scenario("compacting after each write", options={"bucket": "2", "num-sorted-run.compaction-trigger": "2"}),
    Scenario("dynamic buckets", options={"bucket": "-1", "dynamic-bucket.target-row-num": "4"}),
    Scenario(
        "partitions",
        columns="id INT, v INT, p STRING, s STRING",
        key=("p", "id"),
        partition=("p",),
        options={"bucket": "2", "write-only": "true"},
    ),
    Scenario(
        "dynamic buckets in partitions of two columns",
        columns="id INT, v INT, p STRING, q DATE, s STRING",
        key=("q", "id", "p"),
        partition=("p", "q"),
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "3", "dynamic-bucket.initial-buckets": "2"},
    ),
    Scenario(
        "a sequence field",
        columns="id INT, v INT, ts BIGINT, s STRING",
        sequence=("ts",),
        options={"bucket": "1", "write-only": "true", "sequence.field": "ts"},
    ),
    Scenario(
        "two sequence fields, descending",
        columns="id INT, v INT, ts TIMESTAMP(6), d DECIMAL(20, 2), s STRING",
        sequence=("ts", "d"),
        engine=Deduplicate(descending=True),
        options={
            "bucket": "2",
            "write-only": "true",
            "sequence.field": "ts,d",
            "sequence.field.sort-order": "descending",
        },
    ),
    Scenario(
        "deletes ignored",
        engine=Deduplicate(ignore_delete=True),
        options={"bucket": "1", "ignore-delete": "true", "write-only": "true"},
    ),
    Scenario(
        "thin files, a composite key of text and bytes",
        columns="s STRING, id INT, b BYTES, v INT",
        key=("s", "b", "id"),
        options={"bucket": "2", "data-file.thin-mode": "true", "write-only": "true", "bucket-key": "s"},
    ),
    Scenario(
        "floating keys",
        columns="id INT, f DOUBLE, v INT",
        key=("f", "id"),
        options={"bucket": "1", "write-only": "true"},
    ),
    Scenario("upserts alone, in many small files", kinds=False, options={"bucket": "1", "target-file-size": "1 kb"}),
)


def random_value(rng: random.Random, column: str, type_name: str) -> Any:
    import datetime as dt
    from decimal import Decimal

    if column == "id":
        return rng.randrange(12)
    if column == "v":
        return rng.choice([None, *range(10)])
    choices: dict[str, list[Any]] = {
        "STRING": ["", "a", "a\0b", "zz" * 30, "é=/%"],
        "BYTES": [b"", b"\x00", b"\xff\x00"],
        "BIGINT": [None, -1, 5, 5, 2**40],
        "DOUBLE": [float("nan"), -0.0, 0.0, 1e300],
        "DATE": [dt.date(1899, 12, 31), dt.date(2024, 2, 29)],
        "TIMESTAMP(6)": [None, dt.datetime(1900, 1, 1), dt.datetime(2024, 5, 5, 5, 5, 5, 5)],
        "DECIMAL(20, 2)": [None, Decimal("-1.00"), Decimal("123456789012345678.25")],
    }
    return rng.choice(choices[type_name])


class Run:
    """One scenario's table beside its model."""

    def __init__(self, scenario: Scenario, spark: SparkSession, warehouse: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scenario, self.spark = scenario, spark
        self.fields = parse_columns(scenario.columns)
        self.model = Model(scenario.key, scenario.sequence, scenario.engine)
        self.table: Table = Catalog(warehouse.as_uri(), spark).create_table(
            "db.t",
            scenario.columns,
            primary_key=scenario.key,
            partition_by=scenario.partition,
            options=scenario.options,
        )

    def write(self, count: int) -> None:
        rows: list[Row] = []
        for _ in range(count):
            row = {
                column.name: random_value(self.rng, column.name, column.type.with_nullable(True).sql())
                for column in self.fields
            }
            for name in self.scenario.key:
                if row[name] is None:
                    row[name] = 0
            rows.append(row)
        kinds = self.rng.choices(list(KINDS), [6, 1, 2, 2], k=count) if self.scenario.kinds else ["+I"] * count
        arrays = [pa.array([row[column.name] for row in rows], to_arrow(column.type)) for column in self.fields]
        struct = to_struct(self.fields).add(KIND_COLUMN, "string")
        frame = self.spark.createDataFrame(pa.Table.from_arrays([*arrays, pa.array(kinds)], struct.names), struct)
        if self.scenario.kinds:
            self.table.write(frame, row_kind=KIND_COLUMN)
        else:
            self.table.write(frame.drop(KIND_COLUMN))
        self.model.write(rows, kinds)

    def check(self) -> None:
        rows = self.model.rows()
        assert self.read() == self._ordered(rows)
        for text, holds in self.rng.sample(CONDITIONS, 1):
            assert self.read(text) == self._ordered(filter(holds, rows)), text

    def read(self, where: str | None = None) -> list[tuple[Any, ...]]:
        return self._ordered(row.asDict() for row in self.table.read(where).collect())

    def _ordered(self, rows: Any) -> list[tuple[Any, ...]]:
        names = [column.name for column in self.fields]
        return sorted(sort_key(bytes(row[n]) if isinstance(row[n], bytearray) else row[n] for n in names) for row in rows)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_reads_equal_the_oracle(scenario: Scenario, spark: SparkSession, tmp_path: Path) -> None:
    run = Run(scenario, spark, tmp_path, seed=SCENARIOS.index(scenario) + 17)
    for count in (25, 8, 1):
        run.write(count)
    run.check()
    run.table.compact()
    run.write(6)
    run.check()
    run.table.compact(full=True)
    run.check()
    assert run.table.plan().units == (), "after a full compaction nothing is left to merge"

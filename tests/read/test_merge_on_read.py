"""After any sequence of commits the rows of a table equal those of the oracle, before and after compactions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelsm import Table
from lakelsm.types import parse_columns
from tests.engines import TableEngine, each_case
from tests.oracle import KINDS, Deduplicate, Model, sort_key

Row = dict[str, Any]
KIND_COLUMN = "op"
#: SQL conditions and their equivalents in Python, on columns that every scenario has.
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


#: Compacts after writes; the others do so only on request.
COMPACTING = {"write-only": "false"}
SCENARIOS = (
    Scenario("one bucket", options=COMPACTING),
    Scenario("several buckets", options={"bucket": "3"}),
    Scenario(
        "compacting after each write", options={"bucket": "2", "num-sorted-run.compaction-trigger": "2", **COMPACTING}
    ),
    Scenario("dynamic buckets", options={"bucket": "-1", "dynamic-bucket.target-row-num": "4", **COMPACTING}),
    Scenario("partitions", "id INT, v INT, p STRING, s STRING", ("p", "id"), ("p",), {"bucket": "2"}),
    Scenario(
        "dynamic buckets in partitions of two columns",
        "id INT, v INT, p STRING, q DATE, s STRING",
        ("q", "id", "p"),
        ("p", "q"),
        {"bucket": "-1", "dynamic-bucket.target-row-num": "3", "dynamic-bucket.initial-buckets": "2", **COMPACTING},
    ),
    Scenario("a sequence field", "id INT, v INT, ts BIGINT", options={"sequence.field": "ts"}, sequence=("ts",)),
    Scenario(
        "two sequence fields, descending",
        "id INT, v INT, ts TIMESTAMP(6), d DECIMAL(20, 2), s STRING",
        options={"bucket": "2", "sequence.field": "ts,d", "sequence.field.sort-order": "descending"},
        sequence=("ts", "d"),
        engine=Deduplicate(descending=True),
    ),
    Scenario("deletes ignored", options={"ignore-delete": "true"}, engine=Deduplicate(ignore_delete=True)),
    Scenario(
        "thin files, a composite key of text and bytes",
        "s STRING, id INT, b BYTES, v INT",
        ("s", "b", "id"),
        options={"bucket": "2", "data-file.thin-mode": "true", "bucket-key": "s"},
    ),
    Scenario("floating keys", "id INT, f DOUBLE, v INT", ("f", "id")),
    Scenario("upserts alone, in many small files", options={"target-file-size": "1 kb", **COMPACTING}, kinds=False),
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
    """The table of one scenario, and its model."""

    def __init__(self, scenario: Scenario, engine: TableEngine, warehouse: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scenario, self.engine = scenario, engine
        self.fields = parse_columns(scenario.columns)
        self.model = Model(scenario.key, scenario.sequence, scenario.engine)
        self.table: Table = engine.create(
            warehouse, scenario.columns, scenario.key, scenario.partition, scenario.options
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
        values = [tuple(row[column.name] for column in self.fields) for row in rows]
        if self.scenario.kinds:
            kinded = [(kind, *row) for kind, row in zip(kinds, values, strict=True)]
            self.engine.write(self.table, kinded, KIND_COLUMN)
        else:
            self.engine.write(self.table, values)
        self.model.write(rows, kinds)

    def check(self) -> None:
        rows = self.model.rows()
        assert self.read() == self._ordered(rows)
        for text, holds in self.rng.sample(CONDITIONS, 1):
            assert self.read(text) == self._ordered(filter(holds, rows)), text

    def read(self, where: str | None = None) -> list[tuple[Any, ...]]:
        names = [column.name for column in self.fields]
        return self._ordered(dict(zip(names, row, strict=True)) for row in self.engine.rows(self.table, where))

    def _ordered(self, rows: Any) -> list[tuple[Any, ...]]:
        names = [column.name for column in self.fields]
        return sorted(sort_key(bytes(row[n]) if isinstance(row[n], bytearray) else row[n] for n in names) for row in rows)


ON_SPARK = ("dynamic buckets in partitions of two columns", "two sequence fields, descending")


@each_case("name", [scenario.name for scenario in SCENARIOS], ON_SPARK)
def test_reads_equal_the_oracle(engine: TableEngine, name: str, tmp_path: Path) -> None:
    number, scenario = next((at, one) for at, one in enumerate(SCENARIOS) if one.name == name)
    run = Run(scenario, engine, tmp_path, seed=number + 17)
    for count in (25, 8, 1):
        run.write(count)
    run.check()
    engine.compact(run.table)
    run.write(6)
    run.check()
    engine.compact(run.table, full=True)
    run.check()
    assert run.table.explain().units == (), "after a full compaction nothing is left to merge"

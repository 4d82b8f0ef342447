"""Random histories of a table with deletion vectors: writes, compactions and new columns, by either engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.types import parse_columns, to_arrow
from tests.interop.peers import Batch
from tests.interop.random_tables import random_table, random_value
from tests.merge.engine_oracle import Column, Table
from tests.merge.engine_tables import schema_of

#: Merge engines that Paimon allows with deletion vectors.
ENGINES = ("deduplicate", "partial-update", "aggregation")


@dataclass(frozen=True)
class Step:
    """One step. ``act`` is write, compact or add (a column). ``by_java``: Java runs it in the table of both engines."""

    act: str
    by_java: bool
    batch: Batch | None = None
    write_only: bool = False
    full: bool = False
    column: str = ""


@dataclass(frozen=True)
class History:
    """A table and the steps of its history."""

    table: Table
    columns: str
    primary_key: Sequence[str]
    partition_by: Sequence[str]
    options: Mapping[str, str]
    steps: list[Step] = field(default_factory=list)


def random_history(engine: str, number: int) -> History:
    """Return a history of about ten steps. ``number`` also selects options of the engine, as in `random_table`."""
    random = Random(f"vectors {engine} {number}")
    table = random_table(random, engine, number)
    producer = random.choice(["none", "none", "input", "lookup", "lookup"])
    options = {
        **schema_of(table).options,
        "bucket": random.choice(["1", "1", "2", "-1"]),
        "changelog-producer": producer,
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": random.choice(["true", "false"]),
        "num-sorted-run.compaction-trigger": str(random.randint(2, 5)),
        "target-file-size": random.choice(["2 kb", "16 kb", "128 mb"]),
    }
    if options["bucket"] == "-1":
        options["dynamic-bucket.target-row-num"] = "20"
    if producer == "lookup" and random.random() < 0.3:
        options["changelog-producer.row-deduplicate"] = "true"
    partitioned = random.random() < 0.4
    head = ["id INT", *(["dt INT"] if partitioned else [])]
    columns = [*head, *(f"{column.name} {column.type}" for column in table.columns)]
    history = History(
        table, ", ".join(columns), ["dt", "id"] if partitioned else ["id"], ["dt"] if partitioned else [], options
    )
    batches = _Batches(random, table, number, partitioned)
    history.steps.append(Step("write", random.random() < 0.5, batches.first()))
    for _ in range(random.randint(5, 9)):
        history.steps.append(_step(random, batches, options["bucket"] != "-1"))
    history.steps.extend(Step("compact", random.random() < 0.5, full=full) for full in (False, True))
    return history


class _Batches:
    """Batches of rows of a table, with its columns at that time."""

    def __init__(self, random: Random, table: Table, number: int, partitioned: bool) -> None:
        self._random = random
        self.columns = list(table.columns)
        self._heads = [Column("id", "INT"), *([Column("dt", "INT")] if partitioned else [])]
        # As in the random tables, engines that refuse retractions get none.
        self._kinds = [0, 0, 2, 1, 3, 3] if number % 5 else [0, 2]
        self._keys = random.choice([12, 40])

    def first(self) -> Batch:
        """Return the first batch; sometimes with many keys that are never written again, which make its file large."""
        rows = self._random.choice([0, 60, 300])
        keys = [*range(self._keys), *range(1000, 1000 + rows)]
        return self._batch([(self._random.choice([0, 2]), key) for key in keys])

    def next(self) -> Batch:
        rows = self._random.choice([1, 5, 30])
        return self._batch([(self._random.choice(self._kinds), self._random.randrange(self._keys)) for _ in range(rows)])

    def _batch(self, found: list[tuple[int, int]]) -> Batch:
        heads: dict[str, list[Any]] = {"id": [key for _, key in found], "dt": [key % 3 for _, key in found]}
        values = heads | {column.name: [random_value(self._random, column) for _ in found] for column in self.columns}
        fields = parse_columns(", ".join(f"{column.name} {column.type}" for column in (*self._heads, *self.columns)))
        rows = pa.table({field.name: pa.array(values[field.name], to_arrow(field.type)) for field in fields})
        return rows, [ROW_KINDS[kind] for kind, _ in found]


def _step(random: Random, batches: _Batches, fixed_buckets: bool) -> Step:
    """Return a step. Rows stay on level 0 only in fixed buckets: in dynamic ones the engines differ, and compact."""
    by_java = random.random() < 0.5
    drawn = random.random()
    if drawn < 0.5:
        return Step("write", by_java, batches.next())
    if drawn < 0.75:
        return Step("write", by_java, batches.next(), write_only=fixed_buckets)
    if drawn < 0.95:
        return Step("compact", by_java, full=random.random() < 0.3)
    added = Column(f"x{len(batches.columns)}", "INT")
    batches.columns.append(added)
    return Step("add", True, column=added.name)

"""Random histories of tables of every kind, by the public calls of this process: no JVM."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.errors import LakelsmError

SCHEMA = pa.schema(
    [("k", pa.int32()), ("t", pa.string()), ("g", pa.int64()), ("v", pa.string()), ("n", pa.int64()), ("s", pa.int64())]
)
COLUMNS = "k INT NOT NULL, t STRING NOT NULL, g BIGINT, v STRING, n BIGINT, s BIGINT"
KEYS = 60


@dataclass(frozen=True)
class Case:
    """A kind of table."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    partitioned: bool = False

    def create(self, root: Path) -> Table:
        options = {"bucket": "2", **self.options}
        return Catalog(str(root)).create_table(
            "d.t", COLUMNS, primary_key=["k", "t"], partition_by=["t"] if self.partitioned else [], options=options
        )


CASES = [
    Case("deduplicate"),
    Case("written only", {"write-only": "true"}),
    Case("compacted often", {"num-sorted-run.compaction-trigger": "2", "bucket": "1"}),
    Case("partitions with dynamic buckets", {"bucket": "-1", "dynamic-bucket.target-row-num": "9"}, partitioned=True),
    Case("sequence field", {"sequence.field": "s"}),
    Case("partial-update", {"merge-engine": "partial-update"}),
    Case("aggregation", {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}),
    Case(
        "aggregation with lookups",
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "changelog-producer": "lookup"},
    ),
    Case("first-row", {"merge-engine": "first-row"}),
    Case("deletion vectors", {"deletion-vectors.enabled": "true"}),
    Case("deletion vectors in partitions", {"deletion-vectors.enabled": "true"}, partitioned=True),
    Case(
        "deletion vectors with fresh reads",
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true", "write-only": "true"},
    ),
    Case("ignored deletes", {"ignore-delete": "true"}),
]


class History:
    """One table and the chance that decides what happens to it."""

    def __init__(self, case: Case, root: Path, seed: int) -> None:
        self.case = case
        self.chance = random.Random(seed)
        self.table = case.create(root)
        self._number = 0

    def rows(self, count: int) -> pa.Table:
        """Rows of random keys, each with a value that no other row has."""
        chance = self.chance
        made = []
        for _ in range(count):
            self._number += 1
            made.append(
                {
                    "k": chance.randrange(KEYS // 2),
                    "t": chance.choice("ab"),
                    "g": chance.choice([None, 0, 1, 2, 3]),
                    "v": chance.choice([None, f"v{self._number}"]),
                    "n": chance.randrange(5),
                    "s": chance.randrange(1000),
                }
            )
        return pa.Table.from_pylist(made, schema=SCHEMA)

    def step(self) -> str:
        """Let something happen; tell what."""
        steps: list[tuple[int, Callable[[], object]]] = [
            (6, self._write),
            (1, self._write_twice),
            (2, self._delete),
            (1, lambda: self.table.compact()),
            (1, lambda: self.table.compact(full=True)),
            (1, self._overwrite),
        ]
        chosen = self.chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0]
        chosen()
        return getattr(chosen, "__name__", "")

    def _write(self) -> None:
        self.table.write(self.rows(self.chance.choice([1, 5, 20])))

    def _write_twice(self) -> None:
        self._write()
        self._write()

    def _delete(self) -> None:
        keys = self.rows(4).select(["k", "t"])
        try:
            self.table.delete(keys=keys)
        except LakelsmError:
            assert self.case.options.keys() & {"merge-engine", "ignore-delete"}, "others take deletes"

    def _overwrite(self) -> None:
        if self.case.partitioned and self.chance.random() < 0.7:
            self.table.overwrite(self.rows(4).drop_columns(["t"]), {"t": "a"})
        else:
            self.table.overwrite(self.rows(10))

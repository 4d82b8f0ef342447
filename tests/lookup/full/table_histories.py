"""Random histories of tables of every kind, made with the public calls of this process, without a JVM."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.errors import LakelsmError
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema_changes import AddColumn

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

_SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
_REMOVING_SUMS = {**_SUMS, "aggregation.remove-record-on-delete": "true"}
#: More kinds, in which rows of a key are in several files: for caches that merge them themselves.
MERGED_CASES = [
    *(case for case in CASES if "merge-engine" not in case.options),
    Case("descending sequence", {"sequence.field": "s", "sequence.field.sort-order": "descending"}),
    Case("partial-update", {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}),
    Case("groups", {"merge-engine": "partial-update", "fields.s.sequence-group": "v,n", "ignore-delete": "true"}),
    Case("aggregation", {**_REMOVING_SUMS, "fields.v.aggregate-function": "listagg"}),
    Case("aggregation with lookups", {**_REMOVING_SUMS, "changelog-producer": "lookup"}),
    Case("first-row", {"merge-engine": "first-row", "ignore-delete": "true"}),
    Case("vectors of sums", {**_REMOVING_SUMS, "deletion-vectors.enabled": "true"}),
    Case("dynamic buckets", {"bucket": "-1", "dynamic-bucket.target-row-num": "40"}),
    Case("many files", {"write-only": "true", "target-file-size": "1kb"}),
]


class History:
    """One table, and the random numbers that decide what happens to it."""

    def __init__(self, case: Case, root: Path, seed: int, *, adds_columns: bool = False) -> None:
        self._adds_columns = adds_columns
        self.case = case
        self.chance = random.Random(seed)
        self.table = case.create(root)
        self._number = 0

    def rows(self, count: int) -> pa.Table:
        """Return rows of random keys, each with a unique value."""
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
        """Change the table at random; return a description."""
        steps: list[tuple[int, Callable[[], object]]] = [
            (6, self._write),
            (1, self._write_twice),
            (2, self._delete),
            (1, lambda: self.table.compact()),
            (1, lambda: self.table.compact(full=True)),
            (1, self._overwrite),
            (int(self._adds_columns), self._add_column),
        ]
        chosen = self.chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0]
        chosen()
        return getattr(chosen, "__name__", "")

    def _write(self) -> None:
        self.table.write(self._whole(self.rows(self.chance.choice([1, 5, 20]))))

    def _write_twice(self) -> None:
        self._write()
        self._write()

    def _delete(self) -> None:
        keys = self.rows(4).select(["k", "t"])
        try:
            self.table.delete(keys=keys)
        except LakelsmError:
            assert self.case.options.keys() & {"merge-engine", "ignore-delete"}, "other kinds accept deletes"

    def _overwrite(self) -> None:
        if self.case.partitioned and self.chance.random() < 0.7:
            self.table.overwrite(self._whole(self.rows(4)).drop_columns(["t"]), {"t": "a"})
        else:
            self.table.overwrite(self._whole(self.rows(10)))

    def _add_column(self) -> None:
        change = AddColumn(f"more{len(self.table.schema.fields)}", "INT")
        self.table._store().schemas.change(lambda schema: apply_changes(schema, [change], 0, True))

    def _whole(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the columns that were added since."""
        for added in self.table._store().schemas.latest().fields[len(SCHEMA) :]:
            rows = rows.append_column(added.name, pa.nulls(len(rows), pa.int32()))
        return rows

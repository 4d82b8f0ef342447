"""A batch that the merge engine refuses fails as a whole: one clear error, and an unchanged table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from tests.engines import TableEngine, each_case

AGGREGATION = {"merge-engine": "aggregation", "fields.s.aggregate-function": "last_value"}
GROUP = {"merge-engine": "partial-update", "fields.g.sequence-group": "v,s"}


@dataclass
class Rows:
    """A table and the batches of a test."""

    engine: TableEngine
    table: Table
    root: Path

    def write(self, *rows: tuple[Any, ...]) -> None:
        frame = self.engine.frame(rows, "id INT, v INT, s STRING, g INT, op STRING")
        self.table.write(frame, row_kind="op")

    def read(self) -> list[tuple[Any, ...]]:
        return self.engine.rows(self.table)

    def files(self) -> dict[str, int]:
        return {str(path): path.stat().st_size for path in self.root.rglob("*") if path.is_file()}


COLUMNS = "id INT, v INT, s STRING, g INT"


def table_of(engine: TableEngine, root: Path, options: dict[str, str], columns: str = COLUMNS) -> Rows:
    return Rows(engine, engine.create(root, columns, ["id"], options=options), root / "db.db" / "t")


#: The options of a table, a batch, the text of the error, and the table's columns if they are others.
REFUSED: dict[str, tuple[Any, ...]] = {
    "a delete from first-row": (
        {"merge-engine": "first-row"},
        [(2, 1, "b", 1, "+I"), (1, 10, "a", 1, "-D")],
        r"'merge-engine' = 'first-row': rows of kind -U or -D are refused\. Set 'ignore-delete' = 'true'",
    ),
    "an update-before for partial-update": (
        {"merge-engine": "partial-update"},
        [(1, 10, "a", 1, "-U"), (1, 11, "a", 1, "+U")],
        r"'partial-update': rows of kind -U or -D are refused.*'partial-update\.remove-record-on-delete' = 'true'",
    ),
    "a retraction of max": (
        {**AGGREGATION, "fields.v.aggregate-function": "max"},
        [(2, 1, "b", 1, "+I"), (3, 10, "a", 1, "-D")],
        r"column 'v': aggregate function 'max' cannot retract .*'fields\.v\.ignore-retract' = 'true'",
    ),
    "a retraction of a group's first_value": (
        {**GROUP, "fields.s.aggregate-function": "first_value"},
        [(1, 10, "a", 2, "-D")],
        r"column 's': aggregate function 'first_value' cannot retract .*'fields\.s\.ignore-retract' = 'true'",
    ),
    "a sum that overflows": (
        {**AGGREGATION, "fields.v.aggregate-function": "sum"},
        [(2, 2**31 - 1, "b", 1, "+I"), (2, 1, "b", 1, "+I"), (3, 1, "c", 1, "+I")],
        "column 'v': the result of aggregate function 'sum' does not fit INT.*Widen the column or correct the rows",
    ),
    "a retraction that empties a column that is NOT NULL": (
        AGGREGATION,
        [(1, 1, "b", 1, "+I"), (1, 1, "b", 1, "-D")],
        r"column 's': a merge made it NULL.*'fields\.s\.ignore-retract' = 'true'",
        "id INT, v INT, s STRING NOT NULL, g INT",
    ),
    "a NULL in a column that is NOT NULL": (
        {**AGGREGATION, "fields.v.aggregate-function": "sum"},
        [(2, None, "b", 1, "+I")],
        "column 'v' is NULL",
        "id INT, v INT NOT NULL, s STRING, g INT",
    ),
}


@each_case("name", REFUSED, on_spark=["a retraction of max"])
def test_a_refused_batch_leaves_no_file(engine: TableEngine, tmp_path: Path, name: str) -> None:
    options, batch, message, *columns = REFUSED[name]
    made = table_of(engine, tmp_path, options, *columns)
    before = made.files()
    with pytest.raises(InvalidInputError, match=message):
        made.write(*batch)
    assert made.files() == before


def test_no_row_of_a_batch_that_fails_in_one_bucket_is_visible(engine: TableEngine, tmp_path: Path) -> None:
    """Files of buckets that were finished before the failure may stay. No snapshot names them."""
    made = table_of(engine, tmp_path, {**AGGREGATION, "fields.v.aggregate-function": "max", "bucket": "8"})
    good = [(number, number, "b", 1, "+I") for number in range(200)]
    made.write(*good[:10])
    rows, before = made.read(), set(made.files())
    with pytest.raises(InvalidInputError, match="column 'v': aggregate function 'max' cannot retract"):
        made.write(*good, (77, 1, "b", 1, "-D"))
    assert all("/bucket-" in path for path in set(made.files()) - before)
    assert made.read() == rows
    made.write(*good)
    assert len(made.read()) == 200

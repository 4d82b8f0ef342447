"""NULL in each key column (`primary-key.nullable`), with each merge engine, changelog producer and kind of bucket."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.types import output_arrow
from tests.engines import ON_SPARK, TableEngine
from tests.typed_values import TYPED_VALUES, TypedValues

_AGGREGATES = {"aggregation": {"fields.v.aggregate-function": "last_value"}}
#: Merge engine, changelog producer, deletion vectors, buckets.
KINDS = [
    ("deduplicate", "none", True, "1"),
    ("deduplicate", "none", False, "3"),
    ("deduplicate", "input", False, "-1"),
    ("deduplicate", "lookup", True, "-1"),
    ("deduplicate", "full-compaction", False, "1"),
    ("partial-update", "none", True, "3"),
    ("partial-update", "lookup", False, "1"),
    ("aggregation", "lookup", True, "1"),
    ("aggregation", "none", False, "-1"),
    ("first-row", "lookup", False, "3"),
]
#: Only Spark compares CHAR.
_TYPES = [typed for typed in TYPED_VALUES if not typed.sql.startswith("CHAR")]


class _Model:
    """A table whose key has nullable columns, and a dict with its expected content."""

    def __init__(self, warehouse: Path, kind: tuple[str, str, bool, str], key: dict[str, TypedValues]) -> None:
        self.engine, producer, vectors, buckets = kind
        self.key, self.rows, self.random = key, dict[tuple[Any, ...], int](), Random(len(key))
        options = {
            **{"bucket": buckets, "merge-engine": self.engine, "changelog-producer": producer, "write-only": "true"},
            **{"primary-key.nullable": "true", "deletion-vectors.enabled": str(vectors).lower()},
            **{"partition.legacy-name": "false", **_AGGREGATES.get(self.engine, {})},
        }
        columns = ", ".join([*(f"{name} {typed.sql}" for name, typed in key.items()), "v INT"])
        partition = ["p"] if "p" in key else []
        self.table: Table = Catalog(str(warehouse)).create_table(
            "db.t", columns, primary_key=list(key), partition_by=partition, options=options
        )

    def keys(self, count: int = 6) -> list[tuple[Any, ...]]:
        """Return keys with NULL in each column, and other keys."""
        some = [tuple(self.random.choice([None, *typed.values]) for typed in self.key.values()) for _ in range(count)]
        return list(dict.fromkeys([tuple([None] * len(self.key)), *some]))

    def frame(self, keys: list[tuple[Any, ...]]) -> pa.Table:
        kinds = [output_arrow(typed.type) for typed in self.key.values()]
        columns = [pa.array([key[at] for key in keys], kind) for at, kind in enumerate(kinds)]
        return pa.Table.from_arrays(columns, list(self.key))

    def write(self, first: int) -> None:
        keys = self.keys()
        values = [first + at for at in range(len(keys))]
        self.table.write(self.frame(keys).append_column("v", pa.array(values, pa.int32())))
        for key, value in zip(keys, values, strict=True):
            if self.engine != "first-row" or key not in self.rows:
                self.rows[key] = value

    def read(self, where: str | None = None) -> dict[tuple[Any, ...], int]:
        return {tuple(row.values())[:-1]: row["v"] for row in self.table.to_arrow(where).to_pylist()}


def _keys(at: int) -> list[dict[str, TypedValues]]:
    one, other, partition = (_TYPES[(at * step + step) % len(_TYPES)] for step in (1, 5, 11))
    return [{"a": one}, {"a": other, "b": one}, {"p": partition, "a": one, "b": other}]


@pytest.mark.parametrize("at", range(len(KINDS)), ids=["-".join(map(str, kind)) for kind in KINDS])
def test_rows_with_null_keys_are_written_merged_found_and_deleted(tmp_path: Path, at: int) -> None:
    for number, key in enumerate(_keys(at)):
        model = _Model(tmp_path / str(number), KINDS[at], key)
        table = model.table
        for step in range(3):
            model.write(10 * step)
            table.compact(full=step == 2)
            assert model.read() == model.rows
        for index, name in enumerate(key):
            expected = {known: value for known, value in model.rows.items() if known[index] is None}
            assert model.read(f"{name} IS NULL") == expected
            assert int(table.count(f"{name} IS NULL", engine="local")) == len(expected)
        keys = list(model.rows)
        with table.lookup() as lookup:
            for known, row in zip(keys, lookup.get_many(model.frame(keys)).to_pylist(), strict=True):
                # As in SQL, NULL is equal to no value.
                assert row["v"] == (None if None in known else model.rows[known])
                if None not in known:
                    assert lookup.get(*known) == row
        if model.engine == "deduplicate":
            deleted = keys[::2]
            table.delete(keys=model.frame(deleted))
            table.compact(full=False)
            model.rows = {known: value for known, value in model.rows.items() if known not in deleted}
            assert model.read() == model.rows
        assert not table.maintenance.check().findings


@ON_SPARK
def test_spark_masks_deletes_and_finds_null_keys(engine: TableEngine, tmp_path: Path) -> None:
    key = _keys(3)[2]
    model = _Model(tmp_path, KINDS[0], key)
    model.write(0)
    model.write(10)
    on_spark = engine.opened(tmp_path / "db.db" / "t")
    on_spark.compact(full=False, engine="spark")
    assert model.read() == model.rows
    assert {row.v for row in on_spark.read().collect()} == set(model.rows.values())
    # With deletion vectors, the rows are visible only after the compaction.
    changed = sorted((row.rowkind, row.v) for row in on_spark.changelog(2, 3, mode="diff").collect())
    assert changed == [("+I", value) for value in sorted(model.rows.values())]
    found = {row.v for row in on_spark.read("a IS NULL").collect()}
    assert found == {value for known, value in model.rows.items() if known[list(key).index("a")] is None}
    on_spark.delete("a IS NULL", engine="spark")
    on_spark.compact(full=True, engine="spark")
    assert model.read("a IS NULL") == {}

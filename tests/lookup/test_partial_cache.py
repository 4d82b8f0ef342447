"""PartialCache: a lookup by the primary key gives what a read of the table gives, whatever was done to the table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.local.shown_rows import shown_rows, shown_schema
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.lookup.partial_cache import PartialCache
from lakelsm.predicate.parser import parse_where
from lakelsm.schema.changes import AddColumn
from lakelsm.schema.evolution import apply_changes
from tests.lookup.dict_store import DictFormat

#: Of random histories; other ones were run by hand.
_SEEDS = [1]
_COLUMNS = "id INT NOT NULL, k STRING NOT NULL, v STRING, n BIGINT, t INT"
#: Options of tables; ``dt``: with a partition column.
_TABLES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "several buckets": {"bucket": "3"},
    "sequence field": {"sequence.field": "t"},
    "descending sequence": {"sequence.field": "t", "sequence.field.sort-order": "descending"},
    "ignore-delete": {"ignore-delete": "true"},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "groups": {"merge-engine": "partial-update", "fields.t.sequence-group": "v,n", "ignore-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "listagg",
        "aggregation.remove-record-on-delete": "true",
    },
    "aggregation with lookup": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "changelog-producer": "lookup",
        "aggregation.remove-record-on-delete": "true",
    },
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors merged on read": {
        "deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true", "write-only": "true"
    },
    "vectors of sums": {
        "deletion-vectors.enabled": "true", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    },
    "dynamic buckets": {"bucket": "-1", "dynamic-bucket.target-row-num": "40"},
    "partitions": {"dt": "yes", "bucket": "2"},
    "dynamic buckets of partitions": {"dt": "yes", "bucket": "-1", "dynamic-bucket.target-row-num": "30"},
    "many files": {"write-only": "true", "target-file-size": "1kb"},
}


def _table(root: Path, **options: str) -> Table:
    partitioned = options.pop("dt", None)
    return Catalog(root.as_uri()).create_table(
        "shop.things",
        _COLUMNS + (", dt STRING NOT NULL" if partitioned else ""),
        primary_key=["dt", "id", "k"] if partitioned else ["id", "k"],
        partition_by=["dt"] if partitioned else [],
        options={"bucket": "1", "num-sorted-run.compaction-trigger": "3", **options},
    )


def _rows(chance: random.Random, count: int, partitioned: bool) -> pa.Table:
    ids = [chance.randrange(60) for _ in range(count)]
    rows = {
        "id": pa.array(ids, pa.int32()),
        "k": [f"k{at % 2}" * (1 + at % 3) for at in ids],
        "v": [chance.choice([None, "a", "bb", "c" * 40]) for _ in ids],
        "n": [chance.choice([None, *range(5)]) for _ in ids],
        "t": pa.array([chance.choice([None, *range(9)]) for _ in ids], pa.int32()),
    }
    if partitioned:
        rows["dt"] = [chance.choice("xyz") for _ in ids]
    return pa.table(rows).cast(pa.schema([
        pa.field("id", pa.int32()), pa.field("k", pa.string()), pa.field("v", pa.string()), pa.field("n", pa.int64()),
        pa.field("t", pa.int32()), *([pa.field("dt", pa.string())] if partitioned else []),
    ]))


def _change(chance: random.Random, table: Table, partitioned: bool) -> None:
    """One random step."""
    deletes = table.options.ignore_delete is False
    step = chance.choice(["write"] * 6 + ["delete"] * 2 * deletes + ["compact", "compact", "full", "overwrite", "add"])
    if step == "write":
        table.write(_whole(table, _rows(chance, chance.choice([1, 5, 30]), partitioned)))
    elif step == "delete":
        keys = [name for name in ("dt", "id", "k") if partitioned or name != "dt"]
        table.delete(keys=_rows(chance, 8, partitioned).select(keys))
    elif step in ("compact", "full"):
        table.compact(full=step == "full")
    elif step == "overwrite" and chance.random() < 0.5:
        table.overwrite(_whole(table, _rows(chance, 20, partitioned)))
    elif step == "add":
        name = f"more{len(table.schema.fields)}"
        table._store().schemas.change(
            lambda schema: apply_changes(schema, [AddColumn(name, "INT")], 0, True)
        )


def _whole(table: Table, rows: pa.Table) -> pa.Table:
    """The rows with the columns that were added since."""
    for field in table._store().schemas.latest().fields:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(len(rows), pa.int32()))
    return rows


def _spec(table: Table, columns: tuple[str, ...] = ("v", "id", "n"), where: str | None = None, **more: Any) -> LookupSpec:
    store = table._store()
    predicate = None if where is None else parse_where(where, store.schema.fields, "UTC")
    key = tuple(sorted(store.schema.primary_keys))
    return LookupSpec(store, key, columns, predicate=predicate, **more)


def _found(cache: PartialCache, spec: LookupSpec, keys: pa.Table) -> list[tuple[int, tuple[Any, ...]]]:
    found = cache.find(keys)
    shown = shown_rows(found.rows, shown_schema([spec.store.schema.field(name) for name in spec.columns]))
    assert (np.diff(found.probes) >= 0).all()
    return list(zip(found.probes.tolist(), (tuple(row.values()) for row in shown.to_pylist())))


def _expected(
    table: Table, spec: LookupSpec, keys: pa.Table, where: str | None = None
) -> list[tuple[int, tuple[Any, ...]]]:
    rows = table.to_arrow(where=where).to_pylist()
    by_key = {tuple(row[name] for name in spec.key): tuple(row[name] for name in spec.columns) for row in rows}
    wanted = [tuple(row.values()) for row in keys.to_pylist()]
    return [(at, by_key[key]) for at, key in enumerate(wanted) if key in by_key]


def _keys(chance: random.Random, spec: LookupSpec) -> pa.Table:
    return _rows(chance, 90, "dt" in spec.key).select(list(spec.key))


@contextmanager
def _opened(spec: LookupSpec, **more: Any) -> Iterator[PartialCache]:
    directory = more.pop("directory", None) or CacheDirectory.private()
    cache = PartialCache.open(spec, directory, **{"format": DictFormat(), **more})
    try:
        yield cache
    finally:
        cache.close()
        directory.close()


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("name", _TABLES)
def test_lookups_give_what_a_read_gives_after_each_step_of_a_history(name: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{name} {seed}")
    table = _table(tmp_path, **_TABLES[name])
    partitioned = "dt" in table.schema.primary_keys
    where = "n >= 1 AND v IS NOT NULL"
    spec, filtered = _spec(table), _spec(table, ("t", "k"), where)
    with _opened(spec) as cache, _opened(filtered) as narrow:
        for _ in range(14):
            _change(chance, table, partitioned)
            keys = _keys(chance, spec)
            for lookup, one, condition in ((cache, spec, None), (narrow, filtered, where)):
                lookup.refresh()
                assert _found(lookup, one, keys) == _expected(table, one, keys, condition)
                single = keys.slice(0, 1)
                expected = [row for _, row in _expected(table, one, single, condition)]
                assert lookup.find_one(tuple(single.to_pylist()[0].values())) == expected

"""The merge engines on the same rows: the options of their tables, and the answers, which are known beforehand.

The rows are those of `benchmarks.data` with one more column: ``version``, the number of the run that wrote the row.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.config import BenchConfig
from benchmarks.data import SCHEMA, Int64s, rows
from benchmarks.names import AGGREGATION, DEDUPLICATE, PARTIAL_UPDATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

VERSION = "version"
ENGINE_SCHEMA = SCHEMA.append(pa.field(VERSION, pa.int64()))

# Times are random, so every second update of the first group is late. Versions ascend, so no update of the second is.
# `day` and `amount` belong to no group.
MERGE_ENGINES: dict[str, dict[str, str]] = {
    DEDUPLICATE: {"merge-engine": DEDUPLICATE},
    PARTIAL_UPDATE: {
        "merge-engine": PARTIAL_UPDATE,
        "fields.event_time.sequence-group": "quantity,price,score",
        "fields.version.sequence-group": "account,status,note",
    },
    AGGREGATION: {
        "merge-engine": AGGREGATION,
        "fields.default-aggregate-function": "last_non_null_value",
        **{f"fields.{name}.aggregate-function": "sum" for name in ("quantity", "score", "amount")},
        **{f"fields.{name}.aggregate-function": "max" for name in ("price", "event_time", VERSION)},
    },
}

#: One sum for each way of merging: a group with late updates and its sequence, a group without, no group.
SUMMED = ("id", "quantity", "event_time", "account", "amount")
Sums = dict[str, str]


def prepare_answers(config: BenchConfig) -> None:
    """Write the row count and the sums of each engine's merged rows beside the data, unless the file exists."""
    target = config.shape / "merge-engines.json"
    if not target.exists():
        target.write_text(json.dumps(_answers(config)), encoding="utf-8")


def check_frame(config: BenchConfig, engine: str, frame: DataFrame) -> None:
    """Raise AssertionError unless the frame has the rows that this engine merges; times are summed in microseconds."""
    from pyspark.sql import functions as F

    def summed(name: str) -> Column:
        value = F.unix_micros(name) if name == "event_time" else F.col(name)
        return F.sum(value.cast("decimal(30,2)" if name == "amount" else "decimal(30,0)")).cast("string").alias(name)

    row = frame.agg(F.count("*").cast("string").alias("rows"), *map(summed, SUMMED)).first()
    assert row is not None
    got, want = row.asDict(), answers(config)[engine]
    assert got == want, f"wrong answer of {engine}: {got}, expected {want}"


def check_table(config: BenchConfig, engine: str, table: pa.Table) -> None:
    """Raise AssertionError unless an Arrow table has the rows that this engine merges."""
    got = {"rows": str(table.num_rows), **{name: str(_total(table.column(name))) for name in SUMMED}}
    want = answers(config)[engine]
    assert got == want, f"wrong answer of {engine}: {got}, expected {want}"


def answers(config: BenchConfig) -> dict[str, Sums]:
    """Return for each engine the ``rows`` and the sums of `SUMMED` over its merged rows, as texts."""
    found: dict[str, Sums] = json.loads((config.shape / "merge-engines.json").read_text(encoding="utf-8"))
    return found


def _answers(config: BenchConfig) -> dict[str, Sums]:
    merged = pq.read_table(config.data("merged"), columns=list(SUMMED))
    latest = {name: _total(merged.column(name)) for name in SUMMED}
    ids, versions = _contested(config)
    changes = rows(ids, versions).select(SUMMED)
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    lasts = np.append(starts[1:], len(ids)) - 1
    times = changes.column("event_time").to_numpy().astype(np.int64)
    newest = np.lexsort((versions, times, ids))[lasts]

    def answer(**replaced: Any) -> Sums:
        """Return the sums, with other values for some columns than those of the last change."""
        totals = dict(latest)
        for name, values in replaced.items():
            totals[name] += _total(values) - _total(changes.column(name).take(pa.array(lasts)))
        return {"rows": str(merged.num_rows), **{name: str(total) for name, total in totals.items()}}

    by_time = changes.take(pa.array(newest))
    quantity, amount = changes.column("quantity"), changes.column("amount")
    return {
        "deduplicate": answer(),
        "partial-update": answer(quantity=by_time.column("quantity"), event_time=by_time.column("event_time")),
        "aggregation": answer(quantity=quantity, amount=amount, event_time=by_time.column("event_time")),
    }


def _contested(config: BenchConfig) -> tuple[Int64s, Int64s]:
    """Return id and version of every change of an id with several changes, ordered by id and version."""
    parts = [
        pq.read_table(config.data(f"run-{run}"), columns=["id"]).column("id").to_numpy() for run in range(config.runs)
    ]
    touched = np.unique(np.concatenate(parts))
    base = touched[touched < config.rows]
    ids = np.concatenate([base, *parts])
    versions = np.repeat(np.arange(len(parts) + 1), [len(base), *map(len, parts)])
    order = np.lexsort((versions, ids))
    return ids[order], versions[order]


def _total(values: pa.ChunkedArray) -> int | Decimal:
    if pa.types.is_timestamp(values.type):
        # The sum does not fit 64 bits: whole seconds and fractions are added separately.
        micros = values.cast(pa.int64()).to_numpy()
        return int((micros // 1_000_000).sum()) * 1_000_000 + int((micros % 1_000_000).sum())
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.decimal128(38, 2))
    total: int | Decimal = pc.sum(values).as_py()
    return total

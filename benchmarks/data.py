"""Generated rows: every value is a pure function of (id, version), so that the merged answer is known
beforehand."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.config import BenchConfig

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("account", pa.int32()),
        pa.field("quantity", pa.int32()),
        pa.field("price", pa.float64()),
        pa.field("score", pa.float64()),
        pa.field("status", pa.string()),
        pa.field("note", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("event_time", pa.timestamp("us", tz="UTC")),
        pa.field("amount", pa.decimal128(12, 2)),
    ]
)
_STATUSES = ("created", "paid", "packed", "shipped", "delivered", "returned", "refunded", "cancelled")
_CHUNK_ROWS = 1_000_000
_SEED = 20130101

#: The rows of the table from which a fresh process reads the first row; a run above it has a tenth of them.
_TINY_ROWS = 1000

Int64s = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


def _mix(value: Hashes) -> Hashes:
    """Return 64 well-mixed bits from 64 bits, by the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = value ^ (value >> np.uint64(31))
    return mixed


def _hash(ids: Int64s, versions: Int64s, column: int) -> Hashes:
    with np.errstate(over="ignore"):
        seed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        seed += versions.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03) + np.uint64(column * 0x5851F42D)
    return _mix(seed)


def _below(hashes: Hashes, bound: int) -> Int64s:
    below: Int64s = (hashes % np.uint64(bound)).astype(np.int64)
    return below


def _unit(hashes: Hashes) -> npt.NDArray[np.float64]:
    unit: npt.NDArray[np.float64] = (hashes >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return unit


def _hex(hashes: Hashes) -> pa.Array:
    """Return each value as 16 hexadecimal digits, without a loop over the values."""
    offsets = np.arange(len(hashes) + 1, dtype=np.int32) * np.int32(16)
    text = hashes.astype(">u8").tobytes().hex().encode()
    return pa.Array.from_buffers(pa.string(), len(hashes), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _cents(values: Int64s) -> pa.Array:
    """Return whole cents as decimal(12, 2)."""
    words = np.zeros((len(values), 2), dtype=np.int64)
    words[:, 0] = values
    words[:, 1] = values >> np.int64(63)
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(values), [None, pa.py_buffer(words)])


def rows(ids: Int64s, versions: Int64s) -> pa.Table:
    """Return the rows of ``ids`` at ``versions`` (both int64, same length): a table of :data:`SCHEMA` in that
    order."""

    def column(number: int) -> Hashes:
        return _hash(ids, versions, number)

    micros = _below(column(8), 5 * 365 * 86_400_000_000) + np.int64(1_577_836_800_000_000)
    return pa.table(
        [
            pa.array(ids),
            pa.array(_below(column(1), 50_000).astype(np.int32)),
            pa.array(_below(column(2), 1_000).astype(np.int32)),
            pa.array(np.round(_unit(column(3)) * 1000, 2)),
            pa.array(_unit(column(4))),
            pa.array(_STATUSES).take(pa.array(_below(column(5), len(_STATUSES)))),
            _hex(column(6)),
            pa.array((_below(column(7), 1826) + 18262).astype(np.int32)).cast(pa.date32()),
            pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
            _cents(_below(column(9), 10_000_000) - np.int64(2_000_000)),
        ],
        schema=SCHEMA,
    )


def _write(folder: Path, ids: Int64s, versions: Int64s) -> None:
    """Write the rows as parquet files of a million rows; the folder gets its name when it is complete."""
    if folder.exists():
        return
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for start in range(0, len(ids), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        pq.write_table(rows(ids[part], versions[part]), partial / f"part-{start // _CHUNK_ROWS:05d}.parquet")
    partial.rename(folder)


def _batch(rng: np.random.Generator, table_rows: int, batch_rows: int, first_new: int) -> Int64s:
    """Return the ids of one upsert: nine tenths are in the table, one tenth is new; in random order, each once."""
    new = batch_rows // 10
    old = rng.choice(table_rows, size=min(batch_rows - new, table_rows), replace=False)
    ids = np.concatenate([old.astype(np.int64), np.arange(first_new, first_new + new, dtype=np.int64)])
    return rng.permutation(ids)


def generate(config: BenchConfig) -> None:
    """Write every missing input of the run below ``config.shape``, and ``expected.json``: the merged rows' count, sums
    of ids, quantities and amounts, and the count of rows that match the predicate."""
    expected_file = config.shape / "expected.json"
    if expected_file.exists():
        return
    rng = np.random.default_rng(_SEED)
    version = 0
    latest = np.zeros(config.rows + config.runs * (config.batch_rows // 10), dtype=np.int64)
    base = rng.permutation(config.rows).astype(np.int64)
    _write(config.data("base"), base, np.zeros_like(base))
    small = rng.permutation(config.small_rows).astype(np.int64)
    _write(config.data("small"), small, np.zeros_like(small))
    tiny = np.arange(_TINY_ROWS, dtype=np.int64)
    _write(config.data("tiny"), tiny, np.zeros_like(tiny))
    _write(config.data("tiny-run"), tiny[::10], np.ones_like(tiny[::10]))
    first_new = config.rows
    for version in range(1, config.runs + 1):
        ids = _batch(rng, config.rows, config.batch_rows, first_new)
        first_new += config.batch_rows // 10
        latest[ids] = version
        _write(config.data(f"run-{version - 1}"), ids, np.full(len(ids), version, dtype=np.int64))
    for name, table_rows in (("upsert", config.rows), ("upsert-small", config.small_rows)):
        ids = _batch(rng, table_rows, config.batch_rows, first_new)
        _write(config.data(name), ids, np.full(len(ids), config.runs + 1, dtype=np.int64))
    _write(config.data("merged"), np.arange(len(latest), dtype=np.int64), latest)
    expected_file.write_text(json.dumps(_expected(config.data("merged"))), encoding="utf-8")


def _expected(folder: Path) -> dict[str, object]:
    table = pq.read_table(folder, columns=["id", "quantity", "amount"])
    quantity = table.column("quantity")
    amount = pc.sum(table.column("amount").cast(pa.decimal128(38, 2))).as_py()
    assert isinstance(amount, Decimal)
    return {
        "rows": table.num_rows,
        "id": pc.sum(table.column("id")).as_py(),
        "quantity": pc.sum(quantity).as_py(),
        "amount": str(amount),
        "where": pc.sum(pc.less(quantity, 100)).as_py(),
    }

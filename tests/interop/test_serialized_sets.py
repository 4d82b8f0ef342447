"""Columns of bitmaps and sketches: Java Paimon and lakelsm merge those of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64

from lakelsm.format.index.roaring64 import decode_roaring64, encode_roaring64
from tests.interop.arrow_merge import merged_rows
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of
from tests.interop.value_form import Rows
from tests.merge.sketches import sketches_installed

FIRST, SECOND, THIRD = range(0, 3000, 7), range(1000, 9000), range(20_000, 20_005)


def _bitmap(numbers: Iterable[int]) -> bytes:
    return bytes(BitMap(numbers).serialize())


def _spread(number: int) -> int:
    """Return numbers across 64 bits, so that the tree of a bitmap has nodes of all kinds and prefixes of all lengths."""
    return (number % 300 << 16 | number % 40 << 48 | number) % 2**64 ^ (2**63 if number % 3 else 0)


def _bitmap64(numbers: Iterable[int]) -> bytes:
    return encode_roaring64(BitMap64(map(_spread, numbers)))


def _theta(numbers: Iterable[int]) -> bytes:
    import datasketches

    sketch = datasketches.update_theta_sketch(12)
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.compact().serialize())


def _hll(numbers: Iterable[int]) -> bytes:
    import datasketches

    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_4)
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.serialize_compact())


MAKERS: dict[str, Callable[[Iterable[int]], bytes]] = {
    "rbm32": _bitmap,
    "rbm64": _bitmap64,
    "theta_sketch": _theta,
    "hll_sketch": _hll,
}


def _content(function: str, data: bytes) -> Any:
    """Return the part that Java and lakelsm must agree on: the numbers of a bitmap, the bytes of a sketch.

    An HLL sketch with registers has a running estimate that depends on the order in which a library processes hashes. A
    union of two such sketches makes it void: Java then keeps the earlier bytes, and C++ writes 0.
    """
    if function == "rbm64":
        return set(decode_roaring64(data))
    if function == "rbm32":
        return set(BitMap.deserialize(data))
    has_registers = data[0] == 10
    return data[:8] + data[16:] if function == "hll_sketch" and has_registers else data


def _contents(function: str, rows: Rows) -> dict[int, Any]:
    return {key: _content(function, data) for key, data in rows}


@pytest.mark.parametrize("function", MAKERS)
def test_java_and_lakelsm_merge_sets_of_each_other(
    ours: LakelsmTables, java: JavaPaimon, path: Path, function: str
) -> None:
    if function.endswith("sketch") and not sketches_installed():
        pytest.skip("the package datasketches is not installed")
    make = MAKERS[function]
    columns = "k INT, v BYTES"
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": function, "bucket": "1"}
    ours.create(path, columns, ["k"], options=options)
    ours.write(path, rows_of(columns, {"k": [1, 2, 3], "v": [make(FIRST), make(()), None]}))
    java.write(path, rows_of(columns, {"k": [1, 2, 3], "v": [make(SECOND), make(THIRD), make(THIRD)]}))
    read = _contents(function, java.read(path))
    assert read == _contents(function, ours.read(path))
    if function.startswith("rbm"):
        assert read == {1: _content(function, make({*FIRST, *SECOND})), 2: _content(function, make(THIRD)), 3: read[2]}

    java.compact(path)
    ours.write(path, rows_of(columns, {"k": [1, 2], "v": [make(THIRD), make(FIRST)]}))
    read = _contents(function, java.read(path))
    assert read == _contents(function, ours.read(path))
    if function.startswith("rbm"):
        assert read[1] == _content(function, make({*FIRST, *SECOND, *THIRD}))

    ours.compact(path)
    assert read == _contents(function, java.read(path)) == _contents(function, ours.read(path))


@pytest.mark.parametrize("function", ["theta_sketch", "hll_sketch"])
def test_java_merges_sketches_of_a_sequence_group_in_the_same_order(java: JavaPaimon, path: Path, function: str) -> None:
    if not sketches_installed():
        pytest.skip("the package datasketches is not installed")
    random, make = Random(10), MAKERS[function]
    assert isinstance(java, JavaPaimon)
    columns = "k INT, s INT, v BYTES"
    options = {"merge-engine": "partial-update", "fields.s.sequence-group": "v"}
    java.create(path, columns, ["k"], options={**options, "fields.v.aggregate-function": function, "bucket": "1"})

    def batch() -> pa.Table:
        sizes = [random.choice([0, 3, 5, 20, 300, 5000]) for _ in range(30)]
        values = [make(range(start, start + size)) for size in sizes for start in [random.randrange(4000)]]
        return rows_of(columns, {"k": range(30), "s": [random.randrange(4) for _ in range(30)], "v": values})

    java.write_all(path, [(batch(), None) for _ in range(5)], {"write-only": "true"})
    read = {row[0]: (row[1], _content(function, row[2])) for row in java.read(path)}
    assert read == {row[0]: (row[1], _content(function, row[2])) for row in merged_rows(str(path))}

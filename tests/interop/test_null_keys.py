"""NULL keys (`primary-key.nullable`) of Java and lakelsm: the same order, the same hash, one row for each key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.types import output_arrow
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.typed_values import TYPED_VALUES

_TYPES = [typed for typed in TYPED_VALUES if typed.sql in ("INT", "STRING", "DOUBLE", "DATE", "BYTES", "DECIMAL(38, 10)")]
_TYPES += [typed for typed in TYPED_VALUES if typed.sql in ("BOOLEAN", "TIME(3)", "TIMESTAMP(3)")]
_COLUMNS = ", ".join([*(f"k{at} {typed.sql}" for at, typed in enumerate(_TYPES)), "v INT"])


def _rows(first: int) -> pa.Table:
    """Return rows whose keys have no NULL, one NULL in each column, and only NULLs."""
    keys = [[typed.values[1] for typed in _TYPES], [None] * len(_TYPES)]
    for at in range(len(_TYPES)):
        keys.append([None if position == at else typed.values[0] for position, typed in enumerate(_TYPES)])
    columns = {f"k{at}": list(values) for at, values in enumerate(zip(*keys))}
    arrays = [pa.array(columns[f"k{at}"], output_arrow(typed.type)) for at, typed in enumerate(_TYPES)]
    numbers = pa.array([first + at for at in range(len(keys))], pa.int32())
    return pa.Table.from_arrays([*arrays, numbers], [*columns, "v"])


@pytest.mark.parametrize("buckets", ["3", "-1"])
def test_java_and_lakelsm_replace_rows_of_null_keys_of_each_other(
    ours: LakelsmTables, java: JavaPaimon, path: Path, buckets: str
) -> None:
    options = {"bucket": buckets, "primary-key.nullable": "true", "write-only": "true"}
    ours.create(path, _COLUMNS, [f"k{at}" for at in range(len(_TYPES))], options=options)
    ours.write(path, _rows(0))
    first = java.read(path)
    assert first == ours.read(path)
    if buckets != "-1":  # Java's write to dynamic buckets needs a shuffle, which its core library lacks.
        java.write(path, _rows(100))
        assert java.read(path) == ours.read(path) and len(java.read(path)) == len(first)
    ours.write(path, _rows(200))
    assert java.read(path) == ours.read(path) and len(java.read(path)) == len(first)
    java.compact(path)
    assert java.read(path) == ours.read(path)
    ours.write(path, _rows(300))
    ours.compact(path)
    assert java.read(path) == ours.read(path) and len(java.read(path)) == len(first)

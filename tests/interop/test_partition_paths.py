"""Partitions of every type have the same directories in Java and lakelsm, and each reads those of the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.types import output_arrow
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.typed_values import TYPED_VALUES

_NAMES = {f"p{at}": typed for at, typed in enumerate(TYPED_VALUES)}


def _directories(path: Path) -> set[str]:
    return {str(file.parent.relative_to(path)) for file in path.glob("**/*.parquet")}


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_a_partition_of_any_type_has_the_directory_of_java(
    ours: LakelsmTables, java: JavaPaimon, path: Path, legacy: str
) -> None:
    names = {name: typed for name, typed in _NAMES.items() if legacy == "false" or typed.type.root[-6:] != "BINARY"}
    columns = ", ".join([*(f"{name} {typed.sql}" for name, typed in names.items()), "k INT"])
    options = {"bucket": "1", "partition.legacy-name": legacy, "primary-key.nullable": "true", "write-only": "true"}
    values = {name: [None, *typed.values] for name, typed in names.items()}
    arrays = [pa.array(values[name], output_arrow(typed.type)) for name, typed in names.items()]
    rows = pa.Table.from_arrays([*arrays, pa.array(range(4), pa.int32())], [*names, "k"])
    beside = path.with_name("beside")
    for made in (path, beside):
        ours.create(made, columns, [*names, "k"], list(names), options)
    ours.write(path, rows)
    java.write(beside, rows)
    assert _directories(path) == _directories(beside)
    assert java.read(path) == ours.read(beside) == ours.read(path)

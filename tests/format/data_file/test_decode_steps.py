"""Data files are decoded in batches of about the allowed size, whatever the encoding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.format.data_file.decode_steps import DecodeSteps
from lakelsm.format.data_file.key_value_file import KeyValueReader, row_schema
from lakelsm.schema.table_schema import TableSchema, column_mapping, create_schema
from lakelsm.storage import LocalFileIO
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP
from tests.merge.run_files import layout_of, write_files
from tests.nano_times import column_of, python_rows

ALLOWED = 256 << 10
ROWS = 5_000
#: Bytes of a wide value: far above the other costs of a row.
WIDE = 2_000


def schema_of(kind: str) -> TableSchema:
    return create_schema(f"k INT, v {kind}", ["k"], (), {"bucket": "1"})


def write(directory: Path, kind: str, values: pa.Array) -> tuple[TableSchema, Path]:
    """Write one file of one row group."""
    schema, count = schema_of(kind), len(values)
    columns = [pa.array(range(count)), pa.array([0] * count, pa.int8()), pa.array(range(count), pa.int32()), values]
    rows = pa.Table.from_arrays(columns, schema=row_schema(schema.fields))
    (meta,) = write_files(directory, layout_of(schema, row_group_bytes=1 << 40, target_file_size=1 << 40), [rows])
    return schema, directory / meta.file_name


def batches(schema: TableSchema, path: Path, allowance: Callable[[], int]) -> list[tuple[int, pa.Table]]:
    reader = KeyValueReader(LocalFileIO().filesystem(), str(path), column_mapping(schema, schema))
    return list(reader.batches(allowance))


def few_values(index: int) -> str:
    return f"{index % 80:04d}" * (WIDE // 4)


SHAPES: dict[str, tuple[str, Callable[[int], Any]]] = {
    "a dictionary": ("STRING", few_values),
    "wide rows after narrow ones": ("STRING", lambda index: few_values(index) if index > ROWS // 2 else "x"),
    "narrow rows after wide ones": ("STRING", lambda index: few_values(index) if index < ROWS // 4 else "x"),
    "wide rows here and there": ("STRING", lambda index: few_values(index) if index % 7 == 0 else None),
    "runs of one number": ("ARRAY<INT>", lambda index: [index % 3] * (WIDE // 4)),
    "a dictionary in arrays": ("ARRAY<STRING>", lambda index: [few_values(index)[:200]] * (WIDE // 200)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_has_about_the_allowed_size(shape: str, tmp_path: Path) -> None:
    kind, value = SHAPES[shape]
    stored = pa.array([value(index) for index in range(ROWS)], row_schema(schema_of(kind).fields).field("v").type)
    schema, path = write(tmp_path, kind, stored)
    assert stored.nbytes > max(4 * ALLOWED, 20 * path.stat().st_size), "the file hides the size"
    found = batches(schema, path, lambda: ALLOWED)
    assert [start for start, _ in found] == [sum(len(rows) for _, rows in found[:at]) for at in range(len(found))]
    assert pa.concat_tables(rows for _, rows in found).column("v").combine_chunks().equals(stored)
    assert max(rows.nbytes for _, rows in found) < 4 * ALLOWED, "rows that grow wide cost one step at most"
    assert sum(rows.nbytes > 1.5 * ALLOWED for _, rows in found) <= 1
    assert len(found) < 8 * stored.nbytes / ALLOWED + 4, "no batch is needlessly small"


def test_a_single_huge_value_comes_with_few_others(tmp_path: Path) -> None:
    huge = 2 << 20
    values = ["x"] * 100 + ["y" * huge] + ["z"] * 100
    schema, path = write(tmp_path, "STRING", pa.array(values))
    sizes = [rows.nbytes for _, rows in batches(schema, path, lambda: ALLOWED)]
    assert max(sizes) < huge + ALLOWED
    schema, path = write(tmp_path, "STRING", pa.array(["y" * huge] * 20))
    assert [len(rows) for _, rows in batches(schema, path, lambda: ALLOWED)] == [1] * 20


def test_a_batch_follows_the_current_allowance(tmp_path: Path) -> None:
    schema, path = write(tmp_path, "STRING", pa.array([few_values(index) for index in range(5_000)]))
    allowed = iter([ALLOWED, 4 * ALLOWED, *[ALLOWED] * 100])
    sizes = [rows.nbytes for _, rows in batches(schema, path, lambda: next(allowed))]
    assert sizes[1] == pytest.approx(4 * sizes[0], rel=0.2)
    assert sizes[2] == pytest.approx(sizes[0], rel=0.2)


def test_times_with_nanoseconds_stay_with_their_rows(tmp_path: Path) -> None:
    moments = [datetime(1990, 1, 1) + timedelta(seconds=index) for index in range(ROWS)]
    schema, path = write(tmp_path, "TIMESTAMP(9)", column_of(moments, NANO_TIMESTAMP))
    found = batches(schema, path, lambda: ALLOWED)
    assert len(found) > 1
    read = pa.concat_tables(rows for _, rows in found)
    assert [row["v"] for row in python_rows(read)] == moments
    assert read.column("k").to_pylist() == list(range(ROWS))


def test_steps_neither_shrink_at_the_end_of_a_batch_nor_restart_with_the_next(tmp_path: Path) -> None:
    _, path = write(tmp_path, "BIGINT", pa.array(range(ROWS)))
    group = pq.ParquetFile(path).metadata.row_group(0)
    steps = DecodeSteps(group, ALLOWED)
    taken: list[int] = []
    for _ in range(4):
        while not steps.full:
            taken.append(steps.rows)
            steps.decoded(taken[-1], taken[-1] * 100)
        steps.begin(ALLOWED)
    longest = max(taken)
    assert min(taken[taken.index(longest) :]) >= longest // 16
    assert sum(taken) * 100 <= 4 * ALLOWED

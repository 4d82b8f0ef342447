"""Rows of all types and of small keys, written to key-value files and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.format.data_file.key_value_file import KeyValueReader
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.schema.table_schema import TableSchema, column_mapping, create_schema
from tests.merge.run_files import IO, Row, layout_of, rows_table, write_files

ALL_TYPES = """
    k1 STRING, k2 DECIMAL(20, 2),
    bo BOOLEAN, ti TINYINT, sm SMALLINT, it INT NOT NULL, bi BIGINT, fl FLOAT, db DOUBLE,
    d9 DECIMAL(9, 2), d18 DECIMAL(18, 3), d19 DECIMAL(19, 0), d38 DECIMAL(38, 10),
    ch CHAR(5), vc VARCHAR(7), st STRING, bn BINARY(3), vb VARBINARY(9), by BYTES,
    da DATE, tm TIME(3), t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9),
    l3 TIMESTAMP(3) WITH LOCAL TIME ZONE, l6 TIMESTAMP(6) WITH LOCAL TIME ZONE, l9 TIMESTAMP(9) WITH LOCAL TIME ZONE,
    ar ARRAY<INT>, ma MAP<STRING, BIGINT>, mu MULTISET<STRING>, ro ROW<x INT, y ROW<z STRING>>
"""

SCHEMA = create_schema(ALL_TYPES, ["k2", "k1"], (), {"bucket": "1"})

INT_SCHEMA = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1"})


def reader_of(path: Path, schema: TableSchema = SCHEMA, table_schema: TableSchema | None = None) -> KeyValueReader:
    return KeyValueReader(IO.filesystem(), str(path), column_mapping(schema, table_schema or schema))


def read(path: Path, schema: TableSchema = SCHEMA, batch_bytes: int = 1 << 20) -> pa.Table:
    return pa.concat_tables(rows for _, rows in reader_of(path, schema).batches(lambda: batch_bytes))


def write_one(directory: Path, rows: list[Row], schema: TableSchema = SCHEMA, **layout: Any) -> tuple[Path, DataFileMeta]:
    (meta,) = write_files(directory, layout_of(schema, **layout), [rows_table(schema, rows)])
    return directory / meta.file_name, meta


def int_rows(first: int, count: int) -> list[Row]:
    return [(k, 3 if k % 10 == 0 else 0, {"k": k, "v": f"{k:0100d}"}) for k in range(first, first + count)]

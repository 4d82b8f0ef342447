"""Encodings of data files: no dictionary for what ascends, small ones for columns of every other shape."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from lakelsm.format.data_file.int96_timestamps import INT96
from lakelsm.format.data_file.parquet_encoding import encoding_options

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("ts", pa.timestamp("us")),
        ("s", pa.string()),
        ("a", pa.list_(pa.field("element", pa.int32()))),
        ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ("r", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
    ]
)
ROWS = [
    {"k": 1, "ts": 5, "s": "a", "a": [1, None], "m": [("p", [1])], "r": {"x": 1, "y": {"z": "q"}}},
    {"k": 2, "ts": 6, "s": "a", "a": None, "m": None, "r": None},
]


def encodings(ascending: list[str]) -> dict[str, set[str]]:
    sink = io.BytesIO()
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    with pq.ParquetWriter(sink, SCHEMA, **encoding_options(SCHEMA, ascending)) as writer:
        writer.write_table(table)
    read = pq.ParquetFile(sink)
    assert read.read().to_pylist() == table.to_pylist()
    group = read.metadata.row_group(0)
    return {group.column(at).path_in_schema: set(group.column(at).encodings) for at in range(group.num_columns)}


def test_ascending_integers_have_no_dictionary_and_every_other_column_has_one() -> None:
    found = encodings(["k", "ts", "s"])
    assert "RLE_DICTIONARY" not in found["k"] | found["ts"]
    assert not any(kind.startswith("DELTA") for kinds in found.values() for kind in kinds)
    others = {path: kinds for path, kinds in found.items() if path not in ("k", "ts")}
    assert len(others) == 6
    assert all("RLE_DICTIONARY" in kinds for kinds in others.values())


def test_int96_columns_have_a_dictionary_and_no_statistics() -> None:
    schema = pa.schema([("k", INT96), ("a", pa.list_(INT96)), ("b", pa.list_(pa.int64()))])
    options = encoding_options(schema, ["k"])
    assert options["use_dictionary"] == ["k", "a.list.element", "b.list.element"]
    assert options["write_statistics"] == ["b.list.element"]

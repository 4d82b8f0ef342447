"""The container that Java Paimon 1.4.2 wrote for a file of `samples.all_types_rows` with all possible indexes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER, ColumnIndex
from lakelsm.schema.option_rules import can_have_index
from lakelsm.types import DataField, parse_columns, to_arrow
from tests.interop.samples import all_types_columns, all_types_rows

FIELDS = {field.name: field for field in parse_columns(all_types_columns()) if field.name != "k"}
JAVA = bytes.fromhex((Path(__file__).parent / "java_1_4_2.hex").read_text())


def indexes_of(fields: dict[str, DataField], version: int = 2) -> list[ColumnIndex]:
    """Return each index that a column can have, as small as that of the recorded file."""
    bloom = [
        ColumnIndex(BLOOM_FILTER, f.name, items=20, fpp=0.1)
        for f in fields.values()
        if can_have_index(BLOOM_FILTER, f.type)
    ]
    bitmaps = [
        ColumnIndex(BITMAP, f.name, version=version, block_bytes=16 << 10)
        for f in fields.values()
        if can_have_index(BITMAP, f.type)
    ]
    return [*bloom, *bitmaps]


def rows_in_memory() -> pa.Table:
    """Return the rows in the types in which lakelsm keeps values."""
    rows = all_types_rows()
    return pa.table({name: cast_column(rows.column(name), to_arrow(field.type)) for name, field in FIELDS.items()})

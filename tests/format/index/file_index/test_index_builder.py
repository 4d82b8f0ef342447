"""The indexes of a written file equal Java's for each type."""

from __future__ import annotations

import pyarrow as pa

from lakelsm.format.index.file_index.file_index_container import FileIndexContainer
from lakelsm.format.index.file_index.index_builder import FileIndexBuilder
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER, ColumnIndex
from lakelsm.types import parse_type
from tests.format.index.file_index.java_container import FIELDS, JAVA, indexes_of, rows_in_memory


def test_every_index_of_every_type_has_the_bytes_that_java_wrote() -> None:
    builder = FileIndexBuilder([(index, FIELDS[index.column].type) for index in indexes_of(FIELDS)])
    rows = rows_in_memory()
    builder.add(rows.slice(0, 2))
    builder.add(rows.slice(2))
    assert FileIndexContainer.decode(builder.encode(), "x").bodies == FileIndexContainer.decode(JAVA, "x").bodies


def test_a_column_may_have_both_indexes_and_several_chunks() -> None:
    indexes = [
        ColumnIndex(BLOOM_FILTER, "v", items=10, fpp=0.1),
        ColumnIndex(BITMAP, "v", version=2, block_bytes=1 << 14),
        ColumnIndex(BITMAP, "w", version=1, block_bytes=1 << 14),
    ]
    containers = []
    for values in (pa.chunked_array([["a", None], ["b", "a"]]), pa.chunked_array([["a", None, "b", "a"]])):
        builder = FileIndexBuilder([(index, parse_type("STRING")) for index in indexes])
        builder.add(pa.table({"v": values, "w": values}))
        containers.append(builder.encode())
    assert containers[0] == containers[1]
    bodies = FileIndexContainer.decode(containers[0], "x").bodies
    assert {column: list(types) for column, types in bodies.items()} == {"v": ["bloom-filter", "bitmap"], "w": ["bitmap"]}
    assert bodies["v"]["bloom-filter"].hex() == "00000003082000700200"

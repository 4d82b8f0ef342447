"""The metadata of many files, encoded together, equals that of each file alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.data_file.written_file import WrittenFile, file_metas
from lakelsm.format.file_names import FileNames
from lakelsm.schema.table_schema import TableSchema, create_schema
from tests.examples import examples
from tests.merge.run_files import IO, Row, layout_of, rows_table

SCHEMA = create_schema(
    "k INT, t TIMESTAMP(9), s STRING, d DATE, n DECIMAL(20, 3), f DOUBLE, a ARRAY<INT>",
    ["k", "t"],
    (),
    {"bucket": "1", "fields.s.stats-mode": "truncate(2)", "fields.d.stats-mode": "counts", "fields.n.stats-mode": "none"},
)


def written(directory: Path, rows: list[Row], schema: TableSchema = SCHEMA) -> WrittenFile:
    writer = RollingWriter(
        IO.filesystem(), str(directory), FileNames("u"), layout_of(schema), level=0, file_source=0
    )
    writer.write(rows_table(schema, rows))
    (file,) = writer.finish()
    return file


def row(key: int, sequence: int, text: str | None, number: float | None) -> Row:
    values = {"k": key, "t": datetime(2020, 1, 1 + key % 9), "s": text, "d": date(2020, 1, 1), "f": number}
    return sequence, key % 4, values


ROWS = st.lists(
    st.builds(row, st.integers(0, 99), st.integers(0, 9), st.none() | st.text(max_size=4), st.none() | st.floats()),
    min_size=1,
    max_size=4,
    unique_by=lambda built: built[2]["k"],
)


@examples(20)
@given(batches=st.lists(ROWS, min_size=1, max_size=4), dense=st.booleans())
def test_metadata_of_many_files_equals_that_of_each_file(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Row]], dense: bool
) -> None:
    directory = tmp_path_factory.mktemp("files")
    schema = replace(SCHEMA, options={**SCHEMA.options, "metadata.stats-dense-store": str(dense).lower()})
    files = [written(directory / str(at), rows, schema) for at, rows in enumerate(batches)]
    together = file_metas(files, schema)
    assert together == [meta for file in files for meta in file_metas([file], schema)]
    assert [meta.row_count for meta in together] == list(map(len, batches))


def test_no_files_have_no_metadata() -> None:
    assert file_metas([], SCHEMA) == []


def test_a_written_file_without_metadata_keeps_no_rows_in_memory(tmp_path: Path) -> None:
    wide = [(key, 0, {"k": key, "t": datetime(2020, 1, 1), "s": "x" * 1000}) for key in range(1000)]
    file = written(tmp_path, wide)
    assert file.ends.get_total_buffer_size() < 1000

"""Lookup files beside data files: their names, when one serves, and what is found to be wrong with one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError
from lakelsm.format.row.compacted_row import encode_compacted
from lakelsm.lookup.partial.remote_lookup_file import RemoteLookupFile
from lakelsm.lookup.store.block_cache import BlockCache
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.persisted_values import PersistedValues, ValueProcessor
from lakelsm.lookup.store.sort_writer import SortFileForm, SortFileWriter
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, SYSTEM_FIELDS, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import DataField, parse_type

NAME = "data-7f-0.parquet.1234.value.v1.lookup"
SCHEMA = create_schema("id BIGINT, name STRING, n INT", ["id"])
POSITION_FIELD = DataField(9, POSITION, parse_type("BIGINT"))


def layout_of(schema: TableSchema, *values: str) -> StoreLayout:
    return StoreLayout((schema.field("id"),), (*map(schema.field, values), *SYSTEM_FIELDS))


def test_a_name_tells_bytes_processor_and_version() -> None:
    found = RemoteLookupFile.among(["data-7f-0.parquet.index", NAME])
    assert found == RemoteLookupFile(NAME, bytes=1234, processor=ValueProcessor.VALUE)
    positioned = RemoteLookupFile.among(["x.9.position-and-value.v1.lookup"])
    assert positioned is not None and positioned.processor is ValueProcessor.VALUE_AND_POSITION


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["data-7f-0.parquet.index"],
        [".lookup"],
        ["v1.lookup"],
        ["value.v1.lookup"],
        ["f.parquet.1234.value.v2.lookup"],
        ["f.parquet.1234.bytes.v1.lookup"],
        ["f.parquet.-1.value.v1.lookup"],
        ["f.parquet.x.value.v1.lookup"],
    ],
    ids=str,
)
def test_other_names_are_passed_over(names: list[str]) -> None:
    assert RemoteLookupFile.among(names) is None


def served(
    schema: TableSchema = SCHEMA,
    written: TableSchema = SCHEMA,
    processor: str = "value",
    layout: StoreLayout | None = None,
) -> bool:
    file = RemoteLookupFile.among([f"f.1.{processor}.v1.lookup"])
    assert file is not None
    return file.serves(layout or layout_of(schema, "name"), written, schema)


def test_a_file_serves_layouts_whose_columns_it_has() -> None:
    assert served()
    assert served(processor="position-and-value")
    positioned = StoreLayout((SCHEMA.field("id"),), (SCHEMA.field("n"), *SYSTEM_FIELDS, POSITION_FIELD))
    assert served(processor="position-and-value", layout=positioned)
    assert served(processor="position", layout=StoreLayout((SCHEMA.field("id"),), (POSITION_FIELD,)))
    assert not served(processor="value", layout=positioned)
    assert not served(processor="position")
    assert not served(processor="empty")


def test_a_file_serves_only_where_the_data_file_has_the_columns_of_now() -> None:
    assert not served(written=create_schema("id BIGINT, name STRING", ["id"]))
    assert not served(written=create_schema("id BIGINT, title STRING, n INT", ["id"]))
    assert not served(written=create_schema("id BIGINT, name STRING, n BIGINT", ["id"]))
    floats = create_schema("id DOUBLE, name STRING, n INT", ["id"])
    assert not served(schema=floats, written=floats)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = pa.table(
        {
            "id": range(50),
            "name": [f"name {number}" for number in range(50)],
            "n": pa.array([None if number % 3 else number for number in range(50)], pa.int32()),
            SEQUENCE_NUMBER: range(100, 150),
            VALUE_KIND: pa.array([0, 3] * 25, pa.int8()),
        }
    )
    keys = encode_compacted([rows["id"]], [SCHEMA.field("id").type]).combine_chunks()
    with (tmp_path / "f").open("wb") as file:
        writer = SortFileWriter(file, SortFileForm(300, bloom_fpp=0.05))
        writer.put(keys, PersistedValues(ValueProcessor.VALUE, SCHEMA.fields).encode(rows))
        writer.finish()
    return tmp_path / "f"


def test_the_store_answers_with_the_columns_of_its_layout(path: Path) -> None:
    size = path.stat().st_size
    file = RemoteLookupFile(NAME, bytes=size, processor=ValueProcessor.VALUE)
    store = file.store(path, layout_of(SCHEMA, "n"), SCHEMA, row_count=50, cache=BlockCache(1 << 20))
    found = store.find(pa.table({"id": [49, 50, 3, 1]}))
    assert found.probes.tolist() == [0, 2, 3]
    assert found.rows.to_pylist() == [
        {"n": None, SEQUENCE_NUMBER: 149, VALUE_KIND: 3},
        {"n": 3, SEQUENCE_NUMBER: 103, VALUE_KIND: 3},
        {"n": None, SEQUENCE_NUMBER: 101, VALUE_KIND: 3},
    ]
    store.close()


def test_a_file_that_is_not_whole_is_refused_before_it_answers(path: Path) -> None:
    whole = path.read_bytes()

    def opened(row_count: int = 50, size: int = len(whole)) -> None:
        file = RemoteLookupFile(NAME, bytes=size, processor=ValueProcessor.VALUE)
        file.store(path, layout_of(SCHEMA, "n"), SCHEMA, row_count=row_count, cache=BlockCache(0)).close()

    opened()
    with pytest.raises(CorruptStoreError, match="50 entries instead of 51"):
        opened(51)
    with pytest.raises(CorruptStoreError, match="bytes instead of 7"):
        opened(size=7)
    path.write_bytes(b"x" + whole[1:])
    with pytest.raises(CorruptStoreError, match="block 0 at byte 0"):
        opened()

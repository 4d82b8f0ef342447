"""Key-value Parquet files: written files have the format of docs/format.md 6, and are read back value by value."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.key_value_file import (
    file_schema,
    row_schema,
)
from lakelsm.schema.table_schema import create_schema
from tests.examples import examples
from tests.format.data_file.key_value_rows import INT_SCHEMA, SCHEMA, int_rows, read, reader_of, write_one
from tests.merge.run_files import Row, layout_of, rows_table, write_files
from tests.nano_times import python_rows, times_of_nanos

UTC = dt.timezone.utc

FULL_ROW: dict[str, Any] = {
    "k1": "key",
    "k2": Decimal("-1.50"),
    "bo": True,
    "ti": -128,
    "sm": 32767,
    "it": -(2**31),
    "bi": 2**63 - 1,
    "fl": 1.5,
    "db": -0.0,
    "d9": Decimal("-1234567.89"),
    "d18": Decimal("123456789012345.678"),
    "d19": Decimal("-9999999999999999999"),
    "d38": Decimal("-1234567890123456789012345678.0123456789"),
    "ch": "ab",
    "vc": "é\U0001f600",
    "st": "",
    "bn": b"\x00\xff\x80",
    "vb": b"",
    "by": b"\x00" * 20,
    "da": dt.date(1582, 10, 15),
    "tm": dt.time(23, 59, 59, 999000),
    "t3": dt.datetime(1900, 1, 1, 0, 0, 0, 1000),
    "t6": dt.datetime(1, 1, 1, 0, 0, 0, 1),
    "t9": dt.datetime(1, 1, 1, 0, 0, 0, 1),
    "l3": dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    "l6": dt.datetime(2024, 1, 2, 3, 4, 5, 678901, UTC),
    "l9": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    "ar": [1, None, 3],
    "ma": [("a", 1), ("b", None)],
    "mu": [("x", 2)],
    "ro": {"x": None, "y": {"z": "deep"}},
}

NULL_ROW = {"k1": "", "k2": Decimal("0.00"), "it": 0}


def test_values_of_every_type_are_read_back(tmp_path: Path) -> None:
    path, meta = write_one(tmp_path, [(7, 0, FULL_ROW), (9, 3, NULL_ROW)])
    table = read(path)
    assert table.schema.equals(row_schema(SCHEMA.fields), check_metadata=True)
    full, nulls = python_rows(table)
    for name, value in FULL_ROW.items():
        assert full[name] == value, name
    assert str(full["db"]) == "-0.0"
    assert {name for name, value in nulls.items() if value is None} == set(FULL_ROW) - set(NULL_ROW)
    assert (nulls["_SEQUENCE_NUMBER"], nulls["_VALUE_KIND"]) == (9, 3)
    assert meta.row_count == 2


#: The types of docs/format.md 6.2: column -> (physical type, logical type as Arrow prints it, length)
PHYSICAL = {
    "bo": ("BOOLEAN", "None"),
    "ti": ("INT32", "Int(bitWidth=8, isSigned=true)"),
    "sm": ("INT32", "Int(bitWidth=16, isSigned=true)"),
    "it": ("INT32", "None"),
    "bi": ("INT64", "None"),
    "fl": ("FLOAT", "None"),
    "db": ("DOUBLE", "None"),
    "d9": ("INT32", "Decimal(precision=9, scale=2)"),
    "d18": ("INT64", "Decimal(precision=18, scale=3)"),
    "d19": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=19, scale=0)"),
    "d38": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=10)"),
    "k2": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=20, scale=2)"),
    "ch": ("BYTE_ARRAY", "String"),
    "vc": ("BYTE_ARRAY", "String"),
    "st": ("BYTE_ARRAY", "String"),
    "k1": ("BYTE_ARRAY", "String"),
    "bn": ("BYTE_ARRAY", "None"),
    "vb": ("BYTE_ARRAY", "None"),
    "by": ("BYTE_ARRAY", "None"),
    "da": ("INT32", "Date"),
    "tm": ("INT32", "Time(isAdjustedToUTC=false, timeUnit=milliseconds)"),
    "t9": ("INT96", "None"),
    "l9": ("INT96", "None"),
    "_SEQUENCE_NUMBER": ("INT64", "None"),
    "_VALUE_KIND": ("INT32", "Int(bitWidth=8, isSigned=true)"),
}

TIMES = {
    "t3": ("milliseconds", "false"),
    "t6": ("microseconds", "false"),
    "l3": ("milliseconds", "true"),
    "l6": ("microseconds", "true"),
}


@pytest.fixture(scope="module")
def footer(tmp_path_factory: pytest.TempPathFactory) -> pq.FileMetaData:
    path, _ = write_one(tmp_path_factory.mktemp("footer"), [(0, 0, FULL_ROW)])
    return pq.read_metadata(path)


def leaf(footer: pq.FileMetaData, path: str) -> pq.ColumnSchema:
    schema = footer.schema
    return next(schema.column(i) for i in range(len(schema.names)) if schema.column(i).path == path)


@pytest.mark.parametrize("name", PHYSICAL)
def test_physical_and_logical_types_are_those_of_the_format(footer: pq.FileMetaData, name: str) -> None:
    physical, logical = PHYSICAL[name]
    column = leaf(footer, name)
    assert (column.physical_type, str(column.logical_type)) == (physical, logical)
    if physical == "FIXED_LEN_BYTE_ARRAY":
        assert column.length == {19: 9, 20: 9, 38: 16}[column.precision]


@pytest.mark.parametrize("beside", ["", ", t9 TIMESTAMP(9)"], ids=["alone", "beside nanoseconds"])
def test_timestamps_up_to_microseconds_are_int64(tmp_path: Path, beside: str) -> None:
    columns = "k INT, t3 TIMESTAMP(3), t6 TIMESTAMP(6), l3 TIMESTAMP_LTZ(3), l6 TIMESTAMP_LTZ(6)"
    schema = create_schema(columns + beside, ["k"], (), {"bucket": "1"})
    path, _ = write_one(tmp_path, [(0, 0, {"k": 1})], schema)
    for name, (unit, utc) in TIMES.items():
        column = leaf(pq.read_metadata(path), name)
        assert column.physical_type == "INT64", name
        assert f"isAdjustedToUTC={utc}, timeUnit={unit}" in str(column.logical_type), name


def test_nested_columns_have_the_three_level_layout(footer: pq.FileMetaData) -> None:
    paths = {footer.schema.column(i).path for i in range(len(footer.schema.names))}
    assert {
        "ar.list.element",
        "ma.key_value.key",
        "ma.key_value.value",
        "mu.key_value.key",
        "mu.key_value.value",
    } <= paths
    assert {"ro.x", "ro.y.z"} <= paths


def test_columns_are_required_exactly_where_the_schema_says_not_null(footer: pq.FileMetaData) -> None:
    required = {
        footer.schema.column(i).path
        for i in range(len(footer.schema.names))
        if footer.schema.column(i).max_definition_level == 0
    }
    assert required == {"_KEY_k1", "_KEY_k2", "_SEQUENCE_NUMBER", "_VALUE_KIND", "k1", "k2", "it"}
    assert leaf(footer, "ma.key_value.key").max_definition_level == 2, "optional map, repeated entry, required key"
    assert leaf(footer, "mu.key_value.value").max_definition_level == 2


def test_columns_have_javas_order_and_field_ids(footer: pq.FileMetaData) -> None:
    arrow = footer.schema.to_arrow_schema()
    assert arrow.names == ["_KEY_k2", "_KEY_k1", "_SEQUENCE_NUMBER", "_VALUE_KIND", *SCHEMA.field_names]
    ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in arrow}
    assert ids["_KEY_k2"] == 1073741823 + SCHEMA.field("k2").id
    assert (ids["_SEQUENCE_NUMBER"], ids["_VALUE_KIND"]) == (2147483646, 2147483645)
    assert {name: ids[name] for name in SCHEMA.field_names} == {field.name: field.id for field in SCHEMA.fields}


def test_nested_parts_have_the_field_ids_of_the_format(footer: pq.FileMetaData) -> None:
    arrow = footer.schema.to_arrow_schema()

    def id_of(field: pa.Field) -> int:
        return int(field.metadata[b"PARQUET:field_id"])

    array, map_, row = (arrow.field(name) for name in ("ar", "ma", "ro"))
    assert id_of(array.type.value_field) == 536870911 + 1024 * id_of(array) + 1
    assert id_of(map_.type.item_field) == 536870911 + 1024 * id_of(map_) + 1
    assert id_of(map_.type.key_field) == 536870911 - 1024 * id_of(map_) - 1
    members = {field.name: field.id for field in SCHEMA.field("ro").type.fields}  # type: ignore[attr-defined]
    assert {field.name: id_of(field) for field in row.type} == members


def test_the_file_has_zstd_pages_and_no_metadata_of_arrow(footer: pq.FileMetaData) -> None:
    group = footer.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}
    assert b"ARROW:schema" not in (footer.metadata or {})
    encodings = {encoding for i in range(group.num_columns) for encoding in group.column(i).encodings}
    assert "BYTE_STREAM_SPLIT" not in encodings, "Java cannot read it"


def test_a_thin_file_has_no_key_columns_and_the_same_rows(tmp_path: Path) -> None:
    fat, _ = write_one(tmp_path / "fat", [(7, 0, FULL_ROW)])
    thin, _ = write_one(tmp_path / "thin", [(7, 0, FULL_ROW)], thin=True)
    assert pq.read_schema(thin).names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", *SCHEMA.field_names]
    assert read(thin).equals(read(fat))


def test_the_thin_option_makes_thin_files_and_keeps_key_statistics() -> None:
    schema = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1", "data-file.thin-mode": "true"})
    layout = layout_of(schema)
    assert layout.thin
    assert file_schema(schema, layout.thin).names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "v"]


def test_rows_of_several_row_groups_have_consecutive_row_indexes(tmp_path: Path) -> None:
    layout = layout_of(INT_SCHEMA, row_group_bytes=1)
    (meta,) = write_files(tmp_path, layout, [rows_table(INT_SCHEMA, int_rows(at, 7)) for at in range(0, 35, 7)])
    reader = reader_of(tmp_path / meta.file_name, INT_SCHEMA)
    for start, rows in reader.batches(lambda: 150):
        assert len(rows) < 7
        assert rows.column("k").to_pylist() == list(range(start, start + len(rows)))


@examples(25)
@given(st.data())
def test_rows_are_read_back_for_all_row_groups_and_batches(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    schema = create_schema(
        "k INT, s STRING, d DECIMAL(18, 2), a ARRAY<STRING>, t TIMESTAMP(3)", ["k"], (), {"bucket": "1"}
    )
    value = st.fixed_dictionaries(
        {
            "s": st.none() | st.text(max_size=4),
            "d": st.none() | st.decimals(-(10**15), 10**15, places=2),
            "a": st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3),
            "t": st.none() | st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
        }
    )
    values = data.draw(st.lists(st.tuples(value, st.integers(0, 3)), min_size=1, max_size=20))
    rows: list[Row] = [(at * 2, kind, {"k": at, **row}) for at, (row, kind) in enumerate(values)]
    table = rows_table(schema, rows)
    size = data.draw(st.integers(1, 20))
    batches = [table.slice(at, size) for at in range(0, len(table), size)]
    directory = tmp_path_factory.mktemp("any")
    (meta,) = write_files(directory, layout_of(schema, row_group_bytes=1), batches)
    found = read(directory / meta.file_name, schema, data.draw(st.sampled_from([1, 300, 1 << 20])))
    assert found.to_pylist() == table.to_pylist()
    assert meta.delete_row_count == sum(kind in (1, 3) for _, kind, _ in rows)


def test_nanoseconds_survive_a_round_trip(tmp_path: Path) -> None:
    schema = create_schema("k INT, t TIMESTAMP(9), l TIMESTAMP(7) WITH LOCAL TIME ZONE", ["k"], (), {"bucket": "1"})
    table = rows_table(schema, [(at, 0, {"k": at}) for at in range(4)])
    for name in ("t", "l"):
        at = table.schema.get_field_index(name)
        times = times_of_nanos([1, -1, 253_402_300_799_999_999_999, -62_135_596_799_999_999_999])
        table = table.set_column(at, table.schema.field(at), times)
    (meta,) = write_files(tmp_path, layout_of(schema), [table])
    assert read(tmp_path / meta.file_name, schema).equals(table)


def test_files_of_other_writers_are_read_with_optional_columns_other_order_and_decimals_as_bytes(tmp_path: Path) -> None:
    schema = create_schema("k INT, d DECIMAL(9, 2), t TIMESTAMP(3), s CHAR(3)", ["k"], (), {"bucket": "1"})
    foreign = pa.table(
        {
            "s": pa.array(["a", None], pa.large_string()),
            "t": pa.array([1_999_999, -1], pa.timestamp("us")),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            "_VALUE_KIND": pa.array([0, 3], pa.int32()),
            "_SEQUENCE_NUMBER": pa.array([5, 6], pa.int64()),
            "k": pa.array([1, 2], pa.int32()),
        }
    )
    path = tmp_path / "foreign.parquet"
    pq.write_table(foreign, path, data_page_version="2.0", compression="snappy")
    rows = read(path, schema).to_pylist()
    assert [(row["_SEQUENCE_NUMBER"], row["_VALUE_KIND"], row["k"], row["d"], row["s"]) for row in rows] == [
        (5, 0, 1, Decimal("1.25"), "a"),
        (6, 3, 2, None, None),
    ]
    epoch = dt.datetime(1970, 1, 1)
    assert [row["t"] - epoch for row in rows] == [dt.timedelta(milliseconds=1999), dt.timedelta(milliseconds=-1)]


def test_a_column_that_the_file_lacks_reads_as_null(tmp_path: Path) -> None:
    path, _ = write_one(tmp_path, int_rows(1, 3), INT_SCHEMA)
    wider = replace(INT_SCHEMA, fields=(*INT_SCHEMA.fields, replace(INT_SCHEMA.fields[1], id=9, name="w")))
    (batch,) = reader_of(path, INT_SCHEMA, wider).batches(lambda: 1000)
    assert batch[1].column("w").to_pylist() == [None] * 3
    # The file's schema may name a column that the file itself lacks.
    (batch,) = reader_of(path, wider, wider).batches(lambda: 1000)
    assert batch[1].column("w").to_pylist() == [None] * 3


def test_a_missing_file_is_corruption_and_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorruptTableError, match=r"data-x-0\.parquet"):
        reader_of(tmp_path / "data-x-0.parquet")


@pytest.mark.parametrize("damage", ["empty", "no footer", "cut", "text"])
def test_a_damaged_file_is_corruption_and_is_named(tmp_path: Path, damage: str) -> None:
    path, _ = write_one(tmp_path, int_rows(1, 300), INT_SCHEMA)
    data = path.read_bytes()
    path.write_bytes({"empty": b"", "no footer": data[:-8], "cut": data[: len(data) // 2], "text": b"hello" * 50}[damage])
    with pytest.raises(CorruptTableError, match=path.name):
        read(path, INT_SCHEMA)


def test_a_file_with_damaged_pages_is_corruption_and_is_named(tmp_path: Path) -> None:
    path, _ = write_one(tmp_path, int_rows(1, 3000), INT_SCHEMA)
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    path.write_bytes(data)
    with pytest.raises(CorruptTableError, match=path.name):
        read(path, INT_SCHEMA)


def test_a_parquet_file_without_system_columns_is_corruption(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"k": pa.array([1], pa.int32()), "v": ["x"]}), path)
    with pytest.raises(CorruptTableError, match=r"plain\.parquet"):
        read(path, INT_SCHEMA)


@pytest.mark.parametrize(
    ("values", "source", "target", "wanted"),
    [
        ([1, None, -128], pa.int8(), pa.int64(), [1, None, -128]),
        ([1.5, None], pa.float32(), pa.float64(), [1.5, None]),
        ([-1], pa.timestamp("us"), pa.timestamp("ms"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999000)]),
        ([5], pa.int32(), pa.decimal128(12, 2), [Decimal("5.00")]),
        ([Decimal("1.5")], pa.decimal128(5, 1), pa.decimal128(9, 3), [Decimal("1.500")]),
        ([Decimal("1.5")], pa.decimal128(5, 1), pa.float64(), [1.5]),
    ],
)
def test_casts_widen_and_floor(values: list[Any], source: pa.DataType, target: pa.DataType, wanted: list[Any]) -> None:
    assert cast_column(pa.array(values, source), target).to_pylist() == wanted

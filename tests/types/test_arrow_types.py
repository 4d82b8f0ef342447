"""Types converted to Arrow and back, and the Parquet field ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types import DataField, arrow_field, contiguous, from_arrow, output_arrow, parse_type, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("BIGINT", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("CHAR(3)", pa.string()),
        ("STRING", pa.string()),
        ("BINARY(3)", pa.binary()),
        ("BYTES", pa.binary()),
        ("DECIMAL(38, 10)", pa.decimal128(38, 10)),
        ("DATE", pa.date32()),
        ("TIME(9)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(3)", pa.timestamp("ms")),
        ("TIMESTAMP(6)", pa.timestamp("us")),
        ("TIMESTAMP(7)", NANO_TIMESTAMP),
        ("TIMESTAMP_LTZ(6)", pa.timestamp("us", tz="UTC")),
        ("ARRAY<INT NOT NULL>", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        ("MAP<STRING, INT>", pa.map_(pa.string(), pa.int32())),
        ("MULTISET<STRING>", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
        ("ROW<a INT>", pa.struct([pa.field("a", pa.int32())])),
    ],
)
def test_each_type_has_its_arrow_type(text: str, arrow: pa.DataType) -> None:
    assert to_arrow(parse_type(text)) == arrow


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("TIMESTAMP_LTZ(9)", pa.timestamp("ns", tz="UTC")),
        ("ARRAY<TIMESTAMP(9)>", pa.list_(pa.field("element", pa.timestamp("ns")))),
        ("MAP<INT, TIMESTAMP_LTZ(9) NOT NULL>", pa.map_(pa.int32(), pa.field("value", pa.timestamp("ns", "UTC"), False))),
        ("MULTISET<TIMESTAMP(9)>", pa.map_(pa.timestamp("ns"), pa.field("value", pa.int32(), nullable=False))),
        ("ROW<a TIMESTAMP(9)>", pa.struct([pa.field("a", pa.timestamp("ns"))])),
        ("CHAR(3)", pa.string()),
    ],
)
def test_users_get_arrows_nanoseconds(text: str, arrow: pa.DataType) -> None:
    assert output_arrow(parse_type(text)) == arrow


@pytest.mark.parametrize("text", ["VARIANT", "BLOB", "VECTOR<FLOAT, 4>"])
def test_a_type_without_values_in_lakelsm_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=text.split("<")[0]):
        to_arrow(parse_type(text))


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.large_binary(), "BYTES"),
        (pa.binary(4), "BINARY(4)"),
        (pa.date64(), "DATE"),
        (pa.time32("s"), "TIME(0)"),
        (pa.time64("us"), "TIME(3)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("ns"), "TIMESTAMP(9)"),
        (pa.timestamp("us", tz="Europe/Paris"), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        (pa.decimal128(10, 2), "DECIMAL(10, 2)"),
        (pa.dictionary(pa.int32(), pa.string()), "STRING"),
        (pa.large_list(pa.int64()), "ARRAY<BIGINT>"),
        (pa.list_(pa.int64(), 3), "ARRAY<BIGINT>"),
        (pa.map_(pa.string(), pa.list_(pa.int8())), "MAP<STRING NOT NULL, ARRAY<TINYINT>>"),
        (pa.struct([pa.field("a", pa.int16(), nullable=False)]), "ROW<`a` SMALLINT NOT NULL>"),
    ],
)
def test_every_arrow_type_of_users_is_accepted(arrow: pa.DataType, text: str) -> None:
    assert from_arrow(arrow).sql() == text


@pytest.mark.parametrize(
    "arrow",
    [
        pa.uint32(),
        pa.float16(),
        pa.duration("s"),
        pa.null(),
        pa.month_day_nano_interval(),
        pa.decimal128(5, -2),
    ],
)
def test_an_arrow_type_without_a_paimon_type_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidInputError):
        from_arrow(arrow)


def test_nested_parts_have_the_field_ids_that_java_gives_them() -> None:
    # docs/format.md 6.2: array id 27 and map id 28 of a table that Java wrote.
    array = arrow_field(DataField(27, "a", parse_type("ARRAY<INT>")))
    mapping = arrow_field(DataField(28, "m", parse_type("MAP<STRING, INT>")))
    assert array.metadata == {b"PARQUET:field_id": b"27"}
    assert array.type.value_field.metadata == {b"PARQUET:field_id": b"536898560"}
    assert mapping.type.key_field.metadata == {b"PARQUET:field_id": b"536842238"}
    assert mapping.type.item_field.metadata == {b"PARQUET:field_id": b"536899584"}


def test_deeper_parts_count_the_depth_from_the_column() -> None:
    # The example of Paimon's SpecialFields: ARRAY<MAP<INT, ARRAY<INT>>> with id 10.
    column = arrow_field(DataField(10, "a", parse_type("ARRAY<MAP<INT, ARRAY<INT>>>")))
    mapping = column.type.value_field
    base = 536870911
    parts = [mapping, mapping.type.key_field, mapping.type.item_field, mapping.type.item_type.value_field]
    expected = [base + 10241, base - 10242, base + 10242, base + 10243]
    assert [int(part.metadata[b"PARQUET:field_id"]) for part in parts] == expected


def test_several_arrays_become_one_and_one_array_is_not_copied() -> None:
    one = pa.array(["a", None])
    assert contiguous(one) is one and contiguous(pa.chunked_array([one])).equals(one)
    assert contiguous(pa.chunked_array([one, ["b"]])).to_pylist() == ["a", None, "b"]
    assert contiguous(pa.chunked_array([], pa.string())).equals(pa.array([], pa.string()))

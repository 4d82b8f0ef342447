"""Parquet footers: INT96 columns change, and all other content stays."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.data_file.parquet_footer import Int96Sink, metadata_with_int96_as_bytes, read_footer


def test_an_invalid_footer_is_an_error_of_arrow() -> None:
    nested = (b"\x29" * 40, b"\x19" * 3000, b"\x1c" * 3000)
    for footer in (b"", b"\x15", b"\x00", b"\x18\xff\xff\xff\x7f", *nested):
        with pytest.raises(pa.ArrowInvalid):
            metadata_with_int96_as_bytes(footer)


@given(st.binary(max_size=60))
def test_other_bytes_instead_of_a_footer_are_an_error_of_arrow(footer: bytes) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        metadata_with_int96_as_bytes(footer)


def parquet(table: pa.Table, **options: Any) -> bytes:
    """Return a file written through `Int96Sink`."""
    buffer = BytesIO()
    sink = Int96Sink(buffer)
    with pq.ParquetWriter(sink, table.schema, store_schema=False, **options) as writer:
        writer.write_table(table, row_group_size=2)
        assert sink.tell() == len(buffer.getvalue())
        sink.begin_footer()
    sink.finish()
    return buffer.getvalue()


def types(metadata: pq.FileMetaData) -> dict[str, tuple[str, int]]:
    columns = [metadata.schema.column(at) for at in range(len(metadata.schema.names))]
    for group in range(metadata.num_row_groups):
        chunks = [metadata.row_group(group).column(at).physical_type for at in range(len(columns))]
        assert chunks == [column.physical_type for column in columns]
    return {column.path: (column.physical_type, column.length) for column in columns}


TWELVE = pa.array([b"0123456789ab", None, b"cdefghijklmn"], pa.binary(12))


@pytest.mark.parametrize("more", [0, 6, 7, 8, 9, 10, 40])  # The count of 15 and more elements is encoded differently.
def test_only_plain_columns_of_twelve_bytes_become_int96(more: int) -> None:
    decimal = pa.array([1, 2, 3], pa.decimal128(27, 0))
    columns = {"a": TWELVE, "d": decimal, "e": pa.array([b"x" * 11] * 3, pa.binary(11)), "s": pa.array(["x", None, "y"])}
    columns |= {f"n{at}": pa.array([at] * 3) for at in range(more)}
    nested = pa.StructArray.from_arrays([TWELVE, pa.array([1, 2, 3])], ["x", "y"])
    table = pa.table({**columns, "r": nested})
    data = parquet(table)
    stored = pq.read_metadata(BytesIO(data))
    assert {path for path, (kind, _) in types(stored).items() if kind == "INT96"} == {"a", "r.x"}
    assert types(stored)["d"] == ("FIXED_LEN_BYTE_ARRAY", 12)
    footer = read_footer(pa.BufferReader(data))
    plain = metadata_with_int96_as_bytes(footer)
    assert types(plain) == {**types(stored), "a": ("FIXED_LEN_BYTE_ARRAY", 12), "r.x": ("FIXED_LEN_BYTE_ARRAY", 12)}
    assert pq.ParquetFile(BytesIO(data), metadata=plain).read().cast(table.schema).equals(table)


def test_unknown_parts_of_a_footer_do_not_change() -> None:
    """Statistics, key-value metadata and encodings stay, and a footer without any INT96 does not change."""
    table = pa.table({"k": [1, 2, 3], "f": [1.5, None, -0.0], "b": [True, False, None]})
    buffer = BytesIO()
    pq.write_table(table, buffer, write_page_index=True, sorting_columns=[pq.SortingColumn(0, True, True)])
    footer = read_footer(pa.BufferReader(buffer.getvalue()))
    same = metadata_with_int96_as_bytes(footer)
    truth = pq.read_metadata(buffer)
    assert same.to_dict()["row_groups"] == truth.to_dict()["row_groups"]
    assert (same.metadata, same.created_by, same.num_rows) == (truth.metadata, truth.created_by, 3)
    assert same.row_group(0).sorting_columns == truth.row_group(0).sorting_columns


@pytest.mark.parametrize(
    "tail",
    [b"", b"PAR1", b"\0\0\0\0PAR1", b"\xff\xff\xff\xffPAR1", (93).to_bytes(4, "little") + b"PAR1"],
    ids=["empty", "magic alone", "no length", "a length beyond the file", "a length up to the file's magic"],
)
def test_a_file_that_cannot_have_a_footer_is_an_error_of_arrow(tail: bytes) -> None:
    data = b"x" * (100 - len(tail)) + tail if len(tail) == 8 else tail
    with pytest.raises(pa.ArrowInvalid, match="the length of the Parquet footer exceeds the file"):
        read_footer(pa.BufferReader(data))


def test_the_longest_footer_that_a_file_can_have_is_read() -> None:
    data = b"PAR1" + b"f" * 88 + (88).to_bytes(4, "little") + b"PAR1"
    assert read_footer(pa.BufferReader(data)) == b"f" * 88

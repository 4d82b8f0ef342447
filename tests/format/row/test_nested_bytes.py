"""Arrays, maps and rows within rows are encoded and decoded, of any depth, in slices, with NULLs that hide elements."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.row.compacted_row import decode_compacted, encode_compacted
from lakelsm.format.row.nested_bytes import is_nested_type, nested_bytes
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType, parse_type, to_arrow

ATOMS: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "DECIMAL(9, 2)": st.decimals(-999, 999, places=2),
    "DECIMAL(30, 0)": st.decimals(-(10**29), 10**29, places=0),
    "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "BYTES": st.binary(max_size=20),
    "TIMESTAMP(3)": st.datetimes().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": st.datetimes(),
}

Case = tuple[DataType, "st.SearchStrategy[Any]"]


def _array(element: Case) -> Case:
    return ArrayType(element[0]), st.lists(st.none() | element[1], max_size=5)


def _map(value: Case) -> Case:
    keys = st.text("abcdefghijk", max_size=9)
    pairs = st.dictionaries(keys, st.none() | value[1], max_size=4).map(lambda found: list(found.items()))
    return MapType(parse_type("STRING NOT NULL"), value[0]), pairs


def _row(first: Case, second: Case) -> Case:
    fields = (DataField(0, "a", first[0]), DataField(1, "b", second[0]))
    return RowType(fields), st.fixed_dictionaries({"a": st.none() | first[1], "b": st.none() | second[1]})


def nested_cases() -> st.SearchStrategy[Case]:
    atoms = st.sampled_from([(parse_type(name), values) for name, values in ATOMS.items()])
    return st.recursive(
        atoms,
        lambda inner: inner.map(_array) | inner.map(_map) | st.builds(_row, inner, inner),
        max_leaves=4,
    ).filter(lambda case: is_nested_type(case[0]))


@given(st.data(), nested_cases(), st.booleans())
def test_nested_values_are_read_back(data: st.DataObject, case: Case, sliced: bool) -> None:
    data_type, values = case
    column = pa.array(data.draw(st.lists(st.none() | values, min_size=1, max_size=8)), to_arrow(data_type))
    column = column.slice(1) if sliced else column
    encoded = encode_compacted([column], [data_type]).combine_chunks()
    found = decode_compacted(RowBytes.of(encoded), [data_type])[0]
    found.validate(full=True)
    assert found.type == column.type
    assert found.to_pylist() == column.to_pylist()


def test_elements_of_null_lists_are_not_written() -> None:
    data_type = ArrayType(parse_type("INT"))
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(pa.array([0, 1, 3, 4], pa.int32()).buffers()[1])]
    column = pa.Array.from_buffers(to_arrow(data_type), 3, buffers, children=[pa.array([1, 2, 3, 4], pa.int32())])
    assert column.to_pylist() == [[1], None, [4]]
    found = nested_bytes(column, data_type).to_pylist()
    assert found[0].hex() == "01000000" + "00000000" + "01000000" + "00000000"
    assert found[2].hex() == "01000000" + "00000000" + "04000000" + "00000000"


def test_more_than_32_elements_have_more_null_bits() -> None:
    data_type = ArrayType(parse_type("TINYINT"))
    (found,) = nested_bytes(pa.array([[None] * 33], to_arrow(data_type)), data_type).to_pylist()
    assert found.hex() == "21000000" + "ffffffff01000000" + "00" * 36


def test_a_multiset_counts_its_elements() -> None:
    data_type = MultisetType(parse_type("INT NOT NULL"))
    (found,) = nested_bytes(pa.array([[(7, 2)]], to_arrow(data_type)), data_type).to_pylist()
    one = "01000000" + "00000000"
    assert found.hex() == "10000000" + one + "0700000000000000" + one + "0200000000000000"


@pytest.mark.parametrize("kind", ["ARRAY<VARIANT>", "MAP<INT, ARRAY<VARIANT>>", "ROW<a INT, b ARRAY<VARIANT>>"])
def test_types_without_bytes_are_refused(kind: str) -> None:
    assert not is_nested_type(parse_type(kind))
    assert is_nested_type(parse_type(kind.replace("VARIANT", "INT")))


def test_values_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="values of type int64 cannot be stored as ARRAY<INT>"):
        nested_bytes(pa.array([1]), parse_type("ARRAY<INT>"))
    with pytest.raises(UnsupportedFeatureError, match="VARIANT"):
        nested_bytes(pa.array([b"x"]), parse_type("VARIANT"))

"""Hashes of single keys equal those of arrays."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.format.row.single_hash import SingleHash
from lakelsm.types import DataType, parse_type, to_arrow
from tests.format.row.binary_row_cases import HASHES, WIDE, single_rows

_EPOCH = datetime(1970, 1, 1)
_PLAIN = {
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "BOOLEAN": st.booleans(),
    "DATE": st.dates(),
    "STRING": st.text(max_size=40),
    "CHAR(9)": st.text(max_size=9),
    "BYTES": st.binary(max_size=40),
    "TIME(3)": st.integers(0, 86_399_999).map(lambda millis: (_EPOCH + timedelta(milliseconds=millis)).time()),
    "DECIMAL(18, 4)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda number: Decimal(number).scaleb(-4)),
    "DECIMAL(38, 2)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(number).scaleb(-2, WIDE)),
    "DECIMAL(20, 0)": st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 127, 128, -128, -129, 0]).map(Decimal),
    "TIMESTAMP(3)": st.integers(-(10**13), 10**13).map(lambda millis: _EPOCH + timedelta(milliseconds=millis)),
    "TIMESTAMP(6)": st.datetimes(),
    "TIMESTAMP(5)": st.datetimes(),
    "TIMESTAMP_LTZ(6)": st.datetimes(timezones=st.just(timezone.utc)),
}


def _of_arrays(types: list[DataType], key: tuple[Any, ...]) -> int:
    columns = [pa.array([value], to_arrow(kind)) for value, kind in zip(key, types, strict=True)]
    return int(key_hashes(columns, types)[0]) & 0xFFFFFFFF


@st.composite
def _plain_keys(draw: st.DrawFn) -> tuple[list[str], tuple[Any, ...]]:
    names = draw(st.lists(st.sampled_from(sorted(_PLAIN)), min_size=1, max_size=60))
    return names, tuple(draw(_PLAIN[name]) for name in names)


@given(_plain_keys())
def test_keys_of_plain_types_have_the_hashes_of_arrays(case: tuple[list[str], tuple[Any, ...]]) -> None:
    types = [parse_type(name) for name in case[0]]
    hashes = SingleHash(types)
    assert hashes.is_plain
    assert hashes(case[1]) == _of_arrays(types, case[1])


@pytest.mark.parametrize("case", [case for case in HASHES if None not in case[1]], ids=str)
def test_keys_have_javas_hashes(case: tuple[tuple[str, ...], tuple[Any, ...], int]) -> None:
    names, values, expected = case
    arrays, types = single_rows(names, values)
    hashes = SingleHash(types)
    if hashes.is_plain:
        assert hashes([array[0].as_py() for array in arrays]) == expected & 0xFFFFFFFF
    else:
        assert any(name.startswith(("FLOAT", "DOUBLE", "TIMESTAMP")) for name in names)

"""Order keys compare exactly as the slow comparator of the oracle."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.row.binary_row import encode_row
from lakelsm.merge.key_order import group_starts, order_keys, rank_keys, stable_order
from lakelsm.types import AtomicType, DataType, parse_type, to_arrow
from tests.examples import examples
from tests.nano_times import column_of, times_of_nanos
from tests.oracle import sort_key

NAN, INF = float("nan"), float("inf")
EPOCH = dt.datetime(1970, 1, 1)
#: Lengths around the 8-byte words and the 48-byte limit of padded text, with NUL bytes and bytes above 0x7f.
TEXTS = st.one_of(
    st.text(alphabet="\0a\u007fé\uffff\U0001f600", max_size=6),
    st.text(alphabet="ab", min_size=6, max_size=18),
    st.text(alphabet="\0x", min_size=44, max_size=52),
)
BINARIES = st.one_of(st.binary(max_size=9), st.binary(min_size=46, max_size=50).map(lambda b: b[:2] + b"\0" * len(b)))


def signed(bits: int) -> st.SearchStrategy[int]:
    edge = 1 << (bits - 1)
    return st.one_of(st.integers(-edge, edge - 1), st.sampled_from([-edge, -1, 0, 1, edge - 1]))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound = 10**precision - 1
    unscaled = st.one_of(st.integers(-bound, bound), st.sampled_from([-bound, -1, 0, 1, bound, 2**64 % bound]))
    return unscaled.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


def timestamps(unit: dt.timedelta) -> st.SearchStrategy[dt.datetime]:
    moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
    return moments.map(lambda moment: EPOCH + (moment - EPOCH) // unit * unit)


MILLI, MICRO = dt.timedelta(milliseconds=1), dt.timedelta(microseconds=1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": signed(8),
    "SMALLINT": signed(16),
    "INT": signed(32),
    "BIGINT": signed(64),
    "FLOAT": st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, NAN, INF, -INF])),
    "DOUBLE": st.one_of(st.floats(), st.sampled_from([0.0, -0.0, NAN, -NAN, INF, -INF, 5e-324, -5e-324])),
    "DECIMAL(9, 2)": decimals(9, 2),
    "DECIMAL(18, 0)": decimals(18, 0),
    "DECIMAL(19, 4)": decimals(19, 4),
    "DECIMAL(38, 10)": decimals(38, 10),
    "CHAR(60)": TEXTS,
    "STRING": TEXTS,
    "BINARY(60)": BINARIES,
    "BYTES": BINARIES,
    "DATE": st.dates(),
    "TIME(3)": st.integers(0, 86_399_999).map(lambda ms: (EPOCH + ms * MILLI).time()),
    "TIMESTAMP(3)": timestamps(MILLI),
    "TIMESTAMP(6)": timestamps(MICRO),
    "TIMESTAMP(9)": timestamps(MICRO),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": timestamps(MICRO).map(lambda moment: moment.replace(tzinfo=dt.timezone.utc)),
}


def columns_of(rows: list[tuple[Any, ...]], types: list[str]) -> list[pa.ChunkedArray]:
    """The columns, in two chunks that are slices of longer arrays."""
    columns = []
    for at, name in enumerate(types):
        arrow = to_arrow(parse_type(name))
        values = [row[at] for row in rows]
        first, second = values[: len(values) // 2], values[len(values) // 2 :]
        padding = values[:1]
        columns.append(
            pa.chunked_array(
                [
                    column_of(padding + first, arrow).slice(len(padding)),
                    column_of(second + padding, arrow).slice(0, len(second)),
                ],
                arrow,
            )
        )
    return columns


def check_order(rows: list[tuple[Any, ...]], types: list[str]) -> None:
    keys = order_keys(columns_of(rows, types))
    assert len(keys) == len(rows)
    slow = [sort_key(row) for row in rows]
    for i in range(len(rows)):
        for j in range(len(rows)):
            assert bool(keys[i] < keys[j]) == (slow[i] < slow[j]), (rows[i], rows[j])
            assert bool(keys[i] == keys[j]) == (slow[i] == slow[j]), (rows[i], rows[j])
    sorted_slow = sorted(range(len(rows)), key=lambda i: (slow[i], i))
    assert np.argsort(keys, kind="stable").tolist() == sorted_slow


@pytest.mark.property
@pytest.mark.parametrize("type_name", VALUES)
@pytest.mark.parametrize("nulls", [False, True], ids=["no-nulls", "nulls"])
def test_a_key_of_one_column_has_the_order_of_its_values(type_name: str, nulls: bool) -> None:
    value = VALUES[type_name]
    row = st.tuples(st.one_of(st.none(), value) if nulls else value)

    @given(st.lists(row, max_size=12))
    @examples(50)
    def check(rows: list[tuple[Any, ...]]) -> None:
        check_order(rows, [type_name])

    check()


@given(st.data())
def test_a_key_of_several_columns_compares_by_the_first_column_that_differs(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=2, max_size=4))
    fields = []
    for name in types:
        few = data.draw(st.lists(VALUES[name], min_size=1, max_size=3))
        fields.append(st.sampled_from([*few, None] if data.draw(st.booleans()) else few))
    check_order(data.draw(st.lists(st.tuples(*fields), max_size=12)), types)


def test_a_text_is_below_the_same_text_followed_by_nul_bytes() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "a\0\0", "a\0b", "ab"]
    assert (np.diff(np.argsort(order_keys([pa.array(texts)]), kind="stable")) == 1).all()
    long = ["x" * 60, "x" * 60 + "\0", "x" * 61]
    keys = order_keys([pa.array([*texts, *long])])
    assert np.argsort(keys, kind="stable").tolist() == list(range(11))
    assert group_starts(keys).all()


def test_texts_below_and_above_the_padded_limit_compare_in_the_same_way() -> None:
    for length in (47, 48, 49):
        values = ["k" * (length - 1) + c for c in "cab"]
        assert np.argsort(order_keys([pa.array(values)])).tolist() == [1, 2, 0]


def test_binary_compares_by_unsigned_bytes() -> None:
    values = [b"\xff", b"\x7f", b"\x80", b"", b"\x00"]
    assert np.argsort(order_keys([pa.array(values, pa.binary())])).tolist() == [3, 4, 1, 2, 0]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_all_nans_are_one_key_above_infinity_and_the_zeros_are_one(kind: pa.DataType) -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], dtype=np.uint64)
    nans = pa.array(bits.view(np.float64))
    column = pa.concat_arrays([nans, pa.array([INF, -0.0, 0.0, 5e-324 if kind == pa.float64() else 1e-45, -1e-40])])
    for columns in ([column.cast(kind)], [column.cast(kind), pa.array(["x" * 9] * len(column))]):
        keys = order_keys(columns)
        assert keys[0] == keys[1] == keys[2] > keys[3] > keys[6] > keys[5] == keys[4] > keys[7]
        signed = order_keys(columns, signed_zeros=True)
        assert signed[0] == signed[1] == signed[2] > signed[3] > signed[6] > signed[5] > signed[4] > signed[7]


def test_nanoseconds_are_part_of_the_order() -> None:
    keys = order_keys([times_of_nanos([1001, 1000, -1, 0])])
    assert np.argsort(keys).tolist() == [2, 3, 1, 0]


@pytest.mark.parametrize("type_name", VALUES)
def test_no_rows_and_only_nulls_also_have_keys(type_name: str) -> None:
    arrow = to_arrow(parse_type(type_name))
    assert len(order_keys([pa.array([], arrow)])) == 0
    assert len(order_keys([pa.chunked_array([], arrow)])) == 0
    assert len(order_keys([pa.array([], arrow), pa.array([], pa.string()), pa.array([], pa.int64())])) == 0
    keys = order_keys([pa.nulls(3, arrow)])
    assert group_starts(keys).tolist() == [True, False, False]


def test_large_and_fixed_size_layouts_of_arrow_compare_as_the_usual_ones() -> None:
    values = [b"bb", b"ab", b"\xffa", None]
    for kind in (pa.large_binary(), pa.binary(2)):
        assert np.argsort(order_keys([pa.array(values, kind)])).tolist() == [3, 1, 0, 2]
    assert np.argsort(order_keys([pa.array(["b", "a", None], pa.large_string())])).tolist() == [2, 1, 0]


def test_a_nested_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="list"):
        order_keys([pa.array([[1]])])


def test_no_keys_have_no_group_starts() -> None:
    assert group_starts(np.array([], dtype=np.uint64)).tolist() == []


def test_the_comparator_of_the_oracle_is_a_total_order() -> None:
    values = [NAN, INF, 0.0, -0.0, None, -INF]
    ordered = sorted(
        values, key=cmp_to_key(lambda a, b: (sort_key([a]) > sort_key([b])) - (sort_key([a]) < sort_key([b])))
    )
    assert [repr(value) for value in ordered] == ["None", "-inf", "0.0", "-0.0", "inf", "nan"]


INT = AtomicType("INT")
STRING = AtomicType("VARCHAR", length=2147483647)
BYTES = AtomicType("VARBINARY", length=2147483647)


@pytest.mark.parametrize(
    ("data_type", "ascending"),
    [
        (INT, [None, -(2**31), -1, 0, 7, 2**31 - 1]),
        (AtomicType("BOOLEAN"), [None, False, True]),
        (STRING, [None, "", "Z", "a", "ab", "b", "é", "中", "😀"]),
        (BYTES, [None, b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]),
        (
            AtomicType("DECIMAL", precision=20, scale=2),
            [None, Decimal("-9.50"), Decimal("0.00"), Decimal("12.30")],
        ),
        (AtomicType("DOUBLE"), [None, float("-inf"), -1.5, 0.0, 1e300, float("inf"), float("nan")]),
        (AtomicType("FLOAT"), [None, -1.5, -0.0, 2.5, float("nan")]),
    ],
)
def test_one_column_keys_rank_in_order_with_nulls_first(data_type: DataType, ascending: list[object]) -> None:
    keys = [encode_row([value], [data_type]) for value in reversed(ascending)]
    assert rank_keys(keys, [data_type]).tolist() == list(reversed(range(len(ascending))))


@given(st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.text(max_size=2)), max_size=20))
def test_keys_of_two_columns_rank_as_tuples(rows: list[tuple[int | None, str | None]]) -> None:
    keys = [encode_row(row, [INT, STRING]) for row in rows]
    ranks = rank_keys(keys, [INT, STRING]).tolist()

    def order(row: tuple[int | None, str | None]) -> tuple[object, ...]:
        return (row[0] is not None, row[0] or 0, row[1] is not None, (row[1] or "").encode())

    assert ranks == [sorted({order(row) for row in rows}).index(order(row)) for row in rows]


@given(st.lists(st.tuples(st.text(alphabet="ab\0", max_size=12), st.integers(0, 2)), max_size=40))
def test_the_order_of_rows_is_that_of_a_stable_sort(rows: list[tuple[str, int]]) -> None:
    columns = [pa.array([text for text, _ in rows], pa.string()), pa.array([k for _, k in rows], pa.int64())]
    for keys in (order_keys(columns), order_keys(columns[1:])):
        assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()

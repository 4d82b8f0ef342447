"""Ranks of stored keys compare as Paimon compares the keys."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.row.binary_row import encode_row
from lakelsm.merge.key_rank import rank_keys
from lakelsm.types import AtomicType, DataType

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

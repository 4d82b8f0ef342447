"""Numbers of keys have their order, whatever rows they are among; keys without such numbers are told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lookup.store.key_numbers import KEY_NUMBER, KeyNumbers
from lakelsm.merge.key_order import order_keys
from tests.format.row.binary_row_cases import TYPE_NAMES, arrow_column, atomic_types, plain_values
from tests.lookup.store.keyed_tables import fields_of


@st.composite
def _keys(draw: st.DrawFn) -> tuple[KeyNumbers | None, pa.Table, list[tuple[Any, ...]]]:
    types = atomic_types(draw(st.lists(st.sampled_from(TYPE_NAMES), min_size=1, max_size=3)))
    rows = draw(st.lists(st.tuples(*map(plain_values, types)), min_size=2, max_size=20))
    fields = fields_of([kind.sql() for kind in types])
    columns = [arrow_column(list(values), kind) for values, kind in zip(zip(*rows), types, strict=True)]
    return KeyNumbers.of(fields), pa.table(columns, names=[field.name for field in fields]), rows


@given(_keys())
def test_numbers_have_the_order_of_keys_alone_and_together(case: Any) -> None:
    numbers, keys, rows = case
    if numbers is None:
        return
    found = numbers.of_keys(keys)
    ranks = order_keys(keys.columns)
    for at in range(1, len(rows)):
        assert (found[at - 1] < found[at]) == (ranks[at - 1] < ranks[at])
        assert (found[at - 1] == found[at]) == (ranks[at - 1] == ranks[at])
    assert [numbers.of_keys(keys.slice(at, 1)).tolist() for at in range(len(rows))] == [[each] for each in found]
    stored = numbers.added_to(keys).column(numbers.column)
    assert numbers.of_keys(keys.take([0, 0])).tolist() == [found[0]] * 2
    assert stored.null_count == 0 and len(stored) == len(rows)


@pytest.mark.parametrize(
    ("types", "column"),
    [
        (["BIGINT"], "k0"), (["DATE"], "k0"), (["TIMESTAMP(6)"], "k0"), (["INT", "INT"], KEY_NUMBER.name),
        (["DOUBLE"], KEY_NUMBER.name), (["DECIMAL(18, 2)"], KEY_NUMBER.name), (["BOOLEAN", "DATE"], KEY_NUMBER.name),
        (["STRING"], None), (["BYTES"], None), (["BIGINT", "BIGINT"], None), (["DECIMAL(19, 2)"], None),
    ],
)  # fmt: skip
def test_short_keys_of_fixed_width_have_numbers(types: list[str], column: str | None) -> None:
    numbers = KeyNumbers.of(fields_of(types))
    assert (None if numbers is None else numbers.column) == column


def test_one_key_of_python_values_has_the_number_of_arrays() -> None:
    for types, key in ((["BIGINT"], (-7,)), (["SMALLINT", "BOOLEAN"], (3, True)), (["DOUBLE"], (-1.5,))):
        fields = fields_of(types)
        numbers = KeyNumbers.of(fields)
        assert numbers is not None
        columns = [arrow_column([value], field.type) for value, field in zip(key, fields, strict=True)]
        table = pa.table(columns, names=[field.name for field in fields])
        assert numbers.of_key(key) == numbers.of_keys(table)[0]


def test_keys_with_a_null_have_no_number() -> None:
    numbers = KeyNumbers.of(fields_of(["INT", "INT"]))
    assert numbers is not None
    rows = pa.table({"k0": pa.array([1, None], pa.int32()), "k1": pa.array([1, 2], pa.int32())})
    assert numbers.added_to(rows).column(KEY_NUMBER.name).null_count

"""Values of another type are written if each of them fits; the error names the first one that does not."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_casts import UnfitValueError, cast_values
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import prepare_arrow
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import AtomicType, parse_type, python_arrow
from tests.safe_casts import HOSTILE, PAIRS, stored_value

_NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "DOUBLE": st.floats() | st.decimals(-(10**9), 10**9, places=3).map(float) | st.integers(-(2**70), 2**70).map(float),
    "FLOAT": st.floats(width=32),
    "DECIMAL(38, 2)": st.decimals(-(10**35), 10**35, places=2) | st.decimals(-300, 300, places=2),
    "DECIMAL(20, 19)": st.decimals(-9, 9, places=19) | st.integers(-9, 9).map(Decimal),
    "STRING": st.sampled_from(HOSTILE["STRING"]) | st.datetimes().map(str) | st.text(max_size=5),
    "TIMESTAMP(6)": st.datetimes() | st.dates().map(lambda day: dt.datetime(day.year, day.month, day.day)),
}


def _expected(values: Iterable[Any], source: str, target: str) -> tuple[list[Any], int | None]:
    """Return what is stored, up to the first value that does not fit, and the index of that value."""
    stored: list[Any] = []
    for at, value in enumerate(values):
        try:
            stored.append(None if value is None else stored_value(value, source, target))
        except (ValueError, OverflowError):
            return stored, at
    return stored, None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


def _check(values: list[Any], source: str, target: str) -> None:
    given_type, wanted = parse_type(source), parse_type(target)
    array = pa.array(values, python_arrow(given_type))
    stored, unfit = _expected(values, source, target)
    try:
        found = cast_values(array, given_type, wanted)
    except UnfitValueError as error:
        assert error.row == unfit, (values, source, target, error)
        return
    assert unfit is None, (values, unfit, source, target)
    pairs = list(zip(found.to_pylist(), stored, strict=True))
    assert all(_same(*pair) for pair in pairs), (pairs, source, target)


@given(st.data(), st.sampled_from(PAIRS))
def test_values_fit_or_the_first_unfit_one_is_found(data: st.DataObject, pair: tuple[str, str]) -> None:
    _check(data.draw(st.lists(st.none() | _NUMBERS[pair[0]], max_size=5)), *pair)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_edge_values_fit_by_the_rules_of_numbers_and_texts(source: str, target: str) -> None:
    for value in HOSTILE[source]:
        _check([value], source, target)
    fitting = [value for value in HOSTILE[source] if _expected([value], source, target)[1] is None]
    _check([*fitting, None], source, target)
    assert len(fitting) < len(HOSTILE[source]), "no value that does not fit is tried"


def _prepared(columns: str, table: pa.Table, **arguments: Any) -> pa.Table:
    schema = create_schema(f"k INT, {columns}", ["k"], [], {"bucket": "1"}, None, 0)
    return pa.Table.from_batches(
        prepare_arrow(ArrowInput.of(table), schema, TableOptions.parse(dict(schema.options)), **arguments)
    )


_BIG = 2**40
NESTED = [
    ("ARRAY<INT>", pa.array([[0], None, [1, None], []]), [[0], None, [1, None], []], [[1], [2, _BIG]]),
    ("MAP<STRING, INT>", pa.array([None, [("a", 1)]], pa.map_(pa.string(), pa.int64())), [None, [("a", 1)]],
     [[("b", _BIG)]]),
    ("MULTISET<TINYINT>", pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())), [[(1, 2)]], [[(1, _BIG)]]),
    ("ROW<x INT, d DATE>", pa.array([None, {"x": 1, "d": "2026-01-01"}]), [None, {"x": 1, "d": dt.date(2026, 1, 1)}],
     [{"x": _BIG, "d": None}]),
    ("ARRAY<ROW<x ARRAY<DECIMAL(3, 1)>>>", pa.array([[None, {"x": [1.5, None]}], [{"x": None}]]),
     [[None, {"x": [Decimal("1.5"), None]}], [{"x": None}]], [[{"x": [0.25]}]]),
]  # fmt: skip


@pytest.mark.parametrize(("target", "fitting", "stored", "unfit"), NESTED, ids=[case[0] for case in NESTED])
def test_parts_of_values_are_cast_at_any_depth(target: str, fitting: pa.Array, stored: Any, unfit: Any) -> None:
    def rows(values: pa.Array) -> pa.Table:
        return pa.table({"k": range(len(values)), "v": values})

    assert _prepared(f"v {target}", rows(fitting))["v"].to_pylist() == stored
    offset = pa.concat_arrays([fitting, fitting]).slice(1, len(fitting))
    assert _prepared(f"v {target}", rows(offset))["v"].to_pylist() == (stored * 2)[1 : len(stored) + 1]
    wrong = pa.concat_arrays([fitting, pa.array(unfit, fitting.type)])
    message = re.escape(f"row {len(fitting) + len(unfit)}, column 'v': ") + ".* does not fit " + target.split("<")[0]
    with pytest.raises(InvalidInputError, match=message):
        _prepared(f"v {target}", rows(wrong))


def test_the_error_names_the_first_unfit_row_of_all_columns_and_batches() -> None:
    rows = 70_000
    price, day = [1.5] * rows, ["2026-01-01"] * rows
    price[-1], day[-2] = 1.005, "2026-02-30"
    table = pa.table({"k": range(rows), "price": price, "day": day})
    with pytest.raises(InvalidInputError, match=r"row 69999, column 'day': '2026-02-30' does not fit DATE\. Use"):
        _prepared("price DECIMAL(10, 2), day DATE", table)
    with pytest.raises(InvalidInputError) as caught:
        _prepared("price DECIMAL(10, 2), day DATE", table.slice(rows - 1))
    refused = "Nothing was written: "
    assert str(caught.value) == refused + "row 1, column 'price': 1.005 does not fit DECIMAL(10, 2)."


def test_other_forms_of_a_value_are_cast_too() -> None:
    forms = {
        "INT": [pa.array([7], kind) for kind in (pa.uint64(), pa.float16(), pa.decimal256(20, 2))]
        + [pa.array([7]).dictionary_encode(), pa.array([7.0], pa.float32())],
        "DATE": [pa.array(["2026-01-01"], kind) for kind in (pa.large_string(), pa.string_view())]
        + [pa.array(["2026-01-01"]).dictionary_encode(), pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("ns"))],
    }
    for target, arrays in forms.items():
        for array in arrays:
            (found,) = _prepared(f"v {target}", pa.table({"k": [1], "v": array}))["v"].to_pylist()
            assert found == {"INT": 7, "DATE": dt.date(2026, 1, 1)}[target], array.type


def test_a_key_and_a_named_partition_are_cast() -> None:
    found = _prepared("p DATE", pa.table({"k": [1.0], "p": ["2026-01-01"]}), fixed={"p": dt.date(2026, 1, 1)})
    assert found.select(["k", "p"]).to_pylist() == [{"k": 1, "p": dt.date(2026, 1, 1)}]
    with pytest.raises(InvalidInputError, match=r"row 1, column 'k': 1\.5 does not fit INT"):
        _prepared("p DATE", pa.table({"k": [1.5], "p": ["2026-01-01"]}))


def test_nanoseconds_of_texts_are_kept_if_the_column_has_them() -> None:
    kind = parse_type("TIMESTAMP(9)")
    assert isinstance(kind, AtomicType)
    texts = pa.array(["2026-01-31 10:00:00.123456789", None, "0001-01-01"])
    from lakelsm.types.nano_timestamps import timestamp_texts

    assert timestamp_texts(cast_values(texts, parse_type("STRING"), kind)).to_pylist() == [
        "2026-01-31 10:00:00.123456789", None, "0001-01-01 00:00:00.000000000"
    ]  # fmt: skip

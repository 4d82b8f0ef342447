"""The keys of users, converted to stored values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import to_arrow
from tests.nano_times import times_of_nanos

UTC = datetime.timezone.utc


class Stream:
    """Rows in the form of data frames of other libraries."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested)


def keys_of(types: str, names: list[str], partitions: tuple[str, ...] = ()) -> LookupKeys:
    return LookupKeys.of(create_schema(types, names, partitions), names)


def one(kind: str, value: Any) -> Any:
    found = keys_of(f"k {kind}", ["k"]).single()((value,), {})
    return None if found is None else found[0]


def many(kind: str, values: pa.Array) -> tuple[list[Any], list[int]]:
    keys = keys_of(f"k {kind}", ["k"])
    found = keys.many(pa.table({"k": values}))
    assert found.stored.schema.types == [to_arrow(keys.fields[0].type)]
    assert found.rows.column("k").to_pylist() == values.to_pylist()
    indexes = list(range(len(values))) if found.indexes is None else found.indexes.tolist()
    return found.stored.column("k").to_pylist(), indexes


DAY = datetime.date(2026, 1, 2)
NOON = datetime.datetime(2026, 1, 2, 12)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("INT", 5, 5),
        ("INT", np.int64(5), 5),
        ("INT", 2**31, None),
        ("INT", -(2**31), -(2**31)),
        ("INT", np.uint64(2**40), None),
        ("INT", 10**30, None),
        ("TINYINT", 128, None),
        ("BIGINT", 2**63, None),
        ("BIGINT", Decimal("7"), 7),
        ("BIGINT", Decimal("7.5"), None),
        ("STRING", "é", "é"),
        ("VARCHAR(2)", "abc", "abc"),
        ("BYTES", b"x", b"x"),
        ("BYTES", bytearray(b"x"), b"x"),
        ("BOOLEAN", True, True),
        ("BOOLEAN", np.bool_(False), False),
        ("DATE", DAY, DAY),
        ("DECIMAL(5, 2)", Decimal("1.5"), Decimal("1.50")),
        ("DECIMAL(5, 2)", 3, Decimal("3.00")),
        ("DECIMAL(5, 2)", Decimal("1.555"), None),
        ("DECIMAL(5, 2)", 1000, None),
        ("DECIMAL(5, 2)", 10**40, None),
        ("DECIMAL(38, 0)", 10**37, Decimal(10**37)),
        ("DECIMAL(38, 38)", Decimal("0.5"), Decimal("0.5" + "0" * 37)),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", -0.0, 0.0),
        ("FLOAT", 0.5, 0.5),
        ("TIMESTAMP(3)", NOON, NOON),
        ("TIMESTAMP(3)", NOON.replace(microsecond=7), None),
        ("TIMESTAMP(6)", pd.Timestamp(NOON), NOON),
        ("TIMESTAMP(6)", DAY, datetime.datetime(2026, 1, 2)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
        ("TIME", datetime.time(1), datetime.time(1)),
        ("TIME", datetime.time(1, microsecond=1), None),
        ("INT", pa.scalar(5, pa.int8()), 5),
    ],
)
def test_a_value_is_converted_to_stored_form_or_none_if_no_row_has_it(kind: str, value: Any, expected: Any) -> None:
    found = one(kind, value)
    assert found == expected
    assert type(found) is type(expected)
    if kind == "DOUBLE":
        assert str(found) == str(expected)


def test_times_keep_nanoseconds() -> None:
    stored = times_of_nanos([1_000_000_001])[0].as_py()
    assert one("TIMESTAMP(9)", pd.Timestamp(1_000_000_001)) == stored
    assert many("TIMESTAMP(9)", pa.array([1_000_000_001], pa.timestamp("ns")))[0] == [stored]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", "5"),
        ("INT", 5.0),
        ("INT", float("nan")),
        ("INT", True),
        ("INT", None),
        ("INT", pd.NA),
        ("INT", [5]),
        ("INT", range(10**18)),
        ("INT", iter([5])),
        ("INT", {"k": 5}),
        ("INT", pa.scalar(None, pa.int32())),
        ("STRING", 5),
        ("STRING", b"x"),
        ("STRING", "\ud800"),
        ("BYTES", "x"),
        ("BOOLEAN", 1),
        ("DATE", NOON),
        ("DATE", "2026-01-02"),
        ("DOUBLE", "1"),
        ("DECIMAL(5, 2)", 1.5),
        ("TIMESTAMP(3)", NOON.replace(tzinfo=UTC)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", NOON),
        ("TIMESTAMP(3)", pd.NaT),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_column_and_the_type(kind: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"key column 'k': expected a value of ") as reported:
        one(kind, value)
    assert kind.split("(")[0] in str(reported.value) or kind == "STRING" or kind == "BYTES"


@pytest.mark.parametrize(("kind", "stored"), [("DATE", pa.date32()), ("TIMESTAMP(6)", pa.timestamp("us"))])
def test_a_time_that_python_cannot_represent_needs_get_many(kind: str, stored: pa.DataType) -> None:
    far = pa.array([2**31 - 1 if kind == "DATE" else 2**62], stored)
    with pytest.raises(UnsupportedFeatureError, match=r"key column 'k': Python cannot represent this time.*get_many"):
        one(kind, far[0])
    assert len(keys_of(f"k {kind}", ["k"]).many(pa.table({"k": far})).stored) == 1


@pytest.mark.parametrize("millis", [-1, 86_400_000])
def test_a_number_that_is_not_a_time_of_day_is_not_taken_for_another_one(millis: int) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"key column 'k': Python cannot represent this time.*get_many"):
        one("TIME(3)", pa.scalar(millis, pa.int32()))


def test_null_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidInputError, match=r"key column 'k': .*got None. NULL is equal to no value; get_many"):
        one("INT", None)


def test_values_are_given_by_position_or_by_name_in_any_case() -> None:
    single = keys_of("a INT, b STRING", ["a", "b"]).single()
    for values, named in (((1, "x"), {}), ((1,), {"B": "x"}), ((), {"b": "x", "a": 1})):
        assert single(values, named) == (1, "x")
    assert single((2**40, "x"), {}) is None


@pytest.mark.parametrize(
    ("values", "named", "fault"),
    [
        ((), {}, r"column 'a', 'b' of the lookup's key \(a, b\) is missing"),
        ((1,), {}, r"column 'b' of the lookup's key \(a, b\) is missing"),
        ((1, "x", 2), {}, r"key: expected 2 values \(a, b\), got 3"),
        ((1, "x"), {"c": 1}, r"column 'c' is not in the lookup's key \(a, b\)"),
        ((1, "x"), {"A": 1}, "key column 'a' is given twice"),
        (((1, "x"),), {}, "column 'b' of the lookup's key"),
    ],
)
def test_missing_and_surplus_values_are_refused(values: tuple[Any, ...], named: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInputError, match=fault):
        keys_of("a INT, b STRING", ["a", "b"]).single()(values, named)


@pytest.mark.parametrize(
    ("kind", "values", "expected", "indexes"),
    [
        ("INT", pa.array([1, 2**40, None, 3]), [1, 3], [0, 3]),
        ("INT", pa.array([1, 255], pa.uint8()), [1, 255], [0, 1]),
        ("BIGINT", pa.array([1, 2**64 - 1], pa.uint64()), [1], [0]),
        ("INT", pa.nulls(2), [], []),
        ("INT", pa.array([], pa.int64()), [], []),
        ("INT", pa.array([Decimal("1.5"), Decimal(2)]), [2], [1]),
        ("STRING", pa.array(["a", None, "a"]).dictionary_encode(), ["a", "a"], [0, 2]),
        ("STRING", pa.array(["x"], pa.large_string()), ["x"], [0]),
        ("TIMESTAMP(3)", pa.array([0, 1_001], pa.timestamp("us")), [datetime.datetime(1970, 1, 1)], [0]),
        ("DECIMAL(4, 1)", pa.array([1, 1000]), [Decimal("1.0")], [0]),
        ("DOUBLE", pa.array([0.5], pa.float32()), [0.5], [0]),
    ],
)
def test_many_values_are_converted_if_a_row_can_have_them(
    kind: str, values: pa.Array, expected: list[Any], indexes: list[int]
) -> None:
    assert many(kind, values) == (expected, indexes)


@pytest.mark.parametrize(
    ("kind", "values"),
    [("INT", ["1"]), ("INT", [1.0]), ("STRING", [1]), ("FLOAT", [0.1]), ("INT", [True]), ("DATE", [NOON])],
)
def test_columns_of_other_types_are_refused_with_a_remedy(kind: str, values: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"key column 'k': the keys have \w+.*, the table has .*Cast the keys"):
        many(kind, pa.array(values))


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"x": [1]}, r"keys: column 'k' of the lookup's key \(k\) is missing. Columns: x"),
        ({"k": [1], "x": [1]}, r"keys: column 'x' is not in the lookup's key \(k\). keys.select\(\['k'\]\)"),
        ({"k": [1], "K": [1]}, "keys: column 'K', 'k' occurs more than once"),
    ],
)
def test_missing_and_surplus_columns_are_refused(columns: dict[str, list[int]], fault: str) -> None:
    with pytest.raises(InvalidInputError, match=fault):
        keys_of("k INT", ["k"]).many(pa.table(columns))


def test_keys_may_have_any_form_case_and_order() -> None:
    keys = keys_of("a INT, b STRING", ["a", "b"])
    given = pa.table({"B": ["x", "y"], "A": [1, 2]})
    forms = [given, given.to_batches()[0], given.to_reader(), given.to_pandas(), Stream(given)]
    for form in forms:
        found = keys.many(form)
        assert found.stored.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
        assert found.rows.column_names == ["A", "B"]
    for wrong in ("k", None, 5, np.array([1])):
        with pytest.raises(InvalidInputError, match="keys: expected rows in memory"):
            keys.many(wrong)


NANO = pd.Timestamp("2026-01-02 12:00:00.000000001")


@pytest.mark.parametrize(
    ("types", "given", "stored", "indexes"),
    [
        ("k INT", [1, None, 2**40, 2], [(1,), (2,)], [0, 3]),
        ("k INT", (1, 2), [(1,), (2,)], None),
        ("k INT", range(1, 3), [(1,), (2,)], None),
        ("k INT", {2}, [(2,)], None),
        ("k INT", np.array([1, 2]), [(1,), (2,)], None),
        ("k INT", np.array([1, None], dtype=object), [(1,)], [0]),
        ("k INT", pd.Series([1, 2]), [(1,), (2,)], None),
        ("k INT", pd.Index([1, 2]), [(1,), (2,)], None),
        ("k INT", pa.array([1, 2]), [(1,), (2,)], None),
        ("k INT", pa.chunked_array([[1], [2]]), [(1,), (2,)], None),
        ("k INT", [(1,), (2,)], [(1,), (2,)], None),
        ("k INT", [], [], None),
        ("k INT", [None], [], []),
        ("k BIGINT", [2**70, 1, -1], [(1,), (-1,)], [1, 2]),
        ("k DECIMAL(5, 2)", [1, Decimal("1.5"), Decimal("1.555")], [(Decimal("1.00"),), (Decimal("1.50"),)], [0, 1]),
        ("k TIMESTAMP(6)", [NOON, NANO], [(NOON,)], [0]),
        ("k DOUBLE", [1, 0.5], [(1.0,), (0.5,)], None),
        ("k BYTES", [b"x"], [(b"x",)], None),
        ("a INT, b STRING", [(1, "x"), [2, None]], [(1, "x")], [0]),
        ("a INT, b STRING", [{"B": "x", "A": 1}, {"A": 2, "B": "y"}], [(1, "x"), (2, "y")], None),
        ("a INT, b STRING", [], [], None),
    ],
)
def test_keys_in_a_list_are_values_tuples_or_dicts(types: str, given: Any, stored: Any, indexes: Any) -> None:
    names = [part.split()[0] for part in types.split(", ") if part[0] in "kab"]
    found = keys_of(types, names).many(given)
    assert list(zip(*(column.to_pylist() for column in found.stored.columns))) == stored
    assert len(found.rows) == len(given) and len(found.rows.columns) == len(names)
    assert (None if found.indexes is None else found.indexes.tolist()) == indexes


@pytest.mark.parametrize(
    ("types", "given", "fault"),
    [
        ("k INT", ["1"], "key column 'k': the keys have string, the table has int32"),
        ("k INT", [1.0], "key column 'k': the keys have double"),
        ("k INT", [1, "a"], r"key column 'k': expected a value of INT"),
        ("k INT", [1, True], r"key column 'k': .*\[1, True\]"),
        ("k INT", [(1, 2)], "key column 'k': the keys have list"),
        ("k INT", [object()], "key column 'k': .*got an object of type object"),
        ("k INT", [10**100], "key column 'k': .*1000"),
        ("k INT", [{"k": 1}, 2], r"key column 'k': .*\[\{'k': 1\}, 2\]"),
        ("k INT", [{"k": 1}, {}], "keys: a dict has no 'k'. Each dict needs all columns of \\(k\\)"),
        ("k INT", [{"k": 1, "x": 2}], "keys: column 'x' is not in the lookup's key"),
        ("k INT", [{1: 1}], "a list of dicts by the names of columns"),
        ("k INT", {1: [1]}, "a dict of the columns k"),
        ("k INT", {"k": 1}, "column 'k' of keys: expected a list"),
        ("k INT", np.array([[1]]), "column 'k' of keys: expected .* got an array of 2 dimensions"),
        ("k INT", pd.Series(["a"]), "key column 'k': the keys have .*string, the table has int32"),
        ("k DATE", [datetime.date(2026, 1, 1), NOON], "key column 'k': expected a value of DATE"),
        ("k STRING", ["a", b"a"], "key column 'k': expected a value of STRING"),
        ("k TIME(3)", [datetime.time(1, tzinfo=datetime.timezone.utc)], "key column 'k': .* a value of TIME"),
        ("a INT, b STRING", {"a": [1]}, "keys: column 'b' of the lookup's key .* is missing"),
        ("a INT, b STRING", {"a": [1, 2], "b": ["x"]}, "differ in length"),
        ("a INT, b STRING", [1, 2], r"keys: expected a list of tuples of 2 values \(a, b\), or of dicts"),
        ("a INT, b STRING", (1, "x"), "a list of tuples of 2 values"),
        ("a INT, b STRING", [(1, "x"), (2,)], "a list of tuples of 2 values"),
        ("a INT, b STRING", [{"a": 1}], "keys: column 'b' of the lookup's key .* is missing"),
    ],
)
def test_wrong_keys_in_a_list_are_refused(types: str, given: Any, fault: str) -> None:
    names = [part.split()[0] for part in types.split(", ") if part[0] in "kab"]
    with pytest.raises(InvalidInputError, match=fault):
        keys_of(types, names).many(given)


def test_keys_of_partitions_distinguish_the_two_zeros() -> None:
    found = keys_of("p DOUBLE, k DOUBLE", ["p", "k"], ("p",)).many(pa.table({"p": [-0.0], "k": [-0.0]}))
    assert str(found.stored.to_pydict()) == "{'p': [-0.0], 'k': [0.0]}"


def test_keys_of_nested_types_are_refused() -> None:
    schema = create_schema("k INT, v ARRAY<INT>", ["k"], ())
    with pytest.raises(InvalidInputError, match="key column 'v' has type ARRAY<INT>"):
        LookupKeys.of(schema, ["v"])

"""Functions that choose one of the values, their retractions, and results that a column refuses."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.functions.aggregate_functions import FUNCTIONS
from tests.merge.one_key import DELETE, GROUP, INSERT, UPDATE_BEFORE, function, merged

NAN = float("nan")


def folded(name: str, column: str, *values: Any) -> Any:
    return merged(column, function(name), *((INSERT, value) for value in values))


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("last_value", ["a", "b", None], None),
        ("last_non_null_value", ["a", "b", None], "b"),
        ("first_value", [None, "a"], None),
        ("first_non_null_value", [None, "a", "b"], "a"),
        ("first_not_null_value", [None, "a", "b"], "a"),
        ("max", [None, "a", "b", "\u00e9", None], "\u00e9"),
        ("min", ["b", "a\0", "a", None], "a"),
        ("last_non_null_value", [None, None], None),
        ("max", [None, None], None),
    ],
)
def test_a_function_chooses_its_value(name: str, values: list[str | None], expected: str | None) -> None:
    assert folded(name, "STRING", *values) == expected


@pytest.mark.parametrize(
    ("column", "smallest", "greatest"),
    [
        ("INT", -(2**31), 2**31 - 1),
        ("DOUBLE", float("-inf"), NAN),
        ("DOUBLE", -0.0, 0.0),
        ("DATE", dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        ("BYTES", b"", b"\x80"),
        ("BOOLEAN", False, True),
    ],
)
def test_the_extremes_are_those_of_java(column: str, smallest: Any, greatest: Any) -> None:
    for values in ((smallest, greatest), (greatest, None, smallest)):
        assert repr(folded("max", column, *values)) == repr(greatest)
        assert repr(folded("min", column, *values)) == repr(smallest)


@pytest.mark.parametrize(
    ("values", "every", "some"),
    [
        ([True, None, True], True, True),
        ([True, False, None], False, True),
        ([False, False], False, False),
        ([None, None], None, None),
    ],
)
def test_booleans_are_folded_without_nulls(values: list[bool | None], every: bool | None, some: bool | None) -> None:
    assert folded("bool_and", "BOOLEAN", *values) is every
    assert folded("bool_or", "BOOLEAN", *values) is some


def test_a_retraction_of_a_value_leaves_null() -> None:
    assert merged("INT", function("last_value"), (INSERT, 1), (DELETE, None)) is None
    assert merged("INT", function("last_non_null_value"), (INSERT, 1), (DELETE, None)) == 1
    assert merged("INT", function("last_non_null_value"), (INSERT, 1), (DELETE, 7)) is None
    assert merged("INT", function("primary-key"), (INSERT, 1), (DELETE, 7)) == 7


@pytest.mark.parametrize("name", ["last_value", "last_non_null_value"])
def test_a_retraction_that_the_column_ignores_changes_nothing(name: str) -> None:
    assert merged("INT", function(name, ignore_retract="true"), (INSERT, 1), (DELETE, 1), (UPDATE_BEFORE, 1)) == 1


def test_an_older_row_of_a_group_is_the_first_and_never_the_last() -> None:
    rows = (INSERT, 5, 5), (INSERT, 4, 4)
    found = {name: merged("INT", {**GROUP, **function(name)}, *rows) for name in ("first_value", "last_value")}
    assert found == {"first_value": 4, "last_value": 5}
    filled = (INSERT, None, 5), (INSERT, 4, 4), (INSERT, 3, 3)
    assert merged("INT", {**GROUP, **function("last_non_null_value")}, *filled) == 4


def test_an_older_value_confirms_the_first_one_that_is_not_null() -> None:
    options = {**GROUP, **function("first_non_null_value")}
    assert merged("INT", options, (INSERT, None, 3), (INSERT, 5, 2), (INSERT, 7, 1)) == 5


@pytest.mark.parametrize("name", sorted(name for name, (_, retracts) in FUNCTIONS.items() if not retracts))
@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize("engine", [{}, GROUP], ids=["aggregation", "a sequence group"])
def test_a_function_that_cannot_retract_names_the_options(engine: dict[str, str], kind: int, name: str) -> None:
    options, column, value = {**engine, **function(name)}, *_SAMPLES.get(name, ("INT", 1))
    with pytest.raises(
        InvalidInputError, match=rf"aggregate function '{name}' cannot retract .*'fields\.v\.ignore-retract' = 'true'"
    ):
        merged(column, options, (INSERT, value), (kind, value))
    assert merged(column, {**options, "fields.v.ignore-retract": "true"}, (INSERT, value), (kind, value)) == value


_NESTED = "ARRAY<ROW<k INT, v INT>>"
#: A type and a value for functions that do not accept INT.
_SAMPLES: dict[str, tuple[str, Any]] = {
    "bool_and": ("BOOLEAN", True),
    "bool_or": ("BOOLEAN", True),
    "hll_sketch": ("BYTES", b"\0"),
    "listagg": ("STRING", "a"),
    "merge_map_with_keytime": ("MAP<INT, ROW<t STRING>>", [(1, {"t": "1"})]),
    "nested_partial_update": (_NESTED, [{"k": 1, "v": 2}]),
    "rbm32": ("BYTES", b"\0"),
    "rbm64": ("BYTES", b"\0"),
    "theta_sketch": ("BYTES", b"\0"),
}


@pytest.mark.parametrize("options", [{}, function("last_value")], ids=["the default function", "last_value"])
def test_a_not_null_column_that_a_retraction_would_empty_is_refused(options: dict[str, str]) -> None:
    message = r"column 'v': a merge made it NULL.*nullable, or set 'fields\.v\.ignore-retract' = 'true'"
    with pytest.raises(InvalidInputError, match=message):
        merged("STRING NOT NULL", options, (INSERT, "a"), (DELETE, "a"))
    assert merged("STRING", options, (INSERT, "a"), (DELETE, "a")) is None

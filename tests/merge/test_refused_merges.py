"""Rows that no merge can make a row of are refused with the column, the option and the remedy."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.kernel import MergeSpec, merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import to_arrow

INSERT, UPDATE_BEFORE, DELETE = 0, 1, 3
GROUP = {"merge-engine": "partial-update", "fields.g.sequence-group": "v"}


def merged(column: str, options: dict[str, str], *rows: tuple[int, Any]) -> list[Any]:
    """Merge rows (kind, value) of one key; ``column`` is the type of the value column ``v``."""
    schema = create_schema(f"id INT, v {column}, g INT", ["id"], [], {"merge-engine": "aggregation", **options})
    count = len(rows)
    table = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(range(count), pa.int64()),
            "_VALUE_KIND": pa.array([kind for kind, _ in rows], pa.int8()),
            "id": pa.array([1] * count, pa.int32()),
            "v": pa.array([value for _, value in rows], to_arrow(schema.field("v").type)),
            "g": pa.array(range(count), pa.int32()),
        }
    )
    spec = MergeSpec.of(schema, TableOptions.parse(schema.options))
    found: list[Any] = merge_rows(table, order_keys([table.column("id")]), spec).column("v").to_pylist()
    return found


def function(name: str, **settings: str) -> dict[str, str]:
    named = {f"fields.v.{key.replace('_', '-')}": value for key, value in settings.items()}
    return {"fields.v.aggregate-function": name, **named}


@pytest.mark.parametrize("type_name", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
@pytest.mark.parametrize("name", ["sum", "product"])
def test_an_integer_that_leaves_its_type_is_refused_and_never_wraps(name: str, type_name: str) -> None:
    most = 2 ** ({"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[type_name] - 1) - 1
    message = rf"'{name}' of column 'v' has no result of type {type_name} .*make the column wider or correct the rows"
    with pytest.raises(InvalidInputError, match=message):
        merged(type_name, function(name), (INSERT, most), (INSERT, 2))
    with pytest.raises(InvalidInputError, match=message):
        merged(type_name, function(name), (INSERT, -most), (INSERT, {"sum": -2, "product": 2}[name]))
    assert merged(type_name, function(name), (INSERT, most), (INSERT, {"sum": 0, "product": 1}[name])) == [most]


def test_a_sum_that_overflows_on_the_way_is_refused_although_its_end_would_fit() -> None:
    with pytest.raises(InvalidInputError, match="type INT"):
        merged("INT", function("sum"), (INSERT, 2**31 - 1), (INSERT, 1), (DELETE, 1))


def test_a_decimal_that_leaves_its_precision_is_null_as_in_paimon() -> None:
    assert merged("DECIMAL(3, 1)", function("sum"), (INSERT, Decimal("99.9")), (INSERT, Decimal("0.1"))) == [None]
    with pytest.raises(InvalidInputError, match="column 'v' is NOT NULL"):
        merged("DECIMAL(3, 1) NOT NULL", function("sum"), (INSERT, Decimal("99.9")), (INSERT, Decimal("0.1")))


def test_a_division_without_result_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'product' of column 'v' has no result of type INT"):
        merged("INT", function("product"), (INSERT, 6), (DELETE, 0))
    with pytest.raises(InvalidInputError, match=r"no result of type DECIMAL\(9, 2\)"):
        merged("DECIMAL(9, 2)", function("product"), (INSERT, Decimal("1.00")), (DELETE, Decimal("3.00")))


@pytest.mark.parametrize("name", ["max", "min", "first_value", "first_non_null_value"])
@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize("engine", [{}, GROUP], ids=["aggregation", "a sequence group"])
def test_a_function_that_cannot_retract_says_how_to_ignore_it(engine: dict[str, str], kind: int, name: str) -> None:
    options = {**engine, **function(name)}
    with pytest.raises(
        InvalidInputError, match=rf"'{name}' of column 'v' cannot retract .*'fields\.v\.ignore-retract' = 'true'"
    ):
        merged("INT", options, (INSERT, 1), (kind, 1))
    assert merged("INT", {**options, "fields.v.ignore-retract": "true"}, (INSERT, 1), (kind, 1)) == [1]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({}, r"'fields\.v\.ignore-retract'"),
        (function("last_value"), r"'fields\.v\.ignore-retract'"),
        (GROUP, "'ignore-delete'"),
    ],
    ids=["the default function", "last_value", "a sequence group"],
)
def test_a_not_null_column_that_a_retraction_would_empty_is_refused(options: dict[str, str], remedy: str) -> None:
    with pytest.raises(
        InvalidInputError, match=f"column 'v' is NOT NULL, and a merge made it NULL.*nullable or set {remedy} = 'true'"
    ):
        merged("STRING NOT NULL", options, (INSERT, "a"), (DELETE, "a"))
    assert merged("STRING", options, (INSERT, "a"), (DELETE, "a")) == [None]


def test_a_nested_row_without_its_key_is_refused_where_the_table_says_so() -> None:
    rows = "ARRAY<ROW<k INT, v INT>>"
    options = function("nested_update", nested_key="k", nested_key_null_strategy="error")
    first, second = [{"k": 1, "v": 1}], [{"k": None, "v": 2}]
    with pytest.raises(InvalidInputError, match=r"NULL in its nested key \(k\); fill it or set .*'ignore'"):
        merged(rows, options, (INSERT, first), (INSERT, second))
    ignored = function("nested_update", nested_key="k", nested_key_null_strategy="ignore")
    assert merged(rows, ignored, (INSERT, first), (INSERT, second)) == [first]


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize("engine", ["first-row", "partial-update"])
def test_an_engine_without_deletes_says_how_to_take_them(engine: str, kind: int) -> None:
    with pytest.raises(InvalidInputError, match=f"'merge-engine' = '{engine}' takes no rows .*'ignore-delete' = 'true'"):
        merged("INT", {"merge-engine": engine}, (INSERT, 1), (kind, 1))

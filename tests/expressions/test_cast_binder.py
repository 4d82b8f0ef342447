"""CAST and TRY_CAST in queries; `test_expressions_beside_spark` compares random casts."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST('12' AS INT)", 12),
        ("CAST(1.25 AS DECIMAL(3, 1))", Decimal("1.3")),
        ("TRY_CAST('12' AS INT)", 12),
        ("TRY_CAST('x' AS INT)", None),
        ("TRY_CAST(300 AS TINYINT)", None),
        ("TRY_CAST(123.45 AS DECIMAL(3, 1))", None),
        ("TRY_CAST(NULL AS DATE)", None),
        ("TIMESTAMP '2024-01-02 03:04:05'", datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
    ],
)
def test_casts(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_a_failed_try_cast_hides_no_other_error() -> None:
    with pytest.raises(InvalidInputError, match="division by zero"):
        value_of("TRY_CAST(1 DIV 0 AS INT)")


@pytest.mark.parametrize("expression", ["TRY_CAST('1.5' AS DOUBLE)", "CAST(1 AS INTERVAL DAY)", "CAST(X'61' AS INT)"])
def test_other_types_are_refused_by_name(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression)

"""Conversion of expressions: supported ones, and refused ones by name."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.predicate.parser import parse_expression
from tests.predicate.expressions import FIELDS


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("5", "INT"),
        ("-2147483648", "INT"),
        ("-(2147483648)", "BIGINT"),
        ("5L", "BIGINT"),
        ("-128Y", "TINYINT"),
        ("9223372036854775808", "DECIMAL(19, 0)"),
        ("1.50", "DECIMAL(3, 2)"),
        ("0.05", "DECIMAL(2, 2)"),
        ("1.5BD", "DECIMAL(2, 1)"),
        ("1e3", "DOUBLE"),
        ("0.1F", "FLOAT"),
        ("CAST(2Y AS BIGINT)", "BIGINT"),
        ("CAST(10 AS BIGINT) / d", "DECIMAL(28, 6)"),
        ("10L / d", "DECIMAL(10, 6)"),
        ("CAST(10 AS INT) * d", "DECIMAL(16, 2)"),
        ("NULL / d", "DOUBLE"),
        ("d / NULL", "DECIMAL(13, 8)"),
        ("NULL % d", "DECIMAL(5, 2)"),
        ("-CAST(3L AS TINYINT)", "TINYINT"),
        ("'it''s' || \"q'\"", "STRING"),
        ("bin || X'41'", "BYTES"),
        ("CAST(d AS DECIMAL)", "DECIMAL(10, 0)"),
        ("d::BIGINT", "BIGINT"),
        ("NULL", "NULL"),
        ("coalesce(NULL, n)", "INT"),
        ("`N` + 1", "INT"),
        ("n > 2 AND ok", "BOOLEAN"),
        ("DATE '2020-01-01'", "DATE"),
        ("TIMESTAMP '2020-01-01 00:00:00+01:00'", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ],
)
def test_an_expression_has_its_type_in_spark(sql: str, kind: str) -> None:
    assert parse_expression(sql, FIELDS).type.sql() == kind


@pytest.mark.parametrize(
    "sql",
    [
        *("upper(v)", "max(n)", "explode(arr)", "n DIV 2", "n & 1", "*", "(1, 2)", "arr[0]", "n + v", "x || 'a'"),
        *("day + 1", "CAST(v AS INT)", "try_cast(n AS INT)", "'a\\nb'", "'${x}'", "r'a'", "128Y", "1e400"),
        *("current_date", "rand()", "if(arr = arr, 1, 2)"),
        *("CASE WHEN ok THEN 1 ELSE 'a' END", "CASE WHEN n THEN 1 END", "v LIKE upper(v)"),
        *("TIMESTAMP '2020-01-01 00:00:00'", "DATE '2020-02-30'", "INTERVAL 1 DAY", "coalesce(ts, CAST(ts AS STRING))"),
        *("(SELECT 1)", "n IN (SELECT 1)", "transform(arr, y -> y + 1)"),
    ],
)
def test_an_expression_that_needs_spark_is_refused_by_name(sql: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"the local engine cannot evaluate .* Pass engine='spark'"):
        parse_expression(sql, FIELDS)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "it is empty"),
        ("n +", "cannot parse expression 'n \\+': line 1, column 3"),
        ("n; 1", "more than one expression"),
        ("n AS m", "cannot parse expression"),
        ("n + nope", "expression: column 'nope' does not exist. Columns: i8, i16, n"),
        ("(" * 200 + "n" + ")" * 200, "nested too deeply"),
    ],
)
def test_an_invalid_expression_is_refused_with_the_position(sql: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_expression(sql, FIELDS)

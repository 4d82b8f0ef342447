"""DuckDB as a library: a missing package, its settings, and its errors."""

from __future__ import annotations

import sys

import duckdb
import pytest

from lakelsm.errors import InvalidInputError, OutOfMemoryError
from lakelsm.expressions.duckdb_library import database_settings, imported_duckdb, raised


def test_the_module_is_returned() -> None:
    assert imported_duckdb("a query", "pass engine='spark'") is duckdb


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InvalidInputError, match=r"^a query needs DuckDB.*Install lakelsm\[sql\], or pass it"):
        imported_duckdb("a query", "pass it")


def test_a_database_takes_the_settings() -> None:
    connection = duckdb.connect(":memory:", config=database_settings(2))
    found = "SELECT current_setting('threads'), current_setting('autoload_known_extensions')"
    assert connection.execute(found).fetchone() == (2, False)
    connection.close()


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (duckdb.ConversionException("Could not cast 'lakelsm: division by zero' to INT"), InvalidInputError,
         "x: division by zero."),
        (duckdb.OutOfRangeException("Overflow in addition!\nLINE 1"), InvalidInputError, "x: overflow: addition."),
        (duckdb.OutOfMemoryException("failed to pin block"), OutOfMemoryError,
         "x: DuckDB needs more memory or disk space than it may use: failed to pin block."),
    ],
)  # fmt: skip
def test_errors_of_duckdb(error: Exception, kind: type[Exception], message: str) -> None:
    found = raised(error, "x")
    assert (type(found), str(found)) == (kind, message)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT -a FROM (SELECT (-128)::TINYINT AS a)", "overflow: negation of numeric value."),
        ("SELECT a * 2 FROM (SELECT 5e18::BIGINT AS a)", "overflow: 5000000000000000000 * 2 does not fit BIGINT."),
        ("SELECT a + 1::TINYINT FROM (SELECT 127::TINYINT AS a)", "overflow: 127 + 1 does not fit TINYINT."),
        ("SELECT abs(a) FROM (SELECT (-128)::TINYINT AS a)", "overflow: abs(-128)."),
        ("SELECT a::INT FROM (SELECT 1e308::DOUBLE AS a)", "1e+308 does not fit INT."),
        ("SELECT a::INT FROM (SELECT 9223372036854775807 AS a)", "9223372036854775807 does not fit INT."),
        ("SELECT a::DECIMAL(5, 2) FROM (SELECT 12345.5::DECIMAL(10, 2) AS a)", "12345.50 does not fit DECIMAL(5,2)."),
        ("SELECT a::BIGINT FROM (SELECT 99999999999999999999::DECIMAL(38, 0) AS a)", "9" * 20 + " does not fit BIGINT."),
        ("SELECT a::DATE FROM (SELECT '2024-13-01' AS a)", '"2024-13-01" is not a DATE.'),
    ],
)
def test_errors_of_values_are_in_the_words_of_sql(sql: str, message: str) -> None:
    connection = duckdb.connect(":memory:")
    with pytest.raises(duckdb.Error) as error:
        connection.execute(sql).fetchall()
    connection.close()
    assert str(raised(error.value, "x")) == f"x: {message}"

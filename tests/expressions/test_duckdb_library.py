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
        (duckdb.OutOfRangeException("Overflow in addition!\nLINE 1"), InvalidInputError, "x: Overflow in addition!."),
        (duckdb.OutOfMemoryException("failed to pin block"), OutOfMemoryError,
         "x: DuckDB needs more memory or disk space than it may use: failed to pin block."),
    ],
)  # fmt: skip
def test_errors_of_duckdb(error: Exception, kind: type[Exception], message: str) -> None:
    found = raised(error, "x")
    assert (type(found), str(found)) == (kind, message)

"""The golden tables that the tests use."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden_tables import GoldenTable


def test_a_golden_table_has_its_files_and_the_rows_that_java_read(golden: Callable[..., GoldenTable]) -> None:
    table = golden("simple")
    assert (table.path / "snapshot" / "snapshot-1").is_file()
    assert table.rows
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_each_use_of_a_golden_table_has_its_own_copy(golden: Callable[..., GoldenTable]) -> None:
    first, second = golden("simple", "2.1"), golden("simple", "1.3")
    (first.path / "snapshot" / "LATEST").unlink()
    assert (second.path / "snapshot" / "LATEST").exists()

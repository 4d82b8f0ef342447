"""The engine of this process: conditions without a Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.local.local_engine import LocalEngine
from lakelsm.predicate.predicate import Compare
from tests.compact.local_table import LocalTable
from tests.local.test_arrow_scan import written


def test_conditions_are_on_columns_of_the_table(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t").store
    assert LocalEngine().predicate(store, "ID > 5") == Compare("id", ">", 5)


WHERES = [None, "dt = 'b'", "n > 20", "v LIKE '%1'", "dt = 'a' AND id < 5", "FALSE", "dt LIKE '_'"]


@pytest.mark.parametrize("where", WHERES)
def test_the_count_equals_the_number_of_rows(tmp_path: Path, where: str | None) -> None:
    table = Table.for_path(str(written(tmp_path).root))
    assert int(table.count(where, engine="local")) == len(table.to_arrow(where))


def test_a_count_reports_how_it_was_computed(tmp_path: Path) -> None:
    plain = LocalTable(tmp_path / "t")
    plain.write((1, "a"), (2, "b"))
    table = Table.for_path(str(plain.root))
    assert (table.count(engine="local").how, int(table.count(engine="local"))) == ("metadata", 2)
    plain.write((2, "c"))
    plain.delete((1, None))
    found = table.count(engine="local")
    assert (found.how, found.rows, found.files_opened) == ("files", 1, 3)


def test_engines_that_combine_rows_are_read(tmp_path: Path) -> None:
    plain = LocalTable(tmp_path / "t", merge_engine="partial-update")
    plain.write((1, "a"), (2, None))
    plain.write((2, "c"))
    table = Table.for_path(str(plain.root))
    assert int(table.count(engine="local")) == 2
    assert int(table.count("v = 'c'", engine="local")) == 1

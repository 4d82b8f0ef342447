"""The engine of this process: conditions without a session."""

from __future__ import annotations

from pathlib import Path

from lakelsm.local.local_engine import LocalEngine
from lakelsm.predicate.predicate import Compare
from tests.compact.local_table import LocalTable


def test_conditions_are_on_columns_of_the_table(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t").store
    assert LocalEngine().predicate(store, "ID > 5") == Compare("id", ">", 5)

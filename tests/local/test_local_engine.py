"""The engine of this process: conditions and times without a session."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.local.local_engine import LocalEngine
from lakelsm.predicate.predicate import Compare
from tests.compact.local_table import LocalTable


def test_conditions_are_on_columns_of_the_table(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t").store
    assert LocalEngine().predicate(store, "ID > 5") == Compare("id", ">", 5)


def test_times_are_of_the_machine_unless_they_say_otherwise() -> None:
    engine = LocalEngine()
    here = datetime(2026, 1, 2, 3, 4, 5)
    assert engine.millis_of("2026-01-02 03:04:05") == engine.millis_of(here) == int(here.timestamp() * 1000)
    assert engine.millis_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)) == 1000
    with pytest.raises(InvalidInputError, match="timestamp 'noon' is no time"):
        engine.millis_of("noon")

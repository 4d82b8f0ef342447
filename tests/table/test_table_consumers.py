"""Arguments of consumers are named where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from tests.maintain.versions.branched_table import new_table, put


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    table.consumers.record("etl", 1)
    for call, message in (
        (lambda: table.consumers.record(5, 1), "consumer_id is 5"),  # type: ignore[arg-type]
        (lambda: table.consumers.record("etl", 0), "next_snapshot is 0"),
        (lambda: table.consumers.delete("etl", dry_run=1), "dry_run is 1"),  # type: ignore[arg-type]
        (lambda: table.consumers.expire(-1), "older_than is -1"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()
    assert [(each.name, each.next_snapshot_id) for each in table.consumers.list()] == [("etl", 1)]

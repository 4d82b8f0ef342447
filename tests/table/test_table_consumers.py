"""Wrong arguments of consumers are named."""

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
        (lambda: table.consumers.record(5, 1), "consumer_id: expected the id of a consumer"),  # type: ignore[arg-type]
        (lambda: table.consumers.record("etl", 0), "next_snapshot: 0 is less than 1"),
        (lambda: table.consumers.delete("etl", dry_run=1), "dry_run: expected True or False, got 1"),  # type: ignore[arg-type]
        (lambda: table.consumers.expire(-1), "older_than: -1 is not"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()
    assert [(each.name, each.next_snapshot_id) for each in table.consumers.list()] == [("etl", 1)]

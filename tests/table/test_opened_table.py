"""The parts that `Table`, `TableView` and the namespaces share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from tests.maintain.versioned_table import versioned_table


def test_a_table_needs_a_store() -> None:
    with pytest.raises(InvalidInputError, match=r"store: .*'x'"):
        Table("x")  # type: ignore[arg-type]


def test_a_text_in_the_form_of_a_wrong_time_is_refused_as_a_time(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 1)
    table.tags.create("2026-02-30")
    assert table.changelog_reader("2026-02-30").read_all().num_rows == 0
    for text in ("2026-13-01", "2026-01-01 25:00:00", "2026-1-1"):
        for call in (table.changelog_reader, partial(table.rollback, dry_run=True)):
            with pytest.raises(SnapshotNotFoundError, match=f"tag '{text}' does.* '{text}' is not a time"):
                call(text)
    with pytest.raises(InvalidInputError, match=r"start: the time zone of '.* Nowhere/X' is unknown. Use a datetime, "):
        table.changelog_reader("2026-01-01 00:00:00 Nowhere/X")
    with pytest.raises(SnapshotNotFoundError, match=r"tag '2026-01-01' does not exist\. Tags: 2026-02-30\.$"):
        table.changelog_reader("tag:2026-01-01")

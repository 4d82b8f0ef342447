"""Writes under a commit user and batch id."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.results import CommitResult
from tests.engines import TableEngine


def test_the_same_batch_again_writes_nothing_and_a_batch_id_is_in_range_and_has_a_user(tmp_path: Path) -> None:
    local = TableEngine("local")
    table = local.create(tmp_path, "id INT, v INT", ["id"])
    for batch in (1, 2, 3):
        local.write(table, [(batch, batch)], commit_user="job", batch_id=batch)
    again = local.write(table, [(9, 9)], commit_user="job", batch_id=2)
    assert again == CommitResult(snapshot_id=2, already_committed=True)
    for user, batch, named in (("job", -1, "batch_id"), ("job", 2**63 - 1, "batch_id"), (None, 1, "commit_user")):
        with pytest.raises(InvalidInputError, match=named):
            local.write(table, [], commit_user=user, batch_id=batch)
    assert table.explain().snapshot_id == 3

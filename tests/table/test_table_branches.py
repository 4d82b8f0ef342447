"""A branch opens as a table, and wrong arguments are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from tests.maintain.versions.branched_table import new_table


def test_a_branch_is_a_table_of_the_same_kind_and_session(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.branches.create("b")
    branch = table.branches.open("b")
    assert isinstance(branch, Table) and branch.name == "db.t$branch_b"
    assert branch.branches.list() == table.branches.list()


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidInputError, match=r"tag: .* got 5"):
        table.branches.create("b", tag=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="ignore_if_exists: expected True or False, got 1"):
        table.branches.create("b", ignore_if_exists=1)  # type: ignore[arg-type]
    for call in (table.branches.open, table.branches.fast_forward, table.branches.delete):
        with pytest.raises(InvalidInputError, match=r"name: .* got None"):
            call(None)  # type: ignore[arg-type]

"""The face of a table's versions checks what it is given before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import InvalidInputError, Table
from tests.maintain.versions.branched_table import new_table


def test_a_branch_is_a_table_of_the_same_kind_and_session(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.create_branch("b")
    branch = table.branch("b")
    assert isinstance(branch, Table) and branch.name == "db.t$branch_b"
    assert branch.branches() == table.branches()


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidInputError, match="tag is 5"):
        table.create_branch("b", tag=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="ignore_if_exists is 1"):
        table.create_branch("b", ignore_if_exists=1)  # type: ignore[arg-type]
    for call in (table.branch, table.fast_forward, table.delete_branch):
        with pytest.raises(InvalidInputError, match=r"name is None"):
            call(None)  # type: ignore[arg-type]

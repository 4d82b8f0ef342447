"""Names of tables and branches are parsed."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.table_name import TableName


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("db.t", ("db", "t", "main")),
        ("db.t$branch_b", ("db", "t", "b")),
        ("db.t$branch_v1.0", ("db", "t", "v1.0")),
        ("db.t$branch_main", ("db", "t", "main")),
        ("db.t$branch_branch_x", ("db", "t", "branch_x")),
    ],
)
def test_a_name_has_a_database_a_table_and_optionally_a_branch(name: str, parts: tuple[str, str, str]) -> None:
    found = TableName.parse(name)
    assert (found.database, found.table, found.branch) == parts
    assert found.main_name == "db.t"


@pytest.mark.parametrize(
    "name",
    ["t", "db.t.u", "db.", ".t", "db.t$branch_", "db.t$branch_ ", "db.t$branch_a/b", "db.t$branch_" + "x" * 249, 5],
)
def test_other_texts_are_refused_as_names(name: object) -> None:
    with pytest.raises(InvalidInputError, match=r"name: |database: "):
        TableName.parse(name)


@pytest.mark.parametrize("name", ["db.t$files", "db.t$branch_b$files", "sys.tables", "db.t$", "db.$branch"])
def test_system_tables_are_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInputError, match="a system table of Paimon"):
        TableName.parse(name)

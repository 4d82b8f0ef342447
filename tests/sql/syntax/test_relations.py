"""Relations of FROM."""

from __future__ import annotations

from lakelsm.sql.syntax.relations import Relation, TableReference


def test_columns_are_qualified_with_the_alias_or_the_name_of_the_table() -> None:
    table = TableReference(("db", "t"), 0, 4)
    assert Relation(table, "a", "cross").qualifier == "a"
    assert Relation(table, None, "cross").qualifier == "t"
    assert Relation(None, None, "cross").qualifier is None

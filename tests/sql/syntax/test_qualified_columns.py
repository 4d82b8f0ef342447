"""Columns with the names of a database and a table before them."""

from __future__ import annotations

import pytest

from lakelsm.sql.syntax.qualified_columns import with_plain_qualifiers
from lakelsm.sql.syntax.query_text import QueryText


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("SELECT db.t.a FROM db.t", "SELECT `t`.a FROM db.t"),
        ("SELECT `DB`.T.* FROM db.t WHERE db.t.s.x = 1", "SELECT `t`.* FROM db.t WHERE `t`.s.x = 1"),
        ("SELECT a.t.x FROM a.t JOIN b.t ON a.t.k = b.t.k",
         "SELECT `a.t`.x FROM a.t AS `a.t` JOIN b.t AS `b.t` ON `a.t`.k = `b.t`.k"),
        ("SELECT db.t.a FROM db.t x", None),
        ("SELECT x.db.t.a, 'db.t.a' FROM db.t -- db.t.a", None),
        ("SELECT t.a FROM db.t, db.u", None),
        ("SELECT 1 FROM db.t WHERE EXISTS (SELECT 1 FROM db.u WHERE db.u.k = db.t.k)",
         "SELECT 1 FROM db.t WHERE EXISTS (SELECT 1 FROM db.u WHERE `u`.k = `t`.k)"),
    ],
)  # fmt: skip
def test_the_name_of_the_table_remains(text: str, plain: str | None) -> None:
    assert with_plain_qualifiers(QueryText.of(text)).text == (plain or text)

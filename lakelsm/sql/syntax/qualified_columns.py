"""Columns that are qualified with a database and a table (``db.t.a``): in a query each table has one name only."""

from __future__ import annotations

from collections.abc import Iterator

from lakelsm.expressions.tokens import Token, TokenKind
from lakelsm.sql.syntax.query_text import QueryText, quoted
from lakelsm.sql.syntax.relations import TableReference


def with_plain_qualifiers(query: QueryText) -> QueryText:
    """Return a query in which columns are qualified with the name of the table alone: ``t.a`` for ``db.t.a``.

    Tables of one name in several databases get 'db.t' as alias, and their columns are qualified with it.
    """
    relations = [each for block in query.blocks for each in block.relations]
    tables = [each.table for each in relations if each.table and not each.alias and each.takes_alias]
    databases: dict[str, set[str]] = {}
    for table in tables:
        databases.setdefault(table.name[-1].lower(), set()).add(".".join(table.name[:-1]).lower())
    named = {tuple(part.lower() for part in table.name): table for table in tables if len(table.name) == 2}
    edits = list(_columns(query, named, databases))
    if not edits:
        return query
    for table in named.values():
        if len(databases[table.name[-1].lower()]) > 1:
            edits += [
                (each.end, each.end, f" AS {quoted('.'.join(table.name))}")
                for each in tables
                if [part.lower() for part in each.name] == [part.lower() for part in table.name]
            ]
    parts, position = [], 0
    for start, end, text in sorted(edits):
        parts += [query.text[position:start], text]
        position = end
    return QueryText.of("".join([*parts, query.text[position:]]))


def _columns(
    query: QueryText, named: dict[tuple[str, ...], TableReference], databases: dict[str, set[str]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the ranges of the qualifiers ``db.t`` of columns, with the text for each."""
    ranges = [(each.start, each.end) for each in query.references]
    tokens = query.tokens
    for at in range(len(tokens) - 5):
        found = named.get(tuple(_name(tokens[at + ahead]).lower() for ahead in (0, 2)))
        dots = [tokens[at + ahead].text == "." for ahead in (-1, 1, 3)]
        is_column = dots[1:] == [True, True] and not (at and dots[0])
        if found is None or not is_column or any(start <= tokens[at].start < end for start, end in ranges):
            continue
        is_alone = len(databases[found.name[-1].lower()]) == 1
        text = quoted(found.name[-1] if is_alone else ".".join(found.name))
        yield tokens[at].start, tokens[at + 2].end, text


def _name(token: Token) -> str:
    if token.kind is TokenKind.QUOTED:
        return token.text[1:-1].replace("``", "`")
    return token.text if token.kind is TokenKind.NAME else ""

"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE. The first keyword is taken already."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind, Tokens
from lakelsm.sql.syntax.statements import Delete, Insert, Merge, MergeClause, Name, Query, Truncate, Update

TABLE = "the name of a table"
#: Keywords that follow a table's name, and are no alias.
_AFTER_TABLE = ("SET", "WHERE", "USING", "ON", "WHEN")


def insert(tokens: Tokens, common_tables: str = "") -> Insert:
    """Parse INSERT INTO or OVERWRITE; ``common_tables`` is a WITH clause before it, for the query."""
    overwrite = tokens.accept_one("INTO", "OVERWRITE")
    if overwrite is None:
        tokens.fail("INTO or OVERWRITE")
    tokens.accept("TABLE")
    table = tokens.qualified_name(TABLE)
    if tokens.accept("REPLACE"):
        raise UnsupportedFeatureError("SQL: INSERT INTO … REPLACE is not supported. Use INSERT OVERWRITE or DELETE.")
    partition = _partition(tokens) if tokens.accept("PARTITION") else {}
    if tokens.accept("IF", "NOT", "EXISTS"):
        raise UnsupportedFeatureError("SQL: INSERT OVERWRITE … IF NOT EXISTS is not supported.")
    columns, by_name = None, tokens.accept("BY", "NAME")
    if not by_name and tokens.has("(") and not _starts_query(tokens, ahead=1):
        columns = tokens.names("the name of a column")
    if not _starts_query(tokens):
        tokens.fail("SELECT, VALUES or another query")
    return Insert(
        table,
        Query(common_tables + tokens.rest()),
        columns=columns,
        by_name=by_name,
        partition=partition,
        overwrite=overwrite == "OVERWRITE",
    )


def _starts_query(tokens: Tokens, ahead: int = 0) -> bool:
    words = ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "(")
    return any(tokens.peek(ahead).is_word(word) for word in words)


def _partition(tokens: Tokens) -> dict[str, str | None]:
    """Return the columns of a PARTITION clause; the value of a dynamic one is None."""
    tokens.expect("(")
    found: dict[str, str | None] = {}
    while True:
        name = tokens.name("the name of a partition column")
        if name in found:
            tokens.fail(f"another column than {name!r}, which is given twice")
        found[name] = tokens.span((",",)) if tokens.accept("=") else None
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return found


def static_partition(tokens: Tokens) -> dict[str, str]:
    """Return a PARTITION clause in which each column has a value."""
    found = _partition(tokens)
    values = {name: value for name, value in found.items() if value is not None}
    if len(values) < len(found):
        tokens.fail("a value for each column of PARTITION")
    return values


def delete(tokens: Tokens) -> Delete:
    """Parse DELETE FROM t [AS a] [WHERE …]."""
    tokens.expect("FROM")
    table = tokens.qualified_name(TABLE)
    alias = _alias(tokens)
    return Delete(table, _where(tokens), alias)


def update(tokens: Tokens) -> Update:
    """Parse UPDATE t [AS a] SET c = …, … [WHERE …]."""
    table = tokens.qualified_name(TABLE)
    alias = _alias(tokens)
    tokens.expect("SET")
    return Update(table, _assignments(tokens, [("WHERE",)], (table[-1], alias)), _where(tokens), alias)


def _where(tokens: Tokens) -> str | None:
    return tokens.span() if tokens.accept("WHERE") else None


def _alias(tokens: Tokens) -> str | None:
    if tokens.accept("AS"):
        return tokens.name("an alias")
    kind, word = tokens.peek().kind, tokens.peek().text.upper()
    is_alias = kind is TokenKind.QUOTED or (kind is TokenKind.NAME and word not in _AFTER_TABLE)
    return tokens.name("an alias") if is_alias and not tokens.at_end else None


def _assignments(
    tokens: Tokens, stops: Sequence[Sequence[str]], qualifiers: Sequence[str | None]
) -> dict[str, str]:
    """Parse ``column = expression``, separated by commas; the columns may have the table's name or alias before them."""
    found: dict[str, str] = {}
    while True:
        path = tokens.qualified_name("the name of a column")
        if len(path) > 1 and path[0].lower() in [name.lower() for name in qualifiers if name]:
            path = path[1:]
        if len(path) > 1:
            raise UnsupportedFeatureError(f"SQL: SET {'.'.join(path)} = …: setting a nested field is not supported.")
        if path[0] in found:
            tokens.fail(f"another column than {path[0]!r}, which is set twice")
        tokens.expect("=")
        found[path[0]] = tokens.span((",",), *stops)
        if not tokens.accept(","):
            return found


def truncate(tokens: Tokens) -> Truncate:
    """Parse TRUNCATE TABLE t [PARTITION (…)]."""
    tokens.expect("TABLE")
    table = tokens.qualified_name(TABLE)
    return Truncate(table, static_partition(tokens) if tokens.accept("PARTITION") else {})


def merge(tokens: Tokens) -> Merge:
    """Parse MERGE [WITH SCHEMA EVOLUTION] INTO t [a] USING s [b] ON … WHEN …."""
    evolution = tokens.accept("WITH", "SCHEMA", "EVOLUTION")
    tokens.expect("INTO")
    table = tokens.qualified_name(TABLE)
    alias = _alias(tokens)
    tokens.expect("USING")
    source = _source(tokens)
    source_alias = _alias(tokens)
    tokens.expect("ON")
    on = tokens.span(("WHEN", "MATCHED"), ("WHEN", "NOT", "MATCHED"))
    clauses = []
    while tokens.accept("WHEN"):
        clauses.append(_clause(tokens, table, alias))
    if not clauses:
        tokens.fail("WHEN MATCHED or WHEN NOT MATCHED")
    return Merge(
        table,
        source,
        on,
        tuple(clauses),
        alias=alias,
        source_alias=source_alias,
        with_schema_evolution=evolution,
    )


def _source(tokens: Tokens) -> str:
    """Return the source of a MERGE, as it is written: a table, or a query in parentheses."""
    if tokens.has("("):
        tokens.take()
        text = tokens.span()
        tokens.expect(")")
        return f"({text})"
    return ".".join(f"`{part.replace('`', '``')}`" for part in tokens.qualified_name(TABLE))


def _clause(tokens: Tokens, table: Name, alias: str | None) -> MergeClause:
    if tokens.accept("NOT", "MATCHED", "BY", "SOURCE"):
        matched = "not matched by source"
    elif tokens.accept("NOT", "MATCHED"):
        matched = "not matched"
        if tokens.accept("BY"):
            tokens.expect("TARGET")
    else:
        tokens.expect("MATCHED")
        matched = "matched"
    condition = tokens.span(("THEN",)) if tokens.accept("AND") else None
    tokens.expect("THEN")
    if matched == "not matched":
        tokens.expect("INSERT")
        return MergeClause(matched, condition, "insert", _inserted(tokens))
    action = tokens.accept_one("UPDATE", "DELETE")
    if action is None:
        tokens.fail("UPDATE or DELETE")
    if action == "DELETE":
        return MergeClause(matched, condition, "delete")
    tokens.expect("SET")
    if matched == "matched" and tokens.accept("*"):
        return MergeClause(matched, condition, "update")
    stops = [("WHEN", "MATCHED"), ("WHEN", "NOT", "MATCHED")]
    return MergeClause(matched, condition, "update", _assignments(tokens, stops, (table[-1], alias)))


def _inserted(tokens: Tokens) -> dict[str, str] | None:
    """Return the columns and values of an INSERT of MERGE, None for ``*``."""
    if tokens.accept("*"):
        return None
    columns = tokens.names("the name of a column")
    twice = next((name for at, name in enumerate(columns) if name in columns[:at]), None)
    if twice is not None:
        tokens.fail(f"another column than {twice!r}, which is listed twice")
    tokens.expect("VALUES", "(")
    values = tokens.separated()
    tokens.expect(")")
    if len(columns) != len(values):
        tokens.fail(f"as many values as the {len(columns)} columns of INSERT, not {len(values)}")
    return dict(zip(columns, values))

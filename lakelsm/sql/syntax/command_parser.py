"""SHOW, DESCRIBE, ANALYZE, CALL, and Delta's OPTIMIZE, VACUUM and RESTORE. The first keyword is taken already."""

from __future__ import annotations

from typing import Any

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind, Tokens
from lakelsm.sql.syntax.change_parser import TABLE, static_partition
from lakelsm.sql.syntax.statements import Analyze, Call, Describe, DescribeHistory, Show, Statement
from lakelsm.sql.syntax.table_parser import property_key

_DATABASE = "the name of a database"
#: The database of Paimon's procedures.
_SYSTEM = "sys"


def show(tokens: Tokens) -> Show:
    """Parse SHOW …: see `Show`."""
    what = tokens.accept_one("TABLES", "DATABASES", "SCHEMAS", "NAMESPACES", "PARTITIONS", "TBLPROPERTIES", "COLUMNS")
    if what in ("SCHEMAS", "NAMESPACES"):
        what = "DATABASES"
    if what in ("TABLES", "DATABASES"):
        database = None
        if what == "TABLES" and tokens.accept_one("IN", "FROM"):
            database = (tokens.name(_DATABASE),)
        like = tokens.text("a pattern as text") if tokens.accept("LIKE") or _is_text(tokens) else None
        return Show(what.lower(), database, like=like)
    if what == "PARTITIONS":
        table = tokens.qualified_name(TABLE)
        return Show("partitions", table, partition=static_partition(tokens) if tokens.accept("PARTITION") else {})
    if what == "TBLPROPERTIES":
        table = tokens.qualified_name(TABLE)
        key = None
        if tokens.accept("("):
            key = property_key(tokens)
            tokens.expect(")")
        return Show("tblproperties", table, key=key)
    if what == "COLUMNS":
        return _columns(tokens)
    for words in (("CREATE", "TABLE"), ("TAGS",), ("BRANCHES",)):
        if tokens.accept(*words):
            tokens.accept_one("IN", "FROM")
            return Show(" ".join(words).lower(), tokens.qualified_name(TABLE))
    for word in ("VIEWS", "FUNCTIONS", "USER FUNCTIONS", "CATALOGS", "CURRENT", "TABLE EXTENDED"):
        if tokens.has(*word.split()):
            raise UnsupportedFeatureError(f"SQL: SHOW {word} is not supported.")
    tokens.fail("TABLES, DATABASES, PARTITIONS, TBLPROPERTIES, CREATE TABLE, COLUMNS, TAGS or BRANCHES")


def _is_text(tokens: Tokens) -> bool:
    return tokens.peek().kind is TokenKind.TEXT


def _columns(tokens: Tokens) -> Show:
    if tokens.accept_one("IN", "FROM") is None:
        tokens.fail("IN or FROM")
    table = tokens.qualified_name(TABLE)
    if tokens.accept_one("IN", "FROM"):
        table = (tokens.name(_DATABASE), table[-1])
    return Show("columns", table)


def describe(tokens: Tokens) -> Statement:
    """Parse DESCRIBE [TABLE] [EXTENDED] t, DESCRIBE HISTORY t."""
    if tokens.accept("HISTORY"):
        table = tokens.qualified_name(TABLE)
        return DescribeHistory(table, tokens.integer("a number of rows") if tokens.accept("LIMIT") else None)
    for word in ("DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "QUERY", "DETAIL"):
        if tokens.has(word) and tokens.peek(1).kind in (TokenKind.NAME, TokenKind.QUOTED):
            raise UnsupportedFeatureError(f"SQL: DESCRIBE {word} is not supported.")
    tokens.accept("TABLE")
    extended = tokens.accept_one("EXTENDED", "FORMATTED") is not None
    table = tokens.qualified_name(TABLE)
    if tokens.has("PARTITION"):
        raise UnsupportedFeatureError("SQL: DESCRIBE … PARTITION is not supported. Use SHOW PARTITIONS.")
    return Describe(table, extended)


def analyze(tokens: Tokens) -> Analyze:
    """Parse ANALYZE TABLE t COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS …]."""
    tokens.expect("TABLE")
    table = tokens.qualified_name(TABLE)
    if tokens.has("PARTITION"):
        raise UnsupportedFeatureError("SQL: ANALYZE TABLE … PARTITION is not supported. Analyze the whole table.")
    tokens.expect("COMPUTE", "STATISTICS")
    if tokens.accept("FOR", "ALL", "COLUMNS"):
        return Analyze(table, None)
    if not tokens.accept("FOR", "COLUMNS"):
        tokens.accept("NOSCAN")
        return Analyze(table, ())
    columns = [tokens.name("the name of a column")]
    while tokens.accept(","):
        columns.append(tokens.name("the name of a column"))
    return Analyze(table, tuple(columns))


def call(tokens: Tokens) -> Call:
    """Parse CALL sys.procedure(value, …) or (name => value, …)."""
    name = tokens.qualified_name("the name of a procedure")
    if len(name) not in (2, 3) or name[-2].lower() != _SYSTEM:
        raise InvalidInputError(f"SQL: procedure {'.'.join(name)} does not exist. Procedures are called as sys.name(…).")
    tokens.expect("(")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    while not tokens.has(")"):
        if tokens.peek(1).is_word("=>"):
            argument = tokens.name("the name of an argument").lower()
            if argument in named:
                raise InvalidInputError(f"SQL: CALL sys.{name[-1]}: argument {argument} is given twice.")
            tokens.expect("=>")
            named[argument] = _value(tokens)
        elif named:
            tokens.fail("name => value, after the first argument with a name")
        else:
            positional.append(_value(tokens))
        if not tokens.accept(","):
            break
        if tokens.has(")"):
            tokens.fail("an argument")
    tokens.expect(")")
    return Call(name[-1].lower(), tuple(positional), named)


def _value(tokens: Tokens) -> Any:
    """Return a literal: text, number, boolean or NULL. No procedure takes arrays or maps."""
    if _is_text(tokens):
        return tokens.text("a value")
    for word, value in (("TRUE", True), ("FALSE", False), ("NULL", None)):
        if tokens.accept(word):
            return value
    for word in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        if tokens.has(word) and tokens.peek(1).kind is TokenKind.TEXT:
            tokens.take()
            return tokens.text("a time as text")
    negative = tokens.accept("-")
    if tokens.peek().kind is not TokenKind.NUMBER:
        tokens.fail("a value: text, a number, TRUE, FALSE or NULL")
    text = tokens.take().text.rstrip("lLsSyYdDfFbB")
    number = int(text) if text.isdigit() else float(text)
    return -number if negative else number


def optimize(tokens: Tokens) -> Call:
    """Parse OPTIMIZE t [WHERE …] [FULL], as in Delta: a compaction."""
    table = tokens.qualified_name(TABLE)
    named: dict[str, Any] = {"table": ".".join(table)}
    if tokens.accept("WHERE"):
        named["where"] = tokens.span(("FULL",), ("ZORDER",))
    if tokens.accept("FULL"):
        named["compact_strategy"] = "full"
    if tokens.has("ZORDER"):
        raise UnsupportedFeatureError("SQL: OPTIMIZE … ZORDER BY is not supported: the primary key orders the rows.")
    return Call("compact", (), named)


def vacuum(tokens: Tokens) -> Call:
    """Parse VACUUM t [RETAIN n HOURS] [DRY RUN], as in Delta: removal of orphan files."""
    table = tokens.qualified_name(TABLE)
    named: dict[str, Any] = {"table": ".".join(table)}
    if tokens.has("LITE"):
        raise UnsupportedFeatureError("SQL: VACUUM … LITE is not supported.")
    tokens.accept("FULL")
    if tokens.accept("RETAIN"):
        named["older_than"] = f"{tokens.integer('a number of hours')} h"
        tokens.expect("HOURS")
    if tokens.accept("DRY", "RUN"):
        named["dry_run"] = True
    return Call("remove_orphan_files", (), named)


def restore(tokens: Tokens) -> Call:
    """Parse RESTORE TABLE t TO VERSION AS OF n, or TO TIMESTAMP AS OF t, as in Delta: a rollback."""
    tokens.accept("TABLE")
    table = ".".join(tokens.qualified_name(TABLE))
    tokens.accept("TO")
    if tokens.accept("VERSION", "AS", "OF"):
        version = tokens.text("a tag") if _is_text(tokens) else tokens.integer("the id of a snapshot")
        return Call("rollback", (), {"table": table, "version": version})
    tokens.expect("TIMESTAMP", "AS", "OF")
    return Call("rollback_to_timestamp", (), {"table": table, "timestamp": _value(tokens)})

"""CREATE and DROP of tables and databases. The first keyword is taken already."""

from __future__ import annotations

import dataclasses
import re

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind, Tokens
from lakelsm.sql.syntax.change_parser import TABLE
from lakelsm.sql.syntax.statements import (
    Column,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    Query,
    Statement,
)
from lakelsm.types import DataType, parse_type

#: Formats of CREATE TABLE … USING: the only kind of table there is.
_PROVIDERS = frozenset(["paimon", "lakelsm"])
#: Spark's names of types, and the same in Paimon's type text: Spark's TIMESTAMP has the session's time zone.
_SPARK_TYPES = {
    "TIMESTAMP": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "TIMESTAMP_LTZ": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "TIMESTAMP_NTZ": "TIMESTAMP(6)",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "BINARY": "BYTES",
}
_TYPE_WORD = re.compile(r"`[^`]*`|\b(" + "|".join(_SPARK_TYPES) + r")\b(?!\s*[(:])", re.IGNORECASE)
DATABASE = ("DATABASE", "SCHEMA", "NAMESPACE")


def create(tokens: Tokens) -> Statement:
    """Parse CREATE [OR REPLACE] TABLE, or CREATE DATABASE."""
    replace = tokens.accept("OR", "REPLACE")
    if not replace and tokens.accept_one(*DATABASE):
        return _create_database(tokens)
    for word in ("EXTERNAL", "TEMPORARY", "TEMP", "GLOBAL"):
        if tokens.has(word):
            raise UnsupportedFeatureError(f"SQL: CREATE {word} is not supported.")
    for word in ("VIEW", "FUNCTION"):
        if tokens.has(word):
            raise UnsupportedFeatureError(f"SQL: CREATE {word} is not supported. Use a view of the Spark session.")
    if not tokens.accept("TABLE"):
        tokens.fail("TABLE or DATABASE")
    return _create_table(tokens, replace)


def replace(tokens: Tokens) -> Statement:
    """Parse REPLACE TABLE, of a table that exists."""
    if not tokens.accept("TABLE"):
        tokens.fail("TABLE")
    return dataclasses.replace(_create_table(tokens, True), must_exist=True)


def _create_database(tokens: Tokens) -> CreateDatabase:
    if_not_exists = tokens.accept("IF", "NOT", "EXISTS")
    name = tokens.name("the name of a database")
    for clause in ("COMMENT", "LOCATION", "WITH"):
        if tokens.has(clause):
            raise UnsupportedFeatureError(f"SQL: CREATE DATABASE … {clause} is not supported.")
    return CreateDatabase(name, if_not_exists)


def _create_table(tokens: Tokens, replace: bool) -> CreateTable:
    if_not_exists = tokens.accept("IF", "NOT", "EXISTS")
    if replace and if_not_exists:
        raise InvalidInputError("SQL: CREATE OR REPLACE TABLE cannot have IF NOT EXISTS. Remove one of them.")
    table = tokens.qualified_name(TABLE)
    like = tokens.qualified_name(TABLE) if tokens.accept("LIKE") else None
    columns, key = _columns(tokens) if like is None and tokens.accept("(") else ((), ())
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    comment = None
    seen: set[str] = set()
    while not tokens.at_end and not tokens.has("AS"):
        _check_once(tokens, seen)
        if tokens.accept("USING"):
            _check_provider(tokens)
        elif tokens.accept("PARTITIONED", "BY"):
            partition_by = _partition_columns(tokens)
        elif tokens.accept("TBLPROPERTIES") or tokens.accept("OPTIONS"):
            properties.update(key_values(tokens))
        elif tokens.accept("COMMENT"):
            comment = tokens.text("the comment as text")
        elif tokens.has("LOCATION") or tokens.has("CLUSTERED") or tokens.has("CLUSTER"):
            raise UnsupportedFeatureError(f"SQL: CREATE TABLE … {tokens.peek().text.upper()} is not supported.")
        elif tokens.peek().is_word("SELECT") or tokens.peek().is_word("WITH"):
            break
        else:
            tokens.fail("PARTITIONED BY, TBLPROPERTIES, COMMENT or AS")
    if key:
        if "primary-key" in properties:
            raise InvalidInputError("SQL: the table has PRIMARY KEY and the property 'primary-key'. Remove one of them.")
        properties["primary-key"] = ",".join(key)
    query = None
    if not tokens.at_end:
        tokens.accept("AS")
        query = Query(tokens.rest())
        if columns or like:
            raise InvalidInputError("SQL: CREATE TABLE … AS takes its columns from the query. Remove the others.")
    if like and partition_by:
        raise InvalidInputError("SQL: CREATE TABLE … LIKE has the partitions of the other table. Remove PARTITIONED BY.")
    if not (columns or query or like):
        tokens.fail("columns in parentheses, LIKE or AS")
    return CreateTable(
        table,
        columns=columns,
        partition_by=partition_by,
        properties=properties,
        comment=comment,
        if_not_exists=if_not_exists,
        replace=replace,
        query=query,
        like=like,
    )


def _check_once(tokens: Tokens, seen: set[str]) -> None:
    """Raise InvalidInputError if the next word begins a clause that the statement or column has already."""
    word = tokens.peek().text.upper()
    if word in seen:
        tokens.fail(f"another clause than {word}, which is given twice")
    seen.add(word)


def _check_provider(tokens: Tokens) -> None:
    provider = tokens.name("paimon")
    if provider.lower() not in _PROVIDERS:
        raise UnsupportedFeatureError(f"SQL: USING {provider} is not supported. Use USING paimon, or leave it out.")


def _columns(tokens: Tokens) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Return the columns, and the primary key if there is one of PRIMARY KEY (…)."""
    columns: list[Column] = []
    key: tuple[str, ...] = ()
    while True:
        if tokens.accept("CONSTRAINT"):
            tokens.name("the name of a constraint")
        if tokens.accept("PRIMARY", "KEY"):
            if key:
                tokens.fail("a column, as the table has a primary key")
            key = tokens.names("the name of a column")
            if tokens.accept("NOT"):
                tokens.expect("ENFORCED")
        else:
            columns.append(_column(tokens))
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return tuple(columns), key


def _column(tokens: Tokens) -> Column:
    name = tokens.name("the name of a column")
    kind = column_type(tokens, name)
    comment = None
    seen: set[str] = set()
    while not tokens.has(",") and not tokens.has(")"):
        _check_once(tokens, seen)
        if tokens.accept("NOT", "NULL"):
            kind = kind.with_nullable(False)
        elif tokens.accept("COMMENT"):
            comment = tokens.text("the comment as text")
        elif tokens.has("DEFAULT") or tokens.has("GENERATED"):
            raise UnsupportedFeatureError(f"SQL: column '{name}': {tokens.peek().text.upper()} is not supported.")
        else:
            tokens.fail("NOT NULL, COMMENT, ',' or ')'")
    return Column(name, kind, comment)


def column_type(tokens: Tokens, column: str) -> DataType:
    """Return a type in Spark's words, up to the words that may follow it."""
    stops = ((",",), ("NOT",), ("COMMENT",), ("DEFAULT",), ("GENERATED",), ("FIRST",), ("AFTER",))
    depth, text = 0, ""
    while not tokens.at_end:
        if not depth and (tokens.has(")") or any(tokens.has(*stop) for stop in stops)):
            break
        token = tokens.take()
        depth += token.text.count("<") + token.text.count("(") - token.text.count(">") - token.text.count(")")
        text += f"{token.text} "
    if not text:
        tokens.fail("a type")
    try:
        return parse_type(_TYPE_WORD.sub(lambda word: _SPARK_TYPES.get(word[0].upper(), word[0]), text.strip()))
    except InvalidInputError as error:
        raise InvalidInputError(f"SQL: column '{column}': {error}") from (error.__cause__ or error)


def _partition_columns(tokens: Tokens) -> tuple[str, ...]:
    names = []
    tokens.expect("(")
    while True:
        names.append(tokens.name("the name of a partition column"))
        if tokens.peek().kind is TokenKind.NAME or tokens.has("("):
            raise UnsupportedFeatureError(
                f"SQL: PARTITIONED BY ({names[-1]} …): types and transforms are not supported. Name columns of the table."
            )
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return tuple(names)


def property_key(tokens: Tokens) -> str:
    """Return the key of a property: text, or names with dots between them."""
    if tokens.peek().kind is TokenKind.TEXT:
        return tokens.text("a key")
    return ".".join(tokens.qualified_name("a key as text"))


def property_value(tokens: Tokens) -> str:
    """Return the value of a property as text; numbers and booleans are taken as they are written."""
    token = tokens.peek()
    if token.kind is TokenKind.TEXT:
        return tokens.text("a value")
    sign = "-" if tokens.accept("-") else ""
    if tokens.peek().kind is TokenKind.NUMBER or tokens.has("TRUE") or tokens.has("FALSE"):
        return sign + tokens.take().text
    tokens.fail("a value as text")


def key_values(tokens: Tokens) -> dict[str, str]:
    """Parse ('key' = 'value', …)."""
    tokens.expect("(")
    found: dict[str, str] = {}
    while True:
        key = property_key(tokens)
        if key in found:
            raise InvalidInputError(f"SQL: property {key!r} is given twice.")
        tokens.accept("=")
        found[key] = property_value(tokens)
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return found


def drop(tokens: Tokens) -> Statement:
    """Parse DROP TABLE or DROP DATABASE."""
    if tokens.accept_one(*DATABASE):
        if_exists = tokens.accept("IF", "EXISTS")
        name = tokens.name("the name of a database")
        cascade = tokens.accept_one("CASCADE", "RESTRICT") == "CASCADE"
        return DropDatabase(name, if_exists, cascade)
    for word in ("VIEW", "FUNCTION", "TEMPORARY"):
        if tokens.has(word):
            raise UnsupportedFeatureError(f"SQL: DROP {word} is not supported.")
    if not tokens.accept("TABLE"):
        tokens.fail("TABLE or DATABASE")
    if_exists = tokens.accept("IF", "EXISTS")
    table = tokens.qualified_name(TABLE)
    tokens.accept("PURGE")
    return DropTable(table, if_exists)

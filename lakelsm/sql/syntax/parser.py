"""The parser of SQL text in Spark's dialect: statements."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import Tokens, statement_tokens
from lakelsm.sql.syntax import alter_parser, change_parser, command_parser, table_parser
from lakelsm.sql.syntax.statements import Explain, Query, Statement

#: Keywords that queries begin with.
_QUERIES = frozenset(["SELECT", "VALUES", "FROM", "(", "TABLE"])
#: Statements that are understood and not built, by their first keyword.
_UNSUPPORTED = {
    "CACHE": "CACHE TABLE",
    "COMMENT": "COMMENT ON: use ALTER TABLE",
    "COPY": "COPY INTO",
    "CONVERT": "CONVERT TO",
    "GRANT": "GRANT",
    "LOAD": "LOAD DATA",
    "MSCK": "MSCK REPAIR TABLE",
    "REFRESH": "REFRESH TABLE: each statement reads the newest snapshot",
    "REPAIR": "REPAIR TABLE",
    "RESET": "RESET",
    "REVOKE": "REVOKE",
    "SET": "SET: pass options of a read as a hint /*+ OPTIONS('key' = 'value') */",
    "UNCACHE": "UNCACHE TABLE",
    "USE": "USE: write names as database.table",
}


def parse_script(sql: str) -> list[Statement]:
    """Return the statements of a text, which semicolons separate.

    Raises InvalidInputError, with line and column, for text that is no statement, and UnsupportedFeatureError for a
    statement of Spark that lakelsm has not built.
    """
    return [_statement(tokens) for tokens in statement_tokens(sql)]


def parse_statement(sql: str) -> Statement:
    """Return the only statement of a text. Raises as `parse_script`, and InvalidInputError for none or several."""
    statements = parse_script(sql)
    if len(statements) != 1:
        raise InvalidInputError(f"SQL: expected one statement, found {len(statements)}.")
    return statements[0]


def _statement(tokens: Tokens) -> Statement:
    if tokens.has("WITH"):
        return _with(tokens)
    if tokens.peek().text.upper() in _QUERIES:
        return Query(tokens.rest())
    word = tokens.peek().text.upper()
    parse = _STARTS.get(word)
    if parse is None:
        if word in _UNSUPPORTED:
            raise UnsupportedFeatureError(f"SQL: {_UNSUPPORTED[word]}. This statement is not supported.")
        near = difflib.get_close_matches(word, [*_STARTS, "SELECT", "WITH"], n=1)
        tokens.fail("a statement" + (f" such as {near[0]}" if near else ""))
    tokens.take()
    statement = parse(tokens)
    tokens.end()
    return statement


def _with(tokens: Tokens) -> Statement:
    """Return a query with common table expressions; in Spark they can precede INSERT too."""
    text = tokens.rest()
    for keyword in ("INSERT", "UPDATE", "DELETE", "MERGE"):
        cursor = next(statement_tokens(text))
        before = cursor.span((keyword,))
        if cursor.has(keyword):
            if keyword != "INSERT":
                raise UnsupportedFeatureError(
                    f"SQL: WITH before {keyword} is not supported. Write the query within the statement."
                )
            cursor.take()
            return change_parser.insert(cursor, f"{before} ")
    return Query(text)


def _explain(tokens: Tokens) -> Statement:
    mode = tokens.accept_one("EXTENDED", "FORMATTED", "COST", "CODEGEN")
    statement = _statement(tokens)
    if not isinstance(statement, Query):
        raise UnsupportedFeatureError("SQL: EXPLAIN of other statements than queries is not supported.")
    return Explain(statement, None if mode is None else mode.lower())


_STARTS: Mapping[str, Callable[[Tokens], Statement]] = {
    "ALTER": alter_parser.alter,
    "ANALYZE": command_parser.analyze,
    "CALL": command_parser.call,
    "CREATE": table_parser.create,
    "DELETE": change_parser.delete,
    "DESC": command_parser.describe,
    "DESCRIBE": command_parser.describe,
    "DROP": table_parser.drop,
    "EXPLAIN": _explain,
    "INSERT": change_parser.insert,
    "MERGE": change_parser.merge,
    "OPTIMIZE": command_parser.optimize,
    "REPLACE": table_parser.replace,
    "RESTORE": command_parser.restore,
    "SHOW": command_parser.show,
    "TRUNCATE": change_parser.truncate,
    "UPDATE": change_parser.update,
    "VACUUM": command_parser.vacuum,
}

"""The parser of SQL text in Spark's dialect: a condition becomes a Predicate, an expression an Expression."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.predicate.expression import Expression
from lakelsm.predicate.predicate import Predicate
from lakelsm.types import DataField


def parse_where(sql: str, fields: Sequence[DataField], session_time_zone: str | None = None) -> Predicate:
    """Parse a condition such as "dt = '2013-01-01' AND id > 5" on the given columns.

    Column names match as in Spark's default: without case, with or without backticks. A part that is not supported, or
    that compares a column with a literal so that Spark's coercion makes the result uncertain, becomes `Unknown`, which
    never drops a row. `session_time_zone` is Spark's `spark.sql.session.timeZone`; timestamps with local time zone are
    compared with a text without a zone only if it is given and is UTC or a fixed offset.

    Raises InvalidInputError if the text is not a condition (with the position), names an unknown column (with the known
    ones), is nested too deeply, or has more than 64 Mi characters or more than 50,000 words and operators outside texts
    and long IN lists.
    """
    # Loading the parser takes longer than reading a small table: calls without a condition do not load it.
    from lakelsm.predicate.sqlglot_tree import converted

    return converted(sql, fields, session_time_zone)


def parse_expression(sql: str, fields: Sequence[DataField], session_time_zone: str | None = None) -> Expression:
    """Parse an expression such as "n + 1" or "CASE WHEN n > 0 THEN 'some' ELSE 'none' END" on the given columns.

    Column names match, and `session_time_zone` is used, as in `parse_where`. Raises UnsupportedFeatureError for a part
    that the local engine cannot evaluate, and InvalidInputError if the text is not an expression, names an unknown
    column, or is nested too deeply.
    """
    from lakelsm.predicate.expression_tree import converted_expression

    return converted_expression(sql, fields, session_time_zone)

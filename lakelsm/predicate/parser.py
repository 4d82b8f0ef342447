"""SQL text (Spark's dialect) of a condition -> Predicate, and of another expression -> Expression."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.predicate.expression import Expression
from lakelsm.predicate.predicate import Predicate
from lakelsm.types import DataField


def parse_where(sql: str, fields: Sequence[DataField], session_time_zone: str | None = None) -> Predicate:
    """The predicate of a condition such as "dt = '2013-01-01' AND id > 5" on the given columns.

    Column names match as Spark matches them by default: without regard to case, in backticks or not. A part
    that is not understood, or that compares a column with a literal in a way that Spark's coercion makes
    uncertain, becomes `Unknown`, which never drops a row. `session_time_zone` is Spark's
    `spark.sql.session.timeZone`; timestamps with local time zone are compared with a text without zone only
    if it is given and is UTC or a fixed offset.

    Raises InvalidInputError if the text is no condition (with the position), names a column that does not exist (with
    the columns that do), is nested too deeply, or has more than 64 Mi characters or more than 50,000 words and operators
    beside texts and long IN lists.
    """
    # The parser takes longer to load than a small table to read: calls without a condition do without.
    from lakelsm.predicate.sqlglot_tree import converted

    return converted(sql, fields, session_time_zone)


def parse_expression(sql: str, fields: Sequence[DataField], session_time_zone: str | None = None) -> Expression:
    """The expression of a text such as "n + 1" or "CASE WHEN n > 0 THEN 'some' ELSE 'none' END" on the given columns.

    Names match, and `session_time_zone` is used, as in `parse_where`. Raises UnsupportedFeatureError for a part that is
    not evaluated in this process, InvalidInputError for a text that is no expression, that names a column which does not
    exist, or that is nested too deeply.
    """
    from lakelsm.predicate.expression_tree import converted_expression

    return converted_expression(sql, fields, session_time_zone)

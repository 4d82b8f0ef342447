"""SQL text of a condition (Spark's dialect) -> Predicate."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.predicate.predicate import Predicate
from lakelsm.types import DataField

#: Characters of a condition that messages show.
_SHOWN = 300


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


def shown_condition(sql: str) -> str:
    """The condition as messages have it: not whole where it is very long."""
    return repr(sql) if len(sql) <= _SHOWN else f"{sql[:_SHOWN]!r}... ({len(sql)} characters)"

"""Scripts: the texts of their statements, which semicolons separate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.tokens import Token, each_token


@dataclass(frozen=True)
class StatementText:
    """A statement of a script, without its semicolon. ``line`` is the number of its first line, from 1.

    ``is_complete`` is False if no semicolon ends the statement, or if a quote or comment in it does not end.
    """

    text: str
    line: int
    is_complete: bool

    @property
    def first_line(self) -> str:
        """The first line of the text."""
        return self.text.partition("\n")[0].rstrip()


def split_script(sql: str) -> Iterator[StatementText]:
    """Yield the statements of a script. Comments between statements and empty statements are left out.

    A quote or comment that does not end belongs to the last statement, so the statements before it can run.
    """
    first: Token | None = None
    last: Token | None = None
    after = 0
    try:
        for token in each_token(sql):
            if not token.is_word(";"):
                first, last = first or token, token
            elif first is not None and last is not None:
                yield _statement(sql, first.start, last.end, is_complete=True)
                first = last = None
            after = token.end
    except InvalidInputError:
        start = len(sql) - len(sql[after:].lstrip()) if first is None else first.start
        yield _statement(sql, start, len(sql), is_complete=False)
        return
    if first is not None and last is not None:
        yield _statement(sql, first.start, last.end, is_complete=False)


def _statement(sql: str, start: int, end: int, *, is_complete: bool) -> StatementText:
    return StatementText(sql[start:end], sql.count("\n", 0, start) + 1, is_complete)

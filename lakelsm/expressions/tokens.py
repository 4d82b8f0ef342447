"""Tokens of SQL text in Spark's dialect, and a cursor that parsers move over them.

Statements are parsed from tokens, and the queries and expressions in them are kept as the text that the user wrote. So an
engine receives what the user wrote, and an error names its line and column.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple, NoReturn

from lakelsm.errors import InvalidInputError

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*)
    | (?P<hint>/\*\+)
    | (?P<comment>/\*)
    | (?P<text>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[lLsSyYdDfF]|[bB][dD])?(?!\w))
    | (?P<name>\w+)
    | (?P<symbol>=>|<=>|<>|!=|>=|<=|==|\|\||\|>|->|::|[^'"`])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
#: Codes that stand for no character.
_SURROGATES = range(0xD800, 0xE000)
_OPENING, _CLOSING = {"(": ")", "[": "]"}, frozenset(")]")
#: Characters of a token that an error shows, and of a number.
_MAX_SHOWN, _MAX_NUMBER = 40, 1000
_LONG_EXPONENT = re.compile("[eE][+-]?[0-9]{10}")


class TokenKind(Enum):
    """The kinds of tokens."""

    NAME = "name"
    QUOTED = "quoted name"
    TEXT = "text"
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT = "hint"
    END = "end"


_WORDS = frozenset([TokenKind.NAME, TokenKind.SYMBOL])
_KINDS = {kind.name.lower(): kind for kind in TokenKind}


class Token(NamedTuple):
    """A token, and its range of characters in the text. ``text`` is as the user wrote it.

    A tuple is made in a third of the time of a frozen dataclass; a statement can have 200,000 tokens.
    """

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, word: str) -> bool:
        """Return whether the token is a keyword, in any case, or a symbol."""
        text = self.text
        return len(text) == len(word) and text.upper() == word and self.kind in _WORDS


def tokenize(sql: str) -> list[Token]:
    """Return the tokens of a text, without comments, and an END token.

    Raises InvalidInputError for a text, quoted name or comment that does not end.
    """
    return [*each_token(sql), Token(TokenKind.END, "", len(sql), len(sql))]


def each_token(sql: str) -> Iterator[Token]:
    """Yield the tokens of a text, without comments. Raises as `tokenize`, after the tokens before the fault."""
    position = 0
    while position < len(sql):
        found = _TOKEN.match(sql, position)
        if found is None:
            raise located(sql, position, f"{sql[position]} has no closing {sql[position]}")
        kind, position = str(found.lastgroup), found.end()
        if kind == "comment":
            position = _comment_end(sql, found.start())
        elif kind == "hint":
            position = _comment_end(sql, found.start())
            yield Token(TokenKind.HINT, sql[found.start() : position], found.start(), position)
        elif kind == "number" and (len(found[0]) > _MAX_NUMBER or _LONG_EXPONENT.search(found[0])):
            raise located(sql, found.start(), f"the number {found[0][:_MAX_SHOWN]}… is too long")
        elif kind != "space":
            yield Token(_KINDS[kind], found[0], found.start(), position)


def has_query(tokens: Sequence[Token]) -> bool:
    """Return whether an expression has a query within it: SELECT, or another word that begins one in parentheses."""
    for before, token in zip([None, *tokens], tokens):
        if token.is_word("SELECT") and not (before and before.is_word(".")):
            return True
        if before and before.is_word("(") and any(map(token.is_word, ("FROM", "TABLE", "VALUES", "WITH"))):
            return True
    return False


def _comment_end(sql: str, start: int) -> int:
    """Return the end of a bracketed comment. Comments nest, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    raise located(sql, start, "/* has no closing */")


def located(sql: str, position: int, problem: str) -> InvalidInputError:
    """Return an error at a character of the text, which it names by line and column, from 1."""
    line = sql.count("\n", 0, position) + 1
    column = position - (sql.rfind("\n", 0, position) + 1) + 1
    return InvalidInputError(f"SQL, line {line}, column {column}: {problem}.")


def text_value(literal: str) -> str:
    """Return the value of a text literal: with its escapes, or without for r'…'; a doubled quote is one."""
    raw, quoted = literal[0] in "rR", literal.lstrip("rR")
    content = quoted[1:-1].replace(2 * quoted[0], quoted[0])
    return content if raw else _ESCAPE.sub(_unescaped, content)


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        number = int(code, 8) if code[0] in "0123" else int(code[1:], 16)
        if number > sys.maxunicode or number in _SURROGATES:
            raise InvalidInputError(f"SQL: {escape[0]} in a text is no character of Unicode.")
        return chr(number)
    return _ESCAPED.get(code, code)


class Tokens:
    """A cursor over the tokens of one statement."""

    def __init__(self, sql: str, tokens: Sequence[Token]) -> None:
        """``tokens`` end with the END token, or with the semicolon that ends the statement."""
        self._sql = sql
        self._tokens = tokens
        self._next = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or one after it; the last one stands for all that would follow."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    @property
    def at_end(self) -> bool:
        """Whether all tokens of the statement are taken."""
        return self._next >= len(self._tokens) - 1

    def has(self, *words: str) -> bool:
        """Return whether the next tokens are these keywords or symbols."""
        return all(self.peek(ahead).is_word(word) for ahead, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take these keywords or symbols if they are next."""
        if not self.has(*words):
            return False
        self._next += len(words)
        return True

    def accept_one(self, *words: str) -> str | None:
        """Take one of some keywords, and return it."""
        return next((word for word in words if self.accept(word)), None)

    def expect(self, *words: str) -> None:
        """Take these keywords or symbols. Raises InvalidInputError if they are not next."""
        if not self.accept(*words):
            self.fail(" ".join(words))

    def fail(self, expected: str) -> NoReturn:
        """Raise InvalidInputError at the next token."""
        token = self.peek()
        found = "the end of the statement" if self.at_end else repr(token.text[:_MAX_SHOWN])
        raise located(self._sql, token.start, f"expected {expected}, found {found}")

    def take(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self._next += 1
        return token

    def name(self, what: str) -> str:
        """Take a name, in backticks or not; ``what`` is what it names."""
        token = self.peek()
        if self.at_end or token.kind not in (TokenKind.NAME, TokenKind.QUOTED):
            self.fail(what)
        self._next += 1
        return token.text if token.kind is TokenKind.NAME else token.text[1:-1].replace("``", "`")

    def qualified_name(self, what: str) -> tuple[str, ...]:
        """Take names that are joined by dots."""
        names = [self.name(what)]
        while self.accept("."):
            names.append(self.name(what))
        return tuple(names)

    def names(self, what: str) -> tuple[str, ...]:
        """Take names in parentheses, with commas between them; ``what`` is what each one names."""
        self.expect("(")
        found = [self.name(what)]
        while self.accept(","):
            found.append(self.name(what))
        self.expect(")")
        return tuple(found)

    def text(self, what: str) -> str:
        """Take a text literal, and return its value."""
        if self.peek().kind is not TokenKind.TEXT:
            self.fail(what)
        return text_value(self.take().text)

    def integer(self, what: str) -> int:
        """Take a whole number."""
        if self.peek().kind is not TokenKind.NUMBER or not self.peek().text.isdigit():
            self.fail(what)
        return int(self.take().text)

    def span(self, *stops: Sequence[str]) -> str:
        """Take tokens up to the first of some keyword sequences or the end, and return their text as it is written.

        Parentheses, brackets and CASE … END are skipped as a whole. Raises InvalidInputError if there is no token.
        """
        start, depth, closing = self.peek().start, 0, []
        end = start
        while not self.at_end:
            token = self.peek()
            if not depth and (token.text in _CLOSING or any(self.has(*stop) for stop in stops)):
                break
            if token.is_word("CASE") or token.text in _OPENING:
                closing.append("END" if token.is_word("CASE") else _OPENING[token.text])
            elif closing and token.is_word(closing[-1]):
                closing.pop()
            depth, end = len(closing), token.end
            self._next += 1
        if end == start:
            self.fail("an expression")
        return self._sql[start:end]

    def separated(self, *stops: Sequence[str]) -> list[str]:
        """Return the spans between commas, up to the first of some keyword sequences."""
        found = [self.span((",",), *stops)]
        while self.accept(","):
            found.append(self.span((",",), *stops))
        return found

    def rest(self) -> str:
        """Take all that follows, and return its text."""
        start, end = self.peek().start, self._tokens[-2].end
        self._next = len(self._tokens) - 1
        return self._sql[start:end]

    def end(self) -> None:
        """Raise InvalidInputError unless all tokens are taken."""
        if not self.at_end:
            self.fail("the end of the statement")


def statement_tokens(sql: str) -> Iterator[Tokens]:
    """Yield a cursor for each statement of a text; semicolons separate them, and empty statements are left out."""
    tokens = tokenize(sql)
    start = 0
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.END or token.is_word(";"):
            if at > start:
                yield Tokens(sql, tokens[start : at + 1])
            start = at + 1

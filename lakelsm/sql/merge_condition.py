"""The condition of a merge: the columns of the two sides that it compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakelsm.expressions.tokens import Token, TokenKind, tokenize
from lakelsm.plan.merge_request import MergeRequest
from lakelsm.schema.identifiers import folded
from lakelsm.sql.pushdown import conjuncts

_EQUAL = ("=", "==", "<=>")
_NAMES = (TokenKind.NAME, TokenKind.QUOTED)


def with_equal_columns(request: MergeRequest) -> MergeRequest:
    """Return the request with the columns that its condition requires to be equal, all of them joined by AND."""
    parts = [_without_parentheses(each) for each in conjuncts(tokenize(request.on)[:-1])]
    equal: dict[str, str] = {}
    for part in parts:
        pair = _pair(part, request)
        if pair is not None:
            equal.setdefault(*pair)
    return replace(request, equal=equal, is_equality=len(equal) == len(parts))


def _without_parentheses(part: Sequence[Token]) -> Sequence[Token]:
    while len(part) > 2 and part[0].is_word("(") and part[-1].is_word(")"):
        depth = 0
        for at, token in enumerate(part):
            depth += token.is_word("(") - token.is_word(")")
            if not depth and at < len(part) - 1:
                return part
        part = part[1:-1]
    return part


def _pair(part: Sequence[Token], request: MergeRequest) -> tuple[str, str] | None:
    """Return the columns of the target and the source that a part compares; None if it is anything else."""
    if len(part) != 7 or part[3].text not in _EQUAL:
        return None
    sides = [_column(part[:3]), _column(part[4:])]
    if sides[0] is None or sides[1] is None:
        return None
    (first, left), (second, right) = sides[0], sides[1]
    aliases = [folded(request.target_alias), folded(request.source_alias)]
    if [first, second] == aliases:
        return left, right
    return (right, left) if [second, first] == aliases else None


def _column(tokens: Sequence[Token]) -> tuple[str, str] | None:
    """Return the qualifier, in lower case, and the name of a column."""
    qualifier, dot, name = tokens
    if qualifier.kind not in _NAMES or not dot.is_word(".") or name.kind not in _NAMES:
        return None
    return folded(_plain(qualifier)), _plain(name)


def _plain(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind is TokenKind.QUOTED else token.text

"""The columns and conditions of a query that the read of each of its tables gets.

The query itself keeps its text and its conditions. So a column or condition that is not found here costs time only, and
each condition that is found must hold for every row of the table that the answer can depend on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakelsm.errors import LakelsmError
from lakelsm.expressions.tokens import Token, TokenKind
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import unknown_part
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.sql.syntax.relations import QueryBlock, Relation
from lakelsm.types import DataField

#: Words of queries that may use columns which they do not name.
_ALL_COLUMNS = frozenset(["NATURAL", "PIVOT", "UNPIVOT", "TABLE", "IDENTIFIER", "MAP_FROM_ENTRIES"])
#: Begins an operator of a pipe: its conditions are on the columns that the operators before it made.
_PIPE = "|>"
#: The prefix of metadata columns, which reads do not compare.
_METADATA = "__paimon_"
#: Joins that keep the rows of what precedes them, or drop them; the others add rows of NULLs.
_KEEP_LEFT = frozenset(["cross", "inner", "left", "semi", "anti"])
_KEEP_RIGHT = frozenset(["cross", "inner", "right"])


@dataclass(frozen=True)
class Need:
    """The part of a table to read: ``columns`` and conditions, joined by AND.

    ``columns`` None: all of them; empty: only the number of rows is needed. ``ranges`` are the characters of the query
    that have these conditions.
    """

    columns: Sequence[str] | None
    where: str | None
    ranges: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class _Condition:
    """A condition on one table, and its range of characters in the query."""

    text: str
    range: tuple[int, int]


def needs(
    query: QueryText,
    fields: Mapping[int, Sequence[DataField]],
    time_zone: str | None,
    applied: Collection[int] = (),
) -> dict[int, Need]:
    """Return the needed part of each table, by the start of its reference; ``fields`` are the tables' columns.

    ``applied`` are the tables whose reads apply their conditions: the query needs no column for these.
    """
    has_pipe = any(token.is_word(_PIPE) for token in query.tokens)
    conditions = {} if has_pipe else dict(_conditions(query, fields, time_zone))
    ranges = {each.range for start in applied for each in conditions.get(start, ())}
    names = None if has_pipe else _used_names(query, sorted(ranges))
    relations = [each for block in query.blocks for each in block.relations]
    whole = {each.table.start for each in relations if each.table is not None and not each.is_plain}
    found = {}
    for start, columns in fields.items():
        is_whole = names is None or start in whole
        used = None if is_whole else [field.name for field in columns if field.name.lower() in (names or ())]
        if used is not None and len(used) == len(columns):
            used = None
        given = conditions.get(start, ())
        where = " AND ".join(f"({each.text})" for each in given) or None
        found[start] = Need(used, where, [each.range for each in given])
    return found


def _used_names(query: QueryText, applied: Sequence[tuple[int, int]]) -> frozenset[str] | None:
    """Return all names in the query, in lower case; None if it uses columns that it does not name.

    Names within the ranges ``applied`` do not count. A column that has the name of another part of the query is also
    read, which does no harm.
    """
    words = [token.text.upper() for token in query.tokens]
    names = set()
    starts = [start for start, _ in applied]
    for at, token in enumerate(query.tokens):
        before = bisect_right(starts, token.start)
        if before and token.end <= applied[before - 1][1]:
            continue
        if token.kind is TokenKind.NAME:
            names.add(token.text.lower())
        elif token.kind is TokenKind.QUOTED:
            names.add(token.text[1:-1].replace("``", "`").lower())
        elif token.is_word("*") and _is_star(words, at):
            return None
        if token.kind is not TokenKind.QUOTED and words[at] in _ALL_COLUMNS:
            return None
    return None if "SELECT" not in words else frozenset(names)


def _is_star(words: Sequence[str], at: int) -> bool:
    """Return whether ``*`` stands for columns: it is neither a product nor in count(*)."""
    before = words[at - 1] if at else ""
    if before == "(":
        return words[at - 2 : at - 1] != ["COUNT"]
    return before in ("SELECT", "DISTINCT", "ALL", ",", ".") or before.endswith("*/")


def _conditions(
    query: QueryText, fields: Mapping[int, Sequence[DataField]], time_zone: str | None
) -> Iterator[tuple[int, list[_Condition]]]:
    for block in query.blocks:
        parts = list(conjuncts(block.where))
        hidden = frozenset[str]().union(*(each.generated for each in block.relations))
        is_only_one = sum(not each.generated for each in block.relations) == 1
        for at, relation in enumerate(block.relations):
            if relation.table is None or relation.table.start not in fields or not _keeps_rows(block, at):
                continue
            names = {each: each.name.lower() for each in fields[relation.table.start]}
            columns = [each for each, name in names.items() if not name.startswith(_METADATA) and name not in hidden]
            found = ((_condition(each, relation, is_only_one, columns), each) for each in parts)
            yield (
                relation.table.start,
                [
                    _Condition(text, (tokens[0].start, tokens[-1].end))
                    for text, tokens in found
                    if text is not None and _is_understood(text, columns, time_zone)
                ],
            )


def _keeps_rows(block: QueryBlock, at: int) -> bool:
    """Return whether each row of a relation that fails a condition of WHERE adds nothing to the answer.

    A join that adds rows of NULLs for the relation would add one for each row that the condition drops.
    """
    relation, later = block.relations[at], block.relations[at + 1 :]
    own = not at or relation.join in _KEEP_RIGHT
    return relation.is_plain and own and all(each.join in _KEEP_LEFT for each in later)


def conjuncts(where: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Return the parts of a condition between its outermost ANDs; the whole condition if there is OR beside them.

    CASE and END can also be names: a condition in which they do not match is one part.
    """
    depth, between, start = 0, False, 0
    parts = []
    for at, token in enumerate(where):
        if token.text in ("(", "[") or token.is_word("CASE"):
            depth += 1
        elif token.text in (")", "]") or token.is_word("END"):
            depth -= 1
            if depth < 0:
                break
        elif depth:
            continue
        elif token.is_word("OR"):
            yield where
            return
        elif token.is_word("BETWEEN"):
            between = True
        elif token.is_word("AND") and between:
            between = False
        elif token.is_word("AND"):
            parts.append(where[start:at])
            start = at + 1
    if depth:
        yield where
        return
    yield from (*parts, where[start:])


def _condition(
    conjunct: Sequence[Token], relation: Relation, is_only_one: bool, columns: Sequence[DataField]
) -> str | None:
    """Return a condition on one relation without its qualifiers; None if it uses anything else.

    Where there are other relations, only qualified names are known to be the relation's.
    """
    known = {field.name.lower() for field in columns}
    qualifier = (relation.qualifier or "").lower()
    if qualifier in known:
        return None
    parts: list[str] = []
    skipped = 0
    for at, token in enumerate(conjunct):
        if skipped:
            skipped -= 1
            continue
        name = _name(token)
        if token.is_word("SELECT") or token.kind is TokenKind.HINT:
            return None
        if token.text == "." and _name(conjunct[at - 1]) not in known:
            return None
        if name is not None and name == qualifier and [each.text for each in conjunct[at + 1 : at + 2]] == ["."]:
            if _name(conjunct[at + 2]) not in known:
                return None
            parts.append(conjunct[at + 2].text)
            skipped = 2
        elif name is not None and name in known and not is_only_one:
            return None
        else:
            parts.append(token.text)
    return " ".join(parts) or None


def _name(token: Token) -> str | None:
    if token.kind is TokenKind.NAME:
        return token.text.lower()
    return token.text[1:-1].replace("``", "`").lower() if token.kind is TokenKind.QUOTED else None


def _is_understood(text: str, columns: Sequence[DataField], time_zone: str | None) -> bool:
    """Return whether every part of a condition is one that reads evaluate themselves: columns compared with literals."""
    try:
        return unknown_part(parse_where(text, columns, time_zone)) is None
    except LakelsmError:
        return False

"""The tables that a query names, and where: found in its tokens, so that the rest of the text stays as it is written.

A query is a tree of blocks: SELECT … FROM relations WHERE …. A block knows its relations and the range of its WHERE
clause. Names of common table expressions are not tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import Token, TokenKind, located, text_value, tokenize
from lakelsm.sql.syntax.relations import FUNCTIONS, QueryBlock, Relation, Star, TableReference, hint_options

_SET_OPERATIONS = frozenset(["UNION", "INTERSECT", "EXCEPT", "MINUS"])
_CLAUSES = frozenset(
    ["WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "SELECT"]
)
_JOINS = frozenset(["JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL", "SEMI", "ANTI"])
#: Words that follow a relation, and are no alias of it.
_NO_ALIAS = (
    _SET_OPERATIONS | _CLAUSES | _JOINS | frozenset(["ON", "USING", "LATERAL", "TABLESAMPLE", "PIVOT", "UNPIVOT"])
)
_QUERY_STARTS = frozenset(["SELECT", "WITH", "VALUES", "FROM", "TABLE"])
_VERSION, _TIMESTAMP = frozenset(["VERSION", "SYSTEM_VERSION"]), frozenset(["TIMESTAMP", "SYSTEM_TIME"])
#: Maximum levels of nested queries: each level takes some of Python's stack.
_MAX_DEPTH = 100
#: Maximum levels of parentheses: engines fail, or need minutes, with more.
_MAX_PARENTHESES = 500


@dataclass(frozen=True)
class QueryText:
    """A query, its tokens, and the blocks that were found in it."""

    text: str
    tokens: Sequence[Token]
    blocks: Sequence[QueryBlock]

    @staticmethod
    def of(text: str) -> QueryText:
        """Scan a query. Raises InvalidInputError for parentheses that do not match, or too many levels of them."""
        tokens = tokenize(text)
        scan = _Scan(text, tokens)
        scan.query(0, len(tokens) - 1, frozenset())
        return QueryText(text, tokens, scan.blocks)

    @property
    def references(self) -> list[TableReference]:
        """The tables, in the order of the text."""
        found = [each.table for block in self.blocks for each in block.relations if each.table is not None]
        return sorted(found, key=lambda table: table.start)

    def new_names(self, starts: Iterable[int]) -> dict[int, str]:
        """Return a name for each reference, by its ``start``, that nothing in the text can hide: no name is like it."""
        prefix = "lakelsm_table_"
        while prefix in self.text.lower():
            prefix += "_"
        return {start: f"{prefix}{at}_" for at, start in enumerate(sorted(starts))}

    def replaced(
        self,
        names: Mapping[int, str],
        applied: Iterable[tuple[int, int]] = (),
        hidden: Mapping[int, Sequence[str]] | None = None,
    ) -> str:
        """Return the text with other names in place of references, by their ``start``.

        A table without an alias gets its own name as one, so that qualified columns are found. ``hidden`` are columns of
        tables that ``*`` does not stand for. ``applied`` are ranges of conditions, without references, that hold for all
        rows; they become TRUE.
        """
        relations = (each for block in self.blocks for each in block.relations)
        named = {each.table.start for each in relations if each.table and not each.alias and each.takes_alias}
        edits = [(start, end, "TRUE") for start, end in set(applied)]  # One without columns is several tables'.
        edits += self._exceptions(hidden) if hidden else []
        for reference in self.references:
            if reference.start in names:
                alias = f" AS {quoted(reference.name[-1])}" if reference.start in named else ""
                edits.append((reference.start, reference.end, names[reference.start] + alias))
        parts, position = [], 0
        for start, end, text in sorted(edits):
            parts += [self.text[position:start], text]
            position = end
        return "".join([*parts, self.text[position:]])

    def _exceptions(self, hidden: Mapping[int, Sequence[str]]) -> Iterator[tuple[int, int, str]]:
        """Yield the EXCEPT of each star that stands for hidden columns: its range of the text, and the new text."""
        if any(token.is_word(word) for token in self.tokens for word in ("NATURAL", "|>")):
            raise UnsupportedFeatureError("SQL: metadata columns in a query with NATURAL or |> are not supported.")
        for block in self.blocks:
            tables = [each for each in block.relations if each.table is not None and each.table.start in hidden]
            if tables and block.stars is None:
                raise UnsupportedFeatureError("SQL: metadata columns need a SELECT list and joins without parentheses.")
            for star in block.stars or ():
                names = [
                    f"{quoted(each.qualifier or '')}.{quoted(name)}"
                    for each in tables
                    if star.qualifier in (None, (each.qualifier or "").lower())
                    for name in (hidden[each.table.start] if each.table else ())
                ]
                if names:
                    text = f"{', '.join(names)}, " if star.has_except else f" EXCEPT ({', '.join(names)})"
                    yield star.end, star.end, text


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


class _Scan:
    """Collects the blocks of a query. Positions are indexes of tokens, ends are exclusive."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.blocks: list[QueryBlock] = []
        self._text = text
        self._tokens = tokens
        self._words = [token.text.upper() if token.kind is not TokenKind.QUOTED else "" for token in tokens]
        self._closing = self._matched()
        #: For each token, the first one from it on that is no opening parenthesis.
        self._inner = list(range(len(tokens)))
        for at in reversed(range(len(tokens) - 1)):
            if self._words[at] == "(":
                self._inner[at] = self._inner[at + 1]
        self._depth = 0

    def _matched(self) -> dict[int, int]:
        """Return the closing parenthesis of each opening one."""
        matched: dict[int, int] = {}
        opened: list[int] = []
        for at, token in enumerate(self._tokens):
            if token.is_word("("):
                opened.append(at)
                if len(opened) > _MAX_PARENTHESES:
                    raise located(self._text, token.start, "the query is nested too deeply")
            elif token.is_word(")"):
                if not opened:
                    raise located(self._text, token.start, "')' has no opening '('")
                matched[opened.pop()] = at
        if opened:
            raise located(self._text, self._tokens[opened[-1]].start, "'(' has no closing ')'")
        return matched

    def query(self, start: int, end: int, known: frozenset[str]) -> None:
        """Scan a query between two tokens; ``known`` are the names of common table expressions, in lower case."""
        self._enter()
        at = start
        if self._is(at, end, "WITH"):
            at, known = self._common_tables(at + 1, end, known)
        while at < end:
            at = self._block(at, end, known)
        self._depth -= 1

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InvalidInputError("SQL: the query is nested too deeply.")

    def _is(self, at: int, end: int, *words: str) -> bool:
        return at < end and self._words[at] in words

    def _name_at(self, at: int) -> str:
        token = self._tokens[at]
        if token.kind not in (TokenKind.NAME, TokenKind.QUOTED):
            raise located(self._text, token.start, f"expected a name, found {token.text[:40]!r}")
        return token.text if token.kind is TokenKind.NAME else token.text[1:-1].replace("``", "`")

    def _common_tables(self, at: int, end: int, known: frozenset[str]) -> tuple[int, frozenset[str]]:
        """Parse WITH [RECURSIVE] name [(columns)] AS (query), …; return the position after it, and the names."""
        if self._is(at, end, "RECURSIVE"):
            known |= {self._name_at(at + 1).lower()}
            at += 1
        while True:
            name = self._name_at(at).lower()
            at += 1
            if self._is(at, end, "("):
                at = self._closing[at] + 1
            if self._is(at, end, "AS"):
                at += 1
            if not self._is(at, end, "("):
                raise located(self._text, self._tokens[at].start, "expected '(' and a query after the name")
            self.query(at + 1, self._closing[at], known)
            known |= {name}
            at = self._closing[at] + 1
            if not self._is(at, end, ","):
                return at, known
            at += 1

    def _block(self, at: int, end: int, known: frozenset[str]) -> int:
        """Scan one SELECT with its clauses, up to a set operation, which is taken. Return the position after it."""
        relations: list[Relation] = []
        where: Sequence[Token] = ()
        stars: list[Star] | None = None
        while at < end and (self._words[at] not in _SET_OPERATIONS or self._is_member(at)):
            if self._words[at] == "*" and stars is not None and self._is_star(at):
                stars.append(self._star(at))
                at = self._closing[at + 2] + 1 if stars[-1].has_except else at + 1
            elif self._is_member(at):
                at += 1
            elif self._words[at] == "FROM" and not self._is_distinct_from(at):
                at = self._relations(at + 1, end, known, relations)
            elif self._words[at] == "TABLE" and self._tokens[at + 1].kind in (TokenKind.NAME, TokenKind.QUOTED):
                at, table = self._table(at + 1, end, known)
                relations.append(Relation(table, None, "cross", takes_alias=False))
            elif self._words[at] == "SELECT":
                at, stars = at + 1, []
            elif self._words[at] == "WHERE":
                start = at + 1
                at = self._expression(start, end, known, _CLAUSES | _SET_OPERATIONS)
                where = self._tokens[start:at]
            else:
                at = self._skip(at, known)
        self.blocks.append(QueryBlock(relations, where, stars))
        while self._is(at, end, *_SET_OPERATIONS, "ALL", "DISTINCT"):
            at += 1
        return at

    def _is_star(self, at: int) -> bool:
        """Return whether ``*`` stands for columns, and is no product."""
        return self._words[at - 1] in ("SELECT", "DISTINCT", "ALL", ",", ".") or (
            self._tokens[at - 1].kind is TokenKind.HINT
        )

    def _star(self, at: int) -> Star:
        qualifier = self._name_at(at - 2).lower() if self._words[at - 1] == "." else None
        has_except = self._words[at + 1] == "EXCEPT" and self._words[at + 2] == "("
        return Star(self._tokens[at + 2 if has_except else at].end, qualifier, has_except)

    def _is_distinct_from(self, at: int) -> bool:
        """Return whether FROM belongs to IS [NOT] DISTINCT FROM."""
        return self._words[at - 1] == "DISTINCT" and self._words[at - 2] in ("IS", "NOT")

    def _skip(self, at: int, known: frozenset[str]) -> int:
        """Pass a token, or a whole pair of parentheses, in which queries are scanned."""
        end = self._closing.get(at, at)
        while at <= end:
            if at in self._closing and self._starts_query(at + 1):
                self.query(at + 1, self._closing[at], known)
                at = self._closing[at]
            at += 1
        return at

    def _starts_query(self, at: int) -> bool:
        return self._words[self._inner[at]] in _QUERY_STARTS

    def _expression(self, at: int, end: int, known: frozenset[str], stops: frozenset[str]) -> int:
        """Pass an expression up to one of some keywords."""
        while at < end and (self._words[at] not in stops or self._is_member(at)):
            at = self._skip(at, known)
        return at

    def _is_member(self, at: int) -> bool:
        """Return whether a keyword is a name here: after a dot."""
        return at > 0 and self._words[at - 1] == "."

    # -- relations ---------------------------------------------------------------------------------------------------

    def _relations(self, at: int, end: int, known: frozenset[str], found: list[Relation]) -> int:
        """Return the relations of FROM, with their joins."""
        at = self._relation(at, end, known, found, "cross")
        while at < end:
            if self._is(at, end, ","):
                at = self._relation(at + 1, end, known, found, "cross")
            elif self._is(at, end, "LATERAL") and self._words[at + 1] == "VIEW":
                start, at = at, self._expression(at + 1, end, known, _CLAUSES | _SET_OPERATIONS | _JOINS | {"LATERAL"})
                found.append(Relation.view(self._tokens[start:at]))
            elif self._is(at, end, *_JOINS):
                at = self._join(at, end, known, found)
            else:
                break
        return at

    def _join(self, at: int, end: int, known: frozenset[str], found: list[Relation]) -> int:
        words = set()
        while self._words[at] != "JOIN":
            words.add(self._words[at])
            at += 1
            if at >= end or len(words) > 4:
                raise located(self._text, self._tokens[min(at, end)].start, "expected JOIN")
        kinds = (kind for kind in ("SEMI", "ANTI", "FULL", "LEFT", "RIGHT", "CROSS") if kind in words)
        at = self._relation(at + 1, end, known, found, next(kinds, "INNER").lower())
        if self._is(at, end, "ON"):
            return self._expression(at + 1, end, known, _CLAUSES | _SET_OPERATIONS | _JOINS | {"LATERAL", ","})
        if self._is(at, end, "USING"):
            at = self._skip(at + 1, known)
        return at

    def _relation(self, at: int, end: int, known: frozenset[str], found: list[Relation], join: str) -> int:
        at += self._is(at, end, "LATERAL")
        table: TableReference | None = None
        if at >= end:
            raise located(self._text, self._tokens[end].start, "expected a table after FROM or JOIN")
        if self._words[at] == "(" and not self._starts_query(at + 1):
            # Joins in parentheses: conditions of the block are not read with these tables.
            inner: list[Relation] = []
            self._enter()
            self._relations(at + 1, self._closing[at], known, inner)
            self._depth -= 1
            self.blocks.append(QueryBlock(inner))
            at = self._closing[at] + 1
        elif self._words[at] == "(":
            at = self._skip(at, known)
        elif self._words[at] == "VALUES":
            at = self._expression(at + 1, end, known, _CLAUSES | _SET_OPERATIONS | _JOINS | {"AS"})
        else:
            at, table = self._table(at, end, known)
        is_plain, takes_alias = True, True
        while self._is(at, end, "TABLESAMPLE", "PIVOT", "UNPIVOT"):
            # The alias of a sampled table follows the sample.
            is_plain, takes_alias = False, takes_alias and self._words[at] != "TABLESAMPLE"
            at += 1
            while at < end and self._words[at] != "(":
                at += 1
            at = self._skip(at, known)
        at, alias = self._alias(at, end)
        is_plain = is_plain and not (alias is not None and self._words[at - 1] == ")")
        while self._is(at, end, "TABLESAMPLE", "PIVOT", "UNPIVOT"):
            is_plain = False
            at = self._skip(at + 1, known)
        found.append(Relation(table, alias, join, is_plain=is_plain, takes_alias=takes_alias))
        return at

    def _alias(self, at: int, end: int) -> tuple[int, str | None]:
        if self._is(at, end, "AS"):
            at += 1
        elif at >= end or self._tokens[at].kind not in (TokenKind.NAME, TokenKind.QUOTED) or self._words[at] in _NO_ALIAS:
            return at, None
        alias = self._name_at(at)
        at += 1
        return (self._closing[at] + 1 if self._is(at, end, "(") else at), alias

    def _table(self, at: int, end: int, known: frozenset[str]) -> tuple[int, TableReference | None]:
        """Return a table name with time travel and hint, or a function; None for a common table expression."""
        first, name = at, [self._name_at(at)]
        at += 1
        while self._is(at, end, "."):
            name.append(self._name_at(at + 1))
            at += 2
        start = self._tokens[first].start
        if self._is(at, end, "("):
            arguments = self._arguments(at)
            if arguments is None and name[-1].lower() in FUNCTIONS:
                raise located(self._text, start, f"{name[-1]} takes texts and unsigned numbers, separated by commas")
            at = self._skip(at, known)
            if arguments is None:
                return at, None
            return at, TableReference(tuple(name), start, self._tokens[at - 1].end, arguments=arguments)
        is_common = len(name) == 1 and name[0].lower() in known
        after, version, timestamp = self._time_travel(at, end)
        if after > at and (is_common or self._time_travel(after, end)[0] > after):
            fault = f"{name[0]!r} is a common table expression, which has no" if is_common else "the table has another"
            raise located(self._text, self._tokens[at if is_common else after].start, f"{fault} version")
        at = after
        if is_common:
            return at, None
        options: Mapping[str, str] = {}
        if at < end and self._tokens[at].kind is TokenKind.HINT:
            options = hint_options(self._text, self._tokens[at])
            at += 1
        found = TableReference(
            tuple(name), start, self._tokens[at - 1].end, version=version, timestamp=timestamp, options=options
        )
        return at, found

    def _arguments(self, at: int) -> tuple[int | str, ...] | None:
        """Return the literals of a function's parentheses; None if it has other arguments."""
        found: list[int | str] = []
        inside = self._tokens[at + 1 : self._closing[at]]
        if any(token.is_word(",") != bool(index % 2) for index, token in enumerate(inside)) or len(inside) % 2 == 0:
            return () if not inside else None
        for token in inside[::2]:
            if token.kind is TokenKind.TEXT:
                found.append(text_value(token.text))
            elif token.kind is TokenKind.NUMBER and token.text.isdigit():
                found.append(int(token.text))
            else:
                return None
        return tuple(found)

    def _time_travel(self, at: int, end: int) -> tuple[int, int | str | None, int | str | None]:
        """Parse [FOR] VERSION AS OF v, [FOR] TIMESTAMP AS OF t."""
        start = at + 1 if self._is(at, end, "FOR") else at
        is_version, is_time = self._is(start, end, *_VERSION), self._is(start, end, *_TIMESTAMP)
        if not (is_version or is_time) or not self._is(start + 1, end, "AS") or not self._is(start + 2, end, "OF"):
            return at, None, None
        at = start + 3
        if is_time and self._is(at, end, "TIMESTAMP") and self._tokens[at + 1].kind is TokenKind.TEXT:
            at += 1
        token = self._tokens[at]
        if token.kind is TokenKind.TEXT:
            value: int | str = text_value(token.text)
        elif token.kind is TokenKind.NUMBER and token.text.rstrip("lL").isdigit():
            value = int(token.text.rstrip("lL"))
        else:
            raise UnsupportedFeatureError(
                f"SQL: {self._words[start]} AS OF {token.text[:40]}: only a number or a text is supported there."
            )
        return at + 1, value if is_version else None, None if is_version else value

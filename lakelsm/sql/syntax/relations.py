"""What a query reads: tables with time travel and options, relations of FROM, and blocks of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.tokens import Token, TokenKind, located, text_value, tokenize
from lakelsm.sql.syntax.statements import Name

#: Table functions of Paimon, with the numbers of their arguments.
FUNCTIONS: Mapping[str, int] = {
    "paimon_incremental_query": 3,
    "paimon_incremental_between_timestamp": 3,
    "paimon_incremental_to_auto_tag": 2,
}
#: The database of Paimon's scalar functions, which are not built.
_SYSTEM = "SYS"
#: The columns of a LATERAL VIEW that does not name them.
_GENERATED = frozenset(["col", "key", "value", "pos"])


@dataclass(frozen=True)
class TableReference:
    """A table name of a query, and what follows it there.

    ``start`` and ``end`` are its range of characters, with time travel and hint. ``version`` is a snapshot id or a tag,
    ``timestamp`` a time as text or in seconds since 1970. ``arguments`` are those of a table function (None: a table).
    """

    name: Name
    start: int
    end: int
    _: KW_ONLY
    version: int | str | None = None
    timestamp: int | str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[int | str, ...] | None = None


@dataclass(frozen=True)
class Relation:
    """A relation of FROM: a table or something else (``table`` None).

    ``join`` is how it is joined with the relations before it: 'inner', 'cross', 'left', 'right', 'full', 'semi', 'anti'.
    ``is_plain``: its rows and column names are the table's, neither sampled, pivoted nor renamed. ``takes_alias``: an
    alias can follow its name. ``generated``: the columns, in lower case, that a LATERAL VIEW adds to the rows before it.
    """

    table: TableReference | None
    alias: str | None
    join: str
    _: KW_ONLY
    is_plain: bool = True
    takes_alias: bool = True
    generated: frozenset[str] = frozenset()

    @staticmethod
    def view(tokens: Sequence[Token]) -> Relation:
        """Return a LATERAL VIEW by its tokens. Its names follow the call of a function."""
        last = max((at for at, token in enumerate(tokens) if token.text == ")"), default=0)
        names = (token.text.strip("`").lower() for token in tokens[last + 1 :])
        return Relation(None, None, "cross", generated=_GENERATED | frozenset(names))

    @property
    def qualifier(self) -> str | None:
        """The name that columns are qualified with."""
        return self.alias or (self.table.name[-1] if self.table else None)


@dataclass(frozen=True)
class Star:
    """``*`` in a SELECT list. ``end`` is the position after it, or after the '(' of its EXCEPT (``has_except``)."""

    end: int
    qualifier: str | None
    has_except: bool


@dataclass(frozen=True)
class QueryBlock:
    """A SELECT with its relations; ``where`` are the tokens of its WHERE clause.

    ``stars`` are those of its SELECT list; None: it has no list and shows all columns, or is within another block.
    """

    relations: Sequence[Relation]
    where: Sequence[Token] = ()
    stars: Sequence[Star] | None = None


def hint_options(text: str, hint: Token) -> dict[str, str]:
    """Return the options of a hint /*+ OPTIONS('key' = 'value', …) */ after a table."""
    parts = tokenize(hint.text[3:-2])[:-1]
    texts = [token.kind is TokenKind.TEXT for token in parts]
    words = [token.text.upper() for token in parts]
    pairs = [parts[at : at + 3] for at in range(2, len(parts) - 1, 4)]
    is_well_formed = words[:2] == ["OPTIONS", "("] and words[-1] == ")" and all(
        len(pair) == 3 and pair[1].text == "=" and pair[0].kind is pair[2].kind is TokenKind.TEXT for pair in pairs
    )
    if not is_well_formed or not any(texts):
        raise located(text, hint.start, "expected /*+ OPTIONS('key' = 'value') */ after a table")
    found = {text_value(key.text): text_value(value.text) for key, _, value in pairs}
    if len(found) < len(pairs):
        raise located(text, hint.start, "the hint has an option twice")
    return found


def refuse_functions(tokens: Sequence[Token]) -> None:
    """Raise UnsupportedFeatureError if a query calls a function of Paimon, such as sys.max_pt."""
    for database, dot, name, opening in zip(tokens, tokens[1:], tokens[2:], tokens[3:]):
        if database.is_word(_SYSTEM) and dot.is_word(".") and opening.is_word("(") and name.kind is TokenKind.NAME:
            raise UnsupportedFeatureError(f"SQL: function sys.{name.text} is not supported.")

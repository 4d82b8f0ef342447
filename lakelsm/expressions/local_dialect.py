"""The tree that sqlglot makes of a query, with functions as calls by their names and literals as Spark reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError
from lakelsm.expressions.tokens import TokenKind, text_value, tokenize
from lakelsm.predicate.expression import DOUBLE, STRING, Value, decimal
from lakelsm.types import AtomicType


def _substring(parser: Any) -> Any:
    """Parse substring(text, position, length) and substring(text FROM position FOR length)."""
    found = parser._parse_substring()
    parts = [found.this, found.args.get("start"), found.args.get("length")]
    return exp.Anonymous(this="substring", expressions=[each for each in parts if each is not None])


def _position(parser: Any) -> Any:
    """Parse position(part, text) and position(part IN text)."""
    arguments = parser._parse_csv(parser._parse_bitwise)
    if parser._match(TokenType.IN):
        arguments.append(parser._parse_bitwise())
    return exp.Anonymous(this="position", expressions=arguments)


class PlainSpark(Spark):
    """Spark's dialect without the functions that sqlglot has classes for: each is a call with a name and arguments."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """The parser of queries."""

        FUNCTIONS: ClassVar[Any] = {}
        FUNCTION_PARSERS: ClassVar[Any] = {
            **{name: Spark.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM")},
            "POSITION": _position,
            "SUBSTR": _substring,
            "SUBSTRING": _substring,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {"CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        NO_PAREN_FUNCTIONS: ClassVar[Any] = {}
        ARRAY_CONSTRUCTORS: ClassVar[Any] = {}  # They would read array(a, b)[0] as ARRAY[0].


#: Digits of the longest decimal, and the first number that rounds to an infinite FLOAT.
_MAX_PRECISION, _FLOAT_END = 38, 2.0**128 - 2.0**103
#: The key of a table's name in the text among the metadata of its node.
_TABLE = "table"
_INTEGERS = {"Y": ("TINYINT", 8), "S": ("SMALLINT", 16), "L": ("BIGINT", 64)}


class QueryTree:
    """A parsed query, or an expression.

    ``values`` are literals that sqlglot reads otherwise, by the texts that stand for them; ``time`` is the current time.
    """

    def __init__(self, sql: str, *, is_expression: bool = False, tables: Mapping[str, str] | None = None) -> None:
        """``tables`` are names in the text that stand for others, which messages show."""
        self.values: dict[str, Value] = {}
        self.time = datetime.fromtimestamp(SYSTEM.clock() / 1000, timezone.utc)
        self._texts: dict[str, str] = {}
        self._prefix = "literal "
        while self._prefix in sql:
            self._prefix += "-"
        try:
            kind = exp.Condition if is_expression else None
            self.root: Any = sqlglot.parse_one(self._plain(sql), dialect=PlainSpark, into=kind)
        except SqlglotError as error:
            raise InvalidInputError(f"SQL: the query cannot be parsed{_where(error)}.") from error
        except RecursionError as error:
            raise InvalidInputError("SQL: the query is nested too deeply.") from error
        for table in self.root.find_all(exp.Table) if tables else ():
            other = (tables or {}).get(table.name)
            if other is not None:
                table.meta[_TABLE] = table.name
                table.set("this", exp.to_identifier(other))

    def table_name(self, table: Any) -> str:
        """Return the name of a table in the text."""
        return str(table.meta.get(_TABLE, table.name))

    def as_written(self, text: str) -> str:
        """Return a part of the query with its literals as the user wrote them."""
        for name in reversed(self._texts) if self._prefix in text else ():
            text = text.replace(f"'{name}'", self._texts[name])
        return text

    def _plain(self, sql: str) -> str:
        """Return the text with a plain literal in place of each text with quotes or escapes, and each typed number."""
        parts, position = [], 0
        for token in tokenize(sql):
            value = None
            if token.kind is TokenKind.TEXT:
                content = token.text[1:-1]
                if token.text[0] in "rR" or "\\" in content or token.text[0] in content or "'" in content:
                    value = Value(STRING, text_value(token.text))
            elif token.kind is TokenKind.NUMBER and token.text[-1].isalpha():
                value = _number(token.text)
            elif token.kind is TokenKind.NAME and token.text[:2].lower() in ("0x", "0b"):
                raise InvalidInputError(f"SQL: {token.text[:40]!r} is not a number. Write a name in backticks.")
            if value is not None:
                name = f"{self._prefix}{len(self.values)}"
                self.values[name] = value
                self._texts[name] = token.text
                parts += [sql[position : token.start], f"'{name}'"]
                position = token.end
        return "".join([*parts, sql[position:]])


def _where(error: SqlglotError) -> str:
    """Where an error is: a few words of the query. Its line and column are those of the text with other names."""
    found = (getattr(error, "errors", None) or [{}])[0]
    words = f"{found.get('start_context') or ''}{found.get('highlight') or ''}".split()
    return f" at {' '.join(words[-4:])!r}" if words else ""


def _number(text: str) -> Value | None:
    """Return a number with a letter for its type; None for one whose letters are an exponent."""
    suffix = text[-1].upper()
    if text[-2:].upper() == "BD":
        number = Decimal(text[:-2])
        digits, exponent = len(number.as_tuple().digits), int(number.as_tuple().exponent)
        scale = max(0, -exponent)
        precision = max(digits + max(exponent, 0), scale)
        if precision > _MAX_PRECISION:
            raise InvalidInputError(f"SQL: {text[:40]} does not fit DECIMAL({_MAX_PRECISION}).")
        return Value(decimal(precision, scale), number)
    if suffix in _INTEGERS and text[:-1].isdigit():
        root, bits = _INTEGERS[suffix]
        if int(text[:-1]) >= 1 << (bits - 1):
            raise InvalidInputError(f"SQL: {text} does not fit {root}.")
        return Value(AtomicType(root), int(text[:-1]))
    if suffix == "D":
        value = float(text[:-1])
        if math.isinf(value):
            raise InvalidInputError(f"SQL: {text[:40]} does not fit DOUBLE.")
        return Value(DOUBLE, value)
    if suffix == "F" and abs(float(text[:-1])) >= _FLOAT_END:
        raise InvalidInputError(f"SQL: {text[:40]} does not fit FLOAT.")
    return Value(AtomicType("FLOAT"), float(text[:-1])) if suffix == "F" else None

"""Parser for the text of types, the JSON form of schema files, and column lists (DDL): one recursive descent.

It accepts what Paimon's parser accepts (docs/format.md 3.2), and also ARRAY<..>, MAP<..>, ROW<..>/STRUCT<..>.
TIMESTAMP means TIMESTAMP WITHOUT TIME ZONE, as in Paimon; in Spark SQL it is the type with a zone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types.data_types import (
    ATOMIC_ROOTS,
    MAX_LENGTH,
    MAX_NESTING,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    JsonType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    too_deep,
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<punct>[<>(),.:])
    | (?P<word>[^\s<>(),.:'`]+)
    )""",
    re.VERBOSE,
)
_SYNONYMS = {
    "INTEGER": "INT",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "STRUCT": "ROW",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
#: Type names of Spark and other databases, and Paimon's name for each; errors suggest it.
_ELSEWHERE = {
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "NUMBER": "DECIMAL(38, 0)",
    "TEXT": "STRING",
    "JSON": "STRING",
    "UUID": "STRING",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP_TZ": "TIMESTAMP_LTZ",
}
_UNSUPPORTED = frozenset(["GEOMETRY", "GEOGRAPHY", "INTERVAL", "RAW", "LEGACY"])
_NOT_NULL = "NOT NULL"
#: Characters of a type's text that an error shows at most.
_MAX_SHOWN = 200
#: Digits of the maximum length.
_DIGITS = len(str(MAX_LENGTH))


@dataclass(frozen=True)
class _Token:
    kind: str  # string, quoted, punct, word or end
    text: str
    position: int

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def parse_type(value: str | Mapping[str, Any]) -> DataType:
    """Return the type of a text, or of the JSON form in a schema file.

    ROW members get the ids of the JSON form, or UNASSIGNED_ID from text. Raises InvalidInputError with the
    position for invalid text, UnsupportedFeatureError for a type of Paimon that lakelsm does not support.
    """
    if isinstance(value, str):
        parser = _Parser(value)
        parsed = parser.type_with_nullability()
        parser.expect_end()
        return parsed
    if isinstance(value, Mapping):
        return _from_json(value)
    raise InvalidInputError(f"a type is text or an object of a schema file, not {value!r}")


def parse_columns(ddl: str) -> tuple[DataField, ...]:
    """Return the columns of a DDL text like "id BIGINT NOT NULL, name STRING COMMENT 'x'"; ids are UNASSIGNED_ID.

    Raises InvalidInputError with the position for invalid text.
    """
    parser = _Parser(ddl)
    fields = parser.fields(closing="")
    parser.expect_end()
    return fields


def field_from_json(document: Mapping[str, Any]) -> DataField:
    """Return the field of a schema file's object. Unknown keys are ignored; a JSON null counts as absent."""
    name = document.get("name")
    if not isinstance(name, str) or "type" not in document:
        raise InvalidInputError(f"a field must have 'name' and 'type', found {dict(document)!r}")
    field_id = document.get("id", UNASSIGNED_ID)
    if isinstance(field_id, bool) or not isinstance(field_id, int):
        raise InvalidInputError(f"the id of field '{name}' must be an integer, not {field_id!r}")
    return DataField(
        id=field_id,
        name=name,
        type=parse_type(document["type"]),
        description=document.get("description"),
        default_value=document.get("defaultValue"),
    )


def _from_json(document: Mapping[str, Any]) -> DataType:
    head = document.get("type")
    if not isinstance(head, str):
        raise InvalidInputError(f"a type object must have the text 'type', found {dict(document)!r}")
    root, nullable = head.upper().split(" ")[0], _NOT_NULL not in head.upper()
    try:
        if root == "ARRAY":
            return ArrayType(parse_type(document["element"]), nullable)
        if root == "MULTISET":
            return MultisetType(parse_type(document["element"]), nullable)
        if root == "VECTOR":
            return VectorType(parse_type(document["element"]), int(document["length"]), nullable)
        if root == "MAP":
            return MapType(parse_type(document["key"]), parse_type(document["value"]), nullable)
        if root == "ROW":
            return RowType(tuple(field_from_json(field) for field in document["fields"]), nullable)
    except KeyError as missing:
        raise InvalidInputError(f"type object {root} has no {missing}. Add it.") from missing
    raise InvalidInputError(f"'{head}' is not a type object. Use one of ARRAY, MAP, MULTISET, ROW, VECTOR.")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._tokenize(text))
        self._next = 0
        self._depth = 0

    def _tokenize(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise InvalidInputError(
                    f"cannot read type text '{_shown(text)}' at position {position}: unclosed quote"
                )
            kind = match.lastgroup or ""
            raw = match.group(kind)
            if kind in ("string", "quoted"):
                raw = raw[1:-1].replace(raw[0] * 2, raw[0])
            tokens.append(_Token(kind, raw, match.start(kind)))
            position = match.end()
        tokens.append(_Token("end", "end of text", end))
        return tokens

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _advance(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _fail(self, wanted: str) -> NoReturn:
        token = self._peek()
        hint = "; name key columns in primary_key=[...]" if token.keyword == "PRIMARY" else ""
        raise InvalidInputError(
            f"cannot read type text '{_shown(self._text)}' at position {token.position}: "
            f"expected {wanted}, found '{_shown(token.text)}'{hint}"
        )

    def _take(self, punct: str) -> bool:
        token = self._peek()
        if token.kind == "punct" and token.text == punct:
            self._next += 1
            return True
        return False

    def _take_words(self, *words: str) -> bool:
        if all(self._peek(i).keyword == word for i, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def _expect(self, punct: str) -> None:
        if not self._take(punct):
            self._fail(f"'{punct}'")

    def expect_end(self) -> None:
        """Raise InvalidInputError unless the whole text was read."""
        if self._peek().kind != "end":
            self._fail("the end")

    def type_with_nullability(self) -> DataType:
        """Return the next type, with NOT NULL or NULL and the suffix notation `INT ARRAY`."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise too_deep(f"a type at position {self._peek().position}")
        parsed = self._nullability(self._bare_type())
        self._depth -= 1
        suffixes = 0
        while self._peek().keyword in ("ARRAY", "MULTISET"):
            suffixes += 1
            if suffixes > MAX_NESTING:
                raise too_deep(f"a type at position {self._peek().position}")
            suffix = self._advance().keyword
            parsed = self._nullability(ArrayType(parsed) if suffix == "ARRAY" else MultisetType(parsed))
        return parsed

    def _nullability(self, parsed: DataType) -> DataType:
        if self._take_words("NOT", "NULL"):
            return parsed.with_nullable(False)
        self._take_words("NULL")
        return parsed

    def _bare_type(self) -> DataType:
        token = self._peek()
        word = _SYNONYMS.get(token.keyword, token.keyword)
        if word in ("ARRAY", "MULTISET", "MAP", "VECTOR", "ROW"):
            self._advance()
            return self._constructed(word)
        if word in _UNSUPPORTED:
            raise UnsupportedFeatureError(f"type {word} is not supported. Use a type that docs/api.md lists.")
        if word in ("STRING", "BYTES"):
            self._advance()
            return AtomicType("VARCHAR" if word == "STRING" else "VARBINARY", length=MAX_LENGTH)
        if word not in ATOMIC_ROOTS:
            if word in _ELSEWHERE:
                self._fail(f"a type (Paimon's for {word} is {_ELSEWHERE[word]})")
            near = difflib.get_close_matches(word, [*ATOMIC_ROOTS, *_SYNONYMS, "STRING", "BYTES"], n=1)
            self._fail(f"a type{f' (did you mean {near[0]}?)' if near else ''}")
        self._advance()
        return self._atomic(word)

    def _constructed(self, word: str) -> DataType:
        self._expect("<")
        if word == "ROW":
            fields = self.fields(closing=">")
            self._expect(">")
            return RowType(fields)
        first = self.type_with_nullability()
        result: DataType
        if word == "MAP":
            self._expect(",")
            result = MapType(first, self.type_with_nullability())
        elif word == "VECTOR":
            self._expect(",")
            result = VectorType(first, self._int())
        else:
            result = ArrayType(first) if word == "ARRAY" else MultisetType(first)
        self._expect(">")
        return result

    def _atomic(self, word: str) -> AtomicType:
        if word == "DOUBLE":
            self._take_words("PRECISION")
            return AtomicType("DOUBLE")
        if word in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
            return AtomicType(word, length=self._parameter())
        if word == "DECIMAL":
            precision: int | None = None
            scale: int | None = None
            if self._take("("):
                precision = self._int()
                scale = self._int() if self._take(",") else None
                self._expect(")")
            return AtomicType("DECIMAL", precision=precision, scale=scale)
        if word in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
            precision = self._parameter()
            if word != "TIMESTAMP_LTZ":
                self._take_words("WITHOUT", "TIME", "ZONE")
            if word == "TIMESTAMP" and self._take_words("WITH", "LOCAL", "TIME", "ZONE"):
                word = "TIMESTAMP_LTZ"
            if word == "TIMESTAMP" and self._peek().keyword == "WITH":
                self._fail("WITH LOCAL TIME ZONE (or TIMESTAMP_LTZ), the only kind with a zone that Paimon has")
            return AtomicType(word, precision=precision)
        return AtomicType(word)

    def _parameter(self) -> int | None:
        if not self._take("("):
            return None
        value = self._int()
        self._expect(")")
        return value

    def _int(self) -> int:
        token = self._peek()
        if token.kind != "word" or not (token.text.isascii() and token.text.isdigit() and len(token.text) <= _DIGITS):
            self._fail("a whole number")
        self._advance()
        return int(token.text)

    def fields(self, closing: str) -> tuple[DataField, ...]:
        """Return fields `name[:] type [COMMENT 'text'] [DEFAULT 'text']`, up to `closing` or the end of the text."""
        fields: list[DataField] = []
        if closing and self._peek().text == closing and self._peek().kind == "punct":
            return ()
        while True:
            if self._peek().kind not in ("word", "quoted"):
                self._fail("a column name")
            name = self._advance().text
            self._take(":")
            data_type = self.type_with_nullability()
            description: str | None = None
            default: str | None = None
            while True:
                if self._take_words("DEFAULT"):
                    default = (
                        self._advance().text
                        if self._peek().kind in ("string", "word")
                        else self._fail("a value")
                    )
                elif self._take_words("COMMENT") or self._peek().kind == "string":
                    description = (
                        self._advance().text if self._peek().kind == "string" else self._fail("a text")
                    )
                else:
                    break
            fields.append(DataField(UNASSIGNED_ID, name, data_type, description, default_value=default))
            if not self._take(","):
                return tuple(fields)


def _shown(text: str) -> str:
    """Return a text for an error: at most the first `_MAX_SHOWN` characters."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


__all__ = ["JsonType", "field_from_json", "parse_columns", "parse_type"]

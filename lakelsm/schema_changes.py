"""Schema changes as values: the requests of a caller. Each checks its own arguments; `evolution` applies them.

A type is one of lakelsm.types or its DDL text, such as 'DECIMAL(10, 2)' or 'ROW<a INT>'; the change has it parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from lakelsm.arguments import checked_flag, checked_name, checked_text, invalid_argument, option_text, wrong_argument
from lakelsm.errors import InvalidInputError, error_context
from lakelsm.options.other_keys import holds_secret
from lakelsm.secret_values import REDACTED
from lakelsm.types import DataType, parse_type

ColumnPath = str | tuple[str, ...]
"""A column name, or the path of a nested part: (row, member), (array, 'element'), (map, 'value', member)."""


@dataclass(frozen=True)
class AddColumn:
    """A new nullable column: last, first, or after another one."""

    name: ColumnPath
    type: DataType | str
    _: KW_ONLY
    comment: str | None = None
    after: str | None = None
    first: bool = False

    def __post_init__(self) -> None:
        _check_path(self.name)
        object.__setattr__(self, "type", _checked_type(self.name, self.type))
        _check_comment(self.comment)
        _check_place(self.after, self.first)

    @property
    def data_type(self) -> DataType:
        """The type, parsed."""
        return _checked_type(self.name, self.type)

    def __repr__(self) -> str:
        more = {"comment": self.comment, "after": self.after, "first": self.first or None}
        given = "".join(f", {key}={value!r}" for key, value in more.items() if value is not None)
        return f"AddColumn({self.name!r}, {self.data_type.sql()!r}{given})"

    def __str__(self) -> str:
        return f"the new column {'.'.join(column_path(self.name))} {self.data_type.sql()}"


@dataclass(frozen=True)
class DropColumn:
    """A column goes; its id is never used again."""

    name: ColumnPath

    def __post_init__(self) -> None:
        _check_path(self.name)


@dataclass(frozen=True)
class RenameColumn:
    """A column gets another name and keeps its id."""

    name: ColumnPath
    new_name: str

    def __post_init__(self) -> None:
        _check_path(self.name)
        checked_name("new_name", self.new_name, "the name of a column as text")


@dataclass(frozen=True)
class UpdateColumnType:
    """A column gets a wider type; its nullability stays."""

    name: ColumnPath
    type: DataType | str

    def __post_init__(self) -> None:
        _check_path(self.name)
        object.__setattr__(self, "type", _checked_type(self.name, self.type))

    @property
    def data_type(self) -> DataType:
        """The type, parsed."""
        return _checked_type(self.name, self.type)

    def __repr__(self) -> str:
        return f"UpdateColumnType({self.name!r}, {self.data_type.sql()!r})"

    def __str__(self) -> str:
        return f"column {'.'.join(column_path(self.name))} as {self.data_type.sql()}"


@dataclass(frozen=True)
class UpdateColumnNullability:
    """A column becomes nullable, or NOT NULL (only if 'alter-column-null-to-not-null.disabled' = 'false')."""

    name: ColumnPath
    nullable: bool

    def __post_init__(self) -> None:
        _check_path(self.name)
        checked_flag("nullable", self.nullable)


@dataclass(frozen=True)
class UpdateColumnComment:
    """A column's comment; None removes it."""

    name: ColumnPath
    comment: str | None

    def __post_init__(self) -> None:
        _check_path(self.name)
        _check_comment(self.comment)


@dataclass(frozen=True)
class MoveColumn:
    """A column goes to the front, after another one, or else to the end."""

    name: str
    after: str | None = None
    first: bool = False

    def __post_init__(self) -> None:
        checked_name("name", self.name, "the name of a column as text")
        _check_place(self.after, self.first)


@dataclass(frozen=True)
class UpdateComment:
    """The table's comment; None removes it."""

    comment: str | None

    def __post_init__(self) -> None:
        _check_comment(self.comment)


@dataclass(frozen=True)
class SetOption:
    """An option gets a value: text, or a number or boolean for its text."""

    key: str
    value: str

    def __post_init__(self) -> None:
        _check_key(self.key)
        object.__setattr__(self, "value", option_text(self.key, self.value))

    def __repr__(self) -> str:
        return f"SetOption(key={self.key!r}, value={REDACTED if holds_secret(self.key) else repr(self.value)})"


@dataclass(frozen=True)
class RemoveOption:
    """An option goes back to its default."""

    key: str

    def __post_init__(self) -> None:
        _check_key(self.key)


ColumnChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | MoveColumn
)
SchemaChange = ColumnChange | UpdateComment | SetOption | RemoveOption


def check_changes(changes: Sequence[object]) -> None:
    """Raises InvalidInputError unless there are changes, and nothing else."""
    for change in changes:
        if not isinstance(change, SchemaChange):
            remedy = "Write *changes to pass the members of a list." if isinstance(change, (list, tuple)) else ""
            raise wrong_argument("changes", change, "AddColumn, SetOption or another schema change", remedy)
    if not changes:
        raise invalid_argument("changes", "no schema change is given.", "Pass AddColumn(…), SetOption(…) or another one.")


def column_path(name: ColumnPath) -> tuple[str, ...]:
    """The path of a column's name: its names from the outside in."""
    return (name,) if isinstance(name, str) else tuple(name)


def _check_path(name: object) -> None:
    wanted = "the name of a column, or the path of a nested one such as ('row', 'member')"
    if not isinstance(name, (str, tuple, list)) or not name:
        raise wrong_argument("name", name, wanted)
    for part in [name] if isinstance(name, str) else name:
        checked_name("name", part, wanted)


def _checked_type(name: ColumnPath, data_type: DataType | str) -> DataType:
    if isinstance(data_type, DataType):
        return data_type
    text = checked_text("type", data_type, "a type as text, such as 'BIGINT' or 'ROW<a INT>', or one of lakelsm.types")
    with error_context(f"column '{'.'.join(column_path(name))}'"):
        return parse_type(text)


def _check_comment(comment: str | None) -> None:
    checked_text("comment", comment, "a text", optional=True, blank=True)


def _check_place(after: str | None, first: bool) -> None:
    checked_name("after", after, "the name of a column as text", optional=True)
    if checked_flag("first", first) and after is not None:
        raise InvalidInputError(f"first is True and after is {after!r}; give one of them.")


def _check_key(key: str) -> None:
    checked_name("key", key, "the key of an option as text")

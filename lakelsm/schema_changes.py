"""Schema changes, the arguments of `alter_table`. Each one checks its arguments; `schema.evolution` applies them.

A type is a DataType or its DDL text, such as 'DECIMAL(10, 2)' or 'ROW<a INT>', which the change parses.
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
    """Add a nullable column: at the end, first, or after another column."""

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
        _check_position(self.after, self.first)

    @property
    def data_type(self) -> DataType:
        """The parsed type."""
        return _checked_type(self.name, self.type)

    def __repr__(self) -> str:
        more = {"comment": self.comment, "after": self.after, "first": self.first or None}
        given = "".join(f", {key}={value!r}" for key, value in more.items() if value is not None)
        return f"AddColumn({self.name!r}, {self.data_type.sql()!r}{given})"

    def __str__(self) -> str:
        return f"the new column {'.'.join(column_path(self.name))} {self.data_type.sql()}"


@dataclass(frozen=True)
class DropColumn:
    """Drop a column. Its id is never used again."""

    name: ColumnPath

    def __post_init__(self) -> None:
        _check_path(self.name)


@dataclass(frozen=True)
class RenameColumn:
    """Rename a column, which keeps its id."""

    name: ColumnPath
    new_name: str

    def __post_init__(self) -> None:
        _check_path(self.name)
        checked_name("new_name", self.new_name, "the name of a column as text")


@dataclass(frozen=True)
class UpdateColumnType:
    """Change the type of a column to a wider one. Its nullability does not change."""

    name: ColumnPath
    type: DataType | str

    def __post_init__(self) -> None:
        _check_path(self.name)
        object.__setattr__(self, "type", _checked_type(self.name, self.type))

    @property
    def data_type(self) -> DataType:
        """The parsed type."""
        return _checked_type(self.name, self.type)

    def __repr__(self) -> str:
        return f"UpdateColumnType({self.name!r}, {self.data_type.sql()!r})"

    def __str__(self) -> str:
        return f"column {'.'.join(column_path(self.name))} as {self.data_type.sql()}"


@dataclass(frozen=True)
class UpdateColumnNullability:
    """Make a column nullable, or NOT NULL (needs 'alter-column-null-to-not-null.disabled' = 'false')."""

    name: ColumnPath
    nullable: bool

    def __post_init__(self) -> None:
        _check_path(self.name)
        checked_flag("nullable", self.nullable)


@dataclass(frozen=True)
class UpdateColumnComment:
    """Set the comment of a column; None removes it."""

    name: ColumnPath
    comment: str | None

    def __post_init__(self) -> None:
        _check_path(self.name)
        _check_comment(self.comment)


@dataclass(frozen=True)
class MoveColumn:
    """Move a column to the front, after another one, or by default to the end."""

    name: str
    after: str | None = None
    first: bool = False

    def __post_init__(self) -> None:
        checked_name("name", self.name, "the name of a column as text")
        _check_position(self.after, self.first)


@dataclass(frozen=True)
class UpdateComment:
    """Set the comment of the table; None removes it."""

    comment: str | None

    def __post_init__(self) -> None:
        _check_comment(self.comment)


@dataclass(frozen=True)
class SetOption:
    """Set an option to a text, a number or a boolean."""

    key: str
    value: str

    def __post_init__(self) -> None:
        _check_key(self.key)
        object.__setattr__(self, "value", option_text(self.key, self.value))

    def __repr__(self) -> str:
        return f"SetOption(key={self.key!r}, value={REDACTED if holds_secret(self.key) else repr(self.value)})"


@dataclass(frozen=True)
class RemoveOption:
    """Reset an option to its default."""

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
    """Raise InvalidInputError for an empty list and for values that are not schema changes."""
    for change in changes:
        if not isinstance(change, SchemaChange):
            remedy = "Write *changes to pass the members of a list." if isinstance(change, (list, tuple)) else ""
            raise wrong_argument("changes", change, "AddColumn, SetOption or another schema change", remedy)
    if not changes:
        raise invalid_argument("changes", "no schema change is given.", "Pass AddColumn(…), SetOption(…) or another one.")


def column_path(name: ColumnPath) -> tuple[str, ...]:
    """Return the name of a column as a path, the outermost name first."""
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


def _check_position(after: str | None, first: bool) -> None:
    checked_name("after", after, "the name of a column as text", optional=True)
    if checked_flag("first", first) and after is not None:
        raise InvalidInputError(f"first: after = {after!r} is also given. Pass one of the two.")


def _check_key(key: str) -> None:
    checked_name("key", key, "the key of an option as text")

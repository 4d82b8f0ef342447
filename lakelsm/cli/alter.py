"""``lakelsm alter``: change columns, options and comments of tables."""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from lakelsm.catalog import Catalog
from lakelsm.cli.describe import schema_values
from lakelsm.cli.report import Report, outcome_report
from lakelsm.cli.verb import EXIT_STATUSES, CatalogVerb
from lakelsm.errors import InvalidInputError
from lakelsm.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from lakelsm.types import parse_columns

_DETAILS = f"""\
Changes are made in the order of the command line, in one new schema: all of them or none. Data files
are not rewritten.

examples:
  lakelsm alter --warehouse /tmp/wh --table shop.orders --add-column "note STRING" --drop-column v
  lakelsm alter --warehouse /tmp/wh --database shop --set write-only=true

{EXIT_STATUSES}"""


def _parts(text: str, form: str) -> tuple[str, str]:
    name, separator, rest = text.partition("=")
    if not name or not separator:
        raise InvalidInputError(f"expected {form}")
    return name, rest


def _added(text: str) -> AddColumn:
    columns = parse_columns(text)
    if len(columns) != 1:
        raise InvalidInputError("expected one column, such as 'n INT'; repeat the flag for more")
    return AddColumn(columns[0].name, columns[0].type, comment=columns[0].description)


def _moved(text: str) -> MoveColumn:
    words = text.split()
    if len(words) == 2 and words[1].lower() in ("first", "last"):
        return MoveColumn(words[0], first=words[1].lower() == "first")
    if len(words) == 3 and words[1].lower() == "after":
        return MoveColumn(words[0], after=words[2])
    raise InvalidInputError(f"expected 'NAME first', 'NAME last' or 'NAME after OTHER', got {text!r}")


#: Flag, metavar, help, and the function that makes a change of its text.
_FLAGS: tuple[tuple[str, str, str, Callable[[str], SchemaChange]], ...] = (
    ("--add-column", "'NAME TYPE'", "add a column, as in DDL; the type may be followed by COMMENT 'text'", _added),
    ("--drop-column", "NAME", "drop a column", DropColumn),
    ("--rename-column", "NAME=NEW", "rename a column", lambda text: RenameColumn(*_parts(text, "NAME=NEW"))),
    ("--column-type", "NAME=TYPE", "widen a column's type", lambda text: UpdateColumnType(*_parts(text, "NAME=TYPE"))),
    (
        "--column-comment",
        "NAME=TEXT",
        "set the comment of a column",
        lambda text: UpdateColumnComment(*_parts(text, "NAME=TEXT")),
    ),
    ("--nullable", "NAME", "allow NULL in a column", lambda text: UpdateColumnNullability(text, True)),
    ("--not-null", "NAME", "forbid NULL in a column", lambda text: UpdateColumnNullability(text, False)),
    ("--move-column", "'NAME first'", "move a column; or 'NAME last', 'NAME after OTHER'", _moved),
    ("--set", "KEY=VALUE", "set an option", lambda text: SetOption(*_parts(text, "KEY=VALUE"))),
    ("--unset", "KEY", "reset an option to its default", RemoveOption),
    ("--comment", "TEXT", "set the comment of the table", UpdateComment),
)


class _Change(Action):
    """Appends the change of a flag to the changes of the command line."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None) -> None:
        """Append the change; argparse calls this for each flag."""
        make = next(make for flag, _, _, make in _FLAGS if flag == option)
        try:
            change = make(values)
        except InvalidInputError as error:
            raise ArgumentError(self, str(error)) from None
        namespace.changes = (*namespace.changes, change)


def _add_arguments(parser: ArgumentParser) -> None:
    changes = parser.add_argument_group("changes (repeatable)")
    for flag, metavar, text, _ in _FLAGS:
        changes.add_argument(flag, metavar=metavar, action=_Change, dest="changes", help=text, default=())


def _check(parser: ArgumentParser, arguments: Namespace) -> None:
    if not arguments.changes:
        parser.error("expected at least one change, such as --set KEY=VALUE")


def _alter(catalog: Catalog, arguments: Namespace) -> Report:
    table = catalog.alter_table(arguments.table, *arguments.changes)
    text = f"{arguments.table}: schema {table.schema.id}\n{table.schema}"
    return outcome_report(text, {"table": arguments.table, "schema": schema_values(table.schema)}, changed=True)


ALTER = CatalogVerb(
    name="alter",
    summary="Change columns, options and comments of tables.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    check=_check,
    run=_alter,
)

"""Arguments that every verb has, and checks of the Python methods as argparse takes them."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TypeVar

from lakelsm.arguments import checked_number
from lakelsm.catalog import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.table import Table

Value = TypeVar("Value")


def add_table(parser: ArgumentParser) -> None:
    """The table: by its name in a warehouse, or by its own directory."""
    table = parser.add_argument_group("the table: --warehouse and --table, or --path")
    table.add_argument("--warehouse", metavar="URI", help="the warehouse directory, such as file:///tmp/wh")
    table.add_argument("--table", metavar="DB.TABLE", help="the table's name in the warehouse")
    table.add_argument("--path", metavar="URI", help="the table's own directory")


def add_report(parser: ArgumentParser) -> None:
    """How the outcome is told."""
    report = parser.add_argument_group("report")
    report.add_argument(
        "--report",
        choices=("text", "json"),
        default="text",
        help="json: one JSON object as the last line of standard output",
    )
    report.add_argument(
        "--distinct-exit-status", action="store_true", help="end with 3 instead of 0 where there is nothing to do"
    )
    report.add_argument("--verbose", action="store_true", help="show the traceback of a failure")


def check_table(parser: ArgumentParser, arguments: Namespace) -> None:
    """End the program as argparse does unless the arguments name one table."""
    by_path = arguments.path is not None
    if by_path == (arguments.warehouse is not None) or by_path == (arguments.table is not None):
        parser.error("name the table by --warehouse and --table, or by --path")


def open_table(arguments: Namespace) -> Table:
    """The table that the arguments name."""
    if arguments.path is not None:
        return Table.for_path(arguments.path)
    return Catalog(arguments.warehouse).table(arguments.table)


def checked(check: Callable[[str, str], Value]) -> Callable[[str], Value]:
    """A check of an argument's text as argparse takes it: the same one as of the Python method."""

    def parse(text: str) -> Value:
        try:
            return check("it", text)
        except InvalidInputError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def positive(argument: str, text: str) -> int:
    """A whole number of 1 or more from its text."""
    return checked_number(argument, int(text) if text.strip().isdecimal() else text, least=1)

"""Arguments that every verb has, and checks of the Python methods as argparse takes them."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from collections.abc import Callable
from typing import Any, TypeVar

from lakelsm.arguments import TAG_POINT, checked_age, checked_number, checked_seconds, checked_time
from lakelsm.catalog import Catalog
from lakelsm.engine import ENGINES
from lakelsm.errors import InvalidInputError
from lakelsm.table import Table

Value = TypeVar("Value")

#: How times are written, for help.
_TIMES = (
    "as 'YYYY-MM-DD HH:MM:SS', in the table's time zone (lakelsm.time-zone, else UTC) unless an offset or a zone follows"
)


def add_table(parser: ArgumentParser, *, several: bool = True) -> None:
    """The table: by its name in a warehouse, or by its own directory; ``several`` may be named."""
    table = parser.add_argument_group("the table: --warehouse and --table, or --path")
    table.add_argument("--warehouse", metavar="URI", help="the warehouse directory, such as file:///tmp/wh")
    again = "; again for each of several, which are worked off one after another" if several else ""
    table.add_argument(
        "--table", metavar="DB.TABLE", action="append", help=f"the table's name in the warehouse{again}"
    )
    if several:
        table.add_argument("--database", metavar="DB", help="all tables of this database of the warehouse")
    else:
        parser.set_defaults(database=None)
    table.add_argument("--path", metavar="URI", help="the table's own directory")
    table.add_argument("--branch", metavar="NAME", help="work on this branch of it")
    table.add_argument(
        "--storage-option",
        metavar="KEY=VALUE",
        action="append",
        type=_key_and_value,
        default=[],
        help="an option of the object store, such as s3.endpoint=…; again for each. Other users of the machine see "
        "what a command line says: leave credentials to the environment (AWS_…, GOOGLE_…, AZURE_…)",
    )
    table.add_argument(
        "--catalog-option",
        metavar="KEY=VALUE",
        action="append",
        type=_key_and_value,
        default=[],
        help="with --warehouse, an option of the catalog, such as lakelsm.time-zone=Asia/Tokyo; again for each",
    )
    parser.set_defaults(several=several)


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
    """End the program as argparse does unless the arguments name tables in one way, and no more than the verb takes."""
    by_path, named = arguments.path is not None, arguments.table is not None
    by_name = arguments.warehouse is not None and named != (arguments.database is not None)
    none = arguments.warehouse is None and not named and arguments.database is None
    if by_path and arguments.catalog_option:
        parser.error("--catalog-option is for tables of a --warehouse: set the option of the table instead")
    if not (none if by_path else by_name):
        other = "--table or --database" if arguments.several else "--table"
        parser.error(f"name the table by --warehouse and {other}, or by --path")
    if named and len(arguments.table) > 1 and not arguments.several:
        parser.error("name one table")


def for_each_table(arguments: Namespace) -> list[Namespace]:
    """The arguments once for each table that they name. Raises InvalidInputError for a database without tables."""
    if arguments.path is not None:
        return [arguments]
    names = arguments.table
    if arguments.database is not None:
        names = _catalog(arguments).list_tables(arguments.database)
        if not names:
            raise InvalidInputError(
                f"Warehouse {arguments.warehouse} has no tables in database {arguments.database}: look at both names."
            )
    return [Namespace(**{**vars(arguments), "table": name}) for name in dict.fromkeys(names)]


def open_table(arguments: Namespace) -> Table:
    """The table that the arguments name, one of those of `for_each_table`."""
    if arguments.path is not None:
        table = Table.for_path(arguments.path, storage_options=_options(arguments))
    else:
        table = _catalog(arguments).table(arguments.table)
    return table if arguments.branch is None else table.branches.open(arguments.branch)


def add_dry_run(parser: ArgumentParser) -> None:
    """Whether to do it."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")


def add_deadline(parser: ArgumentParser, what: str) -> None:
    """How long it may take; ``what`` says where it stops."""
    parser.add_argument(
        "--deadline",
        metavar="TIME",
        type=checked(checked_seconds),
        help=f"{what} after so long, for all tables together: seconds, or a duration such as '30 min'",
    )


def add_engine(parser: ArgumentParser) -> None:
    """Where it runs."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="where it runs: spark, or local, this process alone (default: spark under spark-submit, else local)",
    )


def add_commit_user(parser: ArgumentParser) -> None:
    """Who commits."""
    parser.add_argument("--commit-user", metavar="NAME", help="the commit user that snapshots name (default: a new one)")


def add_older_than(parser: ArgumentParser, what: str) -> None:
    """An age or a moment."""
    parser.add_argument(
        "--older-than", metavar="AGE", type=age, help=f"{what}: an age such as '7 days', or a time {_TIMES}"
    )


def add_timestamp(parser: _ActionsContainer, what: str) -> None:
    """A time."""
    parser.add_argument("--timestamp", metavar="TIME", type=time, help=f"{what} {_TIMES}")


def chosen_point(arguments: Namespace) -> Any:
    """The snapshot that --snapshot, --tag or --timestamp chooses, as `Table.rollback` takes it; None without one."""
    if arguments.timestamp is not None:
        return checked_time("--timestamp", arguments.timestamp)
    tag = getattr(arguments, "tag", None)
    return arguments.snapshot if tag is None else f"{TAG_POINT}{tag}"


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


def age(text: str) -> str:
    """An age or a moment as the Python methods take it: its own text."""
    return checked(_age_text)(text)


def time(text: str) -> str:
    """A time as the Python methods take it: its own text."""
    return checked(_time_text)(text)


def duration(text: str) -> str:
    """A length of time as the Python methods take it: its own text."""
    return checked(_duration_text)(text)


def _age_text(argument: str, text: str) -> str:
    checked_age(argument, text)
    return text


def _time_text(argument: str, text: str) -> str:
    checked_time(argument, text)
    return text


def _duration_text(argument: str, text: str) -> str:
    checked_age(argument, text, moments=False)
    return text


def _key_and_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError("it must be KEY=VALUE")  # Without the text, which may be a secret.
    return key, value


def _catalog(arguments: Namespace) -> Catalog:
    return Catalog(
        arguments.warehouse, storage_options=_options(arguments), options=dict(arguments.catalog_option) or None
    )


def _options(arguments: Namespace) -> dict[str, str] | None:
    return dict(arguments.storage_option) or None

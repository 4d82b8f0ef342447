"""Arguments that every verb has, and checks of the Python methods as argparse takes them."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from lakelsm.arguments import TAG_POINT, checked_age, checked_number, checked_seconds, checked_time
from lakelsm.catalog import Catalog
from lakelsm.cli.logs import add_log_arguments
from lakelsm.engine import ENGINES
from lakelsm.errors import InvalidInputError
from lakelsm.table import Table, TableView

Value = TypeVar("Value")

#: How times are written, for help.
_TIMES = (
    "as 'YYYY-MM-DD HH:MM:SS', in the table's time zone (lakelsm.time-zone, else UTC) unless an offset or a zone follows"
)


class Tables(Enum):
    """The tables that a verb takes."""

    #: No table: the verb is about the warehouse.
    NONE = "none"
    #: One that is named.
    ONE = "one"
    #: Those that are named, or all of a database.
    SEVERAL = "several"
    #: The same, but all of a database only by --force, as the verb removes what nothing brings back.
    BY_FORCE = "by force"
    #: Those that are named, or all of a database, or all of the warehouse.
    ALL = "all"


_TITLES = {
    Tables.NONE: "the warehouse",
    Tables.ONE: "the table: --warehouse and --table",
    Tables.SEVERAL: "the tables: --warehouse with --table or --database",
    Tables.BY_FORCE: "the tables: --warehouse with --table or --database",
    Tables.ALL: "the tables: --warehouse alone for all, or with --table or --database",
}


def add_table(parser: ArgumentParser, tables: Tables = Tables.SEVERAL, *, by_path: bool = True) -> None:
    """The tables: by their names in a warehouse, all of them, or ``by_path`` by one's own directory."""
    table = parser.add_argument_group(f"{_TITLES[tables]}, or --path" if by_path else _TITLES[tables])
    table.add_argument("--warehouse", metavar="URI", help="the warehouse directory, such as /tmp/wh")
    if tables is not Tables.NONE:
        again = "" if tables is Tables.ONE else "; again for each of several"
        table.add_argument(
            "--table", metavar="DB.TABLE", action="append", help=f"the table's name in the warehouse{again}"
        )
    what = "of" if tables is Tables.NONE else "all tables of"
    table.add_argument(
        "--database", metavar="DB", help=SUPPRESS if tables is Tables.ONE else f"{what} this database of the warehouse"
    )
    if tables is Tables.BY_FORCE:
        table.add_argument("--force", action="store_true", help="allow --database")
    if by_path:
        table.add_argument("--path", metavar="URI", help="the table's own directory")
        table.add_argument("--branch", metavar="NAME", help="work on this branch of it")
    table.add_argument(
        "--storage-option",
        metavar="KEY=VALUE",
        action="append",
        type=key_and_value,
        default=[],
        help="an option of the object store, such as s3.endpoint=…; again for each. Other users of the machine see "
        "what a command line says: leave credentials to the environment (AWS_…, GOOGLE_…, AZURE_…)",
    )
    table.add_argument(
        "--catalog-option",
        metavar="KEY=VALUE",
        action="append",
        type=key_and_value,
        default=[],
        help="with --warehouse, an option of the catalog, such as lakelsm.time-zone=Asia/Tokyo; again for each",
    )
    left_out = [*(["table"] if tables is Tables.NONE else []), *([] if by_path else ["path", "branch"])]
    parser.set_defaults(tables=tables, by_path=by_path, **dict.fromkeys(left_out))


def add_report(parser: ArgumentParser) -> None:
    """The form of the report."""
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
    add_log_arguments(report)


def check_table(parser: ArgumentParser, arguments: Namespace) -> None:
    """End the program as argparse does unless the arguments name tables in one way, and no more than the verb takes."""
    tables, named, database = arguments.tables, arguments.table, arguments.database
    if arguments.path is not None and arguments.catalog_option:
        parser.error("--catalog-option is for tables of a --warehouse: set the option of the table instead")
    if arguments.path is not None:
        is_right = (arguments.warehouse, named, database) == (None, None, None)
    elif tables is Tables.ONE:
        is_right = arguments.warehouse is not None and named is not None and len(named) == 1 and database is None
    elif tables in (Tables.NONE, Tables.ALL):
        is_right = arguments.warehouse is not None and (named is None or database is None)
    else:
        is_right = arguments.warehouse is not None and (named is None) != (database is None)
    if not is_right:
        one = "--database is for verbs that take several tables: " if tables is Tables.ONE and database else ""
        parser.error(f"{one}{_ways(arguments)}")
    if tables is Tables.BY_FORCE and database is not None and not arguments.force:
        parser.error("--database needs --force: it means all tables of the database")


def _ways(arguments: Namespace) -> str:
    """How the tables of a verb are named."""
    if arguments.tables is Tables.NONE:
        return "name the warehouse by --warehouse"
    what = "one table by --warehouse and --table" if arguments.tables is Tables.ONE else (
        "the table by --warehouse and --table or --database"
    )
    return f"name {what}{', or by --path' if arguments.by_path else ''}"


def for_each_table(arguments: Namespace) -> list[Namespace]:
    """The arguments once for each table that they name. Raises InvalidInputError where a database has no tables."""
    if arguments.path is not None or arguments.tables is Tables.NONE:
        return [arguments]
    names = arguments.table or open_catalog(arguments).list_tables(arguments.database)
    if not names:
        within = "" if arguments.database is None else f" in database {arguments.database}"
        raise InvalidInputError(f"Warehouse {arguments.warehouse} has no tables{within}: look at the name.")
    return [Namespace(**{**vars(arguments), "table": name}) for name in dict.fromkeys(names)]


def open_table(arguments: Namespace) -> Table:
    """The table that the arguments name, one of those of `for_each_table`."""
    if arguments.path is not None:
        table = Table.for_path(arguments.path, storage_options=_options(arguments))
    else:
        table = open_catalog(arguments).table(arguments.table)
    return table if arguments.branch is None else table.branches.open(arguments.branch)


def add_dry_run(parser: ArgumentParser) -> None:
    """Whether to do it."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")


def add_deadline(parser: ArgumentParser, what: str) -> None:
    """The time limit; ``what`` describes where it stops."""
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
    """The commit user."""
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


def add_point(parser: ArgumentParser) -> None:
    """The snapshot that is looked at."""
    point = parser.add_mutually_exclusive_group()
    point.add_argument("--snapshot", metavar="ID", type=checked(positive), help="of this snapshot (default: the newest)")
    point.add_argument("--tag", metavar="NAME", help="of the snapshot of this tag")
    add_timestamp(point, "of the newest snapshot that is not later than this time,")


def view_of(table: Table, arguments: Namespace) -> Table | TableView:
    """The table, or the view of it that the arguments of `add_point` name."""
    points = {"snapshot": arguments.snapshot, "tag": arguments.tag, "timestamp": arguments.timestamp}
    given = {name: point for name, point in points.items() if point is not None}
    return table.at(**given) if given else table


def checked(check: Callable[[str, str], Value]) -> Callable[[str], Value]:
    """A check of an argument's text as argparse takes it: the same one as of the Python method."""

    def parse(text: str) -> Value:
        try:
            return check("it", text)
        except InvalidInputError as error:
            raise ArgumentTypeError(str(error).removeprefix("it: ")) from None

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


def key_and_value(text: str) -> tuple[str, str]:
    """A key with its value, of KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError("it must be KEY=VALUE")  # Without the text, which may be a secret.
    return key, value


def open_catalog(arguments: Namespace) -> Catalog:
    """The catalog that the arguments name."""
    return Catalog(
        arguments.warehouse, storage_options=_options(arguments), options=dict(arguments.catalog_option) or None
    )


def _options(arguments: Namespace) -> dict[str, str] | None:
    return dict(arguments.storage_option) or None

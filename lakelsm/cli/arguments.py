"""Arguments that several verbs share, and checks of the Python API in the form that argparse needs."""

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

#: Parts of help texts: the form of a time, and the zone of a time without one.
_TIME_FORM = "'YYYY-MM-DD HH:MM:SS' with an optional offset or zone"
_DEFAULT_ZONE = "default zone: lakelsm.time-zone of the table, else UTC"


class Tables(Enum):
    """The tables that a verb accepts."""

    #: No table: the verb works on the warehouse, or on one of its databases.
    NONE = "none"
    #: The warehouse alone: the verb takes no table and no database.
    WAREHOUSE = "warehouse"
    #: One table, by its name.
    ONE = "one"
    #: Named tables, or all tables of a database.
    SEVERAL = "several"
    #: Like SEVERAL, but --database needs --force, because the verb cannot be undone.
    BY_FORCE = "by force"
    #: Named tables, all tables of a database, or all tables of the warehouse.
    ALL = "all"


_WITHOUT_TABLE = (Tables.NONE, Tables.WAREHOUSE)
_TITLES = {
    Tables.NONE: "warehouse",
    Tables.WAREHOUSE: "warehouse",
    Tables.ONE: "table: --warehouse with --table",
    Tables.SEVERAL: "tables: --warehouse with --table or --database",
    Tables.BY_FORCE: "tables: --warehouse with --table or --database",
    Tables.ALL: "tables: --warehouse, with --table or --database for some of its tables",
}


def add_table(parser: ArgumentParser, tables: Tables = Tables.SEVERAL, *, by_path: bool = True) -> None:
    """Add the arguments that name the tables; ``by_path`` adds --path and --branch."""
    table = parser.add_argument_group(f"{_TITLES[tables]}, or --path" if by_path else _TITLES[tables])
    table.add_argument("--warehouse", metavar="URI", help="warehouse directory, such as /tmp/wh")
    if tables not in _WITHOUT_TABLE:
        repeatable = "" if tables is Tables.ONE else " (repeatable)"
        table.add_argument(
            "--table", metavar="DB.TABLE", action="append", help=f"name of the table in the warehouse{repeatable}"
        )
    what = "only this" if tables is Tables.NONE else "all tables of this"
    if tables is not Tables.WAREHOUSE:
        table.add_argument(
            "--database", metavar="DB", help=SUPPRESS if tables is Tables.ONE else f"{what} database of the warehouse"
        )
    if tables is Tables.BY_FORCE:
        table.add_argument("--force", action="store_true", help="allow --database")
    if by_path:
        table.add_argument("--path", metavar="URI", help="directory of the table")
        table.add_argument("--branch", metavar="NAME", help="branch of the table (default: main)")
    table.add_argument(
        "--storage-option",
        metavar="KEY=VALUE",
        action="append",
        type=key_and_value,
        default=[],
        help="option of the object store, such as s3.endpoint=… (repeatable). Set credentials in the environment "
        "(AWS_…, GOOGLE_…, AZURE_…): other users of the machine can see the command line",
    )
    table.add_argument(
        "--catalog-option",
        metavar="KEY=VALUE",
        action="append",
        type=key_and_value,
        default=[],
        help="with --warehouse: option of the catalog, such as lakelsm.time-zone=Asia/Tokyo (repeatable)",
    )
    absent = [*(["table"] if tables in _WITHOUT_TABLE else []), *([] if by_path else ["path", "branch"])]
    absent += ["database"] if tables is Tables.WAREHOUSE else []
    parser.set_defaults(tables=tables, by_path=by_path, **dict.fromkeys(absent))


def add_report(parser: ArgumentParser) -> None:
    """Add the arguments for the form of the report."""
    report = parser.add_argument_group("report")
    report.add_argument(
        "--report",
        choices=("text", "json"),
        default="text",
        help="form of the report; json is one JSON object as the last line of standard output (default: text)",
    )
    report.add_argument(
        "--distinct-exit-status", action="store_true", help="exit with 3 instead of 0 if there is nothing to do"
    )
    add_log_arguments(report)


def check_table(parser: ArgumentParser, arguments: Namespace) -> None:
    """Exit with 2, as argparse does, unless the arguments name tables in one way that the verb accepts."""
    tables, named, database = arguments.tables, arguments.table, arguments.database
    if arguments.path is not None and arguments.catalog_option:
        parser.error("--catalog-option needs --warehouse: with --path, set the option of the table instead")
    if arguments.path is not None:
        is_right = (arguments.warehouse, named, database) == (None, None, None)
    elif tables is Tables.ONE:
        is_right = arguments.warehouse is not None and named is not None and len(named) == 1 and database is None
    elif tables in (*_WITHOUT_TABLE, Tables.ALL):
        is_right = arguments.warehouse is not None and (named is None or database is None)
    else:
        is_right = arguments.warehouse is not None and (named is None) != (database is None)
    if not is_right:
        reason = "this verb takes one table, not a --database: " if tables is Tables.ONE and database else ""
        parser.error(f"{reason}{_wanted_flags(arguments)}")
    if tables is Tables.BY_FORCE and database is not None and not arguments.force:
        parser.error("--database needs --force: the verb changes all tables of the database")


def _wanted_flags(arguments: Namespace) -> str:
    """Return how the tables of a verb can be named."""
    if arguments.tables in _WITHOUT_TABLE:
        return "name the warehouse with --warehouse"
    what = "one table with --warehouse and --table" if arguments.tables is Tables.ONE else (
        "the table with --warehouse and --table or --database"
    )
    return f"name {what}{', or with --path' if arguments.by_path else ''}"


def for_each_table(arguments: Namespace) -> list[Namespace]:
    """Return the arguments once for each table that they name. Raises InvalidInputError if a database has no tables."""
    if arguments.path is not None or arguments.tables in _WITHOUT_TABLE:
        return [arguments]
    names = arguments.table or open_catalog(arguments).list_tables(arguments.database)
    if not names:
        within = "" if arguments.database is None else f" in database {arguments.database}"
        raise InvalidInputError(f"Warehouse {arguments.warehouse} has no tables{within}. Check the name.")
    return [Namespace(**{**vars(arguments), "table": name}) for name in dict.fromkeys(names)]


def open_table(arguments: Namespace) -> Table:
    """Open the table of one result of `for_each_table`."""
    if arguments.path is not None:
        table = Table.for_path(arguments.path, storage_options=_options(arguments))
    else:
        table = open_catalog(arguments).table(arguments.table)
    return table if arguments.branch is None else table.branches.open(arguments.branch)


def add_dry_run(parser: ArgumentParser) -> None:
    """Add --dry-run."""
    parser.add_argument("--dry-run", action="store_true", help="report what would be done, and change nothing")


def add_deadline(parser: ArgumentParser, what: str) -> None:
    """Add --deadline; ``what`` describes its effect on the verb."""
    parser.add_argument(
        "--deadline",
        metavar="TIME",
        type=checked(checked_seconds),
        help=f"time limit for all tables together: seconds, or a duration such as '30 min'; {what} (default: none)",
    )


def add_engine(parser: ArgumentParser) -> None:
    """Add --engine."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="engine: spark, or local for this process alone (default: spark under spark-submit, else local)",
    )


def add_commit_user(parser: ArgumentParser) -> None:
    """Add --commit-user."""
    parser.add_argument("--commit-user", metavar="NAME", help="commit user of new snapshots (default: a generated one)")


def add_older_than(parser: ArgumentParser, what: str, default: str) -> None:
    """Add --older-than, an age or a time; ``what`` begins its help text."""
    text = f"{what}: an age such as '7 days', or a time {_TIME_FORM} (default: {default}; {_DEFAULT_ZONE})"
    parser.add_argument("--older-than", metavar="AGE", type=age, help=text)


def add_timestamp(parser: _ActionsContainer, what: str) -> None:
    """Add --timestamp; ``what`` begins its help text."""
    parser.add_argument("--timestamp", metavar="TIME", type=time, help=f"{what}: {_TIME_FORM} ({_DEFAULT_ZONE})")


def chosen_point(arguments: Namespace) -> Any:
    """Return the point that --snapshot, --tag or --timestamp names, in the form of `Table.rollback`; None without one."""
    if arguments.timestamp is not None:
        return checked_time("--timestamp", arguments.timestamp)
    tag = getattr(arguments, "tag", None)
    return arguments.snapshot if tag is None else f"{TAG_POINT}{tag}"


def add_point(parser: ArgumentParser) -> None:
    """Add the arguments that select the snapshot to show."""
    point = parser.add_mutually_exclusive_group()
    point.add_argument("--snapshot", metavar="ID", type=checked(positive), help="snapshot id (default: the newest)")
    point.add_argument("--tag", metavar="NAME", help="tag of the snapshot")
    add_timestamp(point, "newest snapshot that is not later than a time")


def view_of(table: Table, arguments: Namespace) -> Table | TableView:
    """Return the table, or its view at the snapshot that the arguments of `add_point` select."""
    points = {"snapshot": arguments.snapshot, "tag": arguments.tag, "timestamp": arguments.timestamp}
    given = {name: point for name, point in points.items() if point is not None}
    return table.at(**given) if given else table


def checked(check: Callable[[str, str], Value]) -> Callable[[str], Value]:
    """Return a check of a Python argument as the ``type`` of an argparse argument."""

    def parse(text: str) -> Value:
        try:
            return check("", text)
        except InvalidInputError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def positive(argument: str, text: str) -> int:
    """Parse a whole number of 1 or more."""
    return checked_number(argument, int(text) if text.strip().isdecimal() else text, min_value=1)


def age(text: str) -> str:
    """Check an age or a time, and return its text for the Python API."""
    return checked(_age_text)(text)


def time(text: str) -> str:
    """Check a time, and return its text for the Python API."""
    return checked(_time_text)(text)


def duration(text: str) -> str:
    """Check a duration, and return its text for the Python API."""
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
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError("expected KEY=VALUE")  # The text may be a secret.
    return key, value


def open_catalog(arguments: Namespace) -> Catalog:
    """Open the catalog of --warehouse."""
    return Catalog(
        arguments.warehouse, storage_options=_options(arguments), options=dict(arguments.catalog_option) or None
    )


def _options(arguments: Namespace) -> dict[str, str] | None:
    return dict(arguments.storage_option) or None

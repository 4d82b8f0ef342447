"""``lakelsm head``, ``lakelsm snapshots`` and ``lakelsm files``: show the contents of tables."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakelsm.arguments import checked_names, checked_number
from lakelsm.cli.arguments import Tables, add_point, checked, view_of
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import Verb
from lakelsm.table import Table
from lakelsm.text_table import aligned, amount, shown_values

#: Maximum number of characters of a value in a text report.
_MAX_SHOWN = 60


def _row_limit(argument: str, text: str) -> int:
    return checked_number(argument, int(text) if text.strip().isdecimal() else text, min_value=0)


def _names(argument: str, text: str) -> list[str]:
    return checked_names(argument, [part.strip() for part in text.split(",")])


def _add_head(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--limit", metavar="N", type=checked(_row_limit), default=10, help="maximum number of rows (default: 10)"
    )
    parser.add_argument("--columns", metavar="NAME,NAME…", type=checked(_names), help="columns to show (default: all)")
    parser.add_argument("--where", metavar="SQL", help="condition on the rows")
    parser.add_argument("--ordered", action="store_true", help="first rows by primary key (default: any rows)")
    add_point(parser)


def _head(table: Table, arguments: Namespace) -> Report:
    view = view_of(table, arguments)
    rows = view.to_arrow(
        arguments.where, arguments.columns, limit=arguments.limit, ordered=arguments.ordered, timestamps="text"
    )
    return _rows_report(table, "row", rows)


def _snapshots(table: Table, arguments: Namespace) -> Report:
    return _rows_report(table, "snapshot", table.inspect.snapshots().to_arrow())


def _files(table: Table, arguments: Namespace) -> Report:
    return _rows_report(table, "file", view_of(table, arguments).inspect.files().to_arrow())


def _rows_report(table: Table, noun: str, rows: pa.Table) -> Report:
    found = [dict(zip(rows.column_names, map(_plain, row))) for row in zip(*map(shown_values, rows.columns))]
    text = f"{table.name}: {amount(len(found), noun)}"
    if found:
        text += "\n" + aligned(rows.column_names, [list(map(_short, row.values())) for row in found])
    return Report(ExitStatus.DONE, text, {"table": table.name, "status": "done", f"{noun}s": found})


def _plain(value: Any) -> Any:
    """Return a value for JSON: times as ISO 8601, bytes as hexadecimal digits, values of other types as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has neither NaN nor infinity.
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _short(value: Any) -> str | None:
    text = None if value is None else str(value).replace("\n", "\\n")
    return text if text is None or len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


HEAD = Verb(
    name="head", summary="Show some rows of tables.", add_arguments=_add_head, run=_head, tables=Tables.ALL
)

SNAPSHOTS = Verb(
    name="snapshots",
    summary="List the retained snapshots of tables.",
    add_arguments=lambda parser: None,
    run=_snapshots,
    tables=Tables.ALL,
)

FILES = Verb(
    name="files",
    summary="List the live data files of tables.",
    add_arguments=lambda parser: add_point(parser),
    run=_files,
    tables=Tables.ALL,
)

"""``lakelsm head``, ``lakelsm snapshots`` and ``lakelsm files``: what is in tables."""

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
from lakelsm.text_table import aligned, shown_values

#: Characters of a value that a text shows.
_MAX_SHOWN = 60


def _whole(argument: str, text: str) -> int:
    return checked_number(argument, int(text) if text.strip().isdecimal() else text, least=0)


def _names(argument: str, text: str) -> list[str]:
    return checked_names(argument, [part.strip() for part in text.split(",")])


def _add_head(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--limit", metavar="N", type=checked(_whole), default=10, help="at most so many rows (default: 10)"
    )
    parser.add_argument("--columns", metavar="NAME,NAME…", type=checked(_names), help="these columns (default: all)")
    parser.add_argument("--where", metavar="SQL", help="rows that match a condition")
    parser.add_argument("--ordered", action="store_true", help="in the order of the primary key (default: any rows)")
    add_point(parser)


def _head(table: Table, arguments: Namespace) -> Report:
    view = view_of(table, arguments)
    rows = view.to_arrow(
        arguments.where, arguments.columns, limit=arguments.limit, ordered=arguments.ordered, timestamps="text"
    )
    return _rows_report(table, "rows", rows)


def _snapshots(table: Table, arguments: Namespace) -> Report:
    return _rows_report(table, "snapshots", table.inspect.snapshots().to_arrow())


def _files(table: Table, arguments: Namespace) -> Report:
    return _rows_report(table, "files", view_of(table, arguments).inspect.files().to_arrow())


def _rows_report(table: Table, what: str, rows: pa.Table) -> Report:
    found = [dict(zip(rows.column_names, map(_plain, row))) for row in zip(*map(shown_values, rows.columns))]
    text = f"{table.name}: {len(found) or 'no'} {what}"
    if found:
        text += "\n" + aligned(rows.column_names, [list(map(_short, row.values())) for row in found])
    return Report(ExitStatus.DONE, text, {"table": table.name, "status": "done", what: found})


def _plain(value: Any) -> Any:
    """A value as JSON has it: times as ISO 8601, bytes as hexadecimal digits, others as their text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has no NaN and no infinity.
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
    name="head", summary="Show some rows of a table.", add_arguments=_add_head, run=_head, tables=Tables.ALL
)

SNAPSHOTS = Verb(
    name="snapshots",
    summary="Show the retained snapshots of a table.",
    add_arguments=lambda parser: None,
    run=_snapshots,
    tables=Tables.ALL,
)

FILES = Verb(
    name="files",
    summary="Show the live data files of a table.",
    add_arguments=lambda parser: add_point(parser),
    run=_files,
    tables=Tables.ALL,
)

"""Tables as aligned text and as HTML for notebooks, and readable sizes and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any
from unicodedata import combining, east_asian_width

import pyarrow as pa

#: Maximum number of rows that are printed of a result, and of characters of a cell.
PRINTED_ROWS, _PRINTED_CHARACTERS = 40, 60
#: Maximum number of names in a message.
_MAX_NAMES = 20
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def aligned(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a line for the header and for each row, with aligned columns; None is shown as '-'."""
    lines = [tuple(header), *(tuple("-" if cell is None else str(cell) for cell in row) for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*lines)]
    padded = ((cell + " " * (width - _width(cell)) for cell, width in zip(line, widths)) for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _width(cell: str) -> int:
    """Return the columns of a terminal that a text takes: East Asian wide characters take two, combining ones none."""
    if cell.isascii():
        return len(cell)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in cell)


def html_table(rows: Iterable[Sequence[object]], header: Sequence[str] = (), caption: str = "") -> str:
    """Return an HTML table. Without a ``header``, the first cell of each row is a heading."""

    def line(cells: Sequence[object], headings: int) -> str:
        kinds = ("th" if at < headings else "td" for at in range(len(cells)))
        return f"<tr>{''.join(f'<{kind}>{escape(str(cell))}</{kind}>' for kind, cell in zip(kinds, cells))}</tr>"

    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = line(header, len(header)) if header else ""
    return f"<table>{title}{head}{''.join(line(row, 0 if header else 1) for row in rows)}</table>"


def shown_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as Python values; a date or time that Python does not have is a text."""
    kind = column.type
    try:
        if pa.types.is_timestamp(kind) and kind.tz == "UTC" and kind.unit != "ns":
            # pyarrow loads pandas (0.15 s) for a time with a zone.
            times = column.cast(pa.timestamp(kind.unit)).to_pylist()
            return [None if time is None else time.replace(tzinfo=timezone.utc) for time in times]
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = [_shown_value(value) for value in column]
    return values


def shown_cells(rows: pa.Table) -> list[tuple[str, ...]]:
    """Return the texts of all rows, each cell in one line of bounded length; NULL is '-'."""
    return list(zip(*([_cell(value) for value in shown_values(column)] for column in rows.columns)))


def _cell(value: object) -> str:
    text = "-" if value is None else " ".join(str(value).split())
    return text if len(text) <= _PRINTED_CHARACTERS else f"{text[: _PRINTED_CHARACTERS - 1]}…"


def _shown_value(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    if pa.types.is_nested(value.type):
        if isinstance(value, pa.StructScalar):
            return {name: _shown_value(member) for name, member in value.items()}
        return [_shown_value(each) for each in value.values]
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return value.cast(pa.string()).as_py()


def amount(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun: '1 tag', '2,000 tags', or 'no tags'. ``many`` is an irregular plural."""
    return f"1 {one}" if count == 1 else f"{f'{count:,}' if count else 'no'} {many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them, at most `_MAX_NAMES` of them."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def size(count: int) -> str:
    """Return a number of bytes in the largest unit in which it is at least 1."""
    number, unit = float(count), 0
    while abs(number) >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{count} bytes" if unit == 0 else f"{number:.1f} {_UNITS[unit]}"


def moment(time: datetime | None) -> str | None:
    """Return a time with the precision of a second."""
    return None if time is None else time.strftime("%Y-%m-%d %H:%M:%S")


def older_than_text(bound: datetime | None) -> list[str]:
    """Return the line for a bound in UTC, or no line."""
    return [] if bound is None else [f"  older than {bound.isoformat()}"]


def failures_text(failures: Sequence[str]) -> list[str]:
    """Return the line for files that could not be deleted, with the first of them, or no line."""
    if not failures:
        return []
    return [f"  failed     {len(failures)} files could not be deleted and are orphans now, such as {failures[0]}"]

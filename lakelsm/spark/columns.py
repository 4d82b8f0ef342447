"""Columns by their exact names."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str, alias: str | None = None) -> Column:
    """The column of this exact name: dots and backticks are part of it. ``alias`` names the frame that it is of."""
    column = "`" + name.replace("`", "``") + "`"
    return F.col(column if alias is None else f"{alias}.{column}")


def quoted_all(names: Iterable[str]) -> list[Column]:
    """The columns of these exact names."""
    return [quoted(name) for name in names]

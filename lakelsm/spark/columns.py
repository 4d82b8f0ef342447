"""Columns by their exact names."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str) -> Column:
    """The column of this exact name: dots and backticks are part of it."""
    return F.col("`" + name.replace("`", "``") + "`")


def quoted_all(names: Iterable[str]) -> list[Column]:
    """The columns of these exact names."""
    return [quoted(name) for name in names]

"""Tables that Java Paimon wrote, in ``<repository>/../shared/golden``, if that directory exists.

Its README describes the tables. They are test data and not part of this repository.
"""

from __future__ import annotations

import functools
import json
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "golden"
VERSIONS = ("2.1", "1.3")


@dataclass(frozen=True)
class GoldenTable:
    """The directory of one table, and the rows that Java Paimon read from it."""

    name: str
    path: Path
    columns: tuple[tuple[str, str], ...]
    """(name, SQL type) of each column."""
    rows: tuple[tuple[Any, ...], ...]
    """The rows, unordered, in the value form that the folder's README describes."""


def available() -> bool:
    return FOLDER.is_dir()


@functools.cache
def expectations(
    version: str = "2.1",
) -> dict[str, tuple[tuple[tuple[str, str], ...], tuple[tuple[Any, ...], ...]]]:
    """Return (columns, rows) of every table of a version, by table name."""
    lines = (FOLDER / f"java-{version}.expected.jsonl").read_text(encoding="utf-8").splitlines()
    tables = [json.loads(line) for line in lines if line.strip()]
    return {
        table["table"]: (
            tuple((name, sql_type) for name, sql_type in table["columns"]),
            tuple(tuple(row) for row in table["rows"]),
        )
        for table in tables
    }


def unpack(version: str, into: Path) -> Path:
    """Unpack all tables of a version into ``into``. Return their parent directory."""
    with tarfile.open(FOLDER / f"java-{version}.tar.gz") as archive:
        if sys.version_info >= (3, 12):
            archive.extractall(into, filter="data")
        else:
            archive.extractall(into)
    return into

"""Copies of prepared tables, and the known answers. Standard library only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.config import BenchConfig

_DATA_SUFFIXES = (".parquet", ".orc")


def _link_or_copy(source: str, target: str) -> str:
    """Link a file, or copy it. Data files never change, so a hard link is a copy, and shares the page cache."""
    if source.endswith(_DATA_SUFFIXES):
        try:
            os.link(source, target)
            return target
        except OSError:  # Another file system, or one without hard links.
            pass
    return shutil.copy2(source, target)


def copy_table(source: Path, target: Path) -> None:
    """Replace ``target`` by a copy of the table directory ``source``."""
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, copy_function=_link_or_copy)


def remove(path: Path) -> None:
    """Delete a scratch directory if it exists."""
    shutil.rmtree(path, ignore_errors=True)


def build(target: Path, make: Callable[[Path], None]) -> None:
    """Create a prepared directory once: ``make`` fills a partial one, which is renamed when it is complete."""
    if target.exists():
        return
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    make(partial)
    partial.rename(target)


def expected(config: BenchConfig) -> dict[str, Any]:
    """Return rows, id, quantity, amount (sums over the merged rows) and where (the rows that match the predicate)."""
    answers: dict[str, Any] = json.loads((config.shape / "expected.json").read_text(encoding="utf-8"))
    return answers


def check_sums(config: BenchConfig, rows: int, ids: int, quantity: int, amount: object) -> None:
    """Raise AssertionError unless the sums over all rows are those of the merged rows."""
    answer = expected(config)
    got = (rows, ids, quantity, Decimal(str(amount)))
    want = (answer["rows"], answer["id"], answer["quantity"], Decimal(answer["amount"]))
    assert got == want, f"wrong answer: rows, id, quantity, amount are {got}, expected {want}"


def check_count(config: BenchConfig, name: str, rows: int) -> None:
    """Raise AssertionError unless ``rows`` is the known count called ``name`` ("rows" or "where")."""
    want = expected(config)[name]
    assert rows == want, f"wrong answer: {rows} rows, expected {want}"

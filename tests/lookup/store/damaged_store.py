"""Trials of damaged store files, before they are opened and while they are open; the latter could kill their process."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store.lookup_store import LookupStore, StoreLayout
from lakelsm.types import DataField, parse_type
from tests.damage.damages import DAMAGES
from tests.lookup.store.store_kinds import format_of
from tests.time_limit import time_limit

_ROWS = 400
_PATIENCE = 300
_TYPES = {"k": pa.string(), "n": pa.int32(), "v": pa.string()}


class _TookTooLongError(BaseException):
    """A trial that hangs."""


def layout_of(rows_of: str, value: str = "STRING") -> StoreLayout:
    keys = (DataField(0, "k", parse_type("STRING NOT NULL")), DataField(1, "n", parse_type("INT NOT NULL")))
    return StoreLayout(keys, (DataField(2, "v", parse_type(value)),), rows_of=rows_of)


def rows_of(name: str, first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + _ROWS)
    keys = [f"key {number // 3:04}" + "x" * (number // 3 % 5) for number in numbers]
    values = [f"{name} {number * 7919 % 10_007}" for number in numbers]
    return pa.table({"k": keys, "n": numbers, "v": values}, schema=pa.schema(_TYPES))


class Samples:
    """A store file, and other files that may replace it."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.format = format_of(kind)
        self.layout = layout_of("a")
        self.rows = rows_of("a")
        self.path = directory / "store"
        self.data = self._written("a", self.layout, self.rows)
        self.others = [
            self._written("b", layout_of("b"), rows_of("b")),
            self._written("c", layout_of("c"), rows_of("a", 100)),
            self._written("d", layout_of("a", "BYTES"), self.rows.cast(pa.schema(_TYPES | {"v": pa.binary()}))),
            self._written("e", layout_of("e"), self.rows.slice(0, 0)),
        ]

    def _written(self, name: str, layout: StoreLayout, rows: pa.Table) -> bytes:
        path = self.path.with_name(name)
        self.format.write(path, layout, [rows])
        return path.read_bytes()

    def finds_right_rows(self, store: LookupStore, at: int) -> bool:
        """Return whether the store finds the right rows, for all keys, for some and missing ones, and for one."""
        every = self.rows.select(["k", "n"])
        others = every.set_column(1, "n", pa.array(np.arange(_ROWS) + 1000, pa.int32()))
        for searched, expected in ((every.slice(at, 1), [0]), (every, range(_ROWS)), (others, [])):
            found = store.find(searched)
            values = self.rows["v"].slice(at if len(searched) == 1 else 0, len(expected)).to_pylist()
            if found.probes.tolist() != list(expected) or found.rows.to_pydict() != {"v": values}:
                return False
        key, number, value = (column[at].as_py() for column in self.rows.columns)
        return store.find_plain((key, number)) in ([(value,)], None) and not store.find_plain((key, number + 1000))


def before_open(samples: Samples, chance: Random) -> str:
    """Damage a file, then open and search it; describe what was wrong ('': nothing)."""
    samples.path.unlink(missing_ok=True)
    damage = chance.choice(DAMAGES)
    damaged = damage(samples.data, samples.others, chance)
    if damaged is not None:
        samples.path.write_bytes(damaged)

    def act() -> bool:
        store = samples.format.open(samples.path, samples.layout)
        try:
            return samples.finds_right_rows(store, chance.randrange(_ROWS))
        finally:
            store.close()

    return _judged(damage.__name__, samples.path, act)


def while_open(samples: Samples, chance: Random) -> str:
    """Open a file, perhaps search it, damage it in place, search it; describe what was wrong ('': nothing)."""
    samples.path.unlink(missing_ok=True)
    samples.path.write_bytes(samples.data)
    damage = chance.choice(DAMAGES)
    damaged = damage(samples.data, samples.others, chance)
    store = samples.format.open(samples.path, samples.layout)
    at = chance.randrange(_ROWS)
    if chance.random() < 0.7:
        store.find(samples.rows.select(["k", "n"]).slice(at, chance.choice([1, 20, _ROWS])))
    if damaged is None:
        samples.path.unlink()
    else:
        _overwrite(samples.path, damaged)

    def act() -> bool:
        return samples.finds_right_rows(store, at) and samples.finds_right_rows(store, at)

    said = _judged(damage.__name__, samples.path, act)
    store.close()
    return said


def _overwrite(path: Path, data: bytes) -> None:
    """Change the file in place, as no writer of stores does."""
    status = path.stat()
    while True:  # The system's clock has ticks.
        with path.open("r+b") as file:
            file.write(data)
            file.truncate(len(data))
        if path.stat().st_mtime_ns != status.st_mtime_ns:
            return


def _judged(damage: str, path: Path, act: Callable[[], bool]) -> str:
    try:
        with time_limit(_PATIENCE, _TookTooLongError()):
            return "" if act() else f"{damage}: other rows"
    except CorruptStoreError as error:
        return "" if str(path) in str(error) else f"{damage}: no file is named by: {error}"
    except (Exception, _TookTooLongError) as error:  # noqa: BLE001 The trial looks for any other error.
        return f"{damage}: {type(error).__name__}: {error}"


def trials_while_open(kind: str, trials: range, directory: Path, found: multiprocessing.SimpleQueue[list[str]]) -> None:
    """Run trials; describe the first failure."""
    samples = Samples(kind, directory)
    said = {number: while_open(samples, Random(number)) for number in trials}
    found.put([f"trial {number}, {wrong}" for number, wrong in said.items() if wrong][:20])

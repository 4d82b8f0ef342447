"""The input of a stream and the rows that it must produce: files, or a table whose changes are read."""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tests.campaign.locations import TableLocation

#: Number of changes, sum, last and newest sequence number of each key.
Sums: TypeAlias = dict[int, tuple[int, int, int, int]]

KEYS = 40
#: The time of the first file, in seconds. Spark reads files in the order of their times.
_FIRST = 1_700_000_000


@dataclass
class Input(ABC):
    """Appends numbered batches. ``sums`` are the rows that a sink of sums must have when it has read all of them."""

    chance: random.Random
    number: int = 0
    sums: Sums = field(default_factory=dict)

    def add(self, batches: int) -> None:
        for _ in range(batches):
            self.number += 1
            keys = self.chance.sample(range(KEYS), self.chance.randint(1, KEYS // 2))
            rows = {key: self.chance.randint(1, 1000) for key in keys}
            self._append(rows)
            for key, value in rows.items():
                n, total, _, _ = self.sums.get(key, (0, 0, 0, 0))
                self.sums[key] = (n + 1, total + value, self.number, self.number)

    def _frame(self, rows: dict[int, int]) -> pa.Table:
        keys, values = list(rows), list(rows.values())
        numbers = pa.array([self.number] * len(keys), pa.int64())
        return pa.table({"k": pa.array(keys, pa.int32()), "seq": numbers, "v": pa.array(values, pa.int64())})

    @abstractmethod
    def _append(self, rows: dict[int, int]) -> None:
        """Add a batch of values by key."""

    @property
    @abstractmethod
    def source(self) -> str | TableLocation:
        """The source of a query."""


@dataclass
class Files(Input):
    """A directory with one Parquet file for each batch; a micro-batch reads one."""

    folder: Path = Path()

    def _append(self, rows: dict[int, int]) -> None:
        path = self.folder / f"{self.number:06d}.parquet"
        temporary = self.folder / f".{path.name}"
        pq.write_table(self._frame(rows), temporary)
        os.utime(temporary, (_FIRST + self.number,) * 2)
        temporary.rename(path)

    @property
    def source(self) -> str:
        return str(self.folder)


@dataclass
class Changes(Input):
    """A table; a stream starts with its merged rows, and continues with its changes."""

    location: TableLocation = field(default_factory=lambda: TableLocation("", {}))

    def _append(self, rows: dict[int, int]) -> None:
        self.location.opened().write(self._frame(rows))

    def delete(self, keys: list[int]) -> None:
        """Delete rows."""
        self.number += 1
        self.location.opened().delete(keys=pa.table({"k": pa.array(keys, pa.int32())}))

    def start(self) -> None:
        """Note that a stream has begun here: it reads one merged row of each key."""
        found = self.location.opened().to_arrow(fresh=True).to_pydict()
        rows = zip(found["k"], found["v"], found["seq"])
        self.sums = {key: (1, value, number, number) for key, value, number in rows}

    @property
    def source(self) -> TableLocation:
        return self.location

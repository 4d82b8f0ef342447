"""What one benchmark run measures, and where each of its files lies. Standard library only."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KEY = "id"
WHERE = "quantity < 100"
"""The predicate on a value column; one row in ten passes, spread evenly over the files."""

ENGINE_OPERATIONS = ("engine-read", "engine-compact")
"""The merge engines beside deduplicate, on tables of their own with one more column."""

METADATA_OPERATIONS = ("plan", "count-metadata", "commit")
"""What is done with manifests alone, on synthetic metadata of many files."""

INTEGRITY_OPERATIONS = ("integrity-write", "integrity-read", "integrity-scan")
"""What checksums and durable files cost."""

MEMORY_OPERATIONS = ("memory-compact", "memory-read")
"""What a task holds of rows whose width their encoding hides."""

OPERATIONS = (
    *("load", "upsert", "read", "where", "count", "compact"),
    *ENGINE_OPERATIONS,
    *METADATA_OPERATIONS,
    *INTEGRITY_OPERATIONS,
    *MEMORY_OPERATIONS,
)


@dataclass(frozen=True)
class BenchConfig:
    """One run's settings. ``runs`` is the number of level-0 runs on top of the base, ``repeat`` the number of
    measurements; ``slow_seconds`` is the warm-up time from which a contender is measured only once."""

    workdir: str
    rows: int = 8_000_000
    buckets: int = 4
    runs: int = 8
    repeat: int = 5
    cores: int = 2
    files: int = 100_000
    driver_memory: str = "4g"
    slow_seconds: float = 40.0
    operations: tuple[str, ...] = OPERATIONS
    peer_pythons: Mapping[str, str] = field(default_factory=dict)
    paimon_jar: str = ""
    floor_codec: str = ""

    @property
    def batch_rows(self) -> int:
        """Rows of one level-0 run and of one upsert: one per cent of the table."""
        return max(1, self.rows // 100)

    @property
    def small_rows(self) -> int:
        """Rows of the table ten times smaller, which shows whether an upsert depends on the table's size."""
        return max(1, self.rows // 10)

    @property
    def root(self) -> Path:
        """The working directory."""
        return Path(self.workdir)

    @property
    def shape(self) -> Path:
        """Everything that depends on the data's shape only, and is kept from run to run."""
        return self.root / f"rows{self.rows}-buckets{self.buckets}-runs{self.runs}"

    @property
    def warehouse(self) -> Path:
        """lakelsm's warehouse of prepared tables: base, small, state, and one for each merge engine."""
        return self.shape / "warehouse"

    @property
    def scratch(self) -> Path:
        """Copies of tables and outputs that one measurement makes and removes."""
        return self.root / "scratch"

    @property
    def floor(self) -> Path:
        """The merged rows as plain parquet, written by Spark in bucket and key order."""
        return self.shape / "floor"

    def data(self, name: str) -> Path:
        """A folder of generated parquet: base, small, merged, upsert, upsert-small or run-K."""
        return self.shape / "data" / name

    def table(self, name: str) -> Path:
        """The directory of one of lakelsm's prepared tables."""
        return self.warehouse / "bench.db" / name

    def with_operations(self, names: tuple[str, ...]) -> BenchConfig:
        """The same run, measuring only these operations."""
        return dataclasses.replace(self, operations=names)

    def to_json(self) -> str:
        """The settings as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> BenchConfig:
        """The inverse of :meth:`to_json`."""
        raw = json.loads(text)
        return BenchConfig(**{**raw, "operations": tuple(raw["operations"])})

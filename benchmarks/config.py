"""The settings of one run and the locations of its files. Standard library only."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sql_queries import SQL_HERE, SQL_ON_SPARK
from benchmarks.timing import Turns

KEY = "id"
WHERE = "quantity < 100"
"""The predicate on a value column; one row in ten passes, spread evenly over the files."""

TABLE_CODEC = "zstd"
"""The default codec of lakelsm's tables."""

ENGINE_OPERATIONS = ("engine-read", "engine-compact")
"""Merge engines besides deduplicate, on separate tables with one more column."""

SPEED_OPERATIONS = ("load", "upsert", "read", "where", "count", "compact", *ENGINE_OPERATIONS, "first-row")
"""Ordinary uses of a table, beside floors and peers."""

BEFORE_OPERATIONS = ("upsert", "count")
"""Also measured with an earlier revision of lakelsm."""

METADATA_OPERATIONS = ("plan", "count-metadata", "commit")
"""Operations on manifests only, with synthetic metadata of many files."""

UPKEEP_OPERATIONS = ("expire", "orphan-scan", "check", "store-commit")
"""Upkeep of a table that is used for years, and commits on an object store."""

INTEGRITY_OPERATIONS = ("integrity-write", "integrity-read", "integrity-scan")
"""The cost of checksums and durable files."""

MEMORY_OPERATIONS = ("memory-compact", "memory-read")
"""The memory of a task with rows whose encoding hides their width."""

MASKED_PERCENT = (0, 1, 8, 50)
"""The share of masked rows in tables with deletion vectors."""

VECTOR_READS = tuple(f"{name}-{percent}" for percent in MASKED_PERCENT for name in ("vector-read", "vector-where"))
"""Reads with deletion vectors, each beside the plain scan of the same files."""

VECTOR_COMPACTIONS = ("vector-compact", "vector-compact-full")
"""Compactions of the same runs with and without deletion vectors."""

CORES_OPERATION = "vector-cores"
"""A read with vectors in one bucket, on one core and on all."""

VECTOR_OPERATIONS = (*VECTOR_READS, CORES_OPERATION, *VECTOR_COMPACTIONS)

MODE_OPERATIONS = ("mode-write", "mode-read", "mode-where")
"""Merge-on-read, copy-on-write and merge-on-write on the same rows."""

LOCAL_MERGE = "merge-local"
MERGE_OPERATIONS = ("merge", LOCAL_MERGE)
"""A merge of one per cent of the rows by the key, on Spark and in this process, beside the upsert of the same rows."""

JOINED_FACTS: Mapping[str, int] = {"lookup-join-10k": 10_000, "lookup-join-1m": 1_000_000}
"""Joins of this many facts with a table by key, beside Spark's own."""

LOOKUP_JOIN_OPERATIONS = tuple(JOINED_FACTS)

FORMAT_OPERATIONS = ("format-read", "format-column", "format-point", "format-write")
"""Reads and writes by PySpark's Data Source API, beside those of `Table`, of a tenth of the rows."""

STREAM_OPERATION = "stream-batch"
"""Micro-batches of a stream into a table, beside upserts of the same rows."""

STREAM_BATCH, STREAM_BATCHES = 10_000, 20
"""Rows of a micro-batch, and batches of one measurement."""

LOOKUP_HITS: Mapping[str, float] = {
    "lookup-hits": 1.0,
    "lookup-half": 0.5,
    "lookup-misses": 0.0,
    "lookup-get": 1.0,
    "lookup-get-miss": 0.0,
}
"""Lookups of random keys with a warm cache, by the share of the keys that have a row."""

LOOKUP_BATCH, LOOKUP_BATCHES = 100_000, 10
"""Keys of a batch, and batches of one measurement."""

LOOKUP_COLUMNS = ["quantity", "status"]
"""The columns that lookups return."""

LOOKUP_GETS = 1000
"""Single lookups of one measurement."""

LOOKUP_OPERATIONS = (*LOOKUP_HITS, "lookup-cold", "lookup-bootstrap", "lookup-refresh")
"""Lookups by key, and the cost of their caches."""

OPERATIONS = (
    *SPEED_OPERATIONS,
    *VECTOR_OPERATIONS,
    *MODE_OPERATIONS,
    *MERGE_OPERATIONS,
    *LOOKUP_JOIN_OPERATIONS,
    *SQL_HERE,
    *SQL_ON_SPARK,
    *FORMAT_OPERATIONS,
    STREAM_OPERATION,
    *LOOKUP_OPERATIONS,
    *METADATA_OPERATIONS,
    *UPKEEP_OPERATIONS,
    *INTEGRITY_OPERATIONS,
    *MEMORY_OPERATIONS,
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "speed": SPEED_OPERATIONS,
    "engines": ENGINE_OPERATIONS,
    "vectors": VECTOR_OPERATIONS,
    "modes": MODE_OPERATIONS,
    "merges": MERGE_OPERATIONS,
    "lookup-joins": LOOKUP_JOIN_OPERATIONS,
    "sql": tuple(SQL_HERE),
    "sql-spark": tuple(SQL_ON_SPARK),
    "format": FORMAT_OPERATIONS,
    "streams": (STREAM_OPERATION,),
    "lookups": LOOKUP_OPERATIONS,
    "metadata": METADATA_OPERATIONS,
    "upkeep": UPKEEP_OPERATIONS,
    "integrity": INTEGRITY_OPERATIONS,
    "memory": MEMORY_OPERATIONS,
}
"""Groups of operations, by the name that ``--only`` accepts."""


def named_operations(names: str) -> tuple[str, ...]:
    """Return the operations that a text names, singly or by group. Raises ValueError for an unknown name."""
    wanted: list[str] = []
    for name in names.split(","):
        if name not in OPERATIONS and name not in GROUPS:
            known = f"Operations: {', '.join(OPERATIONS)}; groups: {', '.join(GROUPS)}"
            raise ValueError(f"{name!r} is not an operation. {known}")
        wanted += GROUPS.get(name, (name,))
    return tuple(dict.fromkeys(wanted))


@dataclass(frozen=True)
class BenchConfig:
    """One run's settings. ``runs`` is the number of level-0 runs above the base, ``repeat`` the number of measurements of
    a contender, fewer if they would take longer than ``max_seconds``. A warm-up of ``slow_seconds`` or more is the only
    measurement. ``coordinates`` are those of the peers' jars, ``jars`` is their directory; ``before`` is the earlier
    revision for BEFORE_OPERATIONS."""

    workdir: str
    rows: int = 8_000_000
    buckets: int = 4
    runs: int = 8
    repeat: int = 5
    cores: int = 2
    files: int = 100_000
    driver_memory: str = "4g"
    slow_seconds: float = 60.0
    max_seconds: float = 12.0
    operations: tuple[str, ...] = OPERATIONS
    peer_pythons: Mapping[str, str] = field(default_factory=dict)
    coordinates: Mapping[str, str] = field(default_factory=dict)
    jars: str = ""
    before: str = ""
    floor_codec: str = ""

    @property
    def turns(self) -> Turns:
        """The number of measurements of each contender."""
        return Turns(self.repeat, self.slow_seconds, self.max_seconds)

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
        """The directory of everything that depends only on the data's shape; later runs use it again."""
        return self.root / f"rows{self.rows}-buckets{self.buckets}-runs{self.runs}"

    @property
    def warehouse(self) -> Path:
        """The warehouse of lakelsm's prepared tables: base, small, state, those of merge engines, vectors and modes."""
        return self.shape / "warehouse"

    @property
    def scratch(self) -> Path:
        """The directory of table copies and outputs that a measurement creates and deletes."""
        return self.root / "scratch"

    @property
    def floor(self) -> Path:
        """The merged rows as plain parquet, written by Spark in bucket and key order, in the floors' codec."""
        return self.shape / f"floor-{self.floor_codec or 'default'}"

    @property
    def scanned_floor(self) -> Path:
        """The same rows in the same order, in the codec of lakelsm's tables."""
        return self.shape / f"floor-{TABLE_CODEC}"

    @property
    def live_files(self) -> Path:
        """A JSON list of the data files of the newest snapshot of ``state``, for engines that read only Parquet."""
        return self.shape / "live-files.json"

    def data(self, name: str) -> Path:
        """Return a folder of generated parquet: base, small, merged, upsert, upsert-small, run-K, tiny or tiny-run."""
        return self.shape / "data" / name

    def table(self, name: str) -> Path:
        """Return the directory of one of lakelsm's prepared tables."""
        return self.warehouse / "bench.db" / name

    def with_operations(self, names: tuple[str, ...]) -> BenchConfig:
        """Return the same run with only these operations."""
        return dataclasses.replace(self, operations=names)

    def to_json(self) -> str:
        """Return the settings as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> BenchConfig:
        """Return the settings in a text of :meth:`to_json`."""
        raw = json.loads(text)
        return BenchConfig(**{**raw, "operations": tuple(raw["operations"])})

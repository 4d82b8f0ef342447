"""Small tables that contain every kind of file, and the answers of undamaged tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakelsm.environment import SYSTEM
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind, Tag
from lakelsm.options import ChangelogProducer
from lakelsm.plan.changelog_plan import ChangelogMode, plan_changelog
from lakelsm.plan.count_plan import metadata_count
from lakelsm.plan.read_plan import plan_read
from lakelsm.plan.table_status import table_status
from lakelsm.predicate.parser import parse_where
from lakelsm.schema_changes import AddColumn
from lakelsm.types import AtomicType
from tests.compact.local_table import ADDED, Row
from tests.read.file_engine import FileTable

COLUMNS = "dt STRING NOT NULL, id INT NOT NULL, v STRING, n BIGINT"

#: Rows of a table, sorted as text: NULLs and numbers have no common order.
Answer = list[str]


def _noon() -> int:
    return 1_700_000_000_000


def _no_time() -> float:
    return 0.0


class SampleTable(FileTable):
    """A table whose files may be of several schemas, read as `Table` plans it.

    Its clock stands still: a seed says which bit of a file is damaged, and the file has the same bytes in each run.
    """

    def __init__(self, root: Path, *columns_and_keys: Any, **options: str) -> None:
        super().__init__(root, *columns_and_keys, **options)
        self.environment = replace(SYSTEM, clock=_noon, monotonic=_no_time)

    def append(self, rows: list[Row], **options: str) -> None:
        self._commit(CommitKind.APPEND, self._columns(rows), ADDED, None, options)

    @property
    def has_vectors(self) -> bool:
        return self.store.options.deletion_vectors_enabled

    def answer(self) -> Answer:
        """Return the rows of the newest snapshot."""
        store = self.store
        return _sorted(self.scanned(plan_read(store, store.snapshots.latest(), None)).to_pylist())

    def found(self) -> Answer:
        """Return the rows of the newest snapshot that a read finds by indexes."""
        store = self.store
        where = "v IN ('b1', 'c4', 'd6', 'e2') OR n = 21"
        rows = self.scanned(plan_read(store, store.snapshots.latest(), parse_where(where, store.schema.fields)))
        return _sorted([row for row in rows.to_pylist() if row["v"] in ("b1", "c4", "d6", "e2") or row["n"] == 21])

    def tagged(self) -> Answer:
        """Return the rows of the tag."""
        store = self.store
        snapshot = store.tags.get("kept").snapshot
        return _sorted(self.scanned(plan_read(store, snapshot, None)).select(["dt", "id", "v", "n"]).to_pylist())

    def fresh(self) -> Answer:
        """Return the rows of the newest snapshot, including those on level 0."""
        store = self.store
        return _sorted(self.scanned(plan_read(store, store.snapshots.latest(), None, fresh=True)).to_pylist())

    def counted(self) -> Answer:
        """Return the counts of rows and files in metadata."""
        store = self.store
        latest = store.snapshots.latest()
        rows = [metadata_count(store, latest, None), metadata_count(store, latest, None, fresh=True)]
        status = table_status(store, latest, 0, 0, max_buckets=9)
        return [repr(rows), repr([status.rows, status.rows_masked, status.level0_rows, status.worst_buckets != ()])]

    def kept_changes(self) -> Answer:
        """Return all changes that the changelog producer kept."""
        store = self.store
        plan = plan_changelog(store, 0, store.snapshots.latest_id() or 0, ChangelogMode.CHANGELOG, None)
        return _sorted(self.changes(plan).to_pylist())


def batch(first: int, count: int, text: str, extra: tuple[object, ...] = ()) -> list[Row]:
    return [(f"p{key % 2}", key, f"{text}{key}", key * 7, *extra) for key in range(first, first + count)]


def build(root: Path, options: Mapping[str, str]) -> SampleTable:
    """Build a table with two schemas, a tag, statistics, files on several levels, and the files that its options add."""
    table = SampleTable(root, COLUMNS, ("dt", "id"), ("dt",), **options)
    table.append(batch(0, 9, "a"))
    table.append(batch(0, 9, "b"))
    _keep(table)
    table.compact(full=True)
    table.alter(AddColumn("x", AtomicType("INT")))
    table.append(batch(3, 9, "c", (1,)))
    table.append(batch(5, 9, "d", (2,)))
    if table.has_vectors:
        for first, text in ((8, "g"), (3, "h"), (4, "i")):  # An index file for each, and rows that stay on level 0.
            table.compact(full=False)
            table.append(batch(first, 4, text, (5,)))
            if first == 3:
                _keep(table)  # A state with vectors.
    return table


def _keep(table: SampleTable) -> None:
    paths = TablePaths(str(table.root))
    table.store.file_io.write(paths.tag("kept"), Tag(table.latest).to_json().encode())


def _sorted(rows: list[dict[str, object]]) -> Answer:
    return sorted(repr(tuple(row.values())) for row in rows)


#: A small table whose compactions leave files on several levels.
_VECTORS = {"deletion_vectors__enabled": "true", "compaction__size_ratio": "0", "num_sorted_run__compaction_trigger": "9"}

#: The options of each sample.
SAMPLES: Mapping[str, Mapping[str, str]] = {
    "changelog": {"bucket": "2", "changelog_producer": "input"},
    "dynamic": {"bucket": "-1", "dynamic_bucket__target_row_num": "3"},
    "partial-update": {"bucket": "1", "merge_engine": "partial-update"},
    "aggregation": {"bucket": "2", "merge_engine": "aggregation", "fields__n__aggregate_function": "sum"},
    "indexed": {
        "bucket": "1",
        "metadata__stats_mode": "none",
        "file_index__bloom_filter__columns": "v",
        "file_index__bloom_filter__v__items": "10",
        "file_index__bitmap__columns": "n",
        "file_index__in_manifest_threshold": "150 b",
    },
    "lookup": {"bucket": "1", "changelog_producer": "lookup", "file__compression": "none"},
    "vectors": {"bucket": "2", **_VECTORS},
    "vectors of 64 bits": {
        "bucket": "1",
        "changelog_producer": "lookup",
        "target_file_size": "1 b",
        "deletion_vectors__bitmap64": "true",
        **_VECTORS,
    },
}

#: The questions to a table, before and after a write and a compaction.
Question = Callable[[SampleTable], Answer]


def questions(name: str) -> dict[str, Question]:
    """Return the questions to a sample."""
    by_name: dict[str, Question] = {"read": SampleTable.answer, "tag": SampleTable.tagged}
    if "deletion_vectors__enabled" in SAMPLES[name]:
        by_name |= {"fresh": SampleTable.fresh, "count": SampleTable.counted}
    if "file_index__in_manifest_threshold" in SAMPLES[name]:
        by_name["found"] = SampleTable.found
    if SAMPLES[name].get("changelog_producer", ChangelogProducer.NONE.value) != ChangelogProducer.NONE.value:
        by_name["changelog"] = SampleTable.kept_changes
    return by_name

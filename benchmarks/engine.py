"""Every call of lakelsm that the harness makes: the one file to change when its public names change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.config import ENGINE_OPERATIONS, KEY, WHERE, BenchConfig
from benchmarks.names import ENGINE, first, merging, smaller
from benchmarks.timing import Contender
from benchmarks.workspace import build, check_count, copy_table, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.format.manifest.entry import ManifestEntry


def open_table(path: Path) -> Any:
    """Open the table in a directory."""
    from lakelsm import Table

    return Table.for_path(path.as_uri())


def open_catalog(warehouse: Path) -> Any:
    """Open a warehouse."""
    from lakelsm import Catalog

    return Catalog(warehouse.as_uri())


def create(config: BenchConfig, warehouse: Path, more: Mapping[str, str] | None = None, schema: Any = None) -> Any:
    """Create a table in a separate warehouse, with the columns of the benchmark unless others are given."""
    from benchmarks.data import SCHEMA

    options = {"bucket": str(config.buckets), "write-only": "true", **(more or {})}
    return open_catalog(warehouse).create_table("bench.t", schema or SCHEMA, primary_key=[KEY], options=options)


def list_live_files(config: BenchConfig) -> None:
    """Write the paths of the data files of the newest snapshot of ``state`` beside the tables."""
    plan = open_table(config.table("state")).explain()
    paths = [file.path.removeprefix("file://").removeprefix("file:") for file in (*plan.raw_files, *plan.merged_files)]
    config.live_files.write_text(json.dumps(paths), encoding="utf-8")


def unread_copies(source: Path, folder: Path) -> tuple[Callable[[], None], Callable[[], Path]]:
    """Return a function that copies a table which nothing has read, and one that returns the newest copy's path."""
    paths = map(folder.joinpath, map(str, count()))
    made: list[Path] = []

    def setup() -> None:
        made.append(next(paths))
        copy_table(source, made[-1])

    return setup, lambda: made[-1]


def _table_dir(warehouse: Path) -> Path:
    return warehouse / "bench.db" / "t"


class Engine:
    """lakelsm on one Spark session. Tables: ``base`` and ``small`` are loaded and compacted; ``state`` is
    base plus the level-0 runs; ``tiny`` is a small table with one run. All are write-only."""

    def __init__(self, config: BenchConfig, spark: SparkSession) -> None:
        self.config = config
        self.spark = spark
        self.scratch = config.scratch / "lakelsm"

    def rows(self, name: str) -> DataFrame:
        """Return the generated rows of a folder of the data."""
        return self.spark.read.parquet(str(self.config.data(name)))

    def prepare(self) -> None:
        """Build the four tables, once for each shape of the data."""

        def runs(target: Path) -> None:
            copy_table(self.config.table("base"), target)
            for number in range(self.config.runs):
                open_table(target).write(self.rows(f"run-{number}"))

        def tiny(target: Path) -> None:
            self.load(target, self.rows("tiny"))
            open_table(target).write(self.rows("tiny-run"))

        for name in ("base", "small"):
            build(self.config.table(name), lambda path, name=name: self.load(path, self.rows(name)))  # type: ignore[misc]
        build(self.config.table("state"), runs)
        build(self.config.table("tiny"), tiny)
        list_live_files(self.config)

    def prepare_merge_engines(self) -> None:
        """Build the tables of ENGINE_OPERATIONS, one for each merge engine, of the same rows as ``state``."""
        from benchmarks.merge_engines import ENGINE_SCHEMA, MERGE_ENGINES

        def make(options: Mapping[str, str], target: Path) -> None:
            self.load(target, self._versioned("base", 0), options, ENGINE_SCHEMA)
            for number in range(self.config.runs):
                open_table(target).write(self._versioned(f"run-{number}", number + 1))

        for engine, options in MERGE_ENGINES.items():
            build(self.config.table(engine), lambda path, options=options: make(options, path))  # type: ignore[misc]

    def load(
        self,
        target: Path,
        rows: DataFrame,
        options: Mapping[str, str] | None = None,
        schema: Any = None,
    ) -> None:
        """Create a table of these rows and compact it fully; ``options`` override those of all tables."""
        warehouse = self.config.scratch / f"prepare-{target.name}"
        remove(warehouse)
        table = create(self.config, warehouse, options, schema)
        table.write(rows)
        table.compact(full=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        _table_dir(warehouse).rename(target)
        remove(warehouse)

    def _versioned(self, name: str, version: int) -> DataFrame:
        from pyspark.sql import functions as F

        from benchmarks.merge_engines import VERSION

        return self.rows(name).withColumn(VERSION, F.lit(version).cast("bigint"))

    def _engine_contender(self, operation: str, merge_engine: str) -> Contender:
        """Return the contender that reads or fully compacts the table of one merge engine."""
        from benchmarks.floors import drain
        from benchmarks.merge_engines import check_frame

        config, table = self.config, self.config.table(merge_engine)
        name = merging(ENGINE, merge_engine)
        if operation == "engine-read":
            return Contender(
                name,
                lambda: drain(open_table(table).read()),
                check=lambda _: check_frame(config, merge_engine, open_table(table).read()),
            )
        scratch = self.scratch / merge_engine
        checked = False

        def teardown() -> None:
            nonlocal checked
            if not checked:
                checked = True
                check_frame(config, merge_engine, open_table(scratch).read())
            remove(scratch)

        return Contender(
            name, lambda: open_table(scratch).compact(full=True), lambda: copy_table(table, scratch), teardown
        )

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load, upsert (two table sizes), read, where, count, compact, ENGINE_OPERATIONS or first-row."""
        if operation in ENGINE_OPERATIONS:
            from benchmarks.merge_engines import MERGE_ENGINES

            return [self._engine_contender(operation, name) for name in MERGE_ENGINES]
        return self._writes(operation) if operation in ("load", "upsert", "compact") else self._reads(operation)

    def _writes(self, operation: str) -> list[Contender]:
        from benchmarks.floors import check_frame

        config, scratch = self.config, self.scratch
        checked = False

        def clear() -> None:
            remove(scratch)

        def upsert(label: str, table: str, batch: str) -> Contender:
            def write() -> None:
                open_table(scratch).write(self.rows(batch))

            return Contender(label, write, lambda: copy_table(config.table(table), scratch), clear)

        def load() -> None:
            create(config, scratch).write(self.rows("base"))

        def compact() -> None:
            open_table(scratch).compact(full=True)

        def clear_checked() -> None:
            nonlocal checked
            if not checked:
                checked = True
                check_frame(config, open_table(scratch).read())
            clear()

        if operation == "load":
            return [Contender(ENGINE, load, clear, clear)]
        if operation == "upsert":
            return [upsert(ENGINE, "base", "upsert"), upsert(smaller(ENGINE), "small", "upsert-small")]
        return [Contender(ENGINE, compact, lambda: copy_table(config.table("state"), scratch), clear_checked)]

    def _reads(self, operation: str) -> list[Contender]:
        """Return the first query of a snapshot (on an unread copy) and later ones; counts are always first ones."""
        from benchmarks.floors import check_frame, drain

        config, state, copies = self.config, self.config.table("state"), self.scratch / "unread"
        setup, newest = unread_copies(state, copies)

        def clear() -> None:
            remove(copies)

        if operation == "count":

            def check_rows(rows: object) -> None:
                check_count(config, "rows", rows)  # type: ignore[arg-type]

            return [Contender(ENGINE, lambda: int(open_table(newest()).count()), setup, clear, check_rows)]
        where = WHERE if operation == "where" else None

        def frame(path: Path) -> DataFrame:
            found: DataFrame = open_table(path).read(where=where)
            return found

        def check(found: DataFrame) -> None:
            if where is None:
                check_frame(config, found)
            else:
                check_count(config, "where", found.count())

        reads = [
            Contender(first(ENGINE), lambda: drain(frame(newest())), setup, clear),
            Contender(ENGINE, lambda: drain(frame(state)), check=lambda _: check(frame(state))),
        ]
        if where is not None:
            added = f"{ENGINE}, filter added after"
            reads.append(Contender(added, lambda: drain(open_table(state).read().where(where))))
        return reads


def plan_files(path: Path, where: str | None) -> int:
    """Plan a read of the table from its metadata, without Spark, and return the number of files to scan."""
    from lakelsm.plan.read_plan import plan_read
    from lakelsm.predicate.parser import parse_where
    from lakelsm.snapshots.table_store import TableStore

    store = TableStore.open(path.as_uri())
    predicate = None if where is None else parse_where(where, store.schema.fields)
    return plan_read(store, store.snapshots.latest(), predicate).files_scanned


def count_rows(path: Path, where: str | None) -> int:
    """Count the rows of the table from its metadata, without Spark."""
    result = open_table(path).count(where)
    assert result.how == "metadata", f"{result.files_opened} data files were opened"
    return int(result)


def commit_files(path: Path, entries: Sequence[ManifestEntry]) -> None:
    """Commit an APPEND of these manifest entries, without Spark."""
    from lakelsm.commit.commit_message import CommitMessage
    from lakelsm.commit.committer import Committer
    from lakelsm.format.snapshot import CommitKind
    from lakelsm.snapshots.table_store import TableStore

    store = TableStore.open(path.as_uri())
    base = store.snapshots.latest_id()
    message = CommitMessage(entries=entries, base_snapshot_id=base)
    Committer(store).commit(CommitKind.APPEND, message, "bench")

"""Every call of lakelsm that the harness makes: the one file to change when its public names change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.config import ENGINE_OPERATIONS, KEY, WHERE, BenchConfig
from benchmarks.timing import Contender
from benchmarks.workspace import build, check_count, copy_table, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.format.manifest.entry import ManifestEntry

NAME = "lakelsm"
FIRST_QUERY, LATER_QUERY = f"{NAME}, first query", f"{NAME}, later queries"


def open_table(path: Path) -> Any:
    """The table in a directory."""
    from lakelsm import Table

    return Table.for_path(path.as_uri())


def _create(
    config: BenchConfig, warehouse: Path, more: Mapping[str, str] | None = None, merge_engine: str | None = None
) -> Any:
    from benchmarks.data import SCHEMA
    from benchmarks.merge_engines import ENGINE_SCHEMA, MERGE_ENGINES
    from lakelsm import Catalog

    schema, of_engine = (SCHEMA, {}) if merge_engine is None else (ENGINE_SCHEMA, MERGE_ENGINES[merge_engine])
    options = {"bucket": str(config.buckets), "write-only": "true", **of_engine, **(more or {})}
    return Catalog(warehouse.as_uri()).create_table("bench.t", schema, primary_key=[KEY], options=options)


def _table_dir(warehouse: Path) -> Path:
    return warehouse / "bench.db" / "t"


class Engine:
    """lakelsm on one Spark session. Tables: ``base`` and ``small`` are loaded and compacted; ``state`` is
    base plus the level-0 runs. All are write-only."""

    def __init__(self, config: BenchConfig, spark: SparkSession) -> None:
        self.config = config
        self.spark = spark
        self.scratch = config.scratch / "lakelsm"

    def rows(self, name: str) -> DataFrame:
        """The generated rows of a folder of the data."""
        return self.spark.read.parquet(str(self.config.data(name)))

    def prepare(self) -> None:
        """Build the three tables, once for each shape of the data."""

        def runs(target: Path) -> None:
            copy_table(self.config.table("base"), target)
            for number in range(self.config.runs):
                open_table(target).write(self.rows(f"run-{number}"))

        for name in ("base", "small"):
            build(self.config.table(name), lambda path, name=name: self.load(path, self.rows(name)))  # type: ignore[misc]
        build(self.config.table("state"), runs)

    def prepare_merge_engines(self) -> None:
        """Build the tables of ENGINE_OPERATIONS, one for each merge engine in the shape of ``state``."""
        from benchmarks.merge_engines import MERGE_ENGINES

        def make(engine: str, target: Path) -> None:
            self.load(target, self._versioned("base", 0), merge_engine=engine)
            for number in range(self.config.runs):
                open_table(target).write(self._versioned(f"run-{number}", number + 1))

        for engine in MERGE_ENGINES:
            build(self.config.table(engine), lambda path, engine=engine: make(engine, path))  # type: ignore[misc]

    def load(
        self,
        target: Path,
        rows: DataFrame,
        options: Mapping[str, str] | None = None,
        *,
        merge_engine: str | None = None,
    ) -> None:
        """Make a table of these rows, compacted in full; ``options`` go before those of all tables."""
        warehouse = self.config.scratch / f"prepare-{target.name}"
        remove(warehouse)
        table = _create(self.config, warehouse, options, merge_engine)
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
        """Reading or fully compacting one merge engine's table."""
        from benchmarks.floors import drain
        from benchmarks.merge_engines import check_frame

        config, table = self.config, self.config.table(merge_engine)
        name = f"{NAME} {merge_engine}"
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

    def _queries_of_one_snapshot(self) -> list[Contender]:
        """The first merged read of a table, of a copy that nothing has read before, and reads after one."""
        from benchmarks.floors import check_frame, drain

        config, state = self.config, self.config.table("state")
        table, copies = open_table(state), self.scratch / "again"
        paths = map(copies.joinpath, map(str, count()))
        unread: list[Path] = []

        def setup() -> None:
            unread.append(next(paths))
            copy_table(state, unread[-1])

        return [
            Contender(FIRST_QUERY, lambda: drain(open_table(unread[-1]).read()), setup, lambda: remove(copies)),
            Contender(LATER_QUERY, lambda: drain(table.read()), check=lambda _: check_frame(config, table.read())),
        ]

    def contenders(self, operation: str) -> list[Contender]:
        """load, upsert (two table sizes), read, read-again, where, count, compact; ENGINE_OPERATIONS by merge engine."""
        if operation in ENGINE_OPERATIONS:
            from benchmarks.merge_engines import MERGE_ENGINES

            return [self._engine_contender(operation, name) for name in MERGE_ENGINES]
        if operation == "read-again":
            return self._queries_of_one_snapshot()
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
            _create(config, scratch).write(self.rows("base"))

        def compact() -> None:
            open_table(scratch).compact(full=True)

        def clear_checked() -> None:
            nonlocal checked
            if not checked:
                checked = True
                check_frame(config, open_table(scratch).read())
            clear()

        if operation == "load":
            return [Contender(NAME, load, clear, clear)]
        if operation == "upsert":
            return [upsert(NAME, "base", "upsert"), upsert(NAME + " (table / 10)", "small", "upsert-small")]
        return [Contender(NAME, compact, lambda: copy_table(config.table("state"), scratch), clear_checked)]

    def _reads(self, operation: str) -> list[Contender]:
        from benchmarks.floors import check_frame, drain

        config = self.config

        def read(where: str | None = None) -> DataFrame:
            table = open_table(config.table("state"))
            frame: DataFrame = table.read() if where is None else table.read(where=where)
            return frame

        if operation == "read":
            return [Contender(NAME, lambda: drain(read()), check=lambda _: check_frame(config, read()))]
        if operation == "where":
            return [
                Contender(
                    NAME,
                    lambda: drain(read(WHERE)),
                    check=lambda _: check_count(config, "where", read(WHERE).count()),
                ),
                Contender(
                    NAME + ", filter added after",
                    lambda: drain(read().where(WHERE)),
                    check=lambda _: check_count(config, "where", read().where(WHERE).count()),
                ),
            ]
        return [
            Contender(
                NAME, lambda: read().count(), check=lambda _: check_count(config, "rows", read().count())
            )
        ]


def plan_files(path: Path, where: str | None) -> int:
    """Plan a read of the table from its metadata, without Spark; the number of files that it would scan."""
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
    Committer.of(store).commit(CommitKind.APPEND, message, "bench")

"""A table that is written and compacted by the tasks of the engine, in this process. No JVM."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle

from lakelsm.commit.commit_message import CommitMessage, ReplacedPartitions
from lakelsm.commit.committer import Committer
from lakelsm.compact.compactor import CompactionLimits, Compactor
from lakelsm.environment import SYSTEM
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.bucket_hash import bucket_ids, key_hashes
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import ChangelogProducer
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.plan.overwrite_plan import upgraded_for_overwrite
from lakelsm.results import CompactionResult
from lakelsm.runner.runner import Task
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema_changes import SchemaChange
from lakelsm.snapshots.hash_indexes import HashIndex, HashIndexes, hash_indexes
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.sequence_base import table_max_sequence
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from lakelsm.types import to_arrow
from lakelsm.write.dynamic_bucket import Assigner, BucketPolicy
from lakelsm.write.level0_task import Level0Job
from tests.nano_times import column_of
from tests.option_keys import option_keys

ADDED, DELETED = 0, 3
Row = tuple[Any, ...]
AnyTable = TypeVar("AnyTable", bound="LocalTable")


class InlineRunner:
    """A Runner that executes units one by one. Units and tasks are pickled, as for Spark.

    ``after_tasks`` is called after the tasks of a job.
    """

    name = "inline"

    def __init__(self, cores: int = 2) -> None:
        self.cores = cores
        self.jobs = 0
        self.tasks = 0
        self.after_tasks: Callable[[], None] | None = None

    def messages(self, units: Sequence[Any], task: Task[Any], paths: TablePaths, names: AttemptNames) -> TaskMessages:
        combined = TaskMessages()
        for batch in self._worked_off(units, task):
            for row in zip(*(column.to_pylist() for column in batch.columns)):
                combined.add(TaskMessages.of_row(row))
        return combined

    def batches(
        self, units: Sequence[Any], task: Task[Any], schema: pa.Schema, paths: TablePaths
    ) -> Iterator[pa.RecordBatch]:
        return iter(self._worked_off(units, task))

    def _worked_off(self, units: Sequence[Any], task: Task[Any]) -> list[pa.RecordBatch]:
        self.jobs += 1
        packed = [pickle.dumps(unit) for unit in units]
        run = pickle.loads(cloudpickle.dumps(task))
        found: list[pa.RecordBatch] = []
        for unit in packed:
            self.tasks += 1
            found += run(pickle.loads(unit))
        if self.after_tasks is not None:
            self.after_tasks()
        return found


class LocalTable:
    """A table in the directory ``root``, which is created if it is missing. Rows are tuples in column order."""

    def __init__(
        self,
        root: Path,
        columns: str = "id INT NOT NULL, v STRING",
        primary_key: Sequence[str] = ("id",),
        partition_by: Sequence[str] = (),
        **options: str,
    ) -> None:
        self.root = root
        self.runner = InlineRunner()
        self.environment = SYSTEM
        if not (root / "schema").exists():
            keys = {"bucket": "1", **option_keys(options)}
            _create(root, create_schema(columns, primary_key, partition_by, keys, None, 0))

    @classmethod
    def of(cls: type[AnyTable], root: Path, schema: TableSchema) -> AnyTable:
        """Create a table with this schema."""
        _create(root, schema)
        return cls(root)

    #: The names of the schema files when the store was opened, and the store.
    _opened: tuple[list[tuple[str, int, int]], TableStore] | None = None

    @property
    def store(self) -> TableStore:
        """The open table. It is opened again only if its schema files change, because it is used thousands of times."""
        try:
            with os.scandir(self.root / "schema") as files:
                schemas = sorted((file.name, file.stat().st_mtime_ns, file.stat().st_ino) for file in files)
        except OSError:
            return TableStore.open(str(self.root))
        if self._opened is None or self._opened[0] != schemas:
            self._opened = schemas, TableStore.open(str(self.root))
        return self._opened[1]

    @property
    def latest(self) -> Snapshot:
        snapshot = self.store.snapshots.latest()
        assert snapshot is not None
        return snapshot

    def alter(self, *changes: SchemaChange) -> None:
        self.store.schemas.change(lambda schema: apply_changes(schema, changes, 0, True))

    def write(self, *rows: Row, kind: int = ADDED, **options: str) -> Snapshot:
        """Append rows as one commit of level-0 files."""
        return self._commit(CommitKind.APPEND, self._columns(rows), kind, None, options)

    def write_columns(self, columns: pa.Table) -> Snapshot:
        """Append rows of an Arrow table as one commit."""
        return self._commit(CommitKind.APPEND, columns, ADDED, None, {})

    def delete(self, *rows: Row) -> Snapshot:
        return self.write(*rows, kind=DELETED)

    def overwrite(self, *rows: Row, partitions: ReplacedPartitions | None = None) -> Snapshot:
        return self._commit(CommitKind.OVERWRITE, self._columns(rows), ADDED, partitions, {})

    def compact(
        self,
        full: bool = True,
        *,
        scope: CompactionScope | None = None,
        dry_run: bool = False,
        clock: Callable[[], float] | None = None,
        **limits: Any,
    ) -> CompactionResult:
        environment = self.environment if clock is None else replace(SYSTEM, monotonic=clock)
        compactor = Compactor(self.runner, self.store, environment)
        return compactor.compact(scope or CompactionScope(full), CompactionLimits(**limits), dry_run=dry_run)

    def live(self) -> list[ManifestEntry]:
        store = self.store
        snapshot = store.snapshots.latest()
        return [] if snapshot is None else read_live_entries(store.file_io, store.paths, snapshot)

    def levels(self) -> list[int]:
        """Return the levels of the live files, ascending."""
        return sorted(entry.file.level for entry in self.live())

    def names(self) -> set[str]:
        """Return the names of the live files."""
        return {entry.file.file_name for entry in self.live()}

    def data_files(self) -> set[str]:
        """Return the names of all data files on disk."""
        return {path.name for path in self.root.rglob("bucket-*/*")}

    def path_of(self, entry: ManifestEntry) -> Path:
        return Path(self.store.data_path(entry.partition, entry.bucket, entry.file.file_name))

    def stored(self, entry: ManifestEntry) -> pa.Table:
        """Return the rows of a data file, system columns included."""
        return pq.ParquetFile(self.path_of(entry)).read()

    def rows(self) -> list[Row]:
        """Return the merged rows, sorted: row by row, the largest sequence number of a key wins."""
        schema = self.store.schema
        newest: dict[Row, tuple[int, int, Row]] = {}
        for entry in self.live():
            for row in self.stored(entry).to_pylist():
                key = (entry.partition, *(row[name] for name in schema.trimmed_primary_keys))
                found = (row[SEQUENCE_NUMBER], row[VALUE_KIND], tuple(row.get(name) for name in schema.field_names))
                newest[key] = max(newest.get(key, found), found, key=lambda version: version[0])
        return sorted(values for _, kind, values in newest.values() if not kind & 1)

    def _columns(self, rows: Sequence[Row]) -> pa.Table:
        values = zip(self.store.schema.fields, zip(*rows))
        return pa.table({field.name: column_of(column, to_arrow(field.type)) for field, column in values})

    def _commit(
        self,
        kind: CommitKind,
        rows: pa.Table,
        row_kind: int,
        partitions: ReplacedPartitions | None,
        options: Mapping[str, str],
    ) -> Snapshot:
        store = self.store.with_options(option_keys(options))
        base = store.snapshots.latest()
        planned = None if kind is CommitKind.OVERWRITE else base
        messages = self._level0(store, rows, row_kind, base, planned) if len(rows) else TaskMessages()
        message = CommitMessage(
            upgraded_for_overwrite(store, messages.entries) if kind is CommitKind.OVERWRITE else messages.entries,
            changelog_entries=[] if kind is CommitKind.OVERWRITE else messages.changelog_entries,
            index_adds=messages.index_entries,
            base_snapshot_id=None if base is None else base.id,
            overwrite_partitions=partitions,
        )
        outcome = Committer(store, environment=self.environment).commit(kind, message, "writer")
        assert outcome.snapshot is not None
        return outcome.snapshot

    def _level0(
        self, store: TableStore, table: pa.Table, row_kind: int, base: Snapshot | None, assigned: Snapshot | None,
        names: AttemptNames | None = None,
    ) -> TaskMessages:
        """Assigns dynamic buckets from the index of the snapshot ``assigned``."""
        schema = store.schema
        keys = [table.column(name) for name in schema.bucket_keys]
        types = [schema.field(name).type for name in schema.bucket_keys]
        indexes = hash_indexes(store, assigned) if store.options.bucket == -1 else None
        buckets = bucket_ids(keys, types, store.options.bucket) if indexes is None else _assigned(store, indexes, table)
        table = table.append_column(BUCKET, pa.array(np.asarray(buckets), pa.int32()))
        if VALUE_KIND not in table.column_names:
            table = table.append_column(VALUE_KIND, pa.array(np.full(len(table), row_kind, np.int8)))
        table = table.append_column(SEQUENCE_NUMBER, pa.array(np.arange(len(table))))
        order = [*schema.partition_keys, BUCKET, *schema.trimmed_primary_keys, SEQUENCE_NUMBER]
        layout = FileLayout.of(schema, store.options)
        keeps_input = store.options.changelog_producer is ChangelogProducer.INPUT
        job = Level0Job(
            file_io=store.file_io,
            paths=store.paths,
            layout=layout,
            changelog_layout=layout.for_changelog(store.options) if keeps_input else None,
            spec=MergeSpec.of(schema, store.options),
            first_sequence=table_max_sequence(store.file_io, store.paths, base) + 1,
            total_buckets=store.options.bucket,
            partition_default_name=store.options.partition_default_name,
            partition_legacy_name=store.options.partition_legacy_name,
            batch_bytes=1 << 20,
            hash_indexes=indexes,
            names=names or AttemptNames.new(self.environment.new_uuid),
            environment=self.environment,
        )
        messages = TaskMessages()
        order_indexes = np.argsort(order_keys([table.column(name) for name in order]), kind="stable")
        for batch in job(iter(table.take(pa.array(order_indexes)).to_batches())):
            messages.add(TaskMessages.of_row([column[0].as_py() for column in batch.columns]))
        return messages


def _create(root: Path, schema: TableSchema) -> None:
    file_io, paths = LocalFileIO(), TablePaths(str(root))
    file_io.mkdirs(paths.schema_dir)
    SchemaStore(file_io, paths).create_table(schema)


def _assigned(store: TableStore, indexes: HashIndexes, rows: pa.Table) -> np.ndarray:
    """Return the dynamic bucket of each row, as `with_dynamic_bucket` does."""
    schema = store.schema
    by_partition: dict[bytes, dict[int, HashIndex]] = {}
    for (partition, bucket), index in indexes.items():
        by_partition.setdefault(partition, {})[bucket] = index
    assigner = Assigner(BucketPolicy.of(store.options), store.file_io, by_partition)
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    hashes = key_hashes([rows.column(key.name) for key in keys], [key.type for key in keys])
    heads = rows.select(schema.partition_keys).to_pylist() if schema.partition_keys else [{}] * len(rows)
    partitions = [encode_row(list(head.values()), store.partition_types) for head in heads]
    buckets = np.empty(len(rows), np.int32)
    for partition in set(partitions):
        here = np.array([found == partition for found in partitions])
        buckets[here] = assigner.assign(partition, hashes[here])
    return buckets


def only(table: LocalTable, *buckets: tuple[object, int]) -> CompactionScope:
    """Return the scope of an automatic compaction of these (partition value, bucket)s."""
    types = table.store.partition_types
    return CompactionScope(False, only=frozenset((encode_row([value], types), bucket) for value, bucket in buckets))

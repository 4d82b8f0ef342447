"""One table on storage: its location, schema and options, and access to its snapshots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timezone, tzinfo
from typing import Any, TypeVar

import pyarrow as pa

from lakelsm.environment import SYSTEM
from lakelsm.errors import (
    CommitConflictError,
    CorruptTableError,
    LakelsmError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
    error_context,
)
from lakelsm.format.data_file.column_evolution import comparable_values
from lakelsm.format.partition_path import partition_label, partition_text
from lakelsm.format.paths import MAIN_BRANCH, TablePaths
from lakelsm.format.row.binary_row import decode_row, decode_rows
from lakelsm.format.snapshot import Snapshot
from lakelsm.moment import Moment
from lakelsm.operation_log import log_step
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema.validation import (
    validate_changes,
    validate_existing_table,
    validate_writes,
    with_dynamic_options,
)
from lakelsm.snapshots.branch_store import BranchStore
from lakelsm.snapshots.changelog_store import ChangelogStore
from lakelsm.snapshots.consumer_store import ConsumerStore
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.tag_store import TagStore
from lakelsm.storage import FileIO, open_storage
from lakelsm.types import DataType

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)

#: Seconds before each repetition of work on the newest snapshot, if that snapshot was deleted.
_WAITS = (0.0, 0.1, 0.2, 0.4)


@dataclass(frozen=True, kw_only=True)
class TableStore:
    """A branch of a table for one operation: the schema and options are those at the time when it was opened.

    ``left_out_partitions`` are not read: another branch has them. ``catalog_zone`` is the catalog's time zone, for tables
    that set none.
    """

    file_io: FileIO
    paths: TablePaths
    schema: TableSchema
    options: TableOptions
    left_out_partitions: frozenset[bytes] = frozenset()
    catalog_zone: tzinfo | None = None

    @staticmethod
    def open(location: str, name: str | None = None) -> TableStore:
        """Open the table at a path or URI.

        Raises TableNotFoundError if there is no table, and UnsupportedFeatureError if lakelsm does not support it.
        """
        return TableStore.within(*open_storage(location), name)

    @staticmethod
    def within(storage: FileIO, root: str, name: str | None = None) -> TableStore:
        """Open the table at a path of a store. Raises as `open`."""
        paths = TablePaths(root, name or "")
        file_io = storage.within(paths.root)
        schema = SchemaStore(file_io, paths).latest()
        return TableStore(file_io=file_io, paths=paths, schema=schema, options=_options(paths.name, schema))

    def on_branch(self, branch: str) -> TableStore:
        """Return another branch of the same table, with the newest schema there.

        Raises TableNotFoundError, which names the complete branches.
        """
        if branch == self.paths.branch:
            return self
        paths = self.paths.of_branch(branch)
        if not self.branches.is_whole(branch):
            known = ", ".join((MAIN_BRANCH, *filter(self.branches.is_whole, self.branches.names())))
            table = self.paths.of_branch(MAIN_BRANCH).name
            raise TableNotFoundError(f"Table {table}: branch {branch!r} does not exist. Branches: {known}.")
        schema = SchemaStore(self.file_io, paths).latest()
        return replace(self, paths=paths, schema=schema, options=_options(paths.name, schema))

    def refreshed(self) -> TableStore:
        """Return the same table with the newest schema and options."""
        schema = self.schemas.latest(self.schema.id)
        return self if schema == self.schema else self.with_schema(schema)

    def is_recreated(self) -> bool:
        """Return whether the table's schema is missing or different: the table was dropped, or created again."""
        return self.schema.id not in self.schemas.ids() or self.schemas.get(self.schema.id) != self.schema

    def with_options(self, overrides: Mapping[str, str] | None) -> TableStore:
        """Return the same table with options for one call."""
        if not overrides:
            return self
        with error_context(f"Table {self.name}"):
            schema, options = with_dynamic_options(self.schema, overrides)
        return replace(self, schema=schema, options=options)

    def with_schema(self, schema: TableSchema) -> TableStore:
        """Return the same table with another of its schemas."""
        return replace(self, schema=schema, options=_options(self.name, schema))

    def for_changes(self) -> TableStore:
        """Return the same table after a check that its options allow upkeep. Raises as `validate_changes`."""
        with error_context(f"Table {self.name}"):
            validate_changes(self.schema, self.options)
        return self

    def for_writes(self) -> TableStore:
        """Return the same table after a check that its options allow writes. Raises as `validate_writes`."""
        with error_context(f"Table {self.name}"):
            validate_writes(self.schema, self.options)
        return self

    @property
    def name(self) -> str:
        """The name of the table in messages: 'database.table' if a catalog opened it, else its path."""
        return self.paths.name

    @property
    def time_zone(self) -> tzinfo | None:
        """The time zone of the table, else that of its catalog, else None."""
        return self.options.lakelsm_time_zone or self.catalog_zone

    @property
    def text_zone(self) -> tzinfo:
        """The time zone of time texts without a zone: `time_zone` or UTC."""
        return self.time_zone or timezone.utc

    def millis_of(self, moment: Moment) -> int:
        """Return a point in time in epoch milliseconds. Raises InvalidInputError outside of the years 1 to 9999."""
        return moment.millis(self.text_zone)

    @property
    def schemas(self) -> SchemaStore:
        """The table's schema files."""
        return SchemaStore(self.file_io, self.paths)

    def check_schema(self, snapshot: Snapshot | None) -> None:
        """Check the schema files against a snapshot.

        Raises CorruptTableError if the file of the table's schema is not the one that the snapshot was written with, or
        if the schema of the snapshot is missing.
        """
        self.schemas.check_newest(self.schema, snapshot)

    def schemas_of(self, ids: Iterable[int], snapshot: Snapshot | None = None) -> dict[int, TableSchema]:
        """Return the schemas with these ids, read from storage unless it is the table's own.

        With ``snapshot``, whose files have these schemas, raises CorruptTableError as `check_schema`.
        """
        found = {key: self.schema if key == self.schema.id else self.schemas.get(key) for key in set(ids)}
        for schema in found.values():
            self.schemas.check_file(schema, snapshot)
        return found

    @property
    def snapshots(self) -> SnapshotManager:
        """The branch's snapshots."""
        return SnapshotManager(self.file_io, self.paths)

    @property
    def tags(self) -> TagStore:
        """The branch's tags."""
        return TagStore(self.file_io, self.paths)

    @property
    def consumers(self) -> ConsumerStore:
        """The branch's consumers."""
        return ConsumerStore(self.file_io, self.paths)

    @property
    def changelogs(self) -> ChangelogStore:
        """The branch's long-lived changelogs."""
        return ChangelogStore(self.file_io, self.paths)

    @property
    def branches(self) -> BranchStore:
        """All branches of the table."""
        return BranchStore(self.file_io, self.paths)

    @contextmanager
    def while_read(self, *snapshots: Snapshot | None, changes: bool = False) -> Iterator[None]:
        """Read files of snapshots within.

        If a file is missing because its snapshot was deleted (it expired, was rolled back, or its tag was deleted),
        nothing is damaged, and SnapshotNotFoundError is raised.

        Of many snapshots the first and the last are enough: expiry deletes the oldest first, a rollback the newest. With
        ``changes``, their changelogs are read, which may exist longer than the snapshots.
        """
        try:
            yield
        except CorruptTableError as error:
            removed = next((each for each in snapshots if each is not None and not self._is_kept(each, changes)), None)
            if removed is None:
                raise
            raise SnapshotNotFoundError(
                f"Table {self.name}: snapshot {removed.id} was deleted while it was read: it expired, was rolled back, "
                "or its tag was deleted. Read another snapshot; a tag or a consumer keeps a snapshot for long reads.",
                was_removed=True,
            ) from error

    def run_on_newest(self, work: Callable[[], Result], sleep: Callable[[float], None] = SYSTEM.sleep) -> Result:
        """Run ``work``, which reads the newest snapshot. Repeats it if that snapshot expires or is rolled back.

        After five runs, raises the SnapshotNotFoundError of ``work``.
        """
        for wait in _WAITS:
            try:
                return work()
            except SnapshotNotFoundError as error:
                if not error.was_removed:
                    raise
                log_step(_LOG, "The newest snapshot was deleted; the work on it is repeated: %s", error)
            sleep(wait)
        return work()

    @contextmanager
    def while_changed(self, snapshot: Snapshot | None) -> Iterator[None]:
        """Plan, execute and commit a change on a snapshot within.

        If a file is missing because the snapshot was rolled back or expired, nothing is damaged, and CommitConflictError
        is raised.
        """
        try:
            yield
        except (CorruptTableError, SnapshotNotFoundError) as error:
            if snapshot is None or self._is_kept(snapshot, changes=False):
                raise
            raise CommitConflictError(
                f"Table {self.name}: snapshot {snapshot.id}, the base of this change, was rolled back or expired. "
                "Nothing is committed; run it again."
            ) from error

    def _is_kept(self, snapshot: Snapshot, changes: bool) -> bool:
        """Return whether a snapshot exists and is not expiring, or a tag keeps it; also true if that is unknown."""
        try:
            if self.snapshots.is_kept(snapshot):
                return True
            if changes:
                return snapshot.matches(self.changelogs.try_get(snapshot.id))
            return any(snapshot.matches(tag.snapshot) for tag in self.tags.all().values())
        except (OSError, LakelsmError):
            return True

    @property
    def partition_types(self) -> list[DataType]:
        """Types of the partition columns, in order."""
        return [field.type for field in self.schema.partition_fields]

    def partition_values(self, partition: bytes) -> dict[str, object]:
        """Return the values of a stored partition by column."""
        return dict(zip(self.schema.partition_keys, decode_row(partition, self.partition_types)))

    def comparable_partitions(self, partitions: Sequence[bytes]) -> list[tuple[Any, ...]]:
        """Return the values of stored partitions for conditions: TIMESTAMP(7..9) are floored to microseconds.

        A column with a date or time outside Python's calendar returns objects that equal no value.
        """
        columns = decode_rows(list(partitions), self.partition_types)
        return list(zip(*(_comparable(*pair) for pair in zip(columns, self.partition_types))))

    def partition_text(self, partition: bytes) -> list[tuple[str, str]]:
        """Return the partition as in its directory: (column, text) in order."""
        legacy, default = self.options.partition_legacy_name, self.options.partition_default_name
        types = self.partition_types
        values = (column[0] for column in decode_rows([partition], types))
        return [
            (name, partition_text(value, kind, legacy, default))
            for name, value, kind in zip(self.schema.partition_keys, values, types)
        ]

    def partition_label(self, partition: bytes) -> str:
        """Return the partition for display: 'dt=2025-12-31/hh=12'; '' for a table without partitions."""
        return partition_label(partition, self.schema.partition_keys, self.partition_types)

    def data_path(self, partition: bytes, bucket: int, file_name: str) -> str:
        """Return the path of a data file."""
        return self.paths.data_file(self.partition_text(partition), bucket, file_name)


def _options(name: str, schema: TableSchema) -> TableOptions:
    with error_context(f"Table {name}"):
        return validate_existing_table(schema)


def _comparable(column: pa.Array, kind: DataType) -> list[Any]:
    try:
        return comparable_values(column, kind)
    except UnsupportedFeatureError:
        return [object() if valid else None for valid in column.is_valid().to_pylist()]

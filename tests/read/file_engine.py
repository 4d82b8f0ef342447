"""Tables of any merge engine without a JVM: written, compacted and read by the engine's own tasks.

pyarrow replaces Spark's part of a read: it scans files and leaves out the hidden rows.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.local.arrow_changes import changes_reader
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.local_engine import LocalEngine
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.options import ChangelogProducer, TableOptions
from lakelsm.options.other_keys import check_new_keys
from lakelsm.plan.changelog_plan import ChangelogMode, ChangelogPlan, plan_changelog, plan_difference
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.read.changelog_tasks import Differences, MergedChanges
from lakelsm.read.hidden_row_task import CHUNK_BITS, HiddenRowTask
from lakelsm.read.merged_rows import MergedRows, is_read_by_task
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema import unbuilt_features
from lakelsm.schema.option_rules import check_rules
from lakelsm.schema.system_columns import POSITION, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.snapshots.table_store import TableStore
from tests.compact.local_table import LocalTable
from tests.conformance.cases import Case
from tests.conformance.table_case import KindedRow
from tests.conformance.values import arrow_type, case_ddl
from tests.nano_times import clock_type
from tests.oracle import KINDS


def allow_snapshot_ordering(patch: pytest.MonkeyPatch) -> None:
    """Allow tables whose rows have the order of snapshots: the rows of a single writer have it in any table."""
    allowed = [row for row in unbuilt_features._UNBUILT if "sequence.snapshot-ordering" not in row.feature]
    patch.setattr(unbuilt_features, "_UNBUILT", tuple(allowed))


class FileEngine:
    """Creates tables below a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def create(self, case: Case) -> FileTable:
        """Create a table with the columns, keys and options of the case."""
        body = case.body
        options = {"bucket": "1", **body["options"]}
        options.pop("file.format", None)
        schema = create_schema(case_ddl(body["columns"]), body["primary_key"], body["partition_by"], options)
        check_new_keys(schema.options)
        check_rules(schema, TableOptions.parse(schema.options))
        return FileTable.of(self._folder / str(next(self._numbers)), schema)


class FileTable(LocalTable):
    """The table of one case. ``is_sound``: nothing has changed its metadata, so that reads show a key once."""

    is_sound = True
    _read_up_to = 0

    @cached_property
    def _schemas(self) -> _Schemas:
        return _Schemas(self.store.schemas.get)

    def write(self, rows: Sequence[KindedRow], options: Mapping[str, str]) -> None:  # type: ignore[override]
        """Commit rows, and run the compaction that the table runs itself."""
        store = self.store.with_options(dict(options))
        table = kinded_rows(store.schema, store.options, rows)
        if not len(table):
            return
        self._commit(CommitKind.APPEND, table, 0, None, {})
        if not store.options.write_only:
            self.compact(full=store.options.changelog_producer is ChangelogProducer.FULL_COMPACTION)

    def compact(self, full: bool = True, **more: Any) -> Any:
        """Compact all buckets."""
        return super().compact(scope=CompactionScope(full), **more)

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        """Return the rows of the newest snapshot, which must not depend on the files that tasks read."""
        store = self.store
        plan = plan_read(store, store.snapshots.latest(), None)
        table = self.scanned(plan)
        if not MergeSpec.of(store.schema, store.options).keeps_rows:
            wanted = sorted(map(repr, table.to_pylist()))
            for small_file in {file.file_size + 1 for file in plan.merged_files}:
                assert sorted(map(repr, self.scanned(plan, small_file).to_pylist())) == wanted
        if where is not None:
            table = filtered(table, where)
        if columns is not None:
            table = table.select(columns)
        self._check_local_read(store, table, where)
        return [tuple(row.values()) for row in table.to_pylist()]

    def _check_local_read(self, store: TableStore, expected: pa.Table, where: str | None) -> None:
        """Check that a local read returns the same rows, in any order and in key order."""
        predicate = None if where is None else LocalEngine().evaluable_predicate(store, where)
        scan = ArrowScan.of(store, store.snapshots.latest(), expected.column_names, predicate)
        found = scan.reader(LocalRunner(1)).read_all()
        assert as_text(found) == as_text(cast_table(expected))
        every = ArrowScan.of(store, store.snapshots.latest(), None, predicate, ordered=True)
        whole = every.reader(LocalRunner(1)).read_all()
        keys = order_keys([whole.column(name) for name in store.schema.primary_keys]) if len(whole) else np.zeros(0)
        assert (keys[1:] >= keys[:-1]).all()
        assert not self.is_sound or (keys[1:] > keys[:-1]).all()
        assert as_text(whole.select(expected.column_names)) == as_text(found)

    def changelog(self) -> list[tuple[Any, ...]]:
        """Return the changes since the last call, as the table's changelog producer recorded them."""
        return _as_tuples(self.new_changes())

    def new_changes(self) -> pa.Table:
        """Return the changes as a table, with the kind in the column `VALUE_KIND`."""
        store = self.store
        newest = store.snapshots.latest_id() or 0
        mode = ChangelogMode.automatic(store.options.changelog_producer)
        plan = plan_changelog(store, self._read_up_to, newest, mode, None)
        self._read_up_to = newest
        return self.changes(plan)

    def difference(self, before: Snapshot | None, after: Snapshot | None) -> list[tuple[Any, ...]]:
        """Return the changes from one snapshot to another."""
        return _as_tuples(self.changes(plan_difference(self.store, before, after, None)))

    def changes(self, plan: ChangelogPlan) -> pa.Table:
        """Return the rows of an incremental read, with `VALUE_KIND` first; the rows of a key keep their order."""
        store = self.store
        names, schema = store.schema.field_names, row_schema(store.schema.fields)
        spec, reader = MergeSpec.of(store.schema, store.options), self._reader(names)
        parts = [schema.empty_table()]
        parts += [self._file_rows(file, names).select(schema.names) for _, files in plan.scanned for file in files]
        for task, units in ((MergedChanges, plan.merged), (Differences, plan.compared)):
            parts += map(pa.Table.from_batches, ([batch] for batch in task(reader, spec, schema)(units)))
        changes = pa.concat_tables(parts).select([VALUE_KIND, *names])
        found = changes_reader(LocalRunner(2), store, plan, kind_column="?", positions=False).read_all()
        assert found.column(0).to_pylist() == [ROW_KINDS[kind] for kind in changes.column(0).to_pylist()]
        assert as_text(found.select(names)) == as_text(cast_table(changes.select(names)))
        return changes

    def scanned(self, plan: ReadPlan, small_file: int = 0) -> pa.Table:
        """Return the rows of a plan; tasks read files of less than ``small_file`` bytes."""
        store = self.store
        spec = MergeSpec.of(store.schema, store.options)
        names = store.schema.field_names
        value_schema = pa.schema([field for field in row_schema(store.schema.fields) if field.name in names])
        parts = [value_schema.empty_table()]
        hidden: dict[str, list[int]] = {}
        units = list(plan.units)
        sizes = {file.name: file.file_size for file in plan.merged_files}
        for batch in HiddenRowTask(self._reader(spec.decisive_columns), spec)(units):
            for name, size, chunk, words in zip(*(column.to_pylist() for column in batch.columns)):
                assert sizes[name] == size
                bits = np.unpackbits(np.array(words, np.int64).view(np.uint8), bitorder="little")
                hidden.setdefault(name, []).extend((np.flatnonzero(bits) + (chunk << CHUNK_BITS)).tolist())
        scanned = [file for file in plan.merged_files if not is_read_by_task(file, small_file)]
        for file in (*plan.raw_files, *scanned):
            rows = self._file_rows(file, names)
            kept = ~np.isin(rows.column(POSITION).to_numpy(), hidden.get(file.name, []))
            if file in plan.raw_files:
                assert not rows.column(VALUE_KIND).to_numpy()[kept].__and__(1).any(), "a retraction in a raw file"
            parts.append(rows.filter(pa.array(kept)).select(names))
        if not spec.keeps_rows:
            for batch in MergedRows(self._reader(names), spec, value_schema, small_file)(units):
                parts.append(pa.Table.from_batches([batch]))
        return pa.concat_tables(parts)

    def _reader(self, columns: Sequence[str]) -> RunReader:
        store = self.store
        return RunReader(
            store.file_io, store.schema, schemas=self._schemas, columns=tuple(columns), memory_bytes=1 << 20
        )

    def _file_rows(self, file: RunFile, names: Sequence[str]) -> pa.Table:
        (run,) = self._reader(names).open_runs(MergeUnit(((file,),)), positions=True)
        return pa.concat_tables(run)


class _Schemas(dict[int, TableSchema]):
    """The schemas that files name, read on access."""

    def __init__(self, get: Callable[[int], TableSchema]) -> None:
        super().__init__()
        self._get = get

    def __missing__(self, schema_id: int) -> TableSchema:
        self[schema_id] = found = self._get(schema_id)
        return found


def kinded_rows(schema: TableSchema, options: TableOptions, rows: Sequence[KindedRow]) -> pa.Table:
    """Return a batch as a writer gets it: the columns and their kinds, without the kinds that the table drops."""
    columns: dict[str, pa.Array] = {}
    for at, field in enumerate(schema.fields):
        values = pa.array([row.values[at] for row in rows], arrow_type(field.type))
        if values.null_count and not field.type.nullable:
            raise InvalidInputError(f"NULL in {field.name}")
        columns[field.name] = values
    kinds = [row.kind for row in rows]
    if options.rowkind_field is not None:
        kinds = columns[options.rowkind_field].to_pylist()
        if not set(kinds) <= set(KINDS):
            raise InvalidInputError("no row kind")
    columns[VALUE_KIND] = pa.array([KINDS[kind] for kind in kinds], pa.int8())
    dropped = {"-U", "-D"} if options.ignore_delete else {"-U"} if options.ignore_update_before else set()
    return pa.table(columns).filter(pa.array([kind not in dropped for kind in kinds], pa.bool_()))


def filtered(rows: pa.Table, where: str) -> pa.Table:
    """Return the rows that match a simple condition on numbers and texts."""
    plain = [name for name in rows.column_names if not pa.types.is_nested(rows.schema.field(name).type)]
    database = sqlite3.connect(":memory:")
    names = ", ".join(f'"{name}"' for name in plain)
    database.execute(f"CREATE TABLE t (row_number_, {names})")
    marks = ", ".join("?" * (len(plain) + 1))
    values = [
        (at, *(v if isinstance(v, (int, float, str, bytes, type(None))) else str(v) for v in row.values()))
        for at, row in enumerate(rows.select(plain).to_pylist())
    ]
    database.executemany(f"INSERT INTO t VALUES ({marks})", values)
    found = database.execute(f"SELECT row_number_ FROM t WHERE {where} ORDER BY 1").fetchall()
    return rows.take(pa.array([at for (at,) in found], pa.int64()))


def cast_table(rows: pa.Table) -> pa.Table:
    """Return rows with TIMESTAMP(7..9) as Arrow timestamps in nanoseconds instead of bytes."""
    columns = [cast_column(column, clock_type(column.type, "ns")) for column in rows.columns]
    return pa.table(dict(zip(rows.column_names, columns)))


def as_text(rows: pa.Table) -> list[str]:
    """Return rows in a form that can be compared in any order."""
    return sorted(map(repr, rows.to_pylist()))


def _as_tuples(changes: pa.Table) -> list[tuple[Any, ...]]:
    """Return changes as (kind, values ...)."""
    kinds = list(KINDS)
    rows = zip(*(column.to_pylist() for column in changes.columns))
    return [(kinds[kind], *values) for kind, *values in rows]

"""Random histories with deletion vectors, by Java and lakelsm in turn: the table equals one of Java alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.format.snapshot import CommitKind
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import MergeEngine
from lakelsm.plan.compaction_plan import scope_after_write
from lakelsm.plan.read_plan import plan_read
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_columns
from tests.chance import seeds
from tests.compact.local_table import LocalTable
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import Changes, JavaPaimon, Peer
from tests.interop.random_tables import NESTED
from tests.interop.samples import rows_of
from tests.interop.value_form import Rows, in_order, rows_of_arrow, unordered_of_arrow
from tests.interop.vector_histories import ENGINES, History, Step, random_history
from tests.oracle import KINDS
from tests.read.file_engine import FileTable

_VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}


class Turns:
    """One history in two tables: in the first both engines take turns, in the second Java is alone."""

    def __init__(self, java: JavaPaimon, root: Path, history: History) -> None:
        self.java, self.history = java, history
        self.shared, self.alone = root / "shared.db" / "t", root / "alone.db" / "t"
        for path in (self.shared, self.alone):
            java.create(path, history.columns, history.primary_key, history.partition_by, history.options)
        self.ours = FileTable(self.shared)
        self.lone = FileTable(self.alone)
        self._seen = 0
        self._free = {
            column.name for column in history.table.columns if column.function in NESTED or column.flag("distinct")
        }

    def take(self, step: Step) -> None:
        self._java(step, self.alone)
        if step.by_java:
            self._java(step, self.shared)
        else:
            self._lakelsm(step)

    def _java(self, step: Step, path: Path) -> None:
        if step.act == "add":
            self.java.alter(path, ("add", step.column, "INT"))
        elif step.act == "compact":
            self.java.compact(path, step.full)
        else:
            assert step.batch is not None
            self.java.write_all(path, [step.batch], {"write-only": "true"} if step.write_only else {})

    def _lakelsm(self, step: Step) -> None:
        if step.act == "compact":
            self.ours.compact(full=step.full)
            return
        assert step.batch is not None
        rows, kinds = step.batch
        codes = pa.array([KINDS[kind] for kind in kinds or ()], pa.int8())
        rows = rows.append_column(VALUE_KIND, codes)
        if self.ours.store.options.ignore_delete:
            rows = rows.filter(pc.equal(pc.bit_wise_and(codes, 1), 0))
        if not len(rows):
            return
        before = self.ours.names()
        self.ours._commit(CommitKind.APPEND, rows, 0, None, {})
        if not step.write_only:
            added = (entry for entry in self.ours.live() if entry.file.file_name not in before)
            written = [(entry.partition, entry.bucket) for entry in added]
            LocalTable.compact(self.ours, scope=scope_after_write(self.ours.store, written))

    def check(self) -> None:
        """Both tables have the same rows and changes, for either reader."""
        self._check_rows()
        self._check_vectors()
        if self.history.options["changelog-producer"] != "none":
            self._check_changes()

    def _check_rows(self) -> None:
        shared, alone = self._read(self.ours), self._read(self.lone)
        assert self._rows(shared) == self.plain(self.java.read(self.shared)), "the table of both"
        assert self._rows(alone) == self.plain(self.java.read(self.alone)), "the table of Java's"
        # The compacted files depend on their sizes, and so do the rows that the engine merges alone.
        assert self._rows(self._merged_alone(shared)) == self._rows(self._merged_alone(alone))

    def _check_changes(self) -> None:
        """Both tables have the same changes, and Java and lakelsm read those of the first alike."""
        told = [table.new_changes() for table in (self.ours, self.lone)]
        assert self.plain(self._changes_by_java()) == self.plain(self._kinded(told[0])), "what Java reads"
        shared, alone = (self.plain(self._kinded(self._merged_alone(one))) for one in told)
        assert shared == alone

    def _check_vectors(self) -> None:
        """Vectors mask only rows of files above level 0, and a bucket has one index file."""
        store = self.ours.store
        vectors = deletion_vectors(store, store.snapshots.latest())
        live = {(e.partition, e.bucket, e.file.file_name): e.file for e in self.ours.live()}
        for bucket, locations in vectors.locations.items():
            assert len(vectors.entries[bucket]) == 1
            for name, location in locations.items():
                file = live.get((*bucket, name))
                # Java keeps the last vector of a bucket after it deletes the data file.
                if file is not None:
                    assert file.level > 0 and len(location.read(store.file_io.filesystem(), file.row_count)) > 0

    def _read(self, table: FileTable) -> pa.Table:
        store = table.store
        rows = table.scanned(plan_read(store, store.snapshots.latest(), None))
        return rows.append_column(VALUE_KIND, pa.array(np.zeros(len(rows), np.int8)))

    def _rows(self, table: pa.Table) -> Rows:
        return self.plain(rows_of_arrow(table.drop_columns(VALUE_KIND), self.ours.store.schema.fields))

    def _changes_by_java(self) -> Changes:
        newest = self.ours.store.snapshots.latest_id() or 0
        after, self._seen = self._seen, newest
        if newest == after:
            return []
        if self.history.options["changelog-producer"] == "input":
            # A batch read omits them (docs/differences.md).
            return list(itertools.chain(*self.java.stream(self.shared, after + 1)))
        return self.java.changes(self.shared, after, newest)

    def _kinded(self, changes: pa.Table) -> Changes:
        kinds = pa.array([ROW_KINDS[code] for code in changes.column(VALUE_KIND).to_pylist()], pa.string())
        fields = (*parse_columns("kind STRING"), *self.ours.store.schema.fields)
        names = ["kind", *self.ours.store.schema.field_names]
        return unordered_of_arrow(changes.append_column("kind", kinds).select(names), fields)

    def _merged_alone(self, changes: pa.Table) -> pa.Table:
        """Return the rows that the engine makes of each single row: docs/differences.md says when Java has these."""
        store = self.ours.store
        numbers = np.arange(len(changes))
        rows = changes.drop_columns(VALUE_KIND)
        if store.options.merge_engine is MergeEngine.DEDUPLICATE or not len(rows):
            return changes
        rows = rows.append_column(SEQUENCE_NUMBER, pa.array(numbers))
        rows = rows.append_column(VALUE_KIND, pa.array(np.zeros(len(rows), np.int8)))
        spec = MergeSpec.of(store.schema, store.options)
        merged = merge_rows(rows, numbers, spec, np.ones(len(rows), dtype=bool))
        merged = merged.drop_columns([VALUE_KIND, SEQUENCE_NUMBER])
        return merged.append_column(VALUE_KIND, changes.column(VALUE_KIND))

    def plain(self, rows: Rows) -> Rows:
        names = self.ours.store.schema.field_names
        if rows and len(rows[0]) > len(names):
            names = ("kind", *names)
        return in_order(tuple(map(self._plain_value, names, row)) for row in rows)

    def _plain_value(self, name: str, value: Any) -> Any:
        return tuple(sorted(value, key=repr)) if name in self._free and isinstance(value, tuple) else value


@pytest.mark.property
@pytest.mark.parametrize("number", [number + 1 for number in seeds(1)])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_of_both_engines_equals_a_table_of_java_alone(
    java: JavaPaimon, peers: Callable[[str], Peer], tmp_path: Path, engine: str, number: int
) -> None:
    history = random_history(engine, number)
    turns = Turns(java, tmp_path, history)
    for step in history.steps:
        turns.take(step)
        turns.check()
    # pypaimon refuses most options of the other engines, and vectors of the 64-bit layout.
    if engine == "deduplicate" and history.options["deletion-vectors.bitmap64"] == "false":
        assert turns.plain(peers("pypaimon").read(turns.shared)) == turns.plain(java.read(turns.alone))


@pytest.mark.parametrize("bitmap64", ["true", "false"])
def test_vectors_of_java_without_their_files_are_not_findings(
    java: JavaPaimon, ours: LakelsmTables, path: Path, bitmap64: str
) -> None:
    """Java's full compaction of a bucket's only file keeps the vector of the replaced file."""
    columns = "k INT, v STRING"
    java.create(path, columns, ["k"], options={**_VECTORS, "deletion-vectors.bitmap64": bitmap64})

    def vectors_without_files() -> int:
        store = TableStore.open(str(path))
        table = ours.table(path)
        live = {each.rpartition("/")[2] for each in table.inspect.system("files").to_arrow()["file_path"].to_pylist()}
        assert table.maintenance.check(data="full", engine="local").findings == ()
        assert java.read(path) == ours.read(path)
        locations = deletion_vectors(store, store.snapshots.latest()).locations.values()
        return sum(name not in live for bucket in locations for name in bucket)

    java.write(path, rows_of(columns, {"k": [0, 1], "v": ["a", "b"]}))
    java.compact(path)
    for left, key in ((1, 1), (2, 2)):
        java.write(path, rows_of(columns, {"k": [key], "v": [None]}), ["-D"])
        java.compact(path)
        assert vectors_without_files() == left
        java.write(path, rows_of(columns, {"k": [2], "v": ["c"]}))
        java.compact(path)
    ours.write(path, rows_of(columns, {"k": [2], "v": ["ours"]}))
    assert vectors_without_files() == 0

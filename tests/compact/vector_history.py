"""Random histories of a table with deletion vectors, and a model of its rows, key by key in plain Python.

The model has the visible rows and the rows of level 0, and merges them with the oracle of merge engines.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.plan.read_plan import plan_read
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, SchemaChange, UpdateColumnType
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_type
from tests.conformance.table_case import KindedRow
from tests.merge.engine_oracle import Column, Record, Table
from tests.merge.engine_tables import Case, schema_of
from tests.oracle import INSERT, KINDS
from tests.read.file_engine import FileTable

Key = tuple[int, int]
Row = tuple[Any, ...]


#: Seconds since 1970: rows with the first time have expired in any table, rows with the second in none.
_ANCIENT, _FUTURE = 1_000, 4_000_000_000 // 2

_INT, _TEXT = Column("v", "INT"), Column("t", "STRING")
_S = Column("s", "INT")
_SUM, _MAX = Column("v", "INT", "sum"), Column("t", "STRING", "max")
#: The merge engines that Paimon allows with deletion vectors, and the row kinds that they accept.
ENGINES: Mapping[str, tuple[Table, str]] = {
    "deduplicate": (Table("deduplicate", [_INT, _TEXT]), "+I +I +U -D -U"),
    "deduplicate ignoring deletes": (Table("deduplicate", [_INT], ignore_delete=True), "+I +I -D"),
    "sequence": (Table("deduplicate", [_S, _INT], ["s"]), "+I +I +U -D"),
    "descending": (Table("deduplicate", [_INT, _S], ["s"], True), "+I +I +U -D"),
    "sequence ignoring deletes": (Table("deduplicate", [_INT, _S], ["s"], ignore_delete=True), "+I +I -D"),
    "partial-update": (Table("partial-update", [_INT, _TEXT]), "+I +U"),
    "partial-update ignoring deletes": (Table("partial-update", [_INT, _TEXT], ignore_delete=True), "+I +I -D"),
    "partial-update, -D removes": (Table("partial-update", [_INT, _TEXT], remove_on_delete=True), "+I +I +I -D"),
    "groups": (Table("partial-update", [_INT, _S, _TEXT], groups=[(["s"], ["v"])]), "+I +I +I -D -U"),
    "groups, -D removes": (
        Table("partial-update", [_INT, _S, _TEXT], groups=[(["s"], ["v"])], remove_on_groups=["s"]),
        "+I +I +I -D",
    ),
    "aggregation": (Table("aggregation", [_SUM, _MAX]), "+I"),
    "aggregation, -D removes": (Table("aggregation", [_SUM, Column("t", "STRING")], remove_on_delete=True), "+I +I -D"),
    "aggregation by sequence": (Table("aggregation", [_SUM, Column("t", "STRING"), _S], ["s"]), "+I +I +I -D"),
}


@dataclass(frozen=True)
class Layout:
    """The properties of a table of a history besides its engine."""

    partitioned: bool
    key_last: bool
    expires: bool
    options: Mapping[str, str]

    @staticmethod
    def of(rnd: random.Random, engine: str) -> Layout:
        options = {
            "bucket": rnd.choice(["1", "1", "3"]),
            "deletion-vectors.enabled": "true",
            "deletion-vectors.bitmap64": rnd.choice(["true", "false"]),
            "changelog-producer": rnd.choice(["none", "lookup", "input"]),
            "num-sorted-run.compaction-trigger": str(rnd.choice([2, 3, 5])),
            "target-file-size": rnd.choice(["1 kb", "3 kb", "128 mb"]),
            "compaction.small-file-ratio": rnd.choice(["0.7", "0.001"]),
            "compaction.size-ratio": rnd.choice(["0", "1", "100"]),
            "file.compression": "none",
            "lakelsm.durable-files": "false",
            "write-only": "true",
        }
        if rnd.random() < 0.3:
            options["changelog-producer.row-deduplicate"] = "true"
        if rnd.random() < 0.2:
            options["compaction.force-rewrite-all-files"] = "true"
        expires = engine in ("deduplicate", "sequence", "partial-update") and rnd.random() < 0.3
        if expires:
            options |= {"record-level.expire-time": "10 d", "record-level.time-field": "at"}
        return Layout(rnd.random() < 0.4, rnd.random() < 0.3, expires, options)


class _Table(FileTable):
    """The open table. It is opened again only if its schema has changed."""

    _opened: TableStore | None = None

    @property
    def store(self) -> TableStore:
        if self._opened is None:
            self._opened = TableStore.open(str(self.root))
        return self._opened

    def alter(self, *changes: SchemaChange) -> None:
        super().alter(*changes)
        self._opened = None


class VectorHistory:
    """The history of a seed."""

    def __init__(self, seed: int, engine: str, root: Path) -> None:
        self.rnd = random.Random(f"{engine} {seed}")
        self.masked_rows = self.compactions = 0
        table, self._kinds = ENGINES[engine]
        self._layout = layout = Layout.of(self.rnd, engine)
        columns = [*table.columns, *([Column("at", "INT")] if layout.expires else [])]
        self.engine = dataclasses.replace(table, columns=columns)
        declared = schema_of(self.engine, layout.options)
        values = [f"{column.name} {column.type}" for column in self.engine.columns]
        keys = ["p INT", "id INT"]
        ddl = ", ".join([*values, *keys] if layout.key_last else [*keys[::-1], *values])
        schema = create_schema(ddl, ["p", "id"], ["p"] if layout.partitioned else [], declared.options)
        self.table = _Table.of(root, schema)
        self._shown: dict[Key, Record] = {}
        self._waiting: list[tuple[Key, Record]] = []
        self._reported: dict[Key, Row] = {}
        self._added = self._base = 0
        if self.rnd.random() < 0.7:
            self._pad()

    def _pad(self) -> None:
        """Write a large first run, so that automatic compactions do not rewrite it and mask rows of it."""
        keys = [*((p, number) for p in range(2) for number in range(200)), *((0, 10_000 + at) for at in range(500))]
        self._append([(key, Record(at, INSERT, self._row(old=False))) for at, key in enumerate(keys)])
        self.compact(full=True)

    def run(self, steps: int) -> None:
        """Raise AssertionError if the rows of the table differ from those of the model."""
        for _ in range(steps):
            action = self.rnd.choices([self.write, self.compact, self.evolve, self.overwrite], [10, 3, 1, 0.5])[0]
            action()
            if action == self.write and self.rnd.random() < 0.6:
                self.check()
                self.compact()
            self.check()
        self.compact(full=True)
        self.check()

    def write(self) -> None:
        self._append(self._batch(self._kinds.split()))

    def _append(self, batch: list[tuple[Key, Record]]) -> None:
        kept = [(key, record) for key, record in batch if not (self.engine.ignore_delete and record.retracts)]
        names = self.table.store.schema.field_names
        self.table.write([_kinded(names, key, record) for key, record in batch], {})
        self._waiting += self._numbered(self._merged(kept))

    def overwrite(self) -> None:
        """Overwrite all rows; the new files are on the top level."""
        merged = self._merged([(key, Record(0, INSERT, record.row)) for key, record in self._batch(["+I"], old=False)])
        names = self.table.store.schema.field_names
        rows = [_kinded(names, key, record).values for key, record in merged.items()]
        self.table.overwrite(*rows, partitions=lambda _: True)
        self._shown = dict(self._numbered(merged))
        self._waiting = []
        assert 0 not in self.table.levels()
        self.table.new_changes()
        self._reported = self._form(self._shown)

    def compact(self, full: bool | None = None) -> None:
        memory = self.rnd.choice([1 << 14, 1 << 29])  # With little memory, keys are looked up in small groups.
        result = self.table.compact(full=self.rnd.random() < 0.2 if full is None else full, task_memory=memory)
        self.masked_rows += result.rows_masked
        self.compactions += 1
        assert 0 not in self.table.levels(), "level 0 is empty"
        self._shown = self._after(self._read(fresh=False))
        self._waiting = []
        if self._layout.options["changelog-producer"] == "lookup":
            self._check_changelog()

    def evolve(self) -> None:
        """Add a column, or rename, widen or drop one that decides nothing."""
        added = [column for column in self.engine.columns if column.name.startswith("x")]
        choice = self.rnd.choice(["add", "rename", "widen", "drop"]) if added else "add"
        if choice == "add":
            self._added += 1
            column = Column(f"x{self._added}", self.rnd.choice(["INT", "STRING"]))
            self._change(AddColumn(column.name, parse_type(column.type)), lambda row: {**row, column.name: None})
            self._columns([*self.engine.columns, column])
            return
        old = self.rnd.choice(added)
        others = [column for column in self.engine.columns if column is not old]
        if choice == "drop":
            self._change(DropColumn(old.name), lambda row: {name: row[name] for name in row if name != old.name})
            self._columns(others)
        elif choice == "rename":
            self._added += 1
            new = f"x{self._added}"
            self._change(RenameColumn(old.name, new), lambda row: {new if n == old.name else n: row[n] for n in row})
            self._columns([dataclasses.replace(c, name=new) if c is old else c for c in self.engine.columns])
        elif old.type == "INT":
            self._change(UpdateColumnType(old.name, parse_type("BIGINT")), lambda row: row)
            self._columns([dataclasses.replace(c, type="BIGINT") if c is old else c for c in self.engine.columns])

    def _columns(self, columns: list[Column]) -> None:
        self.engine = dataclasses.replace(self.engine, columns=columns)
        self._reported = self._form(self._shown)

    def _change(self, change: SchemaChange, rows: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self.table.alter(change)
        self._shown = {key: dataclasses.replace(r, row=rows(r.row)) for key, r in self._shown.items()}
        self._waiting = [(key, dataclasses.replace(r, row=rows(r.row))) for key, r in self._waiting]

    def check(self) -> None:
        self._check_files()
        assert self._read(fresh=False) == self._form(self._shown)
        if self._waiting or self.rnd.random() < 0.2:
            assert self._read(fresh=True) == self._form(self._fresh())

    def _check_files(self) -> None:
        """Above level 0 a key has one unmasked row and no retraction; vectors name such files only."""
        table = self.table
        if table.store.snapshots.latest() is None:
            return
        vectors, filesystem = deletion_vectors(table.store, table.latest), table.store.file_io.filesystem()
        entries = [entry for entry in table.live() if entry.file.level > 0]
        named = {(*bucket, name) for bucket, locations in vectors.locations.items() for name in locations}
        assert named <= {(entry.partition, entry.bucket, entry.file.file_name) for entry in entries}
        seen: set[Key] = set()
        for entry, location in zip(entries, vectors.of(entries)):
            masked = set() if location is None else set(location.read(filesystem, entry.file.row_count))
            columns = table.stored(entry).select(["p", "id", "_VALUE_KIND"]).to_pydict()
            for at, (partition, number, kind) in enumerate(zip(*columns.values())):
                assert not kind & 1, "a retraction above level 0"
                if at not in masked:
                    assert (partition, number) not in seen, "two rows of a key"
                    seen.add((partition, number))

    def _read(self, fresh: bool) -> dict[Key, Row]:
        store = self.table.store
        plan = plan_read(store, store.snapshots.latest(), None, fresh)
        found: dict[Key, Row] = {}
        names = ["p", "id", *(column.name for column in self.engine.columns)]
        rows = self.table.scanned(plan).select(names) if plan.files_live else pa.table({})
        for partition, number, *values in zip(*(column.to_pylist() for column in rows.columns)):
            assert (partition, number) not in found
            found[partition, number] = tuple(values)
        return found

    def _check_changelog(self) -> None:
        names = [column.name for column in self.engine.columns]
        state = self._reported
        for change in self.table.new_changes().to_pylist():
            key, row = (change["p"], change["id"]), tuple(change[name] for name in names)
            if change["_VALUE_KIND"] & 1:
                assert state.pop(key, None) == row, "a retraction of a missing row"
            else:
                assert key not in state, "an addition of an existing row"
                state[key] = row
        assert state == self._form(self._shown)

    def _after(self, found: Mapping[Key, Row]) -> dict[Key, Record]:
        """Return the visible rows after level 0 is compacted.

        The only row of a new key may stay unchanged if its file is upgraded, or pass through the engine.
        """
        rows = dict(self._shown)
        for key, records in self._by_key(self._unexpired()).items():
            merged = self.engine.merge(records, alone=True)
            if len(records) == 1 and not records[0].retracts and found.get(key) == self._values(records[0]):
                merged = records[0]
            rows.pop(key, None)
            if merged is not None and not merged.retracts:
                rows[key] = merged
        return rows

    def _fresh(self) -> dict[Key, Record]:
        rows = dict(self._shown)
        for key, records in self._by_key(self._waiting).items():
            merged = self.engine.merge(records)
            rows.pop(key, None)
            if merged is not None and not merged.retracts:
                rows[key] = merged
        return rows

    def _by_key(self, waiting: list[tuple[Key, Record]]) -> dict[Key, list[Record]]:
        found: dict[Key, list[Record]] = {}
        for key, record in waiting:
            found.setdefault(key, [self._shown[key]] if key in self._shown else []).append(record)
        return found

    def _unexpired(self) -> list[tuple[Key, Record]]:
        return [(key, record) for key, record in self._waiting if record.row.get("at") != _ANCIENT]

    def _form(self, rows: Mapping[Key, Record]) -> dict[Key, Row]:
        return {key: self._values(record) for key, record in rows.items()}

    def _values(self, record: Record) -> Row:
        return tuple(record.row[column.name] for column in self.engine.columns)

    def _merged(self, batch: list[tuple[Key, Record]]) -> dict[Key, Record]:
        keys = sorted({key for key, _ in batch})
        numbers = {key: at for at, key in enumerate(keys)}
        found = Case(self.engine, [(numbers[key], record) for key, record in batch]).expected()
        return {keys[at]: record for at, record in found.items()}

    def _numbered(self, merged: Mapping[Key, Record]) -> list[tuple[Key, Record]]:
        """Return records with higher sequence numbers than all earlier ones."""
        self._base += 1_000_000
        return [(key, dataclasses.replace(r, number=self._base + r.number)) for key, r in merged.items()]

    def _batch(self, kinds: list[str], old: bool = True) -> list[tuple[Key, Record]]:
        rnd = self.rnd
        first, span = rnd.choice([(0, 6), (0, 40), (20, 40), (0, 200), (150, 50)])
        keys = [(rnd.randrange(2), first + rnd.randrange(span)) for _ in range(rnd.randrange(1, span + 1))]
        if rnd.random() < 0.7:
            keys = list(dict.fromkeys(keys))
        if rnd.random() < 0.1:
            kinds = [kind for kind in kinds if kind == "-D"] or kinds
        return [(key, Record(at, KINDS[rnd.choice(kinds)], self._row(old))) for at, key in enumerate(keys)]

    def _row(self, old: bool) -> dict[str, Any]:
        rnd = self.rnd
        row: dict[str, Any] = {}
        for column in self.engine.columns:
            if column.name == "at":
                row["at"] = rnd.choice([None, _FUTURE, _ANCIENT if old else _FUTURE])
            elif column.type == "STRING":
                row[column.name] = rnd.choice([None, "a", "b", "c" * 9])
            else:
                row[column.name] = rnd.choice([None, *range(5)])
        return row


def _kinded(names: Sequence[str], key: Key, record: Record) -> KindedRow:
    row = {"p": key[0], "id": key[1], **record.row}
    return KindedRow(ROW_KINDS[record.kind], tuple(row[name] for name in names))

"""Other engines with one interface, so that one test covers all of them. Tables are named by their directories."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from lakelsm.format.paths import TablePaths
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.schema.table_schema import create_schema
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.storage import open_storage
from lakelsm.types import DataField, field_to_json, parse_columns, parse_type, type_to_json
from tests.interop.filter_questions import Question, python_of
from tests.interop.side import Side
from tests.interop.value_form import (
    Rows,
    jsonable,
    rows_of_arrow,
    rows_of_notation,
    to_wire,
    unordered_of_arrow,
    unordered_of_notation,
)
from tests.oracle import KINDS

#: ("add", column, type), ("drop", column), ("rename", column, new name), ("type", column, new type). For Java and
#: lakelsm the column may be a path of names, separated by dots.
Change = tuple[str, ...]
#: (method, column, value): equal, less_than, greater_or_equal ... with a JSON value
Where = tuple[str, str, Any]
#: Rows and their kinds ("+I", …; None: only inserts).
Batch = tuple[pa.Table, Sequence[str] | None]
#: Rows of a changelog in the order of the read: (kind, value ...), values as in Rows.
Changes = list[tuple[Any, ...]]
#: The form of a lookup file: block size in bytes, compression, error rate of the bloom filter (None: no filter).
LookupForm = tuple[int, str, float | None]


class Peer(Protocol):
    """The operations of another engine that tests need."""

    name: str
    compacts: bool
    reads_multisets: bool
    has_row_kinds: bool

    def create(
        self,
        path: Path,
        columns: str,
        primary_key: Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None: ...

    def alter(self, path: Path, *changes: Change) -> None: ...

    def write(self, path: Path, rows: pa.Table, kinds: Sequence[str] | None = None) -> None: ...

    def read(self, path: Path, where: Where | None = None) -> Rows: ...

    def compact(self, path: Path, full: bool = True) -> None: ...

    def changes(self, path: Path, after: int, upto: int) -> Changes:
        """Return an incremental read between two snapshots: the changelog, or inserted rows without a changelog."""

    def close(self) -> None: ...


def _schema_json(
    columns: str, primary_key: Sequence[str], partition_by: Sequence[str], options: Mapping[str, str] | None
) -> str:
    schema = json.loads(create_schema(columns, primary_key, partition_by, options, None, 0).to_json())
    return json.dumps({key: schema[key] for key in ("fields", "partitionKeys", "primaryKeys", "options")})


def _java_change(verb: str, column: str, *word: str) -> list[Any]:
    """Return a change with the column as a path, and a type in the form of schema files."""
    typed = [type_to_json(parse_type(text)) for text in word] if verb in ("add", "type") else list(word)
    return [verb, column.split("."), *typed]


def _field_nodes(fields: Sequence[DataField]) -> list[Any]:
    return [field_to_json(field) for field in fields]


def _fields(path: Path) -> tuple[DataField, ...]:
    """Return the columns of a table, even if lakelsm cannot open it."""
    file_io, root = open_storage(str(path))
    return SchemaStore(file_io, TablePaths(root)).latest().fields


def _kinded_fields(path: Path) -> tuple[DataField, ...]:
    return (*parse_columns("kind STRING"), *_fields(path))


def _sent(path: Path, batches: Sequence[Batch]) -> list[tuple[list[int], Any]]:
    fields = _fields(path)
    return [([KINDS[kind] for kind in kinds or ["+I"] * len(rows)], to_wire(rows, fields)) for rows, kinds in batches]


def _of_branch(path: Path, branch: str | None) -> str:
    return str(path) if branch is None else f"{path}$branch_{branch}"


class _Engine:
    """The common part of peers, each in its process."""

    def __init__(self, side: Side) -> None:
        self._side = side

    def create(
        self,
        path: Path,
        columns: str,
        primary_key: Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._side.call("create", path=str(path), schema=_schema_json(columns, primary_key, partition_by, options))

    def close(self) -> None:
        self._side.close()


class PyPaimon(_Engine):
    """pypaimon, in its environment. It writes only level 0, and has row kinds only as ``rowkind.field``."""

    name = "pypaimon"
    compacts = False
    reads_multisets = False
    has_row_kinds = False

    def __init__(self, side: Side, scratch: Path) -> None:
        super().__init__(side)
        self._scratch = scratch
        self._numbers = itertools.count()

    def alter(self, path: Path, *changes: Change) -> None:
        self._side.call("alter", path=str(path), changes=changes)

    def write(self, path: Path, rows: pa.Table, kinds: Sequence[str] | None = None) -> None:
        assert kinds is None, "pypaimon takes row kinds from rowkind.field"
        file = self._file()
        with pa.ipc.new_file(str(file), rows.schema) as out:
            out.write_table(rows)
        self._side.call("write", path=str(path), file=str(file))

    def read(self, path: Path, where: Where | None = None) -> Rows:
        file = self._file()
        self._side.call("read", path=str(path), file=str(file), where=where)
        with pa.ipc.open_file(str(file)) as reader:
            return rows_of_arrow(reader.read_all(), _fields(path))

    def changes(self, path: Path, after: int, upto: int) -> Changes:
        """Return its streaming read, snapshot by snapshot. Compactions of tables without a changelog have no changes."""
        found: Changes = []
        for snapshot in range(after + 1, upto + 1):
            file = self._file()
            if self._side.call("changes", path=str(path), file=str(file), snapshot=snapshot):
                with pa.ipc.open_file(str(file)) as reader:
                    table = reader.read_all()
                table = table.rename_columns(["kind", *table.column_names[1:]])
                found += unordered_of_arrow(table, _kinded_fields(path))
        return found

    def ask(self, path: Path, questions: Sequence[Question]) -> list[list[int] | str]:
        """Return the ids of the rows that match each condition, or the error that it raises."""
        fields = {field.name: field for field in _fields(path)}
        asked = [
            [each.method, each.column, *(repr(python_of(operand, fields[each.column])) for operand in each.operands)]
            for each in questions
        ]
        answers: list[list[int] | str] = self._side.call("ask", path=str(path), questions=asked)
        return answers

    def compact(self, path: Path, full: bool = True) -> None:
        raise NotImplementedError("pypaimon does not compact")

    def _file(self) -> Path:
        return self._scratch / f"rows-{next(self._numbers)}.arrow"


class JavaPaimon(_Engine):
    """Java Paimon's core library in its JVM."""

    compacts = True
    reads_multisets = True
    has_row_kinds = True

    def __init__(self, name: str, side: Side) -> None:
        super().__init__(side)
        self.name = name

    def alter(self, path: Path, *changes: Change) -> None:
        self._side.call("alter", path=str(path), changes=[_java_change(*change) for change in changes])

    def write(
        self, path: Path, rows: pa.Table, kinds: Sequence[str] | None = None, branch: str | None = None
    ) -> None:
        sent = _sent(path, [(rows, kinds)])
        self._side.call("write", path=_of_branch(path, branch), batches=sent, options={}, full=False)

    def branch(self, path: Path, verb: str, name: str, tag: str = "") -> None:
        """Run 'create' (of a tag, if one is given), 'forward' or 'delete' for a branch."""
        self._side.call("branch", path=str(path), verb=verb, name=name, tag=tag)

    def write_all(
        self, path: Path, batches: Sequence[Batch], options: Mapping[str, str] | None = None, full: bool = False
    ) -> None:
        """Commit the batches in turn, with one writer.

        ``options`` apply to this call. The writer waits for its compactions, so that the changelog of a `lookup`
        producer is in the snapshot after each commit. With ``full`` each commit ends with a full compaction, which a
        `full-compaction` producer needs.
        """
        self._side.call("write", path=str(path), batches=_sent(path, batches), options=dict(options or {}), full=full)

    def compacted_rows(self, rows: pa.Table, fields: Sequence[DataField]) -> list[bytes]:
        """Return the bytes of Java's RowCompactedSerializer for each row."""
        found = self._side.call("compacted_rows", types=_field_nodes(fields), rows=to_wire(rows, fields))
        return [bytes.fromhex(text.removeprefix("hex:")) for text in found]

    def write_lookup_file(self, path: Path, layout: StoreLayout, rows: pa.Table, form: LookupForm) -> None:
        """Write a lookup file of Java, of rows in key order."""
        keys, values = to_wire(rows, layout.keys), to_wire(rows, layout.values)
        self._side.call(
            "write_lookup_file",
            file=str(path),
            keys=_field_nodes(layout.keys),
            values=_field_nodes(layout.values),
            rows=list(zip(keys, values)),
            form=form,
        )

    def read_lookup_file(self, path: Path, layout: StoreLayout, keys: pa.Table, form: LookupForm) -> list[Any]:
        """Return the values that Java's reader finds for each key, in the form of `unordered_of_notation`, or None."""
        found = self._side.call(
            "read_lookup_file",
            file=str(path),
            keys=_field_nodes(layout.keys),
            values=_field_nodes(layout.values),
            asked=to_wire(keys, layout.keys),
            form=form,
        )
        return [None if row is None else unordered_of_notation([row], layout.values)[0] for row in found]

    def overwrite(
        self,
        path: Path,
        rows: pa.Table,
        partition: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Replace a partition, or the partitions of the rows, by the rows. ``options`` apply to this call."""
        batches = _sent(path, [(rows, None)])
        self._side.call(
            "overwrite", path=str(path), batches=batches, partition=dict(partition or {}), options=dict(options or {})
        )

    def version(self, path: Path, verb: str, name: str, number: int = 0, seconds: int = 0) -> None:
        """Run 'create' (a tag of a snapshot; it expires after ``seconds``, unless 0), 'delete' (a tag), 'rollback' (to a
        tag, or without a name to a snapshot) or 'consume' (a consumer reads a snapshot next).
        """
        self._side.call("version", path=str(path), verb=verb, name=name, number=number, seconds=seconds)

    def read(
        self, path: Path, where: Where | None = None, branch: str | None = None, tag: str | None = None
    ) -> Rows:
        location = _of_branch(path, branch) + (f"$tag_{tag}" if tag else "")
        answer = self._side.call("read", path=location, where=where)
        return rows_of_notation(answer, _fields(path))

    def ask(self, path: Path, questions: Sequence[Question]) -> list[tuple[int, list[int], list[int]]]:
        """Return for each condition the number of planned files, the ids of rows in the files and row groups that are
        read, and the ids of rows for which Java evaluates the condition as true.
        """
        asked = [[each.method, each.column, *map(jsonable, each.operands)] for each in questions]
        return [(files, left, true) for files, left, true in self._side.call("ask", path=str(path), questions=asked)]

    def changes(self, path: Path, after: int, upto: int, mode: str = "auto") -> Changes:
        """Return a batch read of the audit log; ``mode`` is `incremental-between-scan-mode`.

        The rows of one commit are in their order, the commits are in any order.
        """
        answer = self._side.call("changes", path=str(path), after=after, upto=upto, mode=mode)
        return unordered_of_notation(answer, _kinded_fields(path))

    def stream(self, path: Path, first: int) -> list[Changes]:
        """Return a streaming read that starts at a snapshot: one list for each of its steps."""
        answer = self._side.call("stream", path=str(path), first=first)
        return [unordered_of_notation(rows, _kinded_fields(path)) for rows in answer]

    def system(self, path: Path, name: str) -> tuple[list[tuple[str, str]], Rows]:
        """Return (name, type) of each column of a system table, and its rows."""
        answer = self._side.call("system", path=str(path), name=name)
        columns = [(column, kind) for column, kind in answer["columns"]]
        fields = [DataField(at, column, parse_type(kind)) for at, (column, kind) in enumerate(columns)]
        return columns, rows_of_notation(answer["rows"], fields)

    def compact(self, path: Path, full: bool = True) -> None:
        self._side.call("compact", path=str(path), full=full)


class PaimonSpark:
    """Java Paimon's Spark connector, used by SQL; its catalog ``paimon`` is on ``warehouse``."""

    def __init__(self, side: Side, warehouse: Path) -> None:
        self._side = side
        self.warehouse = warehouse

    def path(self, table: str) -> Path:
        """Return the directory of a table of the database ``db``."""
        return self.warehouse / "db.db" / table

    def sql(self, *statements: str) -> list[list[Any]]:
        """Run statements on ``paimon.db.<table>``, and return the rows of the last one."""
        rows: list[list[Any]] = self._side.call("sql", statements=list(statements))
        return rows

    def read(self, table: str, where: str = "true") -> Rows:
        """Return the rows of ``db.<table>``."""
        rows = self.sql(f"REFRESH TABLE paimon.db.{table}", f"SELECT * FROM paimon.db.{table} WHERE {where}")
        return rows_of_notation(rows, _fields(self.path(table)))

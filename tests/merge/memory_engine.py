"""A table in memory, without files and without Spark: a list of runs, merged by the kernel alone.

It runs conformance cases of the merge engines. `changelog` steps are not for it: `without_changelog` leaves them out.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.data_file.key_value_file import conform, row_schema
from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.batch_check import check_batch
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.options.other_keys import check_new_keys
from lakelsm.schema.rules import check_rules
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema, create_schema
from tests.conformance.cases import Case
from tests.conformance.table_case import KindedRow
from tests.conformance.values import arrow_type, case_ddl
from tests.oracle import KINDS


def without_changelog(case: Case) -> Case:
    """The case without its changelog steps."""
    steps = [step for step in case.body["steps"] if step["op"] != "changelog"]
    return replace(case, body={**case.body, "steps": steps})


class MemoryEngine:
    """Makes tables in memory."""

    def create(self, case: Case) -> MemoryTable:
        """A new table with the columns, keys and options of the case."""
        return MemoryTable(case.body)


class MemoryTable:
    """Runs, oldest first; ``levels`` says of each whether it is above level 0."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.schema = create_schema(
            case_ddl(body["columns"]), body["primary_key"], body["partition_by"], body["options"]
        )
        self.options = TableOptions.parse(self.schema.options)
        check_new_keys(self.schema.options)
        check_rules(self.schema, self.options)
        self.spec = MergeSpec.of(self.schema, self.options)
        self._key = [*self.schema.partition_keys, *self.schema.trimmed_primary_keys]
        self._level0: list[pa.Table] = []
        self._top: pa.Table | None = None
        self._next = 0

    def write(self, rows: Sequence[KindedRow], options: Mapping[str, str]) -> None:
        """Merge a batch into one run."""
        parsed = TableOptions.parse({**self.schema.options, **options})
        table = kinded_rows(self.schema, parsed, rows)
        numbers = pa.array(range(self._next, self._next + len(table)), pa.int64())
        table = conform(table.append_column(SEQUENCE_NUMBER, numbers), row_schema(self.schema.fields))
        check_batch(table, self.spec)
        merged = self.merged([table])
        if len(merged):
            self._level0.append(merged)
        self._next += len(rows)
        if self.spec.engine is MergeEngine.FIRST_ROW and not parsed.write_only:
            self.compact(full=True)

    def compact(self, full: bool) -> None:
        """Merge all runs into one."""
        expiry = RecordExpiry.of(self.options)
        runs = self._runs()
        if expiry is not None:
            runs = [expiry.unexpired(run, int(time.time() * 1000)) for run in runs]
        self._top = _without_retractions(self.merged(runs))
        self._level0 = []

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        """The merged rows."""
        runs = self._runs()
        if self.spec.engine is MergeEngine.FIRST_ROW:
            runs = [] if self._top is None else [self._top]
        rows = _without_retractions(self.merged(runs)).select(self.schema.field_names)
        if where is not None:
            rows = filtered(rows, where)
        if columns is not None:
            rows = rows.select(columns)
        return [tuple(row[name] for name in rows.column_names) for row in rows.to_pylist(maps_as_pydicts=None)]

    def changelog(self) -> list[tuple[Any, ...]]:
        """Not for this engine."""
        raise UnsupportedFeatureError("changelogs")

    def merged(self, runs: Sequence[pa.Table]) -> pa.Table:
        """The merged rows of some runs, oldest first."""
        table = pa.concat_tables([row_schema(self.schema.fields).empty_table(), *runs])
        return merge_rows(table, order_keys([table.column(name) for name in self._key]), self.spec)

    def _runs(self) -> list[pa.Table]:
        return [*([] if self._top is None else [self._top]), *self._level0]


def kinded_rows(schema: TableSchema, options: TableOptions, rows: Sequence[KindedRow]) -> pa.Table:
    """A batch as a writer has it: the columns and their kinds, less the kinds that the table drops."""
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


def _without_retractions(table: pa.Table) -> pa.Table:
    return table.filter(pa.array(~is_retract(table.column(VALUE_KIND))))


def filtered(rows: pa.Table, where: str) -> pa.Table:
    """The rows for which a simple condition on numbers and texts is true."""
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

"""MERGE: a builder of clauses. The rows that it writes are those of a query on the target and the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelsm.arguments import checked_assignments, checked_choice, checked_names, checked_text, invalid_argument
from lakelsm.engine import ENGINES, Engine, chosen_engine
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.operation_log import logged
from lakelsm.plan.merge_plan import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    UPDATE,
    MergeRequest,
    MergeRule,
    plan_merge,
    quoted,
)
from lakelsm.results import CommitResult
from lakelsm.schema.identifiers import match
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.table_view import TableView, newest_view
from lakelsm.table.writable_table import WritableTable, commit_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CONDITION = "an SQL condition as text, such as 's.n > t.n'"
#: The names of the target and the source in conditions and expressions of a builder.
_TARGET_ALIAS, _SOURCE_ALIAS = "t", "s"


class TableMerge:
    """A merge that is being built. Each clause returns a new builder; `execute` runs the merge.

    For each row the first clause applies whose condition is TRUE. Conditions and expressions are SQL on the columns of
    the target ``t`` and the source ``s``; a clause for rows of one side may name this side only.
    """

    def __init__(self, table: WritableTable, source: object, request: MergeRequest) -> None:
        self._table = table
        self._source = source
        self._request = request

    @property
    def _log_name(self) -> str:
        return self._table._log_name

    def when_matched_update(self, set: Mapping[str, str] | None = None, condition: str | None = None) -> TableMerge:
        """Update the rows that match a row of the source. ``set`` maps columns to expressions.

        None: all columns but those of the key get the values of the source's columns with their names. Raises
        InvalidInputError for a wrong argument; `execute` raises the errors of columns and expressions.
        """
        return self._with(MATCHED, UPDATE, None if set is None else checked_assignments(set), condition)

    def when_matched_delete(self, condition: str | None = None) -> TableMerge:
        """Delete the rows that match a row of the source."""
        return self._with(MATCHED, DELETE, None, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, str] | None = None, condition: str | None = None
    ) -> TableMerge:
        """Insert the rows of the source that match no row. ``values`` maps columns to expressions; others are NULL.

        None: all columns get the values of the source's columns with their names.
        """
        return self._with(NOT_MATCHED, INSERT, None if values is None else checked_assignments(values), condition)

    def when_not_matched_by_source_update(self, set: Mapping[str, str], condition: str | None = None) -> TableMerge:
        """Update the rows that match no row of the source. ``set`` maps columns to expressions."""
        return self._with(NOT_MATCHED_BY_SOURCE, UPDATE, checked_assignments(set), condition)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> TableMerge:
        """Delete the rows that match no row of the source."""
        return self._with(NOT_MATCHED_BY_SOURCE, DELETE, None, condition)

    @logged("merge")
    def execute(
        self, commit_user: str | None = None, batch_id: int | None = None, *, engine: str | None = None
    ) -> CommitResult:
        """Run the merge as one commit. ``commit_user`` and ``batch_id`` are as in `Table.write`.

        It reads the newest snapshot, and again if others write the same keys before the commit. ``engine`` is 'spark' or
        'local' (DuckDB); by default that of the source's rows, for a table as in `Table.delete`. The result counts
        updated, deleted and inserted rows; if there are none, nothing is committed. Raises InvalidInputError, and
        commits nothing, for two rows of the source that change one row, for an inserted row whose key the table has, and
        for what `Table.update`, `Table.delete` and `Table.write` refuse.
        """
        chosen = self._engine(checked_choice("engine", engine, ENGINES))
        store = self._table._store().for_writes()
        rows = _rows(chosen, store, self._source, self._request)
        return commit_change(chosen, store, "MERGE", rows, commit_user, batch_id)

    def _engine(self, name: str | None) -> Engine:
        if isinstance(self._source, ReadableTable):
            return chosen_engine(name, self._table._spark)
        own = "spark" if is_spark_frame(self._source) else "local"
        if name == "local" and own == "spark":
            raise invalid_argument("engine", "'local' cannot read a Spark DataFrame.", "Leave it out.")
        return chosen_engine(name or own, self._table._spark)

    def _with(self, rows: str, action: str, values: Mapping[str, str] | None, condition: str | None) -> TableMerge:
        checked_text("condition", condition, _CONDITION, optional=True)
        clause = MergeRule(rows, condition, action, values)
        request = replace(self._request, clauses=(*self._request.clauses, clause))
        return TableMerge(self._table, self._source, request)

    def __repr__(self) -> str:
        return f"TableMerge({self._table._log_name!r}, {len(self._request.clauses)} clauses)"


def merge_builder(table: WritableTable, source: object, on: object) -> TableMerge:
    """Return the builder of `Table.merge`."""
    schema = table._store().schema
    if isinstance(on, str) and match(on, schema.field_names) is None:
        checked_text("on", on, _CONDITION)
        condition = on
        compares_key = False
    else:
        names = [on] if isinstance(on, str) else checked_names("on", on)
        if not names:
            raise invalid_argument("on", "names no column.", "Name the columns that are compared.")
        found = {name: match(name, schema.field_names) for name in names}
        for name, column in found.items():
            if column is None:
                raise InvalidInputError(
                    f"on: column {name!r} does not exist. Columns: {', '.join(schema.field_names)}."
                )
        columns = [column for column in found.values() if column is not None]
        # NULL is a value of a key: two rows with it have one key.
        same = {name: "<=>" if name in schema.primary_keys else "=" for name in columns}
        condition = " AND ".join(f"t.{quoted(name)} {sign} s.{quoted(name)}" for name, sign in same.items())
        compares_key = {*schema.primary_keys} <= {*columns}
    request = MergeRequest(condition, (), _TARGET_ALIAS, _SOURCE_ALIAS, compares_key=compares_key)
    return TableMerge(table, _checked_source(source, schema), request)


def _checked_source(source: object, schema: TableSchema) -> object:
    from lakelsm.sql.local.local_merge import checked_source

    return source if isinstance(source, ReadableTable) else checked_source(source, schema)


def _rows(
    engine: Engine, store: TableStore, source: object, request: MergeRequest
) -> Callable[[Snapshot | None], Any]:
    """Return what computes the rows of a merge from a snapshot. Errors of the clauses are raised now."""
    # The only import from table/ of what is above it: docs/design/sql.md.
    from lakelsm.local.local_engine import LocalEngine
    from lakelsm.sql.local import local_merge

    local_merge.check_expressions(request)
    given = source
    if isinstance(source, ReadableTable) and not isinstance(source, TableView):
        given = newest_view(source)
    if isinstance(engine, LocalEngine):
        opened = local_merge.opened_source(given)
        plan = plan_merge(store, request, [field.name for field in opened.fields])
        return partial(local_merge.local_rows, store, plan, opened)
    from lakelsm.frames.spark_engine import SparkEngine

    assert isinstance(engine, SparkEngine)
    spark, frame = engine.session, local_merge.source_frame(engine.session, given)
    plan = plan_merge(store, request, frame.columns)

    def rows(snapshot: Snapshot | None) -> DataFrame:
        from lakelsm.frames.merge_frame import merged

        return merged(spark, store, plan, frame, snapshot)

    return rows

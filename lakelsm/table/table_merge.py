"""MERGE: a builder of clauses. The rows that it writes are those of a query on the target and the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.arguments import (
    checked_assignments,
    checked_choice,
    checked_flag,
    checked_names,
    checked_text,
    invalid_argument,
)
from lakelsm.engine import ENGINES, Engine, chosen_engine
from lakelsm.errors import InvalidInputError, error_context
from lakelsm.failures import report_schema_on_failure
from lakelsm.format.snapshot import Snapshot
from lakelsm.frame_columns import FrameColumns
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.operation_log import logged
from lakelsm.plan.merge_plan import merge_columns, plan_merge
from lakelsm.plan.merge_request import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    ROW_NUMBER,
    UPDATE,
    MergeRequest,
    MergeRule,
    quoted,
)
from lakelsm.results import CommitResult
from lakelsm.schema.identifiers import match
from lakelsm.schema.schema_merge import FrameColumn, merge_changes
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema_changes import SchemaChange
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.schema_alteration import alter_schema
from lakelsm.table.table_view import TableView, is_same_table, newest_view
from lakelsm.table.writable_table import WritableTable, commit_change, known_batch
from lakelsm.types import output_arrow

_CONDITION = "an SQL condition as text, such as 's.n > t.n'"
#: The names of the target and the source in conditions and expressions of a builder.
_TARGET_ALIAS, _SOURCE_ALIAS = "t", "s"
#: What happens to several rows of the source for one row of the target.
DUPLICATES = ("error", "last")

#: Computes the rows of a merge from a snapshot.
_MergeRows = Callable[[Snapshot | None], Any]


class TableMerge:
    """A merge that is being built. Each clause returns a new builder; `execute` runs the merge.

    For each row the first clause applies whose condition is TRUE. Conditions and expressions are SQL on the columns of
    the target ``t`` and the source ``s``; a clause for rows of one side may name this side only.
    """

    def __init__(
        self,
        table: WritableTable,
        source: Callable[[], object],
        request: MergeRequest,
        *,
        columns: FrameColumns | None = None,
        reads_target: bool = False,
    ) -> None:
        """``source`` opens the source: at the newest snapshots of its tables, or it returns the same object each time.
        ``columns`` are those of the source, if the table gets the ones that it lacks. ``reads_target``: the source is
        the table itself.
        """
        self._table = table
        self._source = source
        self._request = request
        self._columns = columns
        self._reads_target = reads_target

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

        It reads the newest snapshot, and again if others write the same keys before the commit; a source that is a table
        is then read again too. ``engine`` is 'spark' or
        'local' (DuckDB); by default that of the source's rows, for a table as in `Table.delete`. The result counts
        updated, deleted and inserted rows; if there are none, nothing is committed. Raises InvalidInputError, and
        commits nothing, for two rows of the source that change one row, for an inserted row whose key the table has, and
        for what `Table.update`, `Table.delete` and `Table.write` refuse.
        """
        wanted = checked_choice("engine", engine, ENGINES)
        store = self._table._store().for_writes()
        known = store.snapshots.latest_id()
        source = self._source()
        chosen = self._engine(wanted, source)
        merge = _EngineMerge(chosen, self._request, self._source, source, known=known, fresh=self._reads_target)
        changes: tuple[SchemaChange, ...] = ()
        if self._request.evolves:
            _, _, earlier = known_batch(store, commit_user, batch_id)
            if earlier is not None:
                return earlier
            store, changes = merge.evolved(store, self._columns)
        with report_schema_on_failure(store.name, store.schema.id, changes), merge.rows(store) as rows:
            result = commit_change(chosen, store, "MERGE", rows, commit_user, batch_id)
        return replace(result, schema_changes=changes)

    def _engine(self, name: str | None, source: object) -> Engine:
        if isinstance(source, ReadableTable):
            return chosen_engine(name, self._table._spark)
        own = "spark" if is_spark_frame(source) else "local"
        if name == "local" and own == "spark":
            raise invalid_argument("engine", "'local' cannot read a Spark DataFrame.", "Leave it out.")
        if own == "local":
            return chosen_engine(name or own, self._table._spark)
        from lakelsm.spark.session import checked_frame, session_of_rows

        rows = checked_frame(source, "source")  # type: ignore[arg-type]
        return chosen_engine("spark", session_of_rows("source", rows, self._table._spark))

    def _with(self, rows: str, action: str, values: Mapping[str, str] | None, condition: str | None) -> TableMerge:
        checked_text("condition", condition, _CONDITION, optional=True)
        clause = MergeRule(rows, condition, action, values)
        request = replace(self._request, clauses=(*self._request.clauses, clause))
        return TableMerge(
            self._table, self._source, request, columns=self._columns, reads_target=self._reads_target
        )

    def __repr__(self) -> str:
        return f"TableMerge({self._table._log_name!r}, {len(self._request.clauses)} clauses)"


def _newest(source: object) -> object:
    """Return a source whose rows do not change: a table at its newest snapshot."""
    if isinstance(source, ReadableTable) and not isinstance(source, TableView):
        return newest_view(source)
    return source


class _EngineMerge:
    """A merge on an engine."""

    def __init__(
        self,
        engine: Engine,
        request: MergeRequest,
        source: Callable[[], object],
        opened: object,
        *,
        known: int | None,
        fresh: bool,
    ) -> None:
        """``opened`` is the source, opened after ``known`` was the newest snapshot of the target. ``fresh`` is as in
        `opened_source`.
        """
        # The only imports from table/ of what is above it: docs/design/sql.md.
        from lakelsm.local.local_engine import LocalEngine
        from lakelsm.sql.local.local_merge import checked_request

        self._request = checked_request(request)
        self._spark = None if isinstance(engine, LocalEngine) else engine.session  # type: ignore[attr-defined]
        self._source = source
        self._opened = opened
        self._known = known
        self._fresh = fresh
        self._can_change = is_spark_frame(opened)
        self._rows = self._rows_of(opened)

    @contextmanager
    def rows(self, store: TableStore) -> Iterator[_MergeRows]:
        """Yield what computes the rows of the merge from a snapshot. Raises errors of the clauses at once.

        The source may read the target. If it were older than the snapshot, the merge would undo the commits between
        them, so it is opened again for each snapshot except the one that was known before it was opened.
        """
        known, opened = self._known, self._opened
        with ExitStack() as open_merges:
            merge = open_merges.enter_context(self._planned(store, self._rows))

            def computed(snapshot: Snapshot | None) -> Any:
                nonlocal known, opened, merge
                base = None if snapshot is None else snapshot.id
                if base != known:
                    known, before, opened = base, opened, self._source()
                    if opened is not before:
                        merge = open_merges.enter_context(self._planned(store, self._rows_of(opened)))
                return merge(snapshot)

            yield computed

    def _rows_of(self, source: object) -> Any:
        from lakelsm.sql.local.merge_source import opened_source, source_frame

        if isinstance(source, ReadableTable) and not isinstance(source, TableView):
            # A table without a snapshot. It stays empty, although it may get its first rows.
            kinds = [(each.name, output_arrow(each.type)) for each in source.schema.fields]
            source = pa.schema(kinds).empty_table()
        if self._spark is None:
            return opened_source(source, fresh=self._fresh)
        return source_frame(self._spark, source, fresh=self._fresh)

    @contextmanager
    def _planned(self, store: TableStore, source: Any) -> Iterator[_MergeRows]:
        if self._spark is None:
            from lakelsm.sql.local.local_merge import LocalMerge

            types = merge_columns((field.name, field.type) for field in source.fields)
            yield LocalMerge(store, plan_merge(store, self._request, types), source)
            return
        from lakelsm.frames.merge_frame import FrameMerge
        from lakelsm.frames.merge_source import source_types

        merge = FrameMerge(store, plan_merge(store, self._request, merge_columns(source_types(source))), source)
        with merge.with_fixed_source() if self._can_change else nullcontext(merge) as rows:
            yield rows

    def evolved(
        self, store: TableStore, columns: FrameColumns | None
    ) -> tuple[TableStore, tuple[SchemaChange, ...]]:
        """Publish the schema changes with which the table has all columns of the source.

        Raises an error, and publishes nothing, if the table cannot have them or for errors of the clauses.
        """
        if not any(each.values is None and each.action != DELETE for each in self._request.clauses):
            raise InvalidInputError(
                f"Table {store.name}: merge: schema evolution has no effect without a clause for all columns. Leave it "
                "out, or update or insert all columns."
            )
        changes: tuple[SchemaChange, ...] = ()

        def changes_of(newest: TableSchema) -> Sequence[SchemaChange]:
            nonlocal changes
            given = [each for each in (columns.of_schema(newest) if columns else ()) if each.name != ROW_NUMBER]
            with error_context(f"Table {store.name}"):
                changes = merge_changes(newest, given)
            return changes

        def check(after: TableSchema) -> None:
            changed = store.with_schema(after).for_writes()
            with self.rows(changed) as rows:
                if changes and columns is not None and columns.is_in_memory and self._spark is None:
                    for _ in rows(changed.snapshots.latest()):  # A refused row must not leave a schema change.
                        pass

        schema = alter_schema(store, changes_of, check)
        with report_schema_on_failure(store.name, schema.id, changes):
            return store.with_schema(store.schemas.get(schema.id)).for_writes(), changes


def merge_builder(
    table: WritableTable, source: object, on: object, *, duplicates: str, order_by: object, schema_evolution: bool
) -> TableMerge:
    """Return the builder of `Table.merge`."""
    schema = table._store().schema
    checked_flag("schema_evolution", schema_evolution)
    request = MergeRequest(_condition(on, schema), (), _TARGET_ALIAS, _SOURCE_ALIAS, evolves=schema_evolution)
    takes_last = checked_choice("duplicates", duplicates, DUPLICATES) == "last"
    given: object = source
    if isinstance(source, ReadableTable):
        names = list(source.schema.field_names)
    else:
        from lakelsm.sql.local.merge_source import checked_source, source_names

        given = checked_source(source, schema)
        names = source_names(given)
    columns = None
    if schema_evolution:
        columns = source_columns(source if isinstance(source, (list, dict)) else given)
    if order_by is not None and not takes_last:
        raise invalid_argument("order_by", "has an effect only with duplicates='last'.", "Leave one of them out.")
    if takes_last:
        given, order = _ordered(given, names, order_by)
        request = replace(request, order=order)
    is_table = isinstance(given, ReadableTable) and not isinstance(given, TableView)
    reads_target = is_table and is_same_table(table, given)  # type: ignore[arg-type]
    return TableMerge(table, partial(_newest, given), request, columns=columns, reads_target=reads_target)


def _condition(on: object, schema: TableSchema) -> str:
    """Return the condition of columns that both sides have, or the condition that ``on`` is."""
    if isinstance(on, str) and match(on, schema.field_names) is None:
        checked_text("on", on, _CONDITION)
        return on
    names = [on] if isinstance(on, str) else checked_names("on", on)
    if not names:
        raise invalid_argument("on", "names no column.", "Name the columns that are compared.")
    found = {name: match(name, schema.field_names) for name in names}
    for name, column in found.items():
        if column is None:
            raise InvalidInputError(f"on: column {name!r} does not exist. Columns: {', '.join(schema.field_names)}.")
    columns = [column for column in found.values() if column is not None]
    # NULL is a value of a key: two rows with it have one key.
    same = {name: "<=>" if name in schema.primary_keys else "=" for name in columns}
    return " AND ".join(f"t.{quoted(name)} {sign} s.{quoted(name)}" for name, sign in same.items())


def _ordered(source: Any, names: Sequence[str], order_by: object) -> tuple[object, tuple[str, ...]]:
    """Return the source and the columns of its order. Rows in memory have one, and get a column with their numbers."""
    if order_by is not None:
        wanted = [order_by] if isinstance(order_by, str) else checked_names("order_by", order_by)
        found = {name: match(name, names) for name in wanted}
        missing = [name for name, column in found.items() if column is None]
        if missing or not found:
            raise invalid_argument(
                "order_by", f"{(missing or [''])[0]!r} is not a column of the source.", f"Columns: {', '.join(names)}."
            )
        return source, tuple(column for column in found.values() if column is not None)
    if not isinstance(source, pa.Table):
        raise invalid_argument(
            "duplicates",
            f"'last' needs an order, which the rows of a {type(source).__name__} do not have.",
            "Name the columns that order them: order_by='ts'.",
        )
    if any(name.upper().startswith(KEY_FIELD_PREFIX) for name in names):
        raise InvalidInputError("source: names of columns with '_KEY_' are reserved. Rename them.")
    return source.append_column(ROW_NUMBER, pa.array(np.arange(len(source)))), (ROW_NUMBER,)


def source_columns(source: object) -> FrameColumns:
    """Return the columns of a source for `TableMerge`."""
    from lakelsm.sql.local.merge_source import opened_source
    from lakelsm.sql.local.query_result import QueryResult

    if not isinstance(source, (QueryResult, ReadableTable)):
        return FrameColumns.of(source)

    def of_schema(schema: TableSchema) -> list[FrameColumn]:
        return [FrameColumn(each.name, each.type) for each in opened_source(_newest(source)).fields]

    return FrameColumns(of_schema, False, lambda: source)

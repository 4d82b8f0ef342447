"""The rows of a write, and the schema changes that they need with ``merge_schema=True``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from lakelsm.engine import Engine
from lakelsm.errors import error_context
from lakelsm.failures import report_schema_on_failure
from lakelsm.frame_columns import FrameColumns
from lakelsm.schema.schema_merge import merge_changes
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema_changes import AddColumn, SchemaChange
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.schema_alteration import alter_schema
from lakelsm.write.event_time import EventTime, EventTimeColumn


@dataclass(frozen=True)
class WrittenFrame:
    """The rows of a call, and how to write them. ``options`` apply to the call; ``changes`` were made to the schema."""

    engine: Engine
    store: TableStore
    rows: Any
    _: KW_ONLY
    safe_casts: bool
    row_kind: str | None = None
    fixed: Mapping[str, object] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    event_time: EventTime | None = None
    changes: tuple[SchemaChange, ...] = ()

    def event_column(self) -> EventTimeColumn | None:
        """The column that gives the commit its watermark. Raises InvalidInputError for a wrong one."""
        return None if self.event_time is None else self.event_time.in_table(self.store)

    def prepared(self) -> Any:
        """Return the rows in the form of the engine's writer. Raises InvalidInputError for wrong columns and types."""
        return self.engine.prepared_rows(self.store, self.rows, self.row_kind, self.fixed, safe_casts=self.safe_casts)

    def merged(self) -> WrittenFrame:
        """Publish the schema changes that the rows need, and return the rows for the changed table.

        Raises an error, and publishes nothing, if the table cannot have the columns of the frame.
        """
        columns = FrameColumns.of(self.rows, by_value=self.safe_casts)
        changes: tuple[SchemaChange, ...] = ()

        def changes_of(newest: TableSchema) -> Sequence[SchemaChange]:
            nonlocal changes
            with error_context(f"Table {self.store.name}"):
                given = columns.of_schema(newest)
                changes = merge_changes(newest, given, self.row_kind, safe_casts=self.safe_casts)
            return changes

        def rows() -> Any:
            return columns.rows({str(each.name): each.data_type for each in changes if isinstance(each, AddColumn)})

        def check(after: TableSchema) -> None:
            written = self._on(after, rows())
            written.event_column()
            prepared = written.prepared()
            if changes and columns.is_in_memory:  # Check rows first: a refused row must not leave a schema change.
                for _ in prepared:
                    pass

        schema = alter_schema(self.store, changes_of, check)
        with report_schema_on_failure(self.store.name, schema.id, changes):
            return replace(self._on(self.store.schemas.get(schema.id), rows()), changes=changes)

    def _on(self, schema: TableSchema, rows: Any) -> WrittenFrame:
        store = self.store.with_schema(schema).with_options(self.options).for_writes()
        return replace(self, store=store, rows=rows)

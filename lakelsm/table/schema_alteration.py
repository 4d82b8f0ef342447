"""Publishes a new schema of an opened table, for `Catalog.alter_table` and for writes that merge schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelsm.environment import SYSTEM
from lakelsm.errors import error_context
from lakelsm.plan.fallback_branch import check_fallback
from lakelsm.plan.vector_switch import check_vector_switch
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema_changes import SchemaChange
from lakelsm.snapshots.table_store import TableStore


def alter_schema(
    store: TableStore,
    changes_of: Callable[[TableSchema], Sequence[SchemaChange]],
    check: Callable[[TableSchema], None] = lambda schema: None,
) -> TableSchema:
    """Apply changes to the newest schema, publish the result and return it. Without changes, return the newest schema.

    ``changes_of`` is called with the newest schema, and again if another process publishes one first. ``check`` raises
    an error for a schema that must not be published. Raises InvalidInputError for a change that the table cannot have,
    CommitConflictError if other processes publish first in every attempt.
    """
    has_snapshots = store.snapshots.latest_id() is not None

    def changed(newest: TableSchema) -> TableSchema:
        changes = changes_of(newest)
        after = newest
        if changes:
            with error_context(f"Table {store.name}"):
                after = apply_changes(newest, changes, SYSTEM.clock(), has_snapshots)
                check_vector_switch(store, newest, after)
                check_fallback(store.paths, store.branches, newest.options, after.options)
        check(after)
        return after

    return store.schemas.change(changed)

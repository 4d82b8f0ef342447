"""The rows that a delete in this process writes: -D rows of the keys that match, as a snapshot has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.row_kinds import DELETE, ROW_KINDS
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_faults import refuse_any
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import prepare_arrow
from lakelsm.local.arrow_scan import matching_rows, stored_schema
from lakelsm.local.key_set import KeySet
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.update_plan import NO_SEQUENCE
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.runner import Runner
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.system_columns import CHANGED_KIND
from lakelsm.snapshots.table_store import TableStore


def retractions(
    runner: Runner, store: TableStore, wanted: Predicate | KeySet, snapshot: Snapshot | None
) -> Iterator[pa.RecordBatch]:
    """The prepared -D rows of what matches a condition, or has one of some keys, in a snapshot (None: an empty table).

    Raises InvalidInputError where they would not remove the rows.
    """
    check_deletable(store.name, store.options)
    names = store.schema.field_names
    condition = wanted.condition if isinstance(wanted, KeySet) else wanted
    rows: Iterable[pa.RecordBatch] = matching_rows(runner, store, snapshot, condition, names)
    if isinstance(wanted, KeySet):
        rows = map(wanted.rows_of, rows)
    kept = store.options.rowkind_field
    schema = stored_schema(store, names)
    marked = schema if kept is not None else schema.append(pa.field(CHANGED_KIND, pa.string()))
    lost_where_null = MergeSpec.of(store.schema, store.options).removing_sequences
    given = ArrowInput(marked, _marked(rows, marked, kept or CHANGED_KIND, lost_where_null))
    return prepare_arrow(given, store.schema, store.options, None if kept else CHANGED_KIND, stored=True)


def _marked(
    rows: Iterable[pa.RecordBatch], schema: pa.Schema, kind: str, lost_where_null: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Rows with their kind; those that a -D would leave as they are are refused."""
    for batch in rows:
        if not len(batch):
            continue
        if lost_where_null:
            empty = batch.column(lost_where_null[0]).is_null()
            for name in lost_where_null[1:]:
                empty = pc.and_(empty, batch.column(name).is_null())
            refuse_any(empty, NO_SEQUENCE)
        columns = dict(zip(batch.schema.names, batch.columns))
        columns[kind] = pa.repeat(pa.scalar(ROW_KINDS[DELETE]), len(batch))
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

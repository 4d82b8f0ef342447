"""The rows that a delete in this process writes: -D rows for the keys of matching rows in a snapshot."""

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
from lakelsm.plan.update_plan import NO_SEQUENCE_FAULT
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.runner import Runner
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.system_columns import CHANGED_KIND
from lakelsm.snapshots.table_store import TableStore


def retractions(
    runner: Runner, store: TableStore, wanted: Predicate | KeySet, snapshot: Snapshot | None
) -> Iterator[pa.RecordBatch]:
    """Return prepared -D rows for the rows of a snapshot that match a condition or have a key (None: an empty table).

    Raises InvalidInputError if -D rows would not remove them.
    """
    check_deletable(store.name, store.options)
    condition = wanted.condition if isinstance(wanted, KeySet) else wanted
    rows: Iterable[pa.RecordBatch] = matching_rows(runner, store, snapshot, condition, store.schema.field_names)
    if isinstance(wanted, KeySet):
        rows = map(wanted.rows_of, rows)
    sequences = MergeSpec.of(store.schema, store.options).removing_sequences
    if sequences:
        rows = removable(rows, sequences)
    return prepared_changes(store, rows, ROW_KINDS[DELETE])


def prepared_changes(
    store: TableStore, rows: Iterable[pa.RecordBatch], kind: str, *, is_new: bool = False
) -> Iterator[pa.RecordBatch]:
    """Prepare rows of the table, in its stored form, to be written again with a row kind, given as text.

    ``is_new``: the table may not have the keys, so they get the form that keys of the table have.
    """
    own = store.options.rowkind_field
    stored = stored_schema(store, store.schema.field_names)
    schema = stored if own is not None else stored.append(pa.field(CHANGED_KIND, pa.string()))
    fitted = frozenset(store.schema.field_names)
    given = ArrowInput(schema, _with_kind(rows, schema, own or CHANGED_KIND, kind), fitted)
    return prepare_arrow(given, store.schema, store.options, None if own else CHANGED_KIND, stored=not is_new)


def _with_kind(
    rows: Iterable[pa.RecordBatch], schema: pa.Schema, column: str, kind: str
) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        if len(batch):
            columns = dict(zip(batch.schema.names, batch.columns))
            columns[column] = pa.repeat(pa.scalar(kind), len(batch))
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def removable(rows: Iterable[pa.RecordBatch], sequences: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the rows. Raises InvalidInputError for a row that a -D row would not remove."""
    for batch in rows:
        empty = batch.column(sequences[0]).is_null()
        for name in sequences[1:]:
            empty = pc.and_(empty, batch.column(name).is_null())
        refuse_any(empty, NO_SEQUENCE_FAULT)
        yield batch

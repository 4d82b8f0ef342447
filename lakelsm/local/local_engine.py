"""The engine that runs a table's operations in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lakelsm.environment import utc_zone
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_delete import retractions
from lakelsm.local.arrow_rows import prepare_arrow
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.arrow_update import updates
from lakelsm.local.arrow_writer import ArrowWriter
from lakelsm.local.key_set import KeySet
from lakelsm.local.python_input import keys_input, rows_input
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.read.hidden_count import count_rows
from lakelsm.results import CountResult
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.table_store import TableStore


class LocalEngine:
    """Works in this process. Prepared rows are Arrow record batches."""

    @property
    def runner(self) -> LocalRunner:
        """The runner of planned units."""
        return LocalRunner()

    def writer(self, store: TableStore) -> ArrowWriter:
        """See `Engine.writer`."""
        return ArrowWriter(self.runner, store)

    def prepared_rows(
        self,
        store: TableStore,
        data: Any,
        row_kind: str | None = None,
        fixed: Mapping[str, object] | None = None,
        *,
        safe_casts: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """See `Engine.prepared_rows`."""
        given = rows_input(data, store.schema)
        return prepare_arrow(given, store.schema, store.options, row_kind, fixed=fixed, safe_casts=safe_casts)

    def retractions(self, store: TableStore, where: str, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        """See `Engine.retractions`."""
        predicate = self.evaluable_predicate(store, where)
        assert predicate is not None
        return retractions(self.runner, store, predicate, snapshot)

    def updates(
        self, store: TableStore, where: str, values: Mapping[str, str], snapshot: Snapshot | None
    ) -> Iterator[pa.RecordBatch]:
        """See `Engine.updates`."""
        predicate = self.evaluable_predicate(store, where)
        assert predicate is not None
        return updates(self.runner, store, predicate, values, snapshot, utc_zone())

    def prepared_keys(self, store: TableStore, data: Any) -> KeySet:
        """See `Engine.prepared_keys`."""
        return KeySet.of(keys_input(data, store.schema), store.schema, store.options)

    def key_retractions(self, store: TableStore, keys: KeySet, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        """See `Engine.key_retractions`."""
        return retractions(self.runner, store, keys, snapshot)

    def predicate(self, store: TableStore, where: str) -> Predicate:
        """See `Engine.predicate`."""
        return parse_where(where, store.schema.fields, utc_zone())

    def count_rows(self, store: TableStore, snapshot: Snapshot | None, where: str | None, fresh: bool) -> CountResult:
        """See `Engine.count_rows`."""
        predicate = self.evaluable_predicate(store, where)
        plan = plan_read(store, snapshot, predicate, fresh)

        def read() -> int:
            names = tuple(sorted(columns(predicate))) if predicate is not None else ()
            scan = ArrowScan(store, plan, names or tuple(store.schema.primary_keys), predicate=predicate)
            return sum(len(batch) for batch in scan.stored_batches(self.runner))

        return count_rows(self.runner, store, plan, predicate, read)

    def evaluable_predicate(self, store: TableStore, where: str | None) -> Predicate | None:
        """Parse a condition. Raises UnsupportedFeatureError if a part of it cannot be evaluated in this process."""
        if where is None:
            return None
        # Loading the parser takes longer than reading a small table.
        from lakelsm.expressions.evaluable import evaluable_condition

        return evaluable_condition(where, store.schema.fields, utc_zone())

"""Changes of a table between two snapshots, or after the progress of a consumer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import checked_condition, checked_consumer, checked_flag, checked_name, checked_timestamps
from lakelsm.engine import Engine, chosen_engine, local_engine, spark_session
from lakelsm.maintain.versions.consumers import ConsumedChanges, consumer_start
from lakelsm.operation_log import operation_line
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.plan.time_travel import ChangelogRange, changelog_range
from lakelsm.read.changelog_tasks import check_added_columns
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import OpenedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The alternative to `Table.changelog` without Spark, for messages.
_READ_HERE = "call changelog_reader"


@dataclass(frozen=True)
class ChangesRequest:
    """The unchecked arguments of `Table.changelog`, in their order."""

    start: object
    end: object
    where: str | None
    mode: str
    kind_column: str
    positions: bool
    consumer_id: str | None = None


class ChangesReader(OpenedTable):
    """Reads of the changes of a request, on Spark and in this process."""

    def _change_frame(self, request: ChangesRequest) -> DataFrame:
        from lakelsm.frames.changelog_frame import change_frame

        with operation_line(self._log_name, "changelog") as line:
            store, plan, _ = self._planned_changes(chosen_engine("spark", self._spark, _READ_HERE), request)
            line.add(lambda: {"files": _files(plan)})
            session = spark_session(self._spark, _READ_HERE)
            return change_frame(session, store, plan, request.where, request.kind_column, request.positions)

    def _change_reader(self, request: ChangesRequest, timestamps: str) -> pa.RecordBatchReader:
        from lakelsm.local.arrow_changes import changes_reader

        with operation_line(self._log_name, "changelog_reader") as line:
            form = checked_timestamps("timestamps", timestamps)
            engine = local_engine()
            store, plan, consumed = self._planned_changes(engine, request)
            line.add(lambda: {"files": _files(plan)})
            reader = changes_reader(
                engine.runner,
                store,
                plan,
                engine.evaluable_predicate(store, request.where),
                kind_column=request.kind_column,
                positions=request.positions,
                timestamps=form,
            )
            if consumed is not None:
                reader = pa.RecordBatchReader.from_batches(reader.schema, consumed.of(reader))
            return line.count_stream(reader)

    def _planned_changes(
        self, engine: Engine, request: ChangesRequest
    ) -> tuple[TableStore, ChangelogPlan, ConsumedChanges | None]:
        where = request.where
        checked_condition(where)
        checked_name("mode", request.mode, "auto, changelog, delta or diff")
        checked_name("kind_column", request.kind_column, "the name of a column as text")
        checked_flag("positions", request.positions)
        name, store = checked_consumer("consumer_id", request.consumer_id), self._store()
        first, last = self._point(store, "start", request.start, min_value=0), self._point(store, "end", request.end)
        check_added_columns(store.schema, request.kind_column, request.positions)
        predicate = None if where is None else engine.predicate(store, where)

        def planned() -> tuple[ChangelogRange, ChangelogPlan]:
            between = changelog_range(store, first if name is None else consumer_start(store, name, first), last)
            return between, between.plan(store, request.mode, predicate)

        between, plan = self._on_newest(planned)
        if name is None or between.after is None:
            return store, plan, None
        return store, plan, ConsumedChanges.begin(store, name, between.first, between.after)


def _files(plan: ChangelogPlan) -> int:
    """Return the number of files that a plan reads."""
    units = [*plan.merged, *(each.unit for each in plan.compared)]
    return sum(len(files) for _, files in plan.scanned) + sum(len(unit.files) for unit in units)

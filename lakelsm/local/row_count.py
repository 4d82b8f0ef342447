"""How many rows a read in this process gives where only data files can tell."""

from __future__ import annotations

from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.plan.count_plan import takes_partitions_whole
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.read.hidden_count import rows_less_hidden
from lakelsm.results import CountResult
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.table_store import TableStore


def counted(
    runner: Runner, store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None, fresh: bool
) -> CountResult:
    """Count the rows of a snapshot that match: the rows of files less the hidden ones, or else those of a read."""
    plan = plan_read(store, snapshot, predicate, fresh)
    files = len(plan.merged_files)
    rows = rows_less_hidden(runner, store, plan) if takes_partitions_whole(store, predicate) else None
    if rows is None:
        names = tuple(sorted(columns(predicate))) if predicate is not None else ()
        scan = ArrowScan(store, plan, names or tuple(store.schema.primary_keys), predicate=predicate)
        rows, files = sum(len(batch) for batch in scan.stored_batches(runner)), plan.files_scanned
    how = "files" if files else "metadata"
    return CountResult(snapshot_id=plan.snapshot_id, rows=rows, how=how, files_opened=files)

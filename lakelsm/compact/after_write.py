"""The compaction that follows a write, and the result of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakelsm.compact.compactor import Compactor, combined
from lakelsm.failures import after_commit_step
from lakelsm.format.manifest import FileKind
from lakelsm.format.snapshot import CommitKind
from lakelsm.plan.bucket_files import BucketId, is_shown
from lakelsm.plan.compaction_plan import scope_after_write
from lakelsm.plan.stream_compaction import scope_after_batch
from lakelsm.results import CommitResult, CompactionResult, CompactionStatus
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.batch_write import BatchResult

_REMEDY = "The next write to these buckets compacts them; Table.compact() does it now."


def batch_result(batch: BatchResult) -> CommitResult:
    """Return the result of a batch without the compaction that may follow it."""
    snapshot = batch.outcome.snapshot
    return CommitResult(
        snapshot_id=None if snapshot is None else snapshot.id,
        already_committed=batch.outcome.already_committed,
        files=len(batch.entries),
        rows=sum(entry.file.row_count for entry in batch.entries),
        bytes=sum(entry.file.file_size for entry in batch.entries),
        ignored_rows=batch.ignored_rows,
        after_commit_failures=batch.outcome.failures,
    )


def finish_write(
    runner: Runner,
    store: TableStore,
    batch: BatchResult,
    user: str,
    identifier: int,
    *,
    compact_every: int | None = None,
) -> CommitResult:
    """Compact what a batch wrote, unless the table is ``write-only``, and return the result of both.

    ``compact_every``: the batch is one of a stream, which compacts after so many batches (0: never). A replay of it is
    compacted too, because the query may have been killed between the commit and the compaction.
    """
    result = batch_result(batch)
    is_repeated = compact_every is not None and batch.outcome.already_committed and batch.outcome.snapshot is not None
    if store.options.write_only or compact_every == 0 or not (batch.entries or is_repeated):
        return result
    compaction = compact_after_write(runner, store, batch, user, identifier, every=compact_every or 1)
    return replace(result, compaction=compaction)


def compact_after_write(
    runner: Runner, store: TableStore, batch: BatchResult, user: str, identifier: int, *, every: int = 1
) -> CompactionResult:
    """Compact the `scope_after_batch` of a committed batch.

    Raises no Exception: it becomes a warning and the ``error`` of a result of status FAILED, which also counts what was
    committed before.

    The compaction after an overwrite writes no changelog, as in Paimon: the replaced rows are in no changelog either.

    A write waits while a bucket has more sorted runs than ``num-sorted-run.stop-trigger``: if its compaction lost to
    another commit, such buckets are compacted again, at most ``commit.max-retries`` times. If reads do not show level 0,
    all its buckets are compacted again, because its rows are invisible until then.
    """
    result: CompactionResult | None = None
    with after_commit_step(store.name, "the compaction", _REMEDY) as failures:
        for part in _compactions(runner, store, batch, user, identifier, every):
            result = part if result is None else combined(result, part)
    for failure in failures:
        failed = CompactionResult(table=store.name, status=CompactionStatus.FAILED, error=failure)
        result = failed if result is None else combined(result, failed)
    assert result is not None
    return result


def _compactions(
    runner: Runner, store: TableStore, batch: BatchResult, user: str, identifier: int, every: int
) -> Iterator[CompactionResult]:
    """Yield the result of the compaction after a batch, and of its repetitions after a conflict."""
    written = batch.outcome.snapshot
    buckets = _written_buckets(store, batch)
    scope = scope_after_write(store, buckets) if written is None else scope_after_batch(store, written, buckets, every)
    compactor = Compactor(runner, store)
    if written is not None and written.commit_kind is CommitKind.OVERWRITE:
        # On the snapshot of the overwrite: rows that others appended since then get their changelog later.
        yield compactor.compact(scope, commit_user=user, identifier=identifier, snapshot=written, changelog=False)
        return
    last = compactor.compact(scope, commit_user=user, identifier=identifier)
    yield last
    for _ in range(store.options.commit_max_retries):
        if last.status is not CompactionStatus.CONFLICT:
            break
        if store.schemas.latest_id(store.schema.id) != store.schema.id:  # With an old schema it may always conflict.
            store = store.refreshed()
        past_stop_trigger = store.options.num_sorted_run_stop_trigger + 1
        again = replace(scope, min_runs=past_stop_trigger if is_shown(store.options, level=0) else 0)
        last = Compactor(runner, store).compact(again, commit_user=user, identifier=identifier)
        yield last


def _written_buckets(store: TableStore, batch: BatchResult) -> set[BucketId]:
    """Return the buckets that a batch wrote; those of a batch that was committed before are read from its snapshot."""
    entries, snapshot = batch.entries, batch.outcome.snapshot
    if not entries and snapshot is not None:
        entries = tuple(read_delta_entries(store.file_io, store.paths, snapshot))
    return {(entry.partition, entry.bucket) for entry in entries if entry.kind == FileKind.ADD}

"""When a stream compacts: after every nth batch, and before it in buckets whose sorted runs reach the stop trigger.

The state is that of the snapshots, so a restarted query, or another process for each batch, continues it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import FileKind
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.plan.bucket_files import BucketId
from lakelsm.plan.compaction_plan import CompactionScope, scope_after_write
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.snapshots.table_store import TableStore


def scope_after_batch(
    store: TableStore, batch: Snapshot, written: Collection[BucketId], every: int
) -> CompactionScope:
    """Return the scope of the compaction after a batch of a stream, which compacts after ``every`` batches.

    The compaction after the nth batch is that of `scope_after_write` for all buckets that were written since the last
    one. If the nth batch had no rows, the next one is compacted. Between them, written buckets are compacted that have
    as many sorted runs as `num-sorted-run.stop-trigger`, so that reads stay fast if a batch has many small files.
    """
    if every == 1:
        return scope_after_write(store, written)
    if not _is_due(store, batch, every):
        return CompactionScope(full=False, only=frozenset(written), min_runs=store.options.num_sorted_run_stop_trigger)
    if batch.commit_kind is CommitKind.OVERWRITE:  # Nothing that was written before remains.
        return scope_after_write(store, written)
    earlier = _written_since(store, batch, every)
    scope = scope_after_write(store, {*written, *(earlier or ())})
    return replace(scope, only=None) if earlier is None else scope


def _is_due(store: TableStore, batch: Snapshot, every: int) -> bool:
    """Return whether a batch is the nth of its user, or the first one after a number n that committed nothing."""
    previous = next((each.commit_identifier for each in _batches_before(store, batch)), -1)
    return (batch.commit_identifier + 1) // every > (previous + 1) // every


def _written_since(store: TableStore, batch: Snapshot, every: int) -> set[BucketId] | None:
    """Return the buckets that batches before this one wrote since the last compaction; None if snapshots have expired."""
    found: set[BucketId] = set()
    window: int | None = None
    for snapshot in _batches_before(store, batch):
        number = (snapshot.commit_identifier + 1) // every
        window = number if window is None else window
        if number < window:
            return found
        try:
            entries = read_delta_entries(store.file_io, store.paths, snapshot)
        except (CorruptTableError, FileNotFoundError):
            return None
        found.update((entry.partition, entry.bucket) for entry in entries if entry.kind == FileKind.ADD)
        if snapshot.commit_identifier + 1 == window * every:
            return found  # The batch of the last compaction, which may have failed.
    return found if store.snapshots.earliest_id() == 1 else None


def _batches_before(store: TableStore, batch: Snapshot) -> Iterator[Snapshot]:
    """Yield the retained batches of a batch's user, newest first."""
    for snapshot in store.snapshots.of_user(batch.commit_user, batch.id):
        is_write = snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
        if is_write and snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            yield snapshot

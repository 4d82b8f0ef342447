"""The state of a branch's maintenance for operators: what it retains and what is due. It reads no base manifests."""

from __future__ import annotations

from lakelsm.environment import SYSTEM, Environment
from lakelsm.epoch_time import utc_time
from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import FileKind
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.maintain.expiry.expiry_range import expiry_range
from lakelsm.maintain.expiry.retention import snapshot_retention
from lakelsm.maintain.history import maintenance_runs
from lakelsm.maintain.versions.consumers import consumer_infos
from lakelsm.results import UpkeepStatus
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_delta_metas
from lakelsm.snapshots.table_store import TableStore

#: Write amplification covers at most this many of the newest snapshots, and this many entries in total.
_MAX_MEASURED, _MAX_ENTRIES = 32, 100_000
#: The number of newest runs that are searched for a removal of orphan files.
_RUNS = 200


def upkeep_status(store: TableStore, environment: Environment = SYSTEM) -> UpkeepStatus:
    """Return the status of a branch's upkeep. Raises CorruptTableError if a snapshot or a consumer cannot be read."""
    now = environment.clock()
    expiring = expiry_range(store, snapshot_retention(store.options, now), now)
    kept = list(store.snapshots.list())
    consumers = consumer_infos(store, environment)
    slowest = min(consumers, key=lambda consumer: consumer.next_snapshot_id, default=None)
    removal = next((run for run in maintenance_runs(store, _RUNS) if run.operation == "remove_orphans"), None)
    measured, appended, compacted = _written(store, kept)
    return UpkeepStatus(
        snapshots=len(kept),
        oldest_snapshot_age_seconds=max(now - kept[0].time_millis, 0) / 1000 if kept else None,
        snapshots_to_expire=0 if expiring is None else len(expiring.snapshots),
        held_by=() if expiring is None else expiring.held_by,
        changelogs=len(store.changelogs.ids()),
        tags=len(store.tags.names()),
        branches=len(store.branches.names()),
        consumers=len(consumers),
        slowest_consumer=None if slowest is None else slowest.name,
        lag_snapshots=None if slowest is None else slowest.lag_snapshots,
        lag_seconds=None if slowest is None else slowest.lag_seconds,
        orphans_removed=None if removal is None else removal.files,
        orphans_removed_at=None if removal is None else utc_time(removal.started, "A run of maintenance"),
        snapshots_measured=measured,
        bytes_appended=appended,
        bytes_compacted=compacted,
        write_amplification=(appended + compacted) / appended if appended else None,
    )


def _written(store: TableStore, snapshots: list[Snapshot]) -> tuple[int, int, int]:
    """Return the number of newest snapshots that were read, and the bytes that they appended and compacted."""
    measured = appended = compacted = entries = 0
    for snapshot in reversed(snapshots[-_MAX_MEASURED:]):
        try:
            entries += sum(meta.entry_count for meta in read_delta_metas(store.file_io, store.paths, snapshot))
            if entries > _MAX_ENTRIES:
                break
            size = _added_bytes(store, snapshot)
        except CorruptTableError:
            if store.snapshots.try_get(snapshot.id) is None:
                break  # It has expired since, like the older ones.
            raise
        measured += 1
        if snapshot.commit_kind is CommitKind.COMPACT:
            compacted += size
        else:
            appended += size
    return measured, appended, compacted


def _added_bytes(store: TableStore, snapshot: Snapshot) -> int:
    """Return the bytes of the files that a snapshot adds, without files that only move to another level."""
    entries = read_delta_entries(store.file_io, store.paths, snapshot)
    moved = {entry.file.file_name for entry in entries if entry.kind == FileKind.DELETE}
    return sum(e.file.file_size for e in entries if e.kind == FileKind.ADD and e.file.file_name not in moved)

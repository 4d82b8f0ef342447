"""Drops partitions: an overwrite without rows. The files are deleted when the snapshots before it expire."""

from __future__ import annotations

from collections.abc import Collection

from lakelsm.commit.commit_message import CommitMessage, CommitOutcome
from lakelsm.commit.committer import Committer
from lakelsm.environment import SYSTEM, Environment
from lakelsm.format.snapshot import CommitKind
from lakelsm.maintain.history import maintenance_record
from lakelsm.plan.partition_files import chosen_partitions
from lakelsm.predicate.predicate import Predicate
from lakelsm.results import Failure, PartitionDropResult
from lakelsm.snapshots.maintenance_record import MaintenanceRecord
from lakelsm.snapshots.table_store import TableStore

#: Paimon's name of the operation. Persisted: do not change.
_OPERATION = "TRUNCATE"


def drop_partitions(
    store: TableStore,
    predicate: Predicate,
    *,
    commit_user: str,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> PartitionDropResult:
    """Drop the partitions that match a condition. Without a match nothing is committed."""
    started = environment.clock()
    snapshot = store.snapshots.latest()
    with store.while_changed(snapshot):
        found = chosen_partitions(store, snapshot, predicate)
    partitions = frozenset(files.partition for files in found)
    files, size = sum(each.files for each in found), sum(each.bytes for each in found)
    snapshot_id: int | None = None
    failures: tuple[Failure, ...] = ()
    if found and not dry_run:
        record = maintenance_record("drop_partitions", commit_user, started, environment, files=files, bytes=size)
        outcome = commit_drop(store, partitions, record, environment)
        assert outcome.snapshot is not None
        snapshot_id, failures = outcome.snapshot.id, outcome.failures
    return PartitionDropResult(
        table=store.name,
        dry_run=dry_run,
        partitions=tuple(files.label for files in found),
        files=files,
        bytes=size,
        snapshot_id=snapshot_id,
        after_commit_failures=failures,
    )


def commit_drop(
    store: TableStore,
    partitions: Collection[bytes],
    record: MaintenanceRecord,
    environment: Environment,
    as_of: int | None = None,
) -> CommitOutcome:
    """Publish a snapshot without the given partitions. It contains the record of the run and is committed as its user.

    With ``as_of``, raises RowsChangedError if another snapshot is the newest.
    """
    message = CommitMessage(overwrite_partitions=frozenset(partitions).__contains__, overwrite_as_of=as_of)
    committer = Committer(store, environment=environment)
    properties = record.as_property()
    return committer.commit(
        CommitKind.OVERWRITE, message, record.user, operation=_OPERATION, properties=properties
    )

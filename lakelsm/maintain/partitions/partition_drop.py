"""Partitions dropped: an overwrite of them by nothing. Their files go when the snapshots before it expire."""

from __future__ import annotations

from collections.abc import Collection

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.committer import Committer
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lakelsm.maintenance_results import PartitionDropResult
from lakelsm.plan.partition_files import chosen_partitions
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM, Surroundings

#: What Paimon calls the operation. Persisted: do not change.
_OPERATION = "TRUNCATE"


def drop_partitions(
    store: TableStore,
    predicate: Predicate,
    *,
    commit_user: str,
    dry_run: bool = False,
    surroundings: Surroundings = SYSTEM,
) -> PartitionDropResult:
    """Drop the partitions that a condition takes; nothing is committed where there are none."""
    found = chosen_partitions(store, store.snapshots.latest(), predicate)
    partitions = frozenset(files.partition for files in found)
    dropped = bool(found) and not dry_run
    return PartitionDropResult(
        table=store.name,
        dry_run=dry_run,
        partitions=tuple(store.partition_label(files.partition) for files in found),
        files=sum(files.files for files in found),
        bytes=sum(files.bytes for files in found),
        snapshot_id=commit_drop(store, partitions, commit_user, surroundings) if dropped else None,
    )


def commit_drop(
    store: TableStore,
    partitions: Collection[bytes],
    commit_user: str,
    surroundings: Surroundings,
    as_of: int | None = None,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
) -> int:
    """Publish a snapshot without some partitions; return its id.

    With ``as_of`` it raises RowsChangedError where another snapshot than that is the newest.
    """
    message = CommitMessage(overwrite_partitions=frozenset(partitions).__contains__, overwrite_as_of=as_of)
    committer = Committer.of(store, surroundings=surroundings)
    outcome = committer.commit(CommitKind.OVERWRITE, message, commit_user, identifier, operation=_OPERATION)
    assert outcome.snapshot is not None
    return outcome.snapshot.id

"""The states that a read combines: the branch itself, and the partitions that it lacks from ``scan.fallback-branch``.

The rules are those of Paimon's `FallbackReadFileStoreTable`: a partition with any file is read whole from the branch
itself. Writes, deletes and changelogs use the branch alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lakelsm.errors import InvalidInputError, SnapshotNotFoundError, UnsupportedFeatureError
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.plan.bucket_files import partition_filter
from lakelsm.plan.read_plan import ReadPlan
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.branch_store import BranchStore
from lakelsm.snapshots.manifest_scan import read_live_counts
from lakelsm.snapshots.table_store import TableStore

_OPTION = "scan.fallback-branch"


@dataclass(frozen=True)
class ReadState:
    """A snapshot to read (None: an empty branch); its store leaves out partitions that are read from other states."""

    store: TableStore
    snapshot: Snapshot | None


def read_states(
    own: ReadState, other: TableStore | None, predicate: Predicate | None, until: int | None
) -> list[ReadState]:
    """Return the states whose rows together are those of a read: the branch's own state, then that of its fallback.

    ``until`` is the time that the read travels to (None: the newest snapshots), because each branch has its own
    snapshot ids. Raises InvalidInputError if the columns of the two branches differ.
    """
    if other is None:
        return [own]
    snapshot = other.snapshots.latest() if until is None else _at_or_before(other, until)
    if until is not None and snapshot is not None and snapshot.schema_id != other.schema.id:
        other = other.with_schema(other.schemas.get(snapshot.schema_id))
    _check_same_columns(own.store, other)
    own_partitions = _partitions(own, predicate)
    return [own, ReadState(replace(other, left_out_partitions=own_partitions), snapshot)]


def refuse_fallback(store: TableStore, what: str) -> None:
    """Raise UnsupportedFeatureError if a table has a fallback branch, whose rows ``what`` would miss."""
    if fallback_of(store) is not None:
        raise UnsupportedFeatureError(
            f"Table {store.name}: {what} cannot be combined with option '{_OPTION}'. Remove the option, or use read."
        )


def check_fallback(paths: TablePaths, branches: BranchStore, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Raise InvalidInputError if new options of a table name a fallback that is not another branch of it."""
    name = new.get(_OPTION, "").strip()
    if not name or name == old.get(_OPTION, "").strip():
        return
    if name == paths.branch or name not in branches.names() or not branches.is_whole(name):
        existing = ", ".join(branches.names()) or "none"
        raise InvalidInputError(f"option '{_OPTION}': {name!r} is not another branch of the table. Branches: {existing}.")


def combined_plan(plans: Sequence[ReadPlan]) -> ReadPlan:
    """Return the plans of several states as one, with the snapshot of the first one."""
    first = plans[0]
    return replace(
        first,
        raw_files=tuple(file for plan in plans for file in plan.raw_files),
        merged_files=tuple(file for plan in plans for file in plan.merged_files),
        units=tuple(unit for plan in plans for unit in plan.units),
        files_live=sum(plan.files_live for plan in plans),
    )


def fallback_of(store: TableStore) -> TableStore | None:
    """Return the branch that reads of a table fall back to, if any. Raises TableNotFoundError if it does not exist."""
    name = (store.options.scan_fallback_branch or "").strip()
    return None if not name or name == store.paths.branch else store.on_branch(name)


def _at_or_before(other: TableStore, millis: int) -> Snapshot | None:
    try:
        return other.snapshots.at_or_before(millis)
    except SnapshotNotFoundError:
        return None


def _partitions(own: ReadState, predicate: Predicate | None) -> frozenset[bytes]:
    store, snapshot = own.store, own.snapshot
    if snapshot is None:
        return frozenset()
    batches = read_live_counts(store.file_io, store.paths, snapshot, partition_filter(store, predicate))
    return frozenset(
        batch.partitions[code] for batch, rows in batches for code in np.unique(batch.partition_codes[rows]).tolist()
    )


def _check_same_columns(store: TableStore, other: TableStore) -> None:
    ours, theirs = (_columns(each) for each in (store, other))
    if ours != theirs or store.schema.partition_keys != other.schema.partition_keys:
        raise InvalidInputError(
            f"Table {store.name}: its columns ({ours}) differ from those of its fallback branch {other.paths.branch!r} "
            f"({theirs}), which option '{_OPTION}' names. Alter one of the two."
        )


def _columns(store: TableStore) -> str:
    """Return names and types of the columns; whether they are nullable does not matter."""
    return ", ".join(f"{field.name} {field.type.sql()}" for field in store.schema.fields)

"""What a read looks at: the branch itself, and of its ``scan.fallback-branch`` the partitions that it has not.

As Paimon's `FallbackReadFileStoreTable` does. A partition with any file is the branch's own, whole. Writes, deletes and
changelogs know the branch alone.
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
    """A snapshot of a branch to read (None for an empty branch), and its partitions that are read from other states."""

    store: TableStore
    snapshot: Snapshot | None


def read_states(
    own: ReadState, other: TableStore | None, predicate: Predicate | None, until: int | None
) -> list[ReadState]:
    """The states whose rows together are a read's: the branch's own, then what it falls back to.

    ``until`` is the time that the read travels to (None: to the newest snapshots), as snapshots of branches have ids of
    their own. Raises InvalidInputError where the columns of the two are not the same.
    """
    if other is None:
        return [own]
    there = other.snapshots.latest() if until is None else _at_or_before(other, until)
    if until is not None and there is not None and there.schema_id != other.schema.id:
        other = other.with_schema(other.schemas.get(there.schema_id))
    _check_same_columns(own.store, other)
    taken = _partitions(own, predicate)
    return [own, ReadState(replace(other, left_out_partitions=taken), there)]


def refuse_fallback(store: TableStore, what: str) -> None:
    """Raise UnsupportedFeatureError where a table has a fallback branch, whose rows ``what`` would miss."""
    if fallback_of(store) is not None:
        raise UnsupportedFeatureError(
            f"Table {store.name} has the option '{_OPTION}', and lakelsm has not built {what} with it: leave the option "
            "out, or use read."
        )


def check_fallback(paths: TablePaths, branches: BranchStore, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Raise InvalidInputError where new options of a table fall back to no other branch of it."""
    name = new.get(_OPTION, "").strip()
    if not name or name == old.get(_OPTION, "").strip():
        return
    if name == paths.branch or name not in branches.names() or not branches.is_whole(name):
        known = ", ".join(branches.names()) or "none"
        raise InvalidInputError(f"option '{_OPTION}' = '{name}' must be another branch of the table; it has: {known}.")


def combined_plan(plans: Sequence[ReadPlan]) -> ReadPlan:
    """The plans of some states as one, of the first one's snapshot."""
    first = plans[0]
    return replace(
        first,
        raw_files=tuple(file for plan in plans for file in plan.raw_files),
        merged_files=tuple(file for plan in plans for file in plan.merged_files),
        units=tuple(unit for plan in plans for unit in plan.units),
        files_live=sum(plan.files_live for plan in plans),
    )


def fallback_of(store: TableStore) -> TableStore | None:
    """The branch that reads of a table fall back to, if any. Raises TableNotFoundError if it does not exist."""
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
    found = read_live_counts(store.file_io, store.paths, snapshot, partition_filter(store, predicate))
    return frozenset(
        batch.partitions[code] for batch, rows in found for code in np.unique(batch.partition_codes[rows]).tolist()
    )


def _check_same_columns(store: TableStore, other: TableStore) -> None:
    ours, theirs = (_columns(each) for each in (store, other))
    if ours != theirs or store.schema.partition_keys != other.schema.partition_keys:
        raise InvalidInputError(
            f"Table {store.name} falls back to branch {other.paths.branch!r} ('{_OPTION}') and has other columns: "
            f"{ours}; the branch has {theirs}. Alter one of the two."
        )


def _columns(store: TableStore) -> str:
    """Names and types; whether NULL is allowed does not matter."""
    return ", ".join(f"{field.name} {field.type.sql()}" for field in store.schema.fields)

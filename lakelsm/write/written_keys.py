"""Decides by key whether other commits wrote rows that a delete or update read, if only key ranges of files overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyroaring import BitMap

from lakelsm.commit.append_conflict import InterveningSnapshot, rewritten_in_range
from lakelsm.environment import SYSTEM
from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.merge.key_order import rank_keys
from lakelsm.merge.merge_unit import KeySearch
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.read.key_positions import KeyPositions
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.snapshots.table_store import TableStore


def others_wrote_keys(
    runner: Runner, store: TableStore, ours: Sequence[ManifestEntry], after: int, upto: int
) -> bool:
    """Return whether a snapshot with an id in (``after``, ``upto``] wrote a key of the files ``ours``.

    Also true if it is unknown: a snapshot has expired, or an overwrite deleted files in the range of the keys.
    """
    theirs: list[ManifestEntry] = []
    types = key_types(store.schema)
    for number in range(after + 1, upto + 1):
        snapshot = store.snapshots.try_get(number)
        if snapshot is None:
            return True
        delta = tuple(read_delta_entries(store.file_io, store.paths, snapshot))
        since = InterveningSnapshot(snapshot.id, snapshot.commit_kind, snapshot.commit_user, delta)
        theirs += rewritten_in_range(ours, since, lambda keys: rank_keys(keys, types).tolist())
    if any(entry.kind is FileKind.DELETE for entry in theirs):
        return True
    searches = list(_searches(store, ours, theirs))
    if not searches:
        return False
    keys = RunReader(
        store.file_io,
        store.schema,
        schemas=store.schemas_of(entry.file.schema_id for entry in (*ours, *theirs)),
        columns=store.schema.trimmed_primary_keys,
        memory_bytes=TASK_MEMORY,
    )
    return bool(runner.messages(searches, KeyPositions(keys), store.paths, AttemptNames.new(SYSTEM.new_uuid)).positions)


def _searches(
    store: TableStore, ours: Sequence[ManifestEntry], theirs: Sequence[ManifestEntry]
) -> Iterator[KeySearch]:
    """Yield a search for each of our files in the files that others wrote to its bucket."""
    make = MergeUnits(store, ())
    distinct = {entry.identity: entry for entry in theirs}.values()
    for entry in ours:
        bucket = (entry.partition, entry.bucket)
        targets = tuple(make.file_of(other) for other in distinct if (other.partition, other.bucket) == bucket)
        if targets:
            yield KeySearch(bucket, make.file_of(entry), BitMap(range(entry.file.row_count)), targets)

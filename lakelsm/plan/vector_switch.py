"""Decides whether deletion vectors of a table with data may be enabled or disabled, from the state of its files.

With vectors a reader reads each file above level 0 unchanged, without its masked rows, and leaves level 0 to the next
compaction. Before vectors are enabled all rows must therefore be merged. Otherwise a key that is in two files would be
read twice, a retraction would be read as a row, and visible rows on level 0 would vanish. Before vectors are disabled
no row may be masked, because it would become visible again. A full compaction ensures both; until then the table does
not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.lsm.interval_partition import overlap_groups
from lakelsm.lsm.levels import FileRange, level_count
from lakelsm.options import TableOptions
from lakelsm.plan.bucket_files import BucketId, by_bucket
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore

_MAX_BUCKETS = 10
_OPTION = "option 'deletion-vectors.enabled'"


def check_vector_switch(store: TableStore, before: TableSchema, after: TableSchema) -> None:
    """Raise InvalidInputError if two schemas differ in the option and the options or the newest files forbid the change.

    Commits after the newest snapshot are not checked: writes then follow the schema that they find, and a compaction
    that was planned under the other schema loses (commit/attempt_changes.py), unless it is published between this check
    and the new schema. No compaction should therefore run at the same time.
    """
    options, wanted = (TableOptions.parse(dict(schema.options), for_reads=True) for schema in (before, after))
    snapshot = store.snapshots.latest()
    if snapshot is None or options.deletion_vectors_enabled == wanted.deletion_vectors_enabled:
        return
    if not options.deletion_vectors_modifiable:
        raise InvalidInputError(
            f"Table {store.name}: {_OPTION} of a table with data is fixed. Set 'deletion-vectors.modifiable' = 'true' "
            "first, in a separate change."
        )
    if wanted.deletion_vectors_enabled:
        _refuse_unmerged_rows(store, snapshot)
    else:
        _refuse_masked_rows(store, snapshot)


def _refuse_unmerged_rows(store: TableStore, snapshot: Snapshot) -> None:
    entries = read_live_entries(store.file_io, store.paths, snapshot)
    reasons: dict[BucketId, str] = {}
    forced = ""
    for bucket, files in sorted(by_bucket(store, entries).items()):
        reason = _unmerged(files)
        if reason:
            reasons[bucket] = reason
        top = level_count(files, store.options.num_levels) - 1
        if any(file.level == top and file.may_hold_deletes for file in files):
            forced = " Set 'compaction.force-rewrite-all-files' = 'true' first: the highest level has retractions."
    if reasons:
        named = [f"{_bucket(store, bucket)} ({reason})" for bucket, reason in reasons.items()]
        raise InvalidInputError(
            f"Table {store.name}: {_OPTION} cannot become 'true' while rows are not merged, because reads would lose or "
            f"repeat them: {_listed(named)}. Call compact(full=True), then change the option.{forced}"
        )


def _unmerged(files: Sequence[FileRange]) -> str:
    """Return why the files of a bucket cannot be read one by one; '' if they can."""
    above = [file for file in files if file.level > 0]
    if len(above) < len(files):
        return f"{len(files) - len(above)} files on level 0"
    if any(len(group) > 1 for group in overlap_groups(above)):
        return "files above level 0 overlap"
    return "retractions above level 0" if any(file.may_hold_deletes for file in above) else ""


def _refuse_masked_rows(store: TableStore, snapshot: Snapshot) -> None:
    vectors = deletion_vectors(store, snapshot)
    entries = read_live_entries(store.file_io, store.paths, snapshot, stats=False)
    masked = [entry for entry, vector in zip(entries, vectors.of(entries)) if vector is not None]
    if masked:
        named = [_bucket(store, bucket) for bucket in sorted({(entry.partition, entry.bucket) for entry in masked})]
        raise InvalidInputError(
            f"Table {store.name}: {_OPTION} cannot become 'false' while {len(masked)} data files have masked rows, which "
            f"would become visible: {_listed(named)}. Call compact(full=True), then change the option."
        )


def _bucket(store: TableStore, bucket: BucketId) -> str:
    label = store.partition_label(bucket[0])
    return f"bucket {bucket[1]}" + (f" of partition {label}" if label else "")


def _listed(names: Iterable[str]) -> str:
    all_names = list(names)
    more = len(all_names) - _MAX_BUCKETS
    return ", ".join(all_names[:_MAX_BUCKETS]) + (f" and {more} more" if more > 0 else "")

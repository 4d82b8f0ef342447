"""The files of an overwrite go straight to the top level (option ``overwrite-upgrade``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from lakelsm.format.manifest import ManifestEntry
from lakelsm.lsm.levels import FileRange
from lakelsm.plan.bucket_files import by_bucket
from lakelsm.snapshots.table_store import TableStore


def upgraded_for_overwrite(store: TableStore, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """The new files of an overwrite, on the top level in each bucket where no two of them overlap.

    Nothing else is left in their buckets, so they are a fully compacted bucket: `first-row` shows their rows at once, and
    no later compaction records them as changes. Where the writer itself looks rows up right after the write, its
    compaction moves them, as in Paimon: it also sends each row through the merge engine.
    """
    options = store.options
    if not options.overwrite_upgrade or (options.needs_lookup and not options.write_only):
        return list(entries)
    levels = [entry.file.level for entry in entries]
    for files in by_bucket(store, entries).values():
        if _are_disjoint(files):
            for file in files:
                levels[file.index] = options.num_levels - 1
    return [
        replace(entry, file=entry.file.upgraded(level)) if level > entry.file.level else entry
        for entry, level in zip(entries, levels)
    ]


def _are_disjoint(files: Sequence[FileRange]) -> bool:
    ordered = sorted(files, key=lambda file: file.min_key)
    return all(left.max_key < right.min_key for left, right in pairwise(ordered))

"""Finds the new files of masked rows whose file another commit replaced: which keys to look up, and in which files.

A compaction loses if vectors changed under it (`commit/vector_conflict.py`). There are two cases. Rows of a file that
it rewrites were masked since: they are in its own new files too. Or a file in which it masks rows was rewritten: its
rows are in files that were added since. Above level 0 a key has one unmasked row, and of two concurrent compactions
that take level 0, one finds its input removed. So the row found by its key is the row that was meant, and not a newer
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap

from lakelsm.format.manifest import ManifestEntry
from lakelsm.merge.merge_unit import KeySearch
from lakelsm.plan.bucket_files import BucketId, by_bucket
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True)
class MovedPositions:
    """Masked rows of one bucket after another commit: those whose file still exists, and those now in other files."""

    staying: Mapping[str, BitMap] = field(default_factory=dict)
    moved: Sequence[tuple[ManifestEntry, BitMap, Sequence[ManifestEntry]]] = ()


def moved_positions(
    base: Sequence[ManifestEntry],
    now: Sequence[ManifestEntry],
    written: Sequence[ManifestEntry],
    *,
    positions: Mapping[str, BitMap],
    grown: Mapping[str, BitMap],
) -> MovedPositions:
    """Return the rows of one bucket that a compaction masks, and those of its inputs that were masked since (``grown``).

    ``base`` are the bucket's files when the compaction was planned, ``now`` the current ones, ``written`` its new
    files.
    """
    before = {entry.file.file_name: entry for entry in base}
    live = {entry.file.file_name for entry in now}
    added = [entry for entry in now if entry.file.file_name not in before and entry.file.level > 0]
    moved = [(before[name], rows, written) for name, rows in grown.items()]
    moved += [(before[name], rows, added) for name, rows in positions.items() if name not in live]
    return MovedPositions({name: rows for name, rows in positions.items() if name in live}, moved)


def remap_units(store: TableStore, buckets: Mapping[BucketId, MovedPositions]) -> Iterator[KeySearch]:
    """Yield the units of all buckets: each file with moved positions, and the files whose key range overlaps its own."""
    make = MergeUnits(store, ())
    for bucket, positions in buckets.items():
        for source, rows, found_in in positions.moved:
            (own, *others) = by_bucket(store, [source, *found_in])[bucket]
            near = [file for file in others if file.max_key >= own.min_key and file.min_key <= own.max_key]
            if near and rows:
                targets = tuple(make.file_of(found_in[file.index - 1]) for file in near)
                yield KeySearch(bucket, make.file_of(source), rows, targets)

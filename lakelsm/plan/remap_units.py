"""MaskedPositions that another commit left without their file, as units of work: which keys to look for, and where.

A compaction loses where vectors changed under it (`commit/vector_conflict.py`). Either rows of a file that it rewrites
were masked since: they are in its own new files too. Or a file whose rows it masks was rewritten: its rows are in
files that were added since. Above level 0 a key has one unmasked row, and of two concurrent compactions that take
level 0, one finds its input removed; so the row that has the key is the row that is meant, and no newer one.
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
    """Masked rows of one bucket after another commit: those that stay, and those whose rows are in other files now."""

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
    """Find the rows that a compaction masks in one bucket, and those masked in its inputs since (``grown``).

    ``base`` and ``now`` are the bucket's files when the compaction was planned and now, ``written`` its new files.
    """
    before = {entry.file.file_name: entry for entry in base}
    live = {entry.file.file_name for entry in now}
    came = [entry for entry in now if entry.file.file_name not in before and entry.file.level > 0]
    moved = [(before[name], rows, written) for name, rows in grown.items()]
    moved += [(before[name], rows, came) for name, rows in positions.items() if name not in live]
    return MovedPositions({name: rows for name, rows in positions.items() if name in live}, moved)


def remap_units(store: TableStore, buckets: Mapping[BucketId, MovedPositions]) -> Iterator[KeySearch]:
    """The units of all buckets: each file with moved positions, and the files whose key range overlaps its own."""
    make = MergeUnits(store, ())
    for bucket, known in buckets.items():
        for source, rows, found_in in known.moved:
            (own, *others) = by_bucket(store, [source, *found_in])[bucket]
            near = [file for file in others if file.max_key >= own.min_key and file.min_key <= own.max_key]
            if near and rows:
                targets = tuple(make.file_of(found_in[file.index - 1]) for file in near)
                yield KeySearch(bucket, make.file_of(source), rows, targets)

"""Finds rows of files that became visible or hidden between two snapshots, if each row of a read is one of a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lakelsm.format.data_file.vector_location import VectorLocation
from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_unit import RunFile
from lakelsm.options import TableOptions
from lakelsm.plan.bucket_files import has_one_row_per_key, is_shown
from lakelsm.plan.changelog_plan import LiveFile, live_files, unchanged_files
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True)
class ShownFile:
    """A file in which two snapshots show different rows. ``in_before`` and ``in_after``: the snapshots that have it.

    A snapshot shows the rows that its vector does not mask. ``vector_before`` is the vector in the first snapshot,
    ``file.vector`` that in the second one, or in the first one if the second one does not have the file.
    """

    file: RunFile
    in_before: bool
    in_after: bool
    vector_before: VectorLocation | None = None


def shows_rows_of_files(options: TableOptions) -> bool:
    """Return whether reads show each row of the files that no vector masks, and merge none."""
    return has_one_row_per_key(options) and not is_shown(options, 0)


def plan_shown_rows(
    store: TableStore, before: Snapshot, after: Snapshot, only: Collection[int] | None = None
) -> tuple[ShownFile, ...]:
    """Return the files in which the two snapshots show different rows; a change of level alone does not count.

    ``only``: the buckets to consider (None: all).
    """
    old, new = (_by_name(live_files(store, snapshot, None, only).values()) for snapshot in (before, after))
    unchanged = unchanged_files(store, old, new)
    changed = [(old.get(name), new.get(name)) for name in {**old, **new} if name not in unchanged]
    listed = [(first, second, live) for first, second in changed if (live := second or first) is not None]
    make = MergeUnits(store, [live.entry for _, _, live in listed])
    return tuple(
        ShownFile(
            make.file_of(live.entry, live.vector),
            in_before=first is not None,
            in_after=second is not None,
            vector_before=first.vector if first else None,
        )
        for first, second, live in listed
    )


def _by_name(files: Iterable[LiveFile]) -> dict[tuple[bytes, int, str], LiveFile]:
    """Return files by partition, bucket and name, independent of their level."""
    return {(file.entry.partition, file.entry.bucket, file.entry.file.file_name): file for file in files}

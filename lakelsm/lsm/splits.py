"""Splits of a bucket for a batch read: what goes together, what needs no merge (docs/format.md 13.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakelsm.lsm.interval_partition import Section, fewest_runs, overlap_groups
from lakelsm.lsm.levels import FileRange

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Split:
    """Files that one task reads.

    With `raw`, every row of every file is a row of the table, no merge is needed, and `sections` is empty.
    Otherwise `sections` says how to merge the files, in key order.
    """

    files: tuple[FileRange, ...]
    raw: bool
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadUnits:
    """A bucket's files, told apart by whether they need a merge, without packing them."""

    raw_files: tuple[FileRange, ...]
    merge_sections: tuple[Section, ...]


def pack_in_order(items: Iterable[Item], weight: Callable[[Item], int], target: int) -> list[list[Item]]:
    """Cuts items into consecutive bins of at most `target` weight; a heavier item gets its own bin."""
    bins: list[list[Item]] = []
    current: list[Item] = []
    filled = 0
    for item in items:
        item_weight = weight(item)
        if current and filled + item_weight > target:
            bins.append(current)
            current, filled = [], 0
        current.append(item)
        filled += item_weight
    if current:
        bins.append(current)
    return bins


def reads_raw_as_a_whole(files: Sequence[FileRange], *, no_merge: bool = False) -> bool:
    """Whether all files of a bucket can be read without a merge.

    All are above level 0, without retractions (an unknown count is a maybe), and on one level; with
    `no_merge` (deletion vectors, first-row) on any levels.
    """
    levels = {file.level for file in files}
    if 0 in levels or (len(levels) > 1 and not no_merge):
        return False
    return all(file.delete_rows == 0 for file in files)


def read_units(files: Sequence[FileRange], *, no_merge: bool = False) -> ReadUnits:
    """The files of one bucket that are read as they are, and the sections that must be merged.

    A section of one file without retractions is read as it is, on level 0 too: a file holds a key once.
    """
    if reads_raw_as_a_whole(files, no_merge=no_merge):
        return ReadUnits(tuple(files), ())
    raw: list[FileRange] = []
    merge: list[Section] = []
    for group in overlap_groups(files):
        if _is_raw(group):
            raw.append(group[0])
        else:
            merge.append(Section(fewest_runs(group)))
    return ReadUnits(tuple(raw), tuple(merge))


def plan_splits(
    files: Sequence[FileRange], *, target_size: int, open_file_cost: int, no_merge: bool = False
) -> tuple[Split, ...]:
    """Packs the files of one bucket into splits of about `target_size` bytes (`source.split.target-size`).

    A file, or a section where a merge is needed, weighs its size, at least `open_file_cost` bytes. Sections
    are never cut. A packed split is raw if it is one single file without retractions, or if the bucket as a
    whole is read raw. `no_merge` stands for deletion vectors and first-row.
    """
    if reads_raw_as_a_whole(files, no_merge=no_merge):
        bins = pack_in_order(files, lambda file: max(file.size, open_file_cost), target_size)
        return tuple([Split(tuple(packed), raw=True) for packed in bins])
    packs = pack_in_order(
        overlap_groups(files),
        lambda group: max(sum([file.size for file in group]), open_file_cost),
        target_size,
    )
    return tuple([_split(pack) for pack in packs])


def _split(groups: list[list[FileRange]]) -> Split:
    files = tuple([file for group in groups for file in group])
    if len(groups) == 1 and _is_raw(groups[0]):
        return Split(files, raw=True)
    return Split(files, raw=False, sections=tuple([Section(fewest_runs(group)) for group in groups]))


def _is_raw(group: Sequence[FileRange]) -> bool:
    return len(group) == 1 and group[0].delete_rows == 0

"""Splits of a bucket for a batch read: which files are read together, and which need no merge (docs/format.md 13.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakelsm.lsm.interval_partition import Section, fewest_runs, overlap_groups
from lakelsm.lsm.levels import FileRange

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ReadUnits:
    """The files of a bucket, divided into those that are read unchanged and sections that must be merged; not packed."""

    raw_files: tuple[FileRange, ...]
    merge_sections: tuple[Section, ...]


def pack_in_order(items: Iterable[Item], weight: Callable[[Item], int], target: int) -> list[list[Item]]:
    """Divide items into consecutive groups of at most `target` weight; a heavier item has its own group."""
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


def reads_without_merge(files: Sequence[FileRange], *, unique_keys: bool = False) -> bool:
    """Return whether all files of a bucket can be read without a merge.

    They must be above level 0, without retractions (an unknown count may be some), and on one level. With `unique_keys`
    (deletion vectors, first-row) they may be on several levels, because no key is on two of them.
    """
    levels = {file.level for file in files}
    if 0 in levels or (len(levels) > 1 and not unique_keys):
        return False
    return all(file.delete_rows == 0 for file in files)


def read_units(files: Sequence[FileRange], *, unique_keys: bool = False) -> ReadUnits:
    """Divide the files of one bucket into those that are read unchanged and sections that must be merged.

    A section of one file without retractions is read unchanged, also on level 0: a file contains a key once.
    """
    if reads_without_merge(files, unique_keys=unique_keys):
        return ReadUnits(tuple(files), ())
    raw: list[FileRange] = []
    merge: list[Section] = []
    for group in overlap_groups(files):
        if _is_raw(group):
            raw.append(group[0])
        else:
            merge.append(Section(fewest_runs(group)))
    return ReadUnits(tuple(raw), tuple(merge))


def _is_raw(group: Sequence[FileRange]) -> bool:
    return len(group) == 1 and group[0].delete_rows == 0

"""Sections: the cut of files into key ranges that do not touch each other, and the fewest runs of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from operator import attrgetter

from lakelsm.lsm.levels import FileRange


@dataclass(frozen=True, slots=True)
class Section:
    """Files whose key ranges hang together, as the fewest runs that hold them.

    No key of a section occurs in another one. Files of a run do not overlap and are ordered by key; the
    order of the runs is not their age. A section of one run is one file.
    """

    runs: tuple[tuple[FileRange, ...], ...]

    @property
    def files(self) -> tuple[FileRange, ...]:
        """All files, run after run."""
        if len(self.runs) == 1:
            return self.runs[0]
        return tuple(file for run in self.runs for file in run)


_BY_MIN, _BY_MAX = attrgetter("min_key"), attrgetter("max_key")


def interval_partition(files: Iterable[FileRange]) -> tuple[Section, ...]:
    """Cuts files of one bucket into sections, in key order; O(n log n).

    Two ranges that share only a boundary key overlap, because both files may hold that key.
    """
    return tuple([Section(fewest_runs(group)) for group in overlap_groups(files)])


def overlap_groups(files: Iterable[FileRange]) -> list[list[FileRange]]:
    """The files of each section, in key order, each ordered by its range (minimum key, then maximum key)."""
    ordered = sorted(files, key=_BY_MAX)
    ordered.sort(key=_BY_MIN)  # stable: two plain sorts are faster than one by pairs
    groups: list[list[FileRange]] = []
    bound = None
    for file in ordered:
        if groups and file.min_key <= bound:
            groups[-1].append(file)
            bound = max(bound, file.max_key)
        else:
            groups.append([file])
            bound = file.max_key
    return groups


def fewest_runs(members: Sequence[FileRange]) -> tuple[tuple[FileRange, ...], ...]:
    """Greedy interval colouring: a file continues the run that ends first, or opens a new one if even that
    overlaps.

    `members` is ordered by key range. The number of runs is the deepest overlap, which no cut can beat.
    """
    if len(members) == 1:
        return ((members[0],),)
    runs: list[list[FileRange]] = [[members[0]]]
    heap: list[tuple[object, int]] = [(members[0].max_key, 0)]
    for file in members[1:]:
        end, run = heap[0]
        if file.min_key > end:
            runs[run].append(file)
            heapreplace(heap, (file.max_key, run))
        else:
            heappush(heap, (file.max_key, len(runs)))
            runs.append([file])
    return tuple(tuple(run) for run in runs)

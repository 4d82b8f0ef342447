"""Sections: files divided by key ranges that do not overlap, and the minimum number of sorted runs of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from operator import attrgetter

from lakelsm.lsm.levels import FileRange


@dataclass(frozen=True, slots=True)
class Section:
    """Files whose key ranges overlap directly or through others, as the minimum number of sorted runs.

    No other section contains a key of this one. Files of a run do not overlap and are ordered by key; runs are not
    ordered by age. A section of one run has one file.
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
    """Divide the files of one bucket into sections, in key order; O(n log n).

    Two ranges that share only a boundary key overlap, because both files may contain that key.
    """
    return tuple([Section(fewest_runs(group)) for group in overlap_groups(files)])


def overlap_groups(files: Iterable[FileRange]) -> list[list[FileRange]]:
    """Return the files of each section; sections are in key order, their files by (minimum key, maximum key)."""
    ordered = sorted(files, key=_BY_MAX)
    ordered.sort(key=_BY_MIN)  # Sorts are stable, and two simple ones are faster than one by pairs.
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
    """Assign files to the minimum number of runs by greedy interval colouring.

    A file continues the run with the smallest last key, or starts a new run if it overlaps even that one. `members` are
    ordered by key range. The number of runs is the maximum number of files that overlap at one key, a lower bound.
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

"""The levels of one bucket: files as planning sees them, and their sorted runs (docs/format.md 13.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import Any

from lakelsm.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class FileRange:
    """Planning view of one data file of one bucket.

    `index` is the index in the caller's list of files. `min_key` and `max_key` (both inclusive) are any values
    whose total order is the order of the table's keys. Sizes are bytes. `delete_rows` is the number of -U and -D rows,
    None if the writer did not record it. `creation_time` is in milliseconds, None if unknown.
    """

    index: int
    level: int
    size: int
    row_count: int
    _: KW_ONLY
    min_key: Any
    max_key: Any
    min_seq: int
    max_seq: int
    delete_rows: int | None = None
    creation_time: int | None = None
    name: str = ""

    @property
    def may_hold_deletes(self) -> bool:
        """Whether a row of the file may be a retraction; true if the count is unknown (docs/format.md 13.4)."""
        return self.delete_rows is None or self.delete_rows > 0


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files of one level whose key ranges do not overlap, ordered by key. On level 0 a run is one file."""

    level: int
    files: tuple[FileRange, ...]

    @property
    def total_size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


_BY_KEY = attrgetter("min_key")


def _newest_first(file: FileRange) -> tuple[int, int, int, str]:
    return -file.max_seq, file.min_seq, file.creation_time or 0, file.name


def sorted_runs(files: Iterable[FileRange]) -> tuple[SortedRun, ...]:
    """Return the sorted runs of one bucket: each level-0 file, newest first, then each non-empty level upward.

    Level-0 files are ordered by larger maximum sequence number, then smaller minimum, creation time and name. Files of
    another level are ordered by key; as in every reader of the format, it is not checked that they do not overlap.
    """
    by_level: dict[int, list[FileRange]] = {}
    for file in files:
        by_level.setdefault(file.level, []).append(file)
    runs = [SortedRun(0, (file,)) for file in sorted(by_level.pop(0, ()), key=_newest_first)]
    runs.extend(SortedRun(level, tuple(sorted(by_level[level], key=_BY_KEY))) for level in sorted(by_level))
    return tuple(runs)


def level_count(files: Iterable[FileRange], num_levels: int) -> int:
    """Return the number of levels of a bucket: `num-levels`, or more if a file is on a higher level.

    Raises InvalidInputError below 2: a compaction never writes to level 0, so there must be a level above it.
    """
    highest = max((file.level for file in files), default=-1)
    count = max(num_levels, highest + 1)
    if count < 2:
        raise InvalidInputError(f"option 'num-levels': {num_levels} is less than 2.")
    return count


def highest_level(runs: Sequence[SortedRun]) -> int:
    """Return the highest non-empty level of runs in `sorted_runs` order; -1 without runs."""
    return runs[-1].level if runs else -1

"""Excludes files of a snapshot that a read with a predicate need not open (docs/format.md 7.3).

Three kinds of columns, three rules:

* *Partition columns* have one value for all rows of a partition: `partitions_that_may_match`.
* *Key columns* have the same value in every version of a row. If no key of a file can make the predicate TRUE, the
  file has only unwanted rows and cannot hide a wanted row. Each such file may be excluded alone, with every merge
  engine: `files_that_may_match` with the predicate restricted to key columns.
* *Other columns* differ between the versions of a row. A file whose own rows all fail may contain the newer version
  of a row whose older version, in another file, would pass. Without the newer version the hidden row would be visible
  again. `prune_by_values` excludes only files that cannot cause this.

Files may be excluded by keys before or after `prune_by_values`: files that contain a wanted key survive both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from operator import attrgetter
from typing import Any

from lakelsm.lsm.interval_partition import overlap_groups
from lakelsm.lsm.levels import FileRange
from lakelsm.predicate.predicate import Predicate, restrict
from lakelsm.predicate.statistics import ColumnBounds, StatsTable, may_match


class VersionRule(Enum):
    """The rule by which the row of a key follows from its versions in several files."""

    LAST_BY_SEQUENCE = "last by sequence number"
    """deduplicate without `sequence.field`: the version with the largest sequence number."""
    ANY_ONE = "one of them"
    """deduplicate with `sequence.field`, first-row: one of the versions, which sequence numbers do not decide."""
    COMBINED = "combined"
    """partial-update, aggregation: the row may equal none of its versions."""
    MASKED = "masked"
    """Deletion vectors: every file shows only current rows, so no file can hide a row of another one."""


def partitions_that_may_match(
    predicate: Predicate, partition_columns: Sequence[str], partitions: Iterable[Sequence[Any]]
) -> list[bool]:
    """Return for each partition (exact values, None for NULL) False if no row of it can make the predicate TRUE."""
    rows = list(partitions)
    columns = dict(zip(partition_columns, zip(*rows), strict=bool(rows)))
    nulls = {name: [int(value is None) for value in values] for name, values in columns.items()}
    exact = {name: ColumnBounds(values, values, nulls[name], exact=True) for name, values in columns.items()}
    return may_match(restrict(predicate, partition_columns), StatsTable([1] * len(rows), exact))


def files_that_may_match(
    predicate: Predicate, stats: StatsTable, columns: Iterable[str] | None = None
) -> list[bool]:
    """Return for each file False if its statistics prove that no row of it makes the predicate TRUE.

    With `columns` only the parts of the predicate on these columns count. If these are key columns (the primary key,
    partition columns included), False is sufficient to exclude a file. Without `columns` the result is the input of
    `prune_by_values`. For a key column the key statistics and the value statistics are equally good.
    """
    return may_match(predicate if columns is None else restrict(predicate, columns), stats)


def prune_by_values(
    files: Sequence[FileRange], may_match_value: Mapping[int, bool] | Sequence[bool], rule: VersionRule
) -> list[FileRange]:
    """Return the files of ONE bucket that a read must keep, in the given order.

    `files` are the files that the read would otherwise merge (with deletion vectors or first-row: without level 0).
    `may_match_value[file.index]` says whether any row of the file itself can make the predicate TRUE; a file for
    which it is False "fails".

    All versions of a key are in files whose key range contains it, so only files that overlap a file F can contain
    other versions of F's rows. Hence:

    * MASKED: every failing file is excluded.
    * COMBINED: a combined row can pass although all its versions fail (NULLs filled in, sums). A failing file is
      excluded only if no file overlaps it, it is not on level 0 and it has no retraction: then each of its rows is the
      only version and is read unchanged.
    * ANY_ONE: the row is one of its versions. A failing file F is excluded if every file that overlaps it fails too:
      then no version of any of F's keys passes, so the filter drops the row whichever versions remain. A section whose
      files all fail is excluded as a whole, and so is such a bucket.
    * LAST_BY_SEQUENCE: as ANY_ONE, but an overlapping file need not fail if all its sequence numbers are larger than
      F's. Proof: take any key, and the version W that a merge of all files picks. If the file of W is kept, the merge
      of the kept files picks W again: it has the largest sequence number, or the largest that counts if retractions are
      ignored. If the file of W is excluded, each kept file that overlaps it and has an older version must fail,
      and a newer version that counts does not exist, or W would not have been picked. So if the merge picks another
      version, that version fails. Old large files below small new ones can therefore be excluded, although the new
      ones must be read.
    """
    failing = [file for file in files if not may_match_value[file.index]]
    if not failing:
        return list(files)
    if rule is VersionRule.MASKED:
        excluded = {file.index for file in failing}
    else:
        excluded = set()
        for group in overlap_groups(files):
            excluded.update(_excludable(group, may_match_value, rule))
    return [file for file in files if file.index not in excluded]


def _excludable(
    members: Sequence[FileRange], may_match_value: Mapping[int, bool] | Sequence[bool], rule: VersionRule
) -> Iterable[int]:
    """Return the indexes of the files of one section that may be excluded."""
    if rule is VersionRule.COMBINED:
        file = members[0]
        alone = len(members) == 1 and file.level > 0 and file.delete_rows == 0
        return [file.index] if alone and not may_match_value[file.index] else []
    passing = [file for file in members if may_match_value[file.index]]
    if not passing:
        return [file.index for file in members]
    if len(passing) == len(members):
        return []
    overlaps = _PassingFiles(passing)
    in_order = rule is VersionRule.LAST_BY_SEQUENCE
    return [
        file.index
        for file in members
        if not may_match_value[file.index] and not overlaps.hides(file, in_order)
    ]


_MIN_KEY = attrgetter("min_key")
# Maximum number of passing files that are compared with one failing file. Beyond it the failing file is kept: always
# safe.
_MAX_LOOKUPS = 64


class _PassingFiles:
    """Finds out whether a file overlaps a passing file that may be older."""

    def __init__(self, passing: Sequence[FileRange]) -> None:
        self._files = sorted(passing, key=_MIN_KEY)
        self._starts = [file.min_key for file in self._files]
        self._reach = list(accumulate((file.max_key for file in self._files), max))
        self._oldest = min(file.min_seq for file in self._files)

    def hides(self, file: FileRange, in_order: bool) -> bool:
        """Return whether excluding `file` could make a passing row visible again; with `in_order` newer files cannot."""
        end = bisect_right(self._starts, file.max_key)
        begin = bisect_left(self._reach, file.min_key, 0, end)
        if begin == end:
            return False
        if not in_order:
            return True
        if self._oldest > file.max_seq:
            return False
        if end - begin > _MAX_LOOKUPS:
            return True
        return any(
            other.max_key >= file.min_key and other.min_seq <= file.max_seq
            for other in self._files[begin:end]
        )

"""Pruning does not change the answer of a read, whichever files it excludes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lsm.levels import FileRange
from lakelsm.lsm.pruning import (
    VersionRule,
    files_that_may_match,
    partitions_that_may_match,
    prune_by_values,
)
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.statistics import ColumnBounds, StatsTable
from tests.lsm.planning_files import file
from tests.predicate.conditions import FIELDS


@dataclass(frozen=True)
class Version:
    """One row in one file. `wanted`: its own values match the predicate."""

    key: int
    sequence: int
    wanted: bool
    delete: bool


@st.composite
def buckets(draw: st.DrawFn) -> list[list[Version]]:
    """Files of one bucket: a key at most once in each, sequence numbers unique and mostly ascending."""
    count = draw(st.integers(1, 6))
    files: list[list[Version]] = []
    sequence = 0
    for _ in range(count):
        keys = draw(st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True))
        unwanted = draw(st.booleans())
        rows = []
        for key in keys:
            wanted = not unwanted and draw(st.booleans())
            rows.append(Version(key, sequence, wanted, draw(st.integers(0, 4)) == 0))
            sequence += 1
        files.append(rows)
    if draw(st.integers(0, 3)) == 0:  # mix the numbers of some files
        order = draw(st.permutations(range(sequence)))
        files = [[Version(v.key, order[v.sequence], v.wanted, v.delete) for v in rows] for rows in files]
    return files


def _ranges(files: list[list[Version]]) -> list[FileRange]:
    return [
        file(
            min(v.key for v in rows),
            max(v.key for v in rows),
            index=i,
            min_seq=min(v.sequence for v in rows),
            max_seq=max(v.sequence for v in rows),
        )
        for i, rows in enumerate(files)
    ]


def _answer(files: Iterable[list[Version]], *, first: bool = False, ignore_delete: bool = False) -> set[int]:
    """Return the keys of the wanted rows after a merge."""
    merged: dict[int, Version] = {}
    for version in sorted((v for rows in files for v in rows), key=lambda v: v.sequence, reverse=first):
        if not (ignore_delete and version.delete):
            merged[version.key] = version
    return {v.key for v in merged.values() if v.wanted and not v.delete}


@given(buckets(), st.sets(st.integers(0, 5)), st.booleans())
def test_the_last_version_wins_as_without_pruning(
    files: list[list[Version]], vague: set[int], ignore_delete: bool
) -> None:
    passes = [i in vague or any(v.wanted for v in rows) for i, rows in enumerate(files)]
    kept = prune_by_values(_ranges(files), passes, VersionRule.LAST_BY_SEQUENCE)
    remaining = [files[f.index] for f in kept]
    assert _answer(remaining, ignore_delete=ignore_delete) == _answer(files, ignore_delete=ignore_delete)


@given(buckets(), st.booleans())
def test_one_of_the_versions_wins_as_without_pruning(
    files: list[list[Version]], first: bool
) -> None:
    passes = [any(v.wanted for v in rows) for rows in files]
    kept = prune_by_values(_ranges(files), passes, VersionRule.ANY_ONE)
    assert _answer([files[f.index] for f in kept], first=first) == _answer(files, first=first)


@given(buckets())
def test_without_sequence_numbers_no_more_files_are_excluded_than_with_them(files: list[list[Version]]) -> None:
    passes = [any(v.wanted for v in rows) for rows in files]
    by_number = prune_by_values(_ranges(files), passes, VersionRule.LAST_BY_SEQUENCE)
    without = prune_by_values(_ranges(files), passes, VersionRule.ANY_ONE)
    assert {f.index for f in by_number} <= {f.index for f in without}


def _kept(files: list[FileRange], passes: list[bool], rule: VersionRule) -> list[int]:
    return [f.index for f in prune_by_values(files, passes, rule)]


OLD_BELOW_NEW = [
    file(0, 9, level=5, index=0, min_seq=0, max_seq=9),
    file(10, 19, level=5, index=1, min_seq=0, max_seq=9),
    file(5, 6, index=2, min_seq=10, max_seq=11),
]


def test_a_newer_file_that_fails_is_kept_while_an_older_one_passes() -> None:
    assert _kept(OLD_BELOW_NEW, [True, False, False], VersionRule.LAST_BY_SEQUENCE) == [0, 2]


def test_an_older_file_that_fails_is_excluded_below_a_newer_one_that_passes() -> None:
    passes = [False, False, True]
    assert _kept(OLD_BELOW_NEW, passes, VersionRule.LAST_BY_SEQUENCE) == [2]
    assert _kept(OLD_BELOW_NEW, passes, VersionRule.ANY_ONE) == [0, 2]


def test_a_bucket_whose_files_all_fail_is_excluded_as_a_whole() -> None:
    for rule in (VersionRule.LAST_BY_SEQUENCE, VersionRule.ANY_ONE, VersionRule.MASKED):
        assert _kept(OLD_BELOW_NEW, [False] * 3, rule) == []


def test_files_of_combined_rows_are_excluded_only_without_a_merge() -> None:
    assert _kept(OLD_BELOW_NEW, [False] * 3, VersionRule.COMBINED) == [0, 2]
    assert _kept([file(0, 9)], [False], VersionRule.COMBINED) == [0]
    assert _kept([file(0, 9, level=1, delete_rows=1)], [False], VersionRule.COMBINED) == [0]


def test_masked_files_are_excluded_one_by_one() -> None:
    assert _kept(OLD_BELOW_NEW, [True, False, False], VersionRule.MASKED) == [0]


def test_partitions_are_pruned_by_their_exact_values() -> None:
    predicate = parse_where("day = '2020-01-01' AND amount > 1", FIELDS)
    days = [(date(2020, 1, 1),), (date(2020, 1, 2),), (None,)]
    assert partitions_that_may_match(predicate, ["day"], days) == [True, False, False]


@pytest.mark.parametrize(("columns", "kept"), [(["id"], [True, False]), (None, [False, False])])
def test_only_key_columns_decide_if_requested(columns: list[str] | None, kept: list[bool]) -> None:
    bounds = {
        "id": ColumnBounds([1, 6], [5, 9], [0, 0]),
        "flag": ColumnBounds([True] * 2, [True] * 2, [0, 0]),
    }
    stats = StatsTable([3, 3], bounds)
    assert files_that_may_match(parse_where("id = 4 AND NOT flag", FIELDS), stats, columns) == kept

"""Rows of a read are counted as those of files less the hidden ones, with any runner."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.plan.read_plan import plan_read
from lakelsm.read.hidden_count import visible_row_count
from lakelsm.runner.local_runner import LocalRunner
from tests.compact.local_table import LocalTable
from tests.examples import examples

ROWS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc")), min_size=1)


def counted(table: LocalTable) -> int | None:
    return visible_row_count(table.runner, table.store, plan_read(table.store, table.latest, None))


@examples(30)
@given(
    st.lists(
        st.tuples(st.booleans(), ROWS, st.booleans()),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_the_count_equals_the_rows_of_a_plain_merge(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, list[tuple[int, str]], bool]], vectors: bool
) -> None:
    options = {"deletion_vectors__enabled": "true", "deletion_vectors__merge_on_read": "true"} if vectors else {}
    table = LocalTable(tmp_path_factory.mktemp("count") / "t", **options)
    for deletes, rows, compacts in steps:
        (table.delete if deletes else table.write)(*rows)
        if compacts:
            table.compact(full=False)
    shown: dict[int, str] = {}
    for deletes, rows, _ in steps:
        for key, value in rows:
            shown.pop(key, None) if deletes else shown.__setitem__(key, value)
    assert counted(table) == len(shown)


def test_only_files_that_overlap_others_are_opened(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "p INT, id INT, v STRING", ("p", "id"), ("p",))
    for value in "ab":
        table.write((1, 1, value), (1, 2, value))
    table.write((2, 1, "a"), (2, 2, "a"))
    first, _, alone = table.live()
    table.path_of(alone).unlink()
    assert counted(table) == 4
    table.path_of(first).unlink()
    with pytest.raises(CorruptTableError, match=first.file.file_name):
        counted(table)


def test_a_pool_of_threads_counts_the_same(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="3")
    for start in (0, 50, 75):
        table.write(*((number, "a") for number in range(start, start + 100)))
    plan = plan_read(table.store, table.latest, None)
    assert visible_row_count(LocalRunner(), table.store, plan) == 175


def test_engines_that_combine_rows_are_not_counted_by_hidden_rows(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", merge_engine="partial-update")
    table.write((1, "a"))
    table.write((1, "b"))
    assert counted(table) is None

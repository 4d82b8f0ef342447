"""Counts from metadata: the rows of a read if no files have to be merged, otherwise None."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.plan.count_plan import metadata_count
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.parser import parse_where
from tests.chance import seeds
from tests.compact.local_table import LocalTable


def count(table: LocalTable, where: str | None = None, fresh: bool = False) -> int | None:
    store = table.store
    predicate = None if where is None else parse_where(where, store.schema.fields)
    return metadata_count(store, store.snapshots.latest(), predicate, fresh)


def test_files_that_overlap_no_other_one_are_counted_by_their_entries(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    assert count(table) == 0
    table.write(*((number, "a") for number in range(10)))
    table.write(*((number, "b") for number in range(20, 25)))
    assert count(table) == 15
    table.compact(full=True)
    table.write((30, "c"))
    assert count(table) == 16
    table.write((9, "d"))
    assert count(table) is None
    table.compact(full=True)
    assert count(table) == 16
    table.delete((3, "a"))
    assert count(table) is None
    table.compact(full=True)
    assert count(table) == 15 == len(table.rows())


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("p = 'a'", 3),
        ("P <> 'a'", 2),
        ("p IN ('a', 'b') AND q >= 2", 3),
        ("q IS NULL", 0),
        ("p IS NULL OR q = 1", 2),
        ("NOT (p = 'a' OR q = NULL)", 0),
        ("p = 'nobody'", 0),
        ("1 = 1", 5),
        ("FALSE", 0),
        ("p = 'a' AND v = 'x'", None),
        ("id > 0", None),
        ("upper(p) = 'A'", None),
    ],
)
def test_a_condition_on_partitions_alone_selects_them_whole(tmp_path: Path, where: str, expected: int | None) -> None:
    table = LocalTable(
        tmp_path / "t", "p STRING, q INT, id INT, v STRING", primary_key=["p", "q", "id"], partition_by=["p", "q"]
    )
    table.write(("a", 1, 1, "x"), ("a", 1, 2, "x"), ("a", 2, 1, "x"), ("b", 2, 1, "y"), ("b", 2, 2, "y"))
    assert count(table, where) == expected


@pytest.mark.parametrize(("where", "expected"), [("TRUE", 2), ("FALSE", 0), ("NULL", 0), ("1 = 2 OR 3 > 2", 2)])
def test_a_constant_selects_all_rows_of_a_table_without_partitions_or_none(
    tmp_path: Path, where: str, expected: int
) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"), (2, "a"))
    assert count(table, where) in (expected, None)
    assert count(table, "TRUE") == 2 and count(table, "FALSE") == 0


def test_masked_rows_are_subtracted_and_level_0_counts_only_if_it_is_visible(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(*((number, "a") for number in range(100)))
    table.compact(full=True)
    table.write(*((number, "b") for number in range(90, 110)))
    assert count(table) == 100 and count(table, fresh=True) is None
    table.compact(full=False)
    assert table.store.snapshots.latest() is not None and len(table.levels()) > 1
    assert count(table) == 110 == count(table, fresh=True)
    table.write((500, "c"))
    assert count(table) == 110 and count(table, fresh=True) is None


def test_rows_that_first_row_has_not_merged_are_not_counted(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **{"merge-engine": "first-row"})
    table.write((1, "a"), (2, "a"))
    assert count(table) == 0 and count(table, fresh=True) == 2
    table.compact(full=False)
    assert count(table) == 2


def test_retractions_that_pypaimon_does_not_count_are_not_trusted(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT, v STRING, op STRING", **{"rowkind.field": "op"})
    table.write((1, "a", "+I"), (2, "a", "+I"))
    assert count(table) is None
    table.compact(full=True)
    assert count(table) == 2


@pytest.mark.property
@pytest.mark.parametrize("seed", seeds(4))
def test_there_is_a_count_if_and_only_if_a_read_merges_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    options = {"deletion-vectors.enabled": "true"} if seed % 2 else {}
    table = LocalTable(
        tmp_path / "t", "p INT, id INT, v INT", primary_key=["p", "id"], partition_by=["p"], **{"bucket": "2", **options}
    )
    for step in range(8):
        low = chance.randrange(0, 300, 10)
        rows = [(chance.randrange(2), low + number, step) for number in range(chance.choice([1, 3, 12]))]
        (table.delete if chance.random() < 0.15 else table.write)(*dict.fromkeys(rows))
        if chance.random() < 0.4:
            table.compact(full=chance.random() < 0.3)
        for where in (None, "p = 1"):
            store = table.store
            predicate = None if where is None else parse_where(where, store.schema.fields)
            plan = plan_read(store, table.latest, predicate)
            shown = sum(file.row_count for file in plan.raw_files)
            masked = sum(file.vector.cardinality or 0 for file in plan.raw_files if file.vector is not None)
            assert count(table, where) == (None if plan.units else shown - masked)
    if not options:
        table.compact(full=True)
        assert count(table) == len(table.rows())


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    for manifest in (tmp_path / "t" / "manifest").glob("manifest-*-0"):
        manifest.unlink()
    with pytest.raises(CorruptTableError, match="is missing, but"):
        count(table)

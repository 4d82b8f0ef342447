"""Masked rows whose file another commit replaced are looked up by key in the files that now contain the rows."""

from __future__ import annotations

from pathlib import Path

from pyroaring import BitMap

from lakelsm.format.data_file.vector_location import VectorLocation
from lakelsm.format.manifest import ManifestEntry
from lakelsm.merge.merge_unit import KeySearch
from lakelsm.plan.remap_units import MovedPositions, moved_positions, remap_units
from tests.commit.commit_table import CommitTable, add, file, partition
from tests.plan.test_vector_switch import store_of

BUCKET = (partition("a"), 0)
OLD = add(file("old", level=5, keys=(1, 9)))
KEPT = add(file("kept", level=5, keys=(10, 19)))
LOW = add(file("low"))


def of_level(name: str, level: int, keys: tuple[int, int] = (1, 9)) -> ManifestEntry:
    return add(file(name, level=level, keys=keys))


def test_positions_of_existing_files_stay() -> None:
    positions = {"old": BitMap([1]), "kept": BitMap([2])}
    found = moved_positions([OLD, KEPT], [OLD, KEPT, LOW], [], positions=positions, grown={})
    assert found == MovedPositions(positions, [])


def test_positions_of_a_rewritten_file_are_looked_up_in_new_files_above_level_0() -> None:
    added = [of_level("n", 5), of_level("m", 4)]
    positions = {"old": BitMap([1]), "kept": BitMap([2])}
    found = moved_positions([OLD, KEPT], [KEPT, *added, add(file("fresh"))], [], positions=positions, grown={})
    assert found.staying == {"kept": BitMap([2])}
    assert found.moved == [(OLD, BitMap([1]), added)]


def test_an_upgraded_file_keeps_its_positions() -> None:
    moved = of_level("old", 6)
    assert moved_positions([OLD], [moved], [], positions={"old": BitMap([1])}, grown={}).moved == []


def test_rows_that_were_masked_in_an_input_are_looked_up_in_the_output() -> None:
    written = [of_level("w", 5)]
    found = moved_positions([OLD, KEPT], [OLD, KEPT], written, positions={}, grown={"old": BitMap([3, 4])})
    assert found == MovedPositions({}, [(OLD, BitMap([3, 4]), written)])


def units(tmp_path: Path, positions: MovedPositions) -> list[KeySearch]:
    table = CommitTable(tmp_path / "t")
    store = store_of(table)
    directory = Path(store.paths.bucket_dir(store.partition_text(BUCKET[0]), 0))
    directory.mkdir(parents=True)
    return list(remap_units(store, {BUCKET: positions}))


def test_a_unit_has_the_files_whose_keys_overlap_those_of_the_replaced_one(tmp_path: Path) -> None:
    near = [of_level("x", 5, (0, 1)), of_level("y", 4, (9, 30))]
    targets = [of_level("before", 5, (-9, 0)), *near, of_level("after", 4, (10, 30))]
    (unit,) = units(tmp_path, MovedPositions({}, [(OLD, BitMap([1]), targets)]))
    assert (unit.bucket, unit.rows, unit.source.name) == (BUCKET, BitMap([1]), "old")
    assert [(target.name, target.level) for target in unit.targets] == [("x", 5), ("y", 4)]
    vectors: list[VectorLocation | None] = [unit.source.vector, *(target.vector for target in unit.targets)]
    assert vectors == [None] * 3, "masked rows have keys too"


def test_positions_without_a_possible_file_make_no_unit(tmp_path: Path) -> None:
    far = [of_level("far", 5, (10, 30))]
    nothing = [(OLD, BitMap(), [of_level("w", 5)]), (OLD, BitMap([1]), far), (OLD, BitMap([1]), [])]
    assert units(tmp_path, MovedPositions({}, nothing)) == []

"""Plans of incremental reads, from metadata alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.options import ChangelogProducer
from lakelsm.plan.changelog_plan import ChangelogMode, ChangelogPlan, plan_changelog, plan_difference
from lakelsm.predicate.parser import parse_where
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, delete, file, upgrade
from tests.masked_files import mask


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def planned(table: CommitTable, start: int, end: int, mode: ChangelogMode, where: str | None = None) -> ChangelogPlan:
    store = TableStore.open(str(table.root))
    predicate = None if where is None else parse_where(where, store.schema.fields)
    return plan_changelog(store, start, end, mode, predicate)


def difference(table: CommitTable, before: int | None, after: int | None, where: str | None = None) -> ChangelogPlan:
    store = TableStore.open(str(table.root))
    states = [None if number is None else store.snapshots.get(number) for number in (before, after)]
    return plan_difference(store, *states, None if where is None else parse_where(where, store.schema.fields))


def scanned(plan: ChangelogPlan) -> list[tuple[int | None, list[str]]]:
    return [(snapshot, sorted(found.name for found in files)) for snapshot, files in plan.scanned]


def test_a_mode_has_a_name_and_other_texts_are_refused_with_the_valid_ones() -> None:
    assert ChangelogMode.of("diff") is ChangelogMode.DIFF
    with pytest.raises(InvalidInputError, match="mode: expected one of 'auto', 'changelog', 'delta', 'diff', got 'all'"):
        ChangelogMode.of("all")


@pytest.mark.parametrize("producer", list(ChangelogProducer))
def test_a_table_with_a_changelog_is_read_from_it(producer: ChangelogProducer) -> None:
    wanted = ChangelogMode.DELTA if producer is ChangelogProducer.NONE else ChangelogMode.CHANGELOG
    assert ChangelogMode.automatic(producer) is wanted


def test_changelog_files_are_scanned_snapshot_by_snapshot_except_those_of_overwrites(table: CommitTable) -> None:
    table.append(add(), changelog_entries=[add(file("first"))])
    table.append(add(), changelog_entries=[add(file("second")), add(file("other"), dt="b")])
    table.append(add())
    table.overwrite(add(), partitions=["a"])
    table.append(add(), changelog_entries=[add(file("last"))])
    plan = planned(table, 0, 5, ChangelogMode.CHANGELOG)
    assert scanned(plan) == [(1, ["first"]), (2, ["other", "second"]), (5, ["last"])]
    assert (plan.merged, plan.compared) == ((), ())
    assert scanned(planned(table, 1, 4, ChangelogMode.CHANGELOG)) == [(2, ["other", "second"])]
    assert scanned(planned(table, 0, 5, ChangelogMode.CHANGELOG, "dt = 'b'")) == [(2, ["other"])]
    assert planned(table, 5, 5, ChangelogMode.CHANGELOG) == ChangelogPlan()


def test_new_files_of_appends_are_merged_where_their_keys_overlap(table: CommitTable) -> None:
    table.append(add(file("one", keys=(1, 4), seq=(0, 9))))
    table.append(add(file("two", keys=(3, 6), seq=(10, 19))), add(file("apart", keys=(8, 9))))
    table.append(add(file("bucket", keys=(3, 6)), bucket=1), add(file("day", keys=(3, 6)), dt="b"))
    plan = planned(table, 0, 3, ChangelogMode.DELTA)
    assert scanned(plan) == [(None, ["apart", "bucket", "day"])]
    (unit,) = plan.merged
    assert [[part.name for part in run] for run in unit.runs] == [["one"], ["two"]]
    assert scanned(planned(table, 1, 2, ChangelogMode.DELTA)) == [(None, ["apart", "two"])]
    assert scanned(planned(table, 0, 3, ChangelogMode.DELTA, "dt = 'b'")) == [(None, ["day"])]


def test_files_of_overwrites_and_compactions_are_not_new_files(table: CommitTable) -> None:
    table.append(first := add(file("first", keys=(1, 4))))
    table.compact(upgrade(first, 5))
    table.overwrite(add(file("other")), partitions=["a"])
    assert scanned(planned(table, 0, 3, ChangelogMode.DELTA)) == [(None, ["first"])]
    assert planned(table, 1, 3, ChangelogMode.DELTA) == ChangelogPlan()


@pytest.mark.parametrize("mode", [ChangelogMode.CHANGELOG, ChangelogMode.DELTA])
def test_an_expired_snapshot_is_reported_by_its_id(table: CommitTable, mode: ChangelogMode) -> None:
    table.append(add())
    table.append(add())
    table.file_io.delete(table.paths.snapshot_file(1))
    with pytest.raises(SnapshotNotFoundError, match="snapshot 1"):
        planned(table, 0, 2, mode)
    assert planned(table, 1, 2, mode) is not None


def test_files_of_both_states_are_left_out_unless_another_file_overlaps_them(table: CommitTable) -> None:
    deleted_file = add(file("gone", keys=(8, 9)))
    table.append(add(file("same", keys=(1, 2))), add(file("touched", keys=(5, 7))), deleted_file)
    table.append(add(file("new", keys=(6, 6), seq=(10, 19))))
    table.compact([delete(deleted_file), add(file("rewritten", keys=(8, 9), level=5))])
    found = {}
    for compared in difference(table, 1, 3).compared:
        found.update({part.name: sides for part, *sides in zip(compared.unit.files, compared.before, compared.after)})
    assert found == {
        "touched": [True, True],
        "new": [False, True],
        "gone": [True, False],
        "rewritten": [False, True],
    }
    assert difference(table, 2, 2) == ChangelogPlan()


def test_compared_with_an_empty_state_all_files_are_read(table: CommitTable) -> None:
    table.append(add(file("one", keys=(1, 2))), add(file("two"), dt="b"))
    for states, sides in (((None, 1), (False, True)), ((1, None), (True, False))):
        compared = difference(table, *states).compared
        assert sorted(part.name for one in compared for part in one.unit.files) == ["one", "two"]
        assert {(*one.before, *one.after) for one in compared} == {sides}
    assert [one.unit.files[0].name for one in difference(table, None, 1, "dt = 'b'").compared] == ["two"]
    assert difference(table, None, None) == ChangelogPlan()


def test_an_upgraded_file_is_on_both_sides_with_its_levels(table: CommitTable) -> None:
    table.append(first := add(file("first")))
    table.compact(upgrade(first, 5))
    ((compared),) = difference(table, 1, 2).compared
    sides = zip(compared.unit.files, compared.before, compared.after)
    assert sorted((part.level, before, after) for part, before, after in sides) == [(0, True, False), (5, False, True)]


def test_a_file_with_other_masked_rows_is_compared_with_itself_and_a_rewritten_index_file_is_no_change(
    table: CommitTable,
) -> None:
    table.append(add(file("one", keys=(1, 2), level=5)), add(file("other", keys=(5, 7), level=5)))
    store = TableStore.open(str(table.root))
    mask(store, {"one": [1, 2]})
    mask(store, {"one": [1, 2], "other": [3]})
    mask(store, {"one": [1, 3], "other": [3]})

    def compared(before: int, after: int) -> set[tuple[str, int | None, bool, bool]]:
        return {
            (part.name, part.vector and part.vector.cardinality, *sides)
            for one in difference(table, before, after).compared
            for part, *sides in zip(one.unit.files, one.before, one.after)
        }

    assert compared(1, 2) == {("one", None, True, False), ("one", 2, False, True)}
    assert compared(2, 3) == {("other", None, True, False), ("other", 1, False, True)}
    assert compared(3, 4) == {("one", 2, True, False), ("one", 2, False, True)}
    assert compared(4, 4) == set()


def test_level_0_of_first_row_is_in_no_state(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, {"merge-engine": "first-row"})
    table.append(add(file("hidden", keys=(1, 2))), add(file("shown", keys=(1, 2), level=5)))
    assert [part.name for one in difference(table, None, 1).compared for part in one.unit.files] == ["shown"]

"""The compaction plan of a bucket as units of tasks, and which of them write a changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.merge.changelog import ChangelogRule, ChangelogSource
from lakelsm.options import TableOptions
from lakelsm.plan.compaction_plan import CompactionScope, plan_table
from lakelsm.plan.rewrite_units import RewriteUnit, changelog_rule, rewrite_units
from lakelsm.schema.table_schema import create_schema
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file, partition


@pytest.mark.parametrize(
    ("producer", "source"),
    [
        ("none", None),
        ("input", None),
        ("lookup", ChangelogSource.LOOKUP),
        ("full-compaction", ChangelogSource.TOP_LEVEL),
    ],
)
def test_only_producers_that_compare_rows_record_changes(producer: str, source: ChangelogSource | None) -> None:
    schema = create_schema("id INT, a INT, b INT", ["id"])
    rule = changelog_rule(schema, TableOptions.parse({"changelog-producer": producer}))
    assert rule == (None if source is None else ChangelogRule(source))


def test_equality_of_rows_uses_all_columns_except_the_ignored_ones() -> None:
    options = {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}
    schema = create_schema("id INT, a INT, b INT", ["id"])
    assert changelog_rule(schema, TableOptions.parse(options)) == ChangelogRule(ChangelogSource.LOOKUP, ("id", "a", "b"))
    options["changelog-producer.row-deduplicate-ignore-fields"] = "a"
    assert changelog_rule(schema, TableOptions.parse(options)) == ChangelogRule(ChangelogSource.LOOKUP, ("id", "b"))


def units(table: CommitTable, changelog: bool = True) -> list[RewriteUnit]:
    """Return the units of a full compaction of a table with one bucket."""
    store = TableStore.open(str(table.root))
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    plan = plan_table(store, snapshot, CompactionScope(full=True), 0)
    (bucket,) = plan.buckets
    return list(rewrite_units(store, plan, bucket, changelog))


def names(unit: RewriteUnit) -> list[list[list[str]]]:
    return [[[part.name for part in run] for run in section.runs] for section in unit.sections]


def level0_on_a_compacted_run(root: Path, **options: str) -> CommitTable:
    table = CommitTable(root, {"bucket": "1", **{key.replace("_", "-"): text for key, text in options.items()}})
    old, new = file("old", keys=(1, 9), seq=(0, 9), level=5), file("new", keys=(3, 4), seq=(10, 19))
    table.append(add(old, total=1), add(new, total=1))
    return table


def test_overlapping_files_are_rewritten_to_the_top_of_their_bucket(tmp_path: Path) -> None:
    (unit,) = units(level0_on_a_compacted_run(tmp_path), changelog=False)
    assert names(unit) == [[["old"], ["new"]]]
    assert (unit.partition, unit.bucket, unit.total_buckets) == (partition("a"), 0, 1)
    assert unit.directory == f"{tmp_path}/dt=a/bucket-0"
    assert (unit.output_level, unit.drop_delete, unit.writes_data) == (5, True, True)
    assert (unit.looks_up, unit.changelog) == (False, False)


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_changes_are_recorded_only_on_request(tmp_path: Path, producer: str) -> None:
    table = level0_on_a_compacted_run(tmp_path, changelog_producer=producer)
    assert [unit.changelog for unit in units(table)] == [True]
    assert [unit.changelog for unit in units(table, changelog=False)] == [False]


@pytest.mark.parametrize(
    ("options", "changelog", "looks_up"),
    [
        ({"changelog_producer": "lookup"}, True, True),
        ({"changelog_producer": "lookup"}, False, False),
        ({"changelog_producer": "lookup", "merge_engine": "aggregation"}, False, True),
        ({"force_lookup": "true", "merge_engine": "partial-update"}, False, True),
        ({"changelog_producer": "full-compaction"}, True, False),
        ({"merge_engine": "aggregation"}, False, False),
    ],
    ids=str,
)
def test_level_0_is_looked_up_if_the_table_needs_it_and_a_row_below_matters(
    tmp_path: Path, options: dict[str, str], changelog: bool, looks_up: bool
) -> None:
    table = level0_on_a_compacted_run(tmp_path, **options)
    assert [unit.looks_up for unit in units(table, changelog)] == [looks_up]


def test_upgraded_files_have_a_unit_if_their_rows_are_changes(tmp_path: Path) -> None:
    def moving(name: str, level: int, producer: str) -> list[RewriteUnit]:
        options = {"bucket": "1", "compaction.small-file-ratio": "0.01", "changelog-producer": producer}
        table = CommitTable(tmp_path / name, options)
        table.append(add(file("one", keys=(1, 2), level=level, rows=10), total=1))
        return units(table, changelog=producer != "none")

    assert moving("none", 0, "none") == []
    assert moving("lookup above", 3, "lookup") == []
    (unit,) = moving("full", 3, "full-compaction")
    assert not unit.writes_data
    assert (names(unit), unit.changelog, unit.output_level) == ([[["one"]]], True, 5)


def test_sections_are_packed_to_tasks_of_the_target_file_size(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, {"bucket": "1", "target-file-size": "4 kb"})
    pairs = [((10 * at, 10 * at + 9), seq) for at in range(6) for seq in ((0, 9), (10, 19))]
    table.append(*(add(file(keys=keys, seq=seq), total=1) for keys, seq in pairs))
    found = units(table, changelog=False)
    assert len(found) > 1
    sizes = [sum(section.cost for section in unit.sections) for unit in found]
    assert sum(sizes) == 12_000
    assert all(len(unit.sections) == 1 or size <= 4096 + 2000 for unit, size in zip(found, sizes))

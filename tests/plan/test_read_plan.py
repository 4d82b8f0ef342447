"""Plans of reads, from metadata alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.row.bucket_hash import bucket_ids
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.predicate.parser import parse_where
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import INT, CommitTable, add, file, partition, upgrade
from tests.compact.local_table import LocalTable
from tests.examples import examples
from tests.masked_files import commit_vectors, index_entry, mask, with_index_files


def planned(root: Path, where: str | None = None, fresh: bool = False) -> ReadPlan:
    store = TableStore.open(str(root))
    predicate = None if where is None else parse_where(where, store.schema.fields)
    return plan_read(store, store.snapshots.latest(), predicate, fresh)


def names(plan: ReadPlan) -> tuple[list[str], list[str]]:
    return sorted(found.name for found in plan.raw_files), sorted(found.name for found in plan.merged_files)


def test_a_table_without_snapshots_has_no_files_to_read(tmp_path: Path) -> None:
    plan = planned(CommitTable(tmp_path).root)
    assert plan == ReadPlan(snapshot=None, raw_files=(), merged_files=(), units=(), files_live=0)
    assert repr(plan) == "ReadPlan(snapshot_id=None, files_live=0, files_scanned=0)"
    assert "<td>0</td>" in plan._repr_html_()
    assert plan.files_scanned == 0


def test_files_without_overlap_are_read_unchanged_and_the_others_merged(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(
        add(file("alone", keys=(1, 4), level=5)),
        add(file("old", keys=(5, 9), seq=(0, 4), level=5)),
        add(file("new", keys=(7, 12), seq=(5, 9))),
        add(file("elsewhere", keys=(7, 8), level=3), bucket=1),
        add(file("other", keys=(7, 8), level=3), dt="b"),
    )
    plan = planned(tmp_path)
    assert names(plan) == (["alone", "elsewhere", "other"], ["new", "old"])
    (unit,) = plan.units
    assert [[part.name for part in run] for run in unit.runs] == [["old"], ["new"]]
    assert (plan.files_live, plan.files_scanned, plan.snapshot_id) == (5, 5, 1)


def test_a_file_with_retractions_is_merged_even_if_it_overlaps_no_other(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    deletes = file("deletes", keys=(1, 4))
    deletes.delete_row_count = 1
    table.append(add(deletes), add(file("plain", keys=(5, 9))))
    assert names(planned(tmp_path)) == (["plain"], ["deletes"])


def test_with_a_row_kind_column_files_of_writers_may_have_uncounted_retractions(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, options={"rowkind.field": "v"})
    compacted = file("compacted", keys=(5, 9), level=5, file_source=1)
    table.append(add(file("written", keys=(1, 4), file_source=0)), add(compacted))
    assert names(planned(tmp_path)) == (["compacted"], ["written"])


def test_first_row_shows_compacted_rows_and_merges_nothing(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, options={"merge-engine": "first-row"})
    table.append(add(file("low", level=5)), add(file("high", level=3)), add(file("hidden", level=0)))
    plan = planned(tmp_path)
    assert names(plan) == (["high", "low"], [])
    assert (plan.units, plan.files_live) == ((), 3)


def test_first_row_merges_level_0_in_a_fresh_read(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, options={"merge-engine": "first-row"})
    low, high, new = file("low", level=5, keys=(1, 4)), file("high", level=3, keys=(5, 9)), file("new", keys=(4, 4))
    table.append(add(low), add(high), add(new))
    assert names(planned(tmp_path, fresh=True)) == (["high"], ["low", "new"])


VECTORS = {"deletion-vectors.enabled": "true"}


def test_files_with_vectors_are_read_unchanged_with_the_vectors_of_the_snapshot(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, options=VECTORS)
    table.append(add(file("low", level=5)), add(file("high", level=3)), add(file("new")), add(file("x", level=5), dt="b"))
    store = TableStore.open(str(tmp_path))
    mask(store, {"low": [1, 2]})
    mask(store, {"low": [1, 2, 3], "x": [0]})
    for snapshot, masked in ((1, {}), (2, {"low": 2}), (3, {"low": 3, "x": 1})):
        plan = plan_read(store, store.snapshots.get(snapshot), None)
        assert names(plan) == (["high", "low", "x"], [])
        found = {part.name: part.vector.cardinality for part in plan.raw_files if part.vector is not None}
        assert found == masked


@pytest.mark.parametrize("by_option", [True, False])
def test_level_0_is_merged_with_files_that_have_vectors_in_a_fresh_read(tmp_path: Path, by_option: bool) -> None:
    merge_on_read = {"deletion-vectors.merge-on-read": "true"} if by_option else {}
    table = CommitTable(tmp_path, options={**VECTORS, **merge_on_read})
    table.append(
        add(file("low", level=5, keys=(1, 9))), add(file("high", level=3, keys=(5, 6))), add(file("new", keys=(5, 5))),
        add(file("apart", level=5, keys=(20, 29))), add(file("waits", keys=(40, 49))),
    )
    store = TableStore.open(str(tmp_path))
    mask(store, {"low": [4], "apart": [0]})
    plan = planned(tmp_path, fresh=not by_option)
    assert names(plan) == (["apart", "waits"], ["high", "low", "new"])
    assert {part.name for part in (*plan.raw_files, *plan.merged_files) if part.vector} == {"low", "apart"}
    assert {part.name for unit in plan.units for part in unit.files if part.vector} == {"low"}


def test_files_with_vectors_are_excluded_by_their_values_unless_level_0_is_merged(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", write_only="true", deletion_vectors__enabled="true")
    table.write((1, "old"), (2, "old"))
    table.write((1, "new"))
    (old, new) = sorted(table.live(), key=lambda entry: entry.file.min_sequence_number)
    commit_vectors(table.store, files=[*upgrade(old, 5), *upgrade(new, 4)])
    mask(table.store, {old.file.file_name: [0]})
    assert planned(table.root, "v = 'old'").files_scanned == 1
    assert planned(table.root, "v = 'old'", fresh=True).files_scanned == 2


def test_vectors_of_excluded_buckets_are_not_read(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add(file("a", level=5)), add(file("b", level=5), dt="b"))
    good = index_entry(tmp_path, {"a": [1]}, partition("a"), 0)
    with_index_files(table, good, *(index_entry(tmp_path, {"b": [1]}, partition("b"), 0) for _ in range(2)))
    assert planned(tmp_path, "dt = 'a'").files_scanned == 1
    with pytest.raises(CorruptTableError, match="two deletion vectors of data file b"):
        planned(tmp_path, "dt = 'b'")


def test_a_large_section_is_split_by_key(tmp_path: Path) -> None:
    options = {"source.split.target-size": "2 kb", "source.split.open-file-cost": "1 b"}
    table = CommitTable(tmp_path, options=options)
    bottom = [add(file(f"low{at}", keys=(10 * at, 10 * at + 9), level=5, seq=(0, 9))) for at in range(8)]
    table.append(*bottom, add(file("all", keys=(0, 79), seq=(10, 19))))
    plan = planned(tmp_path)
    assert len(plan.units) > 1
    assert [unit.lower for unit in plan.units][1:] == [unit.upper for unit in plan.units][:-1]
    assert {part.name for unit in plan.units for part in unit.files} == set(names(plan)[1])


def test_a_condition_excludes_partitions_and_counts_them_as_live(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(*(add(file(name, keys=(1, 2)), dt=name) for name in "abc"))
    plan = planned(tmp_path, "dt = 'b' AND v = 'x'")
    assert (names(plan), plan.files_live, plan.files_scanned) == ((["b"], []), 3, 1)
    assert names(planned(tmp_path, "dt = 'z'")) == ([], [])


@pytest.mark.parametrize("where", ["id = 7", "id IN (7, 8)", "id = 7 AND v = 'x'", "id > 7"])
def test_equal_keys_exclude_buckets_if_the_number_of_buckets_of_a_file_is_fixed(tmp_path: Path, where: str) -> None:
    table = CommitTable(tmp_path, options={"bucket": "8"})
    buckets = [(total, bucket) for total in (8, 3) for bucket in range(total)]
    entries = [add(file(f"{total}-{at}"), bucket=at, total=total, dt=str(total)) for total, at in buckets]
    table.append(*entries, add(file("dynamic"), bucket=5, total=-1, dt="d"))
    keys = [] if ">" in where else [7, 8] if "IN" in where else [7]
    wanted = {"dynamic"}
    for total in (8, 3):
        found = bucket_ids([pa.array(keys, pa.int32())], [INT], total) if keys else np.arange(total)
        wanted |= {f"{total}-{bucket}" for bucket in np.asarray(found).tolist()}
    assert set(names(planned(tmp_path, where))[0]) == wanted


def test_files_whose_keys_cannot_match_are_excluded_with_the_rows_that_they_hide(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", write_only="true")
    for rows in ([(1, "a"), (2, "a")], [(2, "b"), (3, "b")], [(8, "c"), (9, "c")]):
        table.write(*rows)
    assert planned(table.root, "id = 9").files_scanned == 1
    assert planned(table.root, "id = 1").files_scanned == 1
    assert planned(table.root, "id = 2").files_scanned == 2


def test_a_file_whose_values_cannot_match_is_kept_if_it_may_hide_a_row_that_does(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", write_only="true")
    table.write((1, "old"))
    table.write((1, "new"))
    assert planned(table.root, "v = 'old'").files_scanned == 2
    assert planned(table.root, "v = 'new'").files_scanned == 1


@pytest.mark.parametrize(
    ("options", "scanned"),
    [({"merge_engine": "aggregation"}, 2), ({"merge_engine": "partial-update"}, 2), ({"sequence__field": "v"}, 2)],
    ids=str,
)
def test_older_files_that_cannot_match_are_kept_if_they_contribute_to_a_row(
    tmp_path: Path, options: dict[str, str], scanned: int
) -> None:
    table = LocalTable(tmp_path / "t", write_only="true", **options)
    table.write((1, "old"))
    table.write((1, "new"))
    assert planned(table.root, "v = 'new'").files_scanned == scanned


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "compact", "older"]), st.sets(st.integers(0, 9), min_size=1)),
    min_size=2,
    max_size=6,
)


@examples(12)
@given(STEPS)
def test_the_properties_that_units_state_of_their_rows_are_true(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[int]]]
) -> None:
    """``older``: a commit with the sequence numbers of the one before, as two concurrent writers make them."""
    table = LocalTable(tmp_path_factory.mktemp("proved") / "t")
    for what, keys in steps:
        rows = [(key, what) for key in keys]
        if what == "compact":
            table.compact(full=False)
        elif what == "delete":
            table.delete(*rows)
        elif what == "write" or not table.live():
            table.write(*rows)
        else:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("tests.compact.local_table.table_max_sequence", lambda *_: -1)
                table.write(*rows)
    if not table.live():
        return
    for unit in plan_read(table.store, table.latest, None).units:
        runs = [pa.concat_tables(pq.ParquetFile(file.path).read() for file in run) for run in unit.runs]
        sequences = [run.column(SEQUENCE_NUMBER).to_numpy() for run in runs]
        assert unit.has_only_adds == all(max(run.column(VALUE_KIND).to_pylist()) == 0 for run in runs)
        assert unit.is_newest_last == all(old.max() < new.min() for old, new in pairwise(sequences))


def test_files_with_an_untrusted_count_of_deletes_prove_nothing(tmp_path: Path) -> None:
    for options, proved in (({}, True), ({"rowkind__field": "v"}, False)):
        table = LocalTable(tmp_path / str(proved), **options)
        table.write((1, "+I"))
        table.write((1, "+U"))
        (unit,) = plan_read(table.store, table.latest, None).units
        assert (unit.has_only_adds, unit.is_newest_last) == (proved, True)

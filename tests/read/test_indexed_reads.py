"""A read with a condition returns the same rows with and without file indexes, after any writes and compactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.parser import parse_where
from tests.conformance.table_case import KindedRow
from tests.examples import examples
from tests.read.file_engine import FileTable, filtered

COLUMNS = "id INT NOT NULL, v STRING, n INT"
#: Options of tables. Statistics exclude nothing, so that only indexes exclude files.
INDEXED = {
    "metadata__stats_mode": "none",
    "num_sorted_run__compaction_trigger": "3",
    "lakelsm__durable_files": "false",
    "file_index__bloom_filter__columns": "id,v",
    "file_index__bloom_filter__id__items": "10",
    "file_index__bloom_filter__v__items": "10",
    "file_index__bitmap__columns": "v,n",
}
TABLES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "ordered by a column": {"sequence__field": "n"},
    "partial-update": {"merge_engine": "partial-update", "partial_update__remove_record_on_delete": "true"},
    "aggregation": {"merge_engine": "aggregation", "fields__n__aggregate_function": "sum", "ignore_delete": "true"},
    "first-row": {"merge_engine": "first-row", "ignore_delete": "true"},
    "vectors": {"deletion_vectors__enabled": "true"},
}
CONDITIONS = [
    "v = 'a'",
    "v IN ('b', 'zz')",
    "v IS NULL",
    "n = 1",
    "n NOT IN (1, 2)",
    "id = 3",
    "id IN (1, 4) AND v = 'b'",
    "v = 'a' OR n = 2",
    "n IS NULL OR id = 2",
]
_ROW = st.tuples(st.integers(0, 5), st.sampled_from([None, "a", "b", "c"]), st.sampled_from([None, 1, 2, 3]))
_KINDED = st.tuples(_ROW, st.sampled_from(["+I", "+I", "-D"]))
_WRITE = st.tuples(st.just("write"), st.lists(_KINDED, min_size=1, max_size=4))
_STEP = st.one_of(_WRITE, _WRITE, st.tuples(st.just("compact"), st.booleans()))


@pytest.mark.property
@pytest.mark.parametrize("name", TABLES)
def test_indexes_exclude_no_file_that_decides_about_a_row(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    spared = [0]

    @examples(3)
    @given(steps=st.lists(_STEP, min_size=2, max_size=7), beside=st.booleans())
    def check(steps: list[tuple[str, list[tuple[tuple[object, ...], str]] | bool]], beside: bool) -> None:
        threshold = {"file_index__in_manifest_threshold": "0 b" if beside else "1 mb"}
        root: Path = tmp_path_factory.mktemp("t") / "t"
        table = FileTable(root, COLUMNS, ("id",), **INDEXED, **TABLES[name], **threshold)
        for verb, what in steps:
            if verb == "compact":
                table.compact(full=bool(what))
            else:
                assert isinstance(what, list)
                table.write([KindedRow(kind, row) for row, kind in what], {})
        store = table.store
        snapshot = store.snapshots.latest()
        plain = plan_read(store, snapshot, None)
        every = table.scanned(plain)
        for where in CONDITIONS:
            plan = plan_read(store, snapshot, parse_where(where, store.schema.fields))
            spared[0] += plain.files_scanned - plan.files_scanned
            found = filtered(table.scanned(plan), where).to_pylist()
            assert sorted(map(repr, found)) == sorted(map(repr, filtered(every, where).to_pylist())), where

    check()
    assert spared[0]

"""Runs are read within the key range of a unit, with correct positions, in the newest schema."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.merge import run_reader
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import merge_runs
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.system_columns import FILE_NUMBER, POSITION
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from lakelsm.types import parse_type
from tests.examples import examples
from tests.merge.run_files import Row, decoded_groups, read_unit, reader_of, write_run
from tests.merge.test_key_lookup import TYPES as VALUES
from tests.oracle import sort_key

INT_KEY = create_schema("id INT, v STRING", ["id"], (), {"bucket": "1"})
TWO_KEYS = create_schema("a STRING, b BIGINT, v INT", ["b", "a"], (), {"bucket": "1"})


def int_rows(keys: range, number: int = 0) -> list[Row]:
    return [(number + at, 0, {"id": key, "v": f"v{key}"}) for at, key in enumerate(keys)]


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_without_bounds_every_run_is_read_whole(tmp_path: Path) -> None:
    old = write_run(tmp_path, INT_KEY, int_rows(range(100)), files=3)
    new = write_run(tmp_path, INT_KEY, int_rows(range(0, 100, 7), 100))
    runs = read_unit(reader_of(INT_KEY), MergeUnit((old, new)))
    assert [ids(run) for run in runs] == [list(range(100)), list(range(0, 100, 7))]
    assert runs[0][5] == {"_SEQUENCE_NUMBER": 5, "_VALUE_KIND": 0, "id": 5, "v": "v5"}


@pytest.mark.parametrize(
    ("lower", "upper", "wanted"),
    [
        ((10,), None, range(10, 100)),
        (None, (10,), range(10)),
        ((10,), (20,), range(10, 20)),
        ((-5,), (1,), range(1)),
        ((99,), (1000,), range(99, 100)),
        ((20,), (20,), range(0)),
        ((200,), None, range(0)),
    ],
)
def test_the_lower_bound_is_inclusive_and_the_upper_is_not(
    tmp_path: Path, lower: tuple[int] | None, upper: tuple[int] | None, wanted: range
) -> None:
    run = write_run(tmp_path, INT_KEY, int_rows(range(100)), files=2, group_rows=9)
    (rows,) = read_unit(reader_of(INT_KEY), MergeUnit((run,), lower=lower, upper=upper))
    assert ids(rows) == list(wanted)


def test_bounds_compare_all_columns_of_the_key_in_its_order(tmp_path: Path) -> None:
    keys = sorted((b, a) for b in range(5) for a in ("", "x", "x\0", "y"))
    run = write_run(tmp_path, TWO_KEYS, [(at, 0, {"a": a, "b": b}) for at, (b, a) in enumerate(keys)], group_rows=3)
    (rows,) = read_unit(reader_of(TWO_KEYS), MergeUnit((run,), lower=(1, "x\0"), upper=(3, "x")))
    assert [(row["b"], row["a"]) for row in rows] == [key for key in keys if (1, "x\0") <= key < (3, "x")]


def test_positions_are_row_indexes_of_the_file_also_after_row_groups_that_were_left_out(tmp_path: Path) -> None:
    first = write_run(tmp_path, INT_KEY, int_rows(range(0, 100, 2)), files=2, group_rows=5)
    second = write_run(tmp_path, INT_KEY, int_rows(range(1, 100, 2)), files=2, group_rows=7)
    unit = MergeUnit((first, second), lower=(31,), upper=(90,))
    for rows in read_unit(reader_of(INT_KEY, ["id"]), unit, positions=True):
        assert rows
        for row in rows:
            file = unit.files[row[FILE_NUMBER]]
            stored = pq.read_table(file.path, columns=["id"]).column("id").to_pylist()
            assert stored[row[POSITION]] == row["id"]


def test_a_large_run_gets_the_memory_that_small_runs_do_not_need(tmp_path: Path) -> None:
    large = write_run(tmp_path, INT_KEY, int_rows(range(1_000)))
    small = [write_run(tmp_path, INT_KEY, int_rows(range(at, 100, 5), 1_000), files=2) for at in range(5)]
    reader = replace(reader_of(INT_KEY), memory_bytes=60_000)
    even = largest_batches(reader, MergeUnit((large, large, large)))
    uneven = largest_batches(reader, MergeUnit((*small, large)))
    assert len(set(even)) == 1 and 50 < even[0] < 100
    assert uneven[:5] == [10] * 5, "no batch has rows of two files"
    assert uneven[5] > 1.5 * even[0]
    assert sum(uneven) <= sum(even) * 16 // 15, "no more rows at a time than the memory holds"


def test_a_batch_stays_small_enough_for_caches_with_any_amount_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path, INT_KEY, int_rows(range(1_000)))
    reader = replace(reader_of(INT_KEY), memory_bytes=1 << 30)
    assert largest_batches(reader, MergeUnit((run,))) == [256], "no batch has rows of two row groups"
    monkeypatch.setattr(run_reader, "_MAX_BATCH", 4_000)
    (longest,) = largest_batches(reader, MergeUnit((run,)))
    assert 50 < longest < 100


def largest_batches(reader: RunReader, unit: MergeUnit) -> list[int]:
    return [max(map(len, run)) for run in reader.open_runs(unit)]


def test_row_groups_outside_the_bounds_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path, INT_KEY, int_rows(range(100)), group_rows=10)
    decoded = decoded_groups(monkeypatch)
    (rows,) = read_unit(reader_of(INT_KEY), MergeUnit((run,), lower=(35,), upper=(52,)))
    assert ids(rows) == list(range(35, 52))
    assert [group for group, _ in decoded] == [3, 4, 5]


TYPES = ("INT", "TINYINT", "STRING", "BYTES", "DOUBLE", "DATE", "DECIMAL(30, 1)", "TIMESTAMP(3)", "BOOLEAN")


@pytest.mark.property
@pytest.mark.parametrize("type_name", TYPES)
def test_bounds_hold_for_every_type_of_key(type_name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    schema = create_schema(f"k {type_name}, j INT, v INT", ["k", "j"], (), {"bucket": "1"})

    @examples(15)
    @given(
        st.lists(st.tuples(VALUES[type_name], st.integers(0, 2)), min_size=1, max_size=12, unique_by=sort_key), st.data()
    )
    def check(keys: list[tuple[Any, int]], data: st.DataObject) -> None:
        keys.sort(key=sort_key)
        lower, upper = data.draw(st.sampled_from([*keys, None])), data.draw(st.sampled_from([*keys, None]))
        rows: list[Row] = [(at, 0, {"k": k, "j": j, "v": at}) for at, (k, j) in enumerate(keys)]
        run = write_run(tmp_path_factory.mktemp("run"), schema, rows, group_rows=3)
        (found,) = read_unit(reader_of(schema), MergeUnit((run,), lower=lower, upper=upper))
        inside = [
            at
            for at, key in enumerate(keys)
            if (lower is None or sort_key(key) >= sort_key(lower)) and (upper is None or sort_key(key) < sort_key(upper))
        ]
        assert [row["v"] for row in found] == inside

    check()


def test_units_that_divide_the_keys_contain_every_row_once(tmp_path: Path) -> None:
    rows = int_rows(range(57))
    run = write_run(tmp_path, INT_KEY, rows, files=2, group_rows=4)
    bounds: list[tuple[int] | None] = [None, (3,), (4,), (28,), (29,), (50,), None]
    seen = []
    for low, high in pairwise(bounds):
        (found,) = read_unit(reader_of(INT_KEY), MergeUnit((run,), lower=low, upper=high))
        seen += ids(found)
    assert seen == list(range(57))


def test_files_of_older_schemas_are_read_in_the_newest_schema(tmp_path: Path) -> None:
    first = create_schema("id INT, v INT, old STRING, n STRING", ["id"], (), {"bucket": "1"})
    changes = [
        UpdateColumnType("v", parse_type("BIGINT")),
        RenameColumn("n", "name"),
        DropColumn("old"),
        AddColumn("added", parse_type("DOUBLE")),
    ]
    second = apply_changes(first, changes, 0)
    third = apply_changes(second, [AddColumn("old", parse_type("STRING"))], 0)
    one = write_run(tmp_path, first, [(0, 0, {"id": 1, "v": 2, "old": "gone", "n": "x"})])
    two = write_run(tmp_path, second, [(1, 0, {"id": 2, "v": 2**40, "name": "y", "added": 0.5})])
    reader = reader_of(third, older=[first, second])
    tables = [pa.concat_tables(run) for run in reader.open_runs(MergeUnit((one, two)))]
    assert tables[0].schema == tables[1].schema
    merged = pa.concat_tables(merge_runs([iter([table]) for table in tables], MergeSpec(("id",)), True))
    assert merged.drop_columns(["_SEQUENCE_NUMBER", "_VALUE_KIND"]).to_pylist() == [
        {"id": 1, "v": 2, "name": "x", "added": None, "old": None},
        {"id": 2, "v": 2**40, "name": "y", "added": 0.5, "old": None},
    ]


def test_only_the_wanted_columns_are_read(tmp_path: Path) -> None:
    run = write_run(tmp_path, INT_KEY, int_rows(range(3)))
    (tables,) = reader_of(INT_KEY, ["id"]).open_runs(MergeUnit((run,)))
    assert next(tables).column_names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "id"]


def test_the_memory_of_a_merge_depends_on_its_limit_and_not_on_the_length_of_the_runs(tmp_path: Path) -> None:
    bound = 24 << 20  # Above the decoded pages and dictionaries of Parquet, here about 3 MiB for each run.
    rows: list[Row] = [(at, 0, {"id": at, "v": f"{at:0500d}"}) for at in range(80_000)]
    held = [_held_by_merge(tmp_path, rows[:count], bound) for count in (20_000, 80_000)]
    assert held[0] > 1 << 20, "what is measured is what the merge holds"
    assert held[1] < min(bound, 1.2 * held[0])


def _held_by_merge(directory: Path, rows: list[Row], bound: int) -> int:
    """Return the maximum Arrow memory in use while a merge of four runs yields rows."""
    runs = tuple(write_run(directory, INT_KEY, rows[start::4], group_rows=5_000) for start in range(4))
    before = pa.total_allocated_bytes()
    held, count = 0, 0
    for table in merge_runs(reader_of(INT_KEY, memory_bytes=bound).open_runs(MergeUnit(runs)), MergeSpec(("id",)), False):
        held = max(held, pa.total_allocated_bytes() - before)
        count += len(table)
    assert count == len(rows)
    return held


def test_a_reader_can_be_pickled(tmp_path: Path) -> None:
    run = write_run(tmp_path, INT_KEY, int_rows(range(3)))
    reader, unit = pickle.loads(pickle.dumps((reader_of(INT_KEY), MergeUnit((run,), lower=(1,), upper=None))))
    assert ids(read_unit(reader, unit)[0]) == [1, 2]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    lost = RunFile(f"{tmp_path}/data-lost-0.parquet", schema_id=0, row_count=1, file_size=1)
    with pytest.raises(CorruptTableError, match=r"data-lost-0\.parquet"):
        read_unit(reader_of(INT_KEY), MergeUnit(((lost,),)))


def test_rows_with_a_null_key_are_read_although_statistics_ignore_null(tmp_path: Path) -> None:
    schema = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1", "primary-key.nullable": "true"})
    rows: list[Row] = [(number, 0, {"k": key}) for number, key in enumerate([None, 100, 200, 300])]
    run = write_run(tmp_path, schema, rows, group_rows=2)

    def keys(lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> list[int | None]:
        return [row["k"] for row in read_unit(reader_of(schema), MergeUnit((run,), lower=lower, upper=upper))[0]]

    assert keys(None, (60,)) == [None]
    assert keys((None,), (60,)) == [None]
    assert keys((60,), None) == [100, 200, 300]
    assert keys((None,), None) == [None, 100, 200, 300]
    assert keys(None, (None,)) == []


def test_a_type_change_that_can_lose_values_is_refused(tmp_path: Path) -> None:
    old = create_schema("id INT, v BIGINT, w INT", ["id"], (), {"bucket": "1"})
    new = replace(old, id=1, fields=(old.fields[0], replace(old.fields[1], type=parse_type("INT")), old.fields[2]))
    run = write_run(tmp_path, old, [(0, 0, {"id": 1, "v": 2**40, "w": 3})])
    assert read_unit(reader_of(new, ["id", "w"], older=[old]), MergeUnit((run,)))[0][0]["w"] == 3
    with pytest.raises(UnsupportedFeatureError, match="column 'v' is BIGINT in a data file and INT in the table"):
        read_unit(reader_of(new, older=[old]), MergeUnit((run,)))

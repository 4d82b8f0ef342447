"""The rows of a table that have one of some keys, for keys of any type."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.key_set import KeySet, rows_with
from lakelsm.options import TableOptions
from lakelsm.plan.merge_pruning import SortedKeys
from lakelsm.predicate.predicate import Constant, In, IsNull, Or, all_of
from lakelsm.schema.table_schema import TableSchema, create_schema

SCHEMA = create_schema("k BIGINT, p STRING, v STRING", ["k", "p"], ["p"], {"bucket": "1"}, None, 0)
KEY = st.tuples(st.integers(0, 8) | st.integers(-(2**63), 2**63 - 1), st.sampled_from(["", "a", "é"]))


def key_set(frame: Any, schema: TableSchema = SCHEMA, **options: str) -> KeySet:
    return KeySet.of(ArrowInput.of(frame), schema, TableOptions.parse(options))


def table(keys: list[tuple[int, str]], *names: str) -> pa.Table:
    columns = [pa.array([k for k, _ in keys], pa.int64()), pa.array([p for _, p in keys], pa.string())]
    return pa.Table.from_arrays(columns, names=names or ("k", "p"))


@given(st.lists(KEY, max_size=30), st.lists(KEY, max_size=30))
def test_exactly_the_rows_of_the_keys_are_found(wanted: list[tuple[int, str]], rows: list[tuple[int, str]]) -> None:
    keys = key_set(table(wanted, "K", "P"))
    batch = pa.RecordBatch.from_arrays([c.combine_chunks() for c in table(rows).columns], names=["k", "p"])
    found = keys.rows_of(batch).to_pylist()
    assert [(row["k"], row["p"]) for row in found] == [row for row in rows if row in wanted]


def test_reads_leave_out_files_by_columns_with_few_values() -> None:
    assert key_set(table([(1, "a"), (2, "a")])).condition == all_of([In("k", (1, 2)), In("p", ("a",))])
    many = [(k, "a") for k in range(2000)]
    assert key_set(table(many)).condition == In("p", ("a",))
    assert key_set(table([])).condition == Constant(False)


def test_float_keys_are_found_by_value_and_partitions_by_their_bits() -> None:
    schema = create_schema("k DOUBLE, p DOUBLE", ["k", "p"], ["p"], {"bucket": "1"}, None, 0)
    keys = key_set(pa.table({"k": [0.0, float("nan")], "p": [-0.0, -0.0]}), schema)
    nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    rows = pa.record_batch({"k": [-0.0, nan, 0.0, 1.0], "p": [-0.0, -0.0, 0.0, -0.0], "at": [0, 1, 2, 3]})
    assert keys.rows_of(rows)["at"].to_pylist() == [0, 1]


def test_times_in_keys_are_compared_in_stored_form() -> None:
    schema = create_schema("k TIMESTAMP(3)", ["k"], [], {"bucket": "1"}, None, 0)
    time = datetime.datetime(2020, 1, 1, 0, 0, 0, 1999)
    keys = key_set(pa.table({"k": pa.array([time], pa.timestamp("us"))}), schema)
    stored = pa.record_batch({"k": pa.array([time.replace(microsecond=1000)], pa.timestamp("ms"))})
    assert len(keys.rows_of(stored)) == 1


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (pa.table({"k": [1]}), "keys: expected the columns of the primary key (k, p); p is missing."),
        (pa.table({"k": [1], "p": ["a"], "v": ["b"]}), "(k, p); v is not one of them."),
        (pa.table({"k": pa.array([None], pa.int64()), "p": ["a"]}), "key column 'k' is NULL"),
        (pa.table({"k": ["1"], "p": ["a"]}), "column 'k' is string in the frame and int64 in the table"),
    ],
)
def test_invalid_keys_are_refused(frame: pa.Table, text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        key_set(frame)
    assert text in str(caught.value)


def test_keys_beyond_the_buffer_are_refused_with_the_remedy() -> None:
    message = r"keys: they need more memory than 'write-buffer-size' \(1024 bytes\)\. Delete"
    with pytest.raises(InvalidInputError, match=message):
        key_set(table([(k, "a") for k in range(1000)]), **{"write-buffer-size": "1 kb"})


def test_null_is_a_key_if_key_columns_are_nullable() -> None:
    schema = create_schema("k BIGINT, j STRING", ["k", "j"], [], {"bucket": "1", "primary-key.nullable": "true"}, None, 0)
    keys = key_set(pa.table({"k": pa.array([None, 1, None], pa.int64()), "j": ["a", None, None]}), schema)
    assert keys.condition == all_of([Or((In("k", (1,)), IsNull("k"))), Or((In("j", ("a",)), IsNull("j")))])
    rows = pa.record_batch({"k": pa.array([None, None, 1, 1, None], pa.int64()), "j": [None, "a", "a", None, "b"]})
    assert keys.rows_of(rows).to_pydict() == {"k": [None, None, 1], "j": [None, "a", None]}
    of_nulls = key_set(pa.table({"k": pa.array([None], pa.int64()), "j": pa.array([None], pa.string())}), schema)
    assert of_nulls.condition == all_of([IsNull("k"), IsNull("j")])


def test_rows_with_sorted_keys() -> None:
    draw = np.random.default_rng(5)
    for size in (0, 1, 7, 300):
        known = SortedKeys()
        known.add(pa.array([*draw.integers(-50, 50, size).tolist(), None], pa.int16()))
        keys = known.keys()
        assert keys is not None
        for values in (draw.integers(-60, 60, 500), np.sort(draw.integers(-60, 60, 500)), np.arange(-60, 60)):
            rows = pa.record_batch({"k": pa.array(values), "at": np.arange(len(values))})
            wanted = rows.filter(pa.array(np.isin(values, keys)))
            assert rows_with(keys, "k", rows).equals(wanted)
    with_null = pa.record_batch({"k": pa.array([1, None])})
    assert rows_with(keys, "k", with_null) is with_null
    days = SortedKeys()
    days.add(pa.array([3, 1], pa.date32()))
    kept = rows_with(days.keys(), "d", pa.record_batch({"d": pa.array([1, 2, 3], pa.date32())}))  # type: ignore[arg-type]
    assert kept["d"].cast(pa.int32()).to_pylist() == [1, 3]

"""The look-up by key finds the rows that a dict finds, and decodes little."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.file_check import ExpectedFile
from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.data_file.key_value_file import FileLayout, row_schema
from lakelsm.merge.key_lookup import KeyLookup
from lakelsm.merge.merge_unit import RunFile
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import to_arrow
from tests.examples import examples
from tests.merge.run_files import as_run_file, decoded_groups, layout_of, reader_of, rows_table, write_files, write_run
from tests.nano_times import column_of
from tests.oracle import sort_key

NAN, INF = float("nan"), float("inf")

#: Values of keys: close together, at the limits of their types, and longer than the padded byte strings.
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "INT": st.one_of(st.integers(-9, 9), st.sampled_from([-(2**31), 2**31 - 1])),
    "BIGINT": st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1)),
    "FLOAT": st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, NAN, INF, -INF])),
    "DOUBLE": st.one_of(st.floats(), st.sampled_from([0.0, -0.0, NAN, INF, -INF, 5e-324])),
    "DECIMAL(9, 2)": st.decimals(-(10**6), 10**6, places=2),
    "DECIMAL(30, 1)": st.decimals(-(10**20), 10**20, places=1).map(lambda value: Decimal(f"{value:.1f}")),
    "CHAR(3)": st.text(alphabet="ab", min_size=3, max_size=3),
    "STRING": st.one_of(
        st.text(alphabet="\0aé\uffff\U0001f600", max_size=4), st.text(alphabet="\0x", min_size=44, max_size=60)
    ),
    "BYTES": st.one_of(st.binary(max_size=9), st.binary(min_size=46, max_size=60)),
    "DATE": st.dates(),
    "TIME(3)": st.integers(0, 86_399_999).map(lambda ms: (dt.datetime.min + dt.timedelta(milliseconds=ms)).time()),
    "TIMESTAMP(3)": st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    "TIMESTAMP(6)": st.datetimes(),
    "TIMESTAMP(9)": st.datetimes(),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": st.datetimes().map(lambda moment: moment.replace(tzinfo=dt.timezone.utc)),
}
INT_KEY = create_schema("id INT, v STRING", ["id"], (), {"bucket": "1"})
DATE_KEY = create_schema("d DATE, v STRING", ["d"], (), {"bucket": "1"})


def found(schema: TableSchema, file: RunFile, keys: pa.Table, memory_bytes: int = 1 << 20) -> list[int]:
    reader = reader_of(schema, schema.trimmed_primary_keys, memory_bytes=memory_bytes)
    return [at for part in KeyLookup(reader).positions(file, keys) for at in part.tolist()]


def keys_of(schema: TableSchema, keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    names = schema.trimmed_primary_keys
    types = [to_arrow(schema.field(name).type) for name in names]
    return pa.table({name: column_of([key[at] for key in keys], types[at]) for at, name in enumerate(names)})


@pytest.mark.property
@pytest.mark.parametrize("leading", [True, False], ids=["leading", "following"])
@pytest.mark.parametrize("type_name", TYPES)
def test_the_lookup_finds_the_rows_that_a_dict_finds(
    type_name: str, leading: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = ("k", "j") if leading else ("j", "k")
    options = {"bucket": "1", "primary-key.nullable": "true"}
    schema = create_schema(f"k {type_name}, j INT, v STRING", names, (), options)
    numbers, values = st.none() | st.integers(0, 2), st.none() | TYPES[type_name]
    keys = st.tuples(values, numbers) if leading else st.tuples(numbers, values)

    @examples(6)
    @given(st.lists(keys, min_size=2, max_size=30, unique_by=sort_key), st.data())
    def check(drawn: list[tuple[Any, ...]], data: st.DataObject) -> None:
        cut = data.draw(st.integers(1, len(drawn) - 1))
        stored = sorted(drawn[:cut], key=sort_key)
        again = data.draw(st.lists(st.sampled_from(stored), unique_by=sort_key))
        wanted = sorted([*drawn[cut:], *again], key=sort_key)
        rows = [(at, 0, dict(zip(names, key))) for at, key in enumerate(stored)]
        group_rows = data.draw(st.integers(1, 9))
        (file,) = write_run(tmp_path_factory.mktemp("run"), schema, rows, group_rows=group_rows)
        row_indexes = {sort_key(key): at for at, key in enumerate(stored)}
        assert found(schema, file, keys_of(schema, wanted), data.draw(st.sampled_from([1, 500, 1 << 20]))) == [
            row_indexes[sort_key(key)] for key in wanted if sort_key(key) in row_indexes
        ]

    check()


@pytest.mark.property
@examples(10)
@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20, unique=True),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20, unique=True),
    st.integers(1, 9),
)
def test_dates_outside_of_pythons_calendar_are_found(
    tmp_path_factory: pytest.TempPathFactory, stored: list[int], others: list[int], group_rows: int
) -> None:
    stored = sorted(stored)
    wanted = sorted({*others, *stored[::2]})
    (file,) = _file(tmp_path_factory.mktemp("run"), DATE_KEY, pa.array(stored, pa.int32()).cast(pa.date32()), group_rows)
    keys = pa.table({"d": pa.array(wanted, pa.int32()).cast(pa.date32())})
    assert found(DATE_KEY, file, keys) == [at for at, day in enumerate(stored) if day in set(wanted)]


def _file(
    directory: Path, schema: TableSchema, keys: pa.Array, group_rows: int, values: pa.Array | None = None
) -> list[RunFile]:
    """A file of sorted keys of one column."""
    layout: FileLayout = layout_of(schema, row_group_bytes=1, target_file_size=1 << 40)
    count = len(keys)
    texts = pa.array(np.full(count, "v")) if values is None else values
    columns = [pa.array(np.arange(count)), pa.array(np.zeros(count, np.int8)), keys, texts]
    table = pa.Table.from_arrays(columns, schema=row_schema(schema.fields))
    batches = (table.slice(at, group_rows) for at in range(0, count, group_rows))
    return [as_run_file(directory, schema, meta) for meta in write_files(directory, layout, batches)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    return decoded_groups(monkeypatch)


@pytest.mark.parametrize(
    ("keys", "groups"),
    [([-1], []), ([0], [0]), ([198, 199], [9]), ([199], []), ([19], []), ([18, 20, 101], [0, 1, 5]), ([500], [])],
)
def test_only_row_groups_that_may_contain_a_key_are_decoded(
    tmp_path: Path, decoded: list[tuple[int, int]], keys: list[int], groups: list[int]
) -> None:
    (file,) = _file(tmp_path, INT_KEY, pa.array(np.arange(0, 200, 2, np.int32)), 10)
    found(INT_KEY, file, pa.table({"id": pa.array(keys, pa.int32())}))
    assert [group for group, _ in decoded] == groups


def test_texts_and_dates_also_exclude_row_groups(tmp_path: Path, decoded: list[tuple[int, int]]) -> None:
    text_key = create_schema("id STRING, v STRING", ["id"], (), {"bucket": "1"})
    (file,) = _file(tmp_path, text_key, pa.array([f"{at:03d}" for at in range(100)]), 10)
    assert found(text_key, file, pa.table({"id": ["042", "0421", "9"]})) == [42]
    assert [group for group, _ in decoded] == [4]
    decoded.clear()
    (file,) = _file(tmp_path, DATE_KEY, pa.array(np.arange(100, dtype=np.int32)).cast(pa.date32()), 10)
    assert found(DATE_KEY, file, pa.table({"d": [dt.date(1970, 2, 12), dt.date(2024, 1, 1)]})) == [42]
    assert [group for group, _ in decoded] == [4]


def test_memory_depends_on_the_limit_and_not_on_the_file_or_its_other_columns(tmp_path: Path) -> None:
    bound, peaks = 1 << 20, []
    for count in (50_000, 400_000):
        values = pa.repeat("v" * 50, count)
        (file,) = _file(tmp_path / str(count), INT_KEY, pa.array(np.arange(count, dtype=np.int32)), count // 4, values)
        del values
        keys = pa.table({"id": pa.array(np.arange(0, count, count // 1000, np.int32))})
        reader, before, peak, rows = reader_of(INT_KEY, ["id"], memory_bytes=bound), pa.total_allocated_bytes(), 0, 0
        for part in KeyLookup(reader).positions(file, keys):
            peak, rows = max(peak, pa.total_allocated_bytes() - before), rows + len(part)
        assert rows == 1000
        peaks.append(peak)
    assert max(peaks) < bound
    assert peaks[1] < 1.5 * peaks[0]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (file,) = _file(tmp_path, INT_KEY, pa.array([1, 2], pa.int32()), 10)
    Path(file.path).unlink()
    with pytest.raises(CorruptTableError, match=file.name):
        found(INT_KEY, file, pa.table({"id": pa.array([1], pa.int32())}))


FILTERED = create_schema(
    "a DOUBLE, id INT, v STRING",
    ["id", "a"],
    (),
    {"bucket": "1", "file-index.bloom-filter.columns": "id,a", "file-index.bloom-filter.id.fpp": "0.0001"},
)


def _filtered(directory: Path, embedded: bool) -> RunFile:
    """Keys 0, 10 ... 990, with bloom filters."""
    rows = [(at, 0, {"id": at * 10, "a": 0.0, "v": "x"}) for at in range(100)]
    layout = layout_of(FILTERED, index_in_manifest=(1 << 30) * embedded)
    (meta,) = write_files(directory, layout, [rows_table(FILTERED, rows)])
    expected = ExpectedFile.of(meta, b"\0\0\0\0" + bytes(8))
    return replace(
        as_run_file(directory, FILTERED, meta), index=FileIndexLocation.of(meta, str(directory)), expected=expected
    )


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "beside"])
def test_a_file_whose_bloom_filters_exclude_all_keys_is_not_opened(tmp_path: Path, embedded: bool) -> None:
    file = _filtered(tmp_path, embedded)
    keys = [(at, 0.0) for at in (0, 500, 990)]
    assert found(FILTERED, file, keys_of(FILTERED, keys)) == [0, 50, 99]
    assert found(FILTERED, file, keys_of(FILTERED, [(0, -0.0), (5, 0.0), (990, 0.0)])) == [0, 99], "one key is enough"
    Path(file.path).unlink()
    assert found(FILTERED, file, keys_of(FILTERED, [(at, 0.0) for at in range(1, 990, 10)])) == []
    assert found(FILTERED, file, keys_of(FILTERED, [(-10, 0.0), (5, 0.0), (1000, 0.0)])) == []
    with pytest.raises(CorruptTableError, match="does not exist"):
        found(FILTERED, file, keys_of(FILTERED, keys))


def test_a_missing_index_file_is_refused_with_both_names(tmp_path: Path) -> None:
    file = _filtered(tmp_path, embedded=False)
    Path(f"{file.path}.index").unlink()
    with pytest.raises(CorruptTableError, match=f"File index {file.path}.index of data file {file.path} does not exist"):
        found(FILTERED, file, keys_of(FILTERED, [(0, 0.0)]))


@pytest.mark.parametrize(("keys", "opened"), [([4], False), ([11, 500], False), ([4, 7, 500], True), ([10], True)])
def test_a_file_is_opened_only_for_keys_within_its_range(tmp_path: Path, keys: list[int], opened: bool) -> None:
    layout: FileLayout = layout_of(INT_KEY)
    columns = [pa.array([0, 1]), pa.array([0, 0], pa.int8()), pa.array([5, 10], pa.int32()), pa.array(["a", "b"])]
    rows = pa.Table.from_arrays(columns, schema=row_schema(INT_KEY.fields))
    (meta,) = write_files(tmp_path, layout, [rows])
    file = replace(as_run_file(tmp_path, INT_KEY, meta), expected=ExpectedFile.of(meta, b""))
    wanted = pa.table({"id": pa.array(keys, pa.int32())})
    assert found(INT_KEY, file, wanted) == ([1] if 10 in keys else [])
    Path(file.path).unlink()
    if opened:
        with pytest.raises(CorruptTableError, match=file.name):
            found(INT_KEY, file, wanted)
    else:
        assert found(INT_KEY, file, wanted) == []

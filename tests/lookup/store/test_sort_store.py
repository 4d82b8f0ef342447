"""Sort stores against a dict: every type, any keys, any block size, damage."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptStoreError, UnsupportedFeatureError
from lakelsm.lookup.store import sort_store
from lakelsm.lookup.store.lookup_store import BlockCache, StoreLayout
from lakelsm.lookup.store.sort_block import BlockCompression
from lakelsm.lookup.store.sort_store import SortStoreFormat
from lakelsm.lookup.store.sort_writer import SortFileForm
from lakelsm.merge.key_order import order_keys, stable_order
from lakelsm.options import TableOptions
from lakelsm.types import AtomicType, DataField, parse_type, to_arrow
from tests.format.row.binary_row_cases import TYPE_NAMES, arrow_column, atomic_types, plain_values

FORMS = st.builds(
    SortFileForm,
    st.integers(20, 400),
    compression=st.sampled_from(list(BlockCompression)),
    bloom_fpp=st.sampled_from([None, 0.05, 0.5]),
)
PLAIN = SortStoreFormat(SortFileForm(300, bloom_fpp=0.05), BlockCache(1 << 20))
Rows = dict[tuple[Any, ...], tuple[Any, ...]]
LAYOUT = StoreLayout((DataField(0, "id", parse_type("BIGINT")),), (DataField(1, "name", parse_type("STRING")),))


def fields(types: list[AtomicType], prefix: str) -> tuple[DataField, ...]:
    return tuple(DataField(number, f"{prefix}{number}", data_type) for number, data_type in enumerate(types))


def table_of(rows: list[tuple[Any, ...]], columns: tuple[DataField, ...]) -> pa.Table:
    arrays = [
        arrow_column([row[place] for row in rows], field.type)  # type: ignore[arg-type]
        for place, field in enumerate(columns)
    ]
    return pa.Table.from_arrays(arrays, names=[field.name for field in columns])


@st.composite
def cases(draw: st.DrawFn) -> tuple[StoreLayout, Rows, list[tuple[Any, ...]]]:
    """A layout, values by keys, and keys to ask for, some of them of these."""
    key_types = atomic_types(draw(st.lists(st.sampled_from(TYPE_NAMES), min_size=1, max_size=3)))
    value_types = atomic_types(draw(st.lists(st.sampled_from(TYPE_NAMES), min_size=1, max_size=3)))
    layout = StoreLayout(fields(key_types, "k"), fields(value_types, "v"))
    keys = st.tuples(*map(plain_values, key_types))
    values = st.tuples(*(st.none() | plain_values(data_type) for data_type in value_types))
    rows = draw(st.dictionaries(keys, values, min_size=1, max_size=60))
    asked = draw(st.lists(keys | st.sampled_from(list(rows)), min_size=1, max_size=40))
    return layout, rows, asked


@given(cases(), FORMS, st.integers(1, 80), st.sampled_from([0, 1 << 13]))
def test_a_store_answers_as_a_dict_does(
    case: tuple[StoreLayout, Rows, list[tuple[Any, ...]]], form: SortFileForm, batch: int, few: int
) -> None:
    layout, rows, asked = case
    stored = table_of([(*key, *value) for key, value in rows.items()], (*layout.keys, *layout.values))
    ordered = order_keys([stored.column(field.name).combine_chunks() for field in layout.keys])
    stored = stored.take(pa.array(stable_order(ordered)))
    expected = [at for at, key in enumerate(asked) if key in rows]
    stores = SortStoreFormat(form, BlockCache(1000))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(sort_store, "_FEW_ROWS", few)
        patched.setattr(sort_store, "_ROWS_OF_A_KEY", few)
        patched.setattr(sort_store, "_STEP_BYTES", 500)
        patched.setattr(sort_store, "_BATCH_BYTES", 100)
        path = Path(folder) / "s"
        stores.write(path, layout, (stored.slice(start, batch) for start in range(0, len(stored), batch)))
        store = stores.open(path, layout)
        found = store.find(table_of(asked, layout.keys))
        store.close()
        assert store.disk_bytes == path.stat().st_size
    assert found.probes.tolist() == expected
    assert found.rows.schema == pa.schema([(field.name, to_arrow(field.type)) for field in layout.values])
    if expected:
        assert found.rows.equals(table_of([rows[asked[at]] for at in expected], layout.values))


def numbers(count: int) -> pa.Table:
    return pa.table({"id": np.arange(count) * 2, "name": [f"name {number}" for number in range(count)]})


def test_a_table_of_several_chunks_is_asked_in_any_order_and_repeatedly(tmp_path: Path) -> None:
    PLAIN.write(tmp_path / "s", LAYOUT, [numbers(1000)])
    store = PLAIN.open(tmp_path / "s", LAYOUT)
    asked = pa.table({"id": pa.chunked_array([[1998, 3], [], [0, 1998, -2, 5000]], pa.int64())})
    found = store.find(asked)
    assert found.probes.tolist() == [0, 2, 3]
    assert found.rows.to_pylist() == [{"name": "name 999"}, {"name": "name 0"}, {"name": "name 999"}]
    store.close()


def test_a_store_without_rows_finds_nothing_and_no_keys_find_nothing(tmp_path: Path) -> None:
    for name, rows in (("none", []), ("empty", [numbers(0)]), ("some", [numbers(5)])):
        PLAIN.write(tmp_path / name, LAYOUT, rows)
        store = PLAIN.open(tmp_path / name, LAYOUT)
        assert len(store.find(numbers(0).select(["id"])).probes) == 0
        assert len(store.find(numbers(5).select(["id"])).rows) == (5 if name == "some" else 0)
        store.close()


def test_zeros_are_one_key_and_all_nans_are(tmp_path: Path) -> None:
    layout = StoreLayout((DataField(0, "f", parse_type("DOUBLE")),), LAYOUT.values)
    other_nan = np.array([0x7FF8000000000123], np.uint64).view(np.float64)[0]
    PLAIN.write(tmp_path / "s", layout, [pa.table({"f": [-0.0, 1.0, other_nan], "name": ["zero", "one", "nan"]})])
    store = PLAIN.open(tmp_path / "s", layout)
    found = store.find(pa.table({"f": [float("nan"), 0.0, -0.0, 2.0]}))
    assert found.probes.tolist() == [0, 1, 2]
    assert found.rows["name"].to_pylist() == ["nan", "zero", "zero"]
    store.close()


def test_damage_anywhere_gives_the_right_rows_or_an_error_that_names_the_file(tmp_path: Path) -> None:
    rows = numbers(40)
    PLAIN.write(tmp_path / "whole", LAYOUT, [rows])
    whole = (tmp_path / "whole").read_bytes()
    expected = rows["name"].to_pylist()
    refused = 0
    for bit in range(0, 8 * len(whole), 37):
        damaged = bytearray(whole)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        path = tmp_path / "damaged"
        path.write_bytes(damaged)
        try:
            store = PLAIN.open(path, LAYOUT)
            assert store.find(rows.select(["id"])).rows["name"].to_pylist() == expected
            store.close()
        except CorruptStoreError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused


def test_threads_ask_one_store_with_a_cache_that_is_too_small(tmp_path: Path) -> None:
    stores = SortStoreFormat(SortFileForm(300, compression=BlockCompression.LZ4), BlockCache(2000))
    rows = numbers(3000)
    stores.write(tmp_path / "s", LAYOUT, [rows])
    store = stores.open(tmp_path / "s", LAYOUT)

    def ask(seed: int) -> bool:
        picked = np.random.default_rng(seed).integers(0, 3000, 200)
        asked = rows.take(pa.array(picked))
        return store.find(asked.select(["id"])).rows.equals(asked.select(["name"]).combine_chunks())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(16)))
    assert stores.cache.bytes <= 2000
    store.close()
    assert stores.cache.bytes == 0


def test_the_form_is_what_the_options_say() -> None:
    made = SortStoreFormat.of(TableOptions.parse({}), BlockCache(0))
    assert made.form == SortFileForm(65536, compression=BlockCompression.ZSTD, bloom_fpp=0.05)
    given_ = {
        "cache-page-size": "4 kb",
        "lookup.cache-spill-compression": "lz4",
        "lookup.cache.bloom.filter.enabled": "false",
    }
    made = SortStoreFormat.of(TableOptions.parse(given_), BlockCache(0))
    assert made.form == SortFileForm(4096, compression=BlockCompression.LZ4)


def test_columns_that_the_store_does_not_hold_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    layout = StoreLayout(LAYOUT.keys, (DataField(1, "v", parse_type("VARIANT")),))
    with pytest.raises(UnsupportedFeatureError, match="column 'v'"):
        PLAIN.write(tmp_path / "s", layout, [])
    assert not list(tmp_path.iterdir())

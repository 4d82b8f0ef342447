"""Sort stores of any form compared with a dict; their options and limits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.lookup.store import sort_store
from lakelsm.lookup.store.lookup_store import BlockCache, StoreLayout
from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.lookup.store.sort_store import SortStoreFormat
from lakelsm.options import TableOptions
from lakelsm.types import DataField, parse_type
from tests.lookup.store.test_stores_against_a_dict import Row, check, stored, stores, table_of

FORMS = st.builds(
    BlockForm,
    st.integers(20, 400),
    compression=st.sampled_from(list(BlockCompression)),
    bloom_fpp=st.sampled_from([None, 0.05, 0.5]),
)
LAYOUT = StoreLayout((DataField(0, "id", parse_type("BIGINT")),), (DataField(1, "name", parse_type("STRING")),))


@given(stores(), FORMS, st.integers(1, 80), st.sampled_from([0, 1 << 13]))
def test_a_store_of_any_form_answers_as_a_dict_does(
    case: tuple[StoreLayout, dict[Row, Row], list[Row]], form: BlockForm, batch: int, few: int
) -> None:
    layout, rows, searched = case
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sort_store, "_FEW_ROWS", few)
        patched.setattr(sort_store, "_ROWS_OF_A_KEY", few)
        patched.setattr(sort_store, "_STEP_BYTES", 500)
        patched.setattr(sort_store, "_BATCH_BYTES", 100)
        cuts = range(batch, len(rows), batch)
        with stored(SortStoreFormat(form, BlockCache(1000)), layout, rows, cuts) as store:
            check(store.find(table_of(layout.keys, searched)), layout, searched, rows)


def numbers(count: int) -> pa.Table:
    return pa.table({"id": np.arange(count) * 2, "name": [f"name {number}" for number in range(count)]})


def test_threads_search_one_store_with_a_cache_that_is_too_small(tmp_path: Path) -> None:
    stores = SortStoreFormat(BlockForm(300, compression=BlockCompression.LZ4), BlockCache(2000))
    rows = numbers(3000)
    stores.write(tmp_path / "s", LAYOUT, [rows])
    store = stores.open(tmp_path / "s", LAYOUT)

    def ask(seed: int) -> bool:
        picked = np.random.default_rng(seed).integers(0, 3000, 200)
        searched = rows.take(pa.array(picked))
        return store.find(searched.select(["id"])).rows.equals(searched.select(["name"]).combine_chunks())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(16)))
    assert stores.cache.bytes <= 2000
    store.close()
    assert stores.cache.bytes == 0


def test_the_form_is_that_of_the_options() -> None:
    made = BlockForm.of(TableOptions.parse({}))
    assert made == BlockForm(65536, compression=BlockCompression.ZSTD, bloom_fpp=0.05)
    given_ = {
        "cache-page-size": "4 kb",
        "lookup.cache-spill-compression": "lz4",
        "lookup.cache.bloom.filter.enabled": "false",
    }
    made = BlockForm.of(TableOptions.parse(given_))
    assert made == BlockForm(4096, compression=BlockCompression.LZ4)


def test_unsupported_columns_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    layout = StoreLayout(LAYOUT.keys, (DataField(1, "v", parse_type("VARIANT")),))
    with pytest.raises(UnsupportedFeatureError, match="column 'v'"):
        SortStoreFormat(BlockForm(300), BlockCache(0)).write(tmp_path / "s", layout, [])
    assert not list(tmp_path.iterdir())

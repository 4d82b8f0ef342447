"""Each kind of lookup store finds what a dict finds, for keys and values of all types, in all forms of searches."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.lookup_store import LookupStore, StoreFormat, StoreLayout
from lakelsm.merge.key_order import order_keys
from lakelsm.types import AtomicType, DataField, to_arrow
from tests.examples import examples
from tests.format.row.binary_row_cases import TYPE_NAMES, arrow_column, atomic_types, plain_values
from tests.lookup.store.store_kinds import KINDS, format_of

Row = tuple[Any, ...]
each_kind = pytest.mark.parametrize("kind", KINDS)


def fields_of(prefix: str, types: Sequence[AtomicType]) -> tuple[DataField, ...]:
    return tuple(DataField(at, f"{prefix}{at}", data_type) for at, data_type in enumerate(types))


def table_of(fields: Sequence[DataField], rows: Sequence[Row]) -> pa.Table:
    schema = pa.schema([(field.name, to_arrow(field.type)) for field in fields])
    columns = [arrow_column(column, field.type) for column, field in zip(zip(*rows), fields)]  # type: ignore[arg-type]
    return pa.table(columns, schema=schema) if rows else schema.empty_table()


@contextmanager
def stored(
    kind: str | StoreFormat, layout: StoreLayout, rows: dict[Row, Row], cuts: Sequence[int] = ()
) -> Iterator[LookupStore]:
    """Yield an open store of some rows, given in the order of their keys and cut into tables."""
    every = table_of((*layout.keys, *layout.values), [key + value for key, value in rows.items()])
    every = every.take(pa.array(np.argsort(order_keys(every.columns[: len(layout.keys)]), kind="stable")))
    ends = [0, *sorted(min(cut, len(every)) for cut in cuts), len(every)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store"
        tables = (every.slice(start, stop - start) for start, stop in itertools.pairwise(ends))
        form = format_of(kind) if isinstance(kind, str) else kind
        form.write(path, layout, tables)
        store = form.open(path, layout)
        assert store.disk_bytes == path.stat().st_size
        try:
            yield store
        finally:
            store.close()


def check(found: FoundRows, layout: StoreLayout, searched: Sequence[Row], rows: dict[Row, Row]) -> None:
    """Compare the found stored rows with those of a dict."""
    probes = [at for at, key in enumerate(searched) if key in rows]
    assert found.probes.tolist() == probes
    assert found.probes.dtype == np.int64
    expected = table_of(layout.values, [rows[searched[at]] for at in probes])
    assert found.rows.schema == expected.schema
    found.rows.validate(full=True)
    assert found.rows.combine_chunks().equals(expected.combine_chunks())


@st.composite
def stores(draw: st.DrawFn, names: Sequence[str] = TYPE_NAMES) -> tuple[StoreLayout, dict[Row, Row], list[Row]]:
    """A layout, rows, and keys to search: some of the rows' keys, and some that may be missing."""
    of_keys, of_values = (
        atomic_types(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))) for _ in range(2)
    )
    key = st.tuples(*map(plain_values, of_keys))
    value = st.tuples(*(st.none() | plain_values(data_type) for data_type in of_values))
    # -0.0 is the key 0.0, as in Python; it is searched below.
    rows = draw(st.dictionaries(key, value, max_size=30))
    searched = draw(st.lists(key | st.sampled_from(list(rows)) if rows else key, max_size=40))
    return StoreLayout(fields_of("k", of_keys), fields_of("v", of_values)), rows, searched


@each_kind
@examples(40)
@given(stores(), st.lists(st.integers(0, 30), max_size=3))
def test_keys_of_any_types_are_found(
    kind: str, case: tuple[StoreLayout, dict[Row, Row], list[Row]], cuts: list[int]
) -> None:
    layout, rows, searched = case
    with stored(kind, layout, rows, cuts) as store:
        for keys in (searched, list(rows), [*rows, *reversed(rows)], searched[:1], []):
            check(store.find(table_of(layout.keys, keys)), layout, keys, rows)


def layout_of(key: str, value: str = "STRING") -> StoreLayout:
    return StoreLayout(fields_of("k", atomic_types([key])), fields_of("v", atomic_types([value])))


@each_kind
@pytest.mark.parametrize("key", ["BIGINT", "STRING"])
@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
def test_stores_of_any_size_find_their_keys_and_no_others(kind: str, key: str, count: int) -> None:
    layout = layout_of(key)

    def key_of(number: int) -> Row:
        return (number * 3,) if key == "BIGINT" else ("x" * (number % 40) + str(number * 3),)

    rows: dict[Row, Row] = {key_of(number): (f"value {number}" * (number % 7),) for number in range(count)}
    hits = list(rows)
    misses = [key_of(number + count) for number in range(count + 10)]
    mixed = [*itertools.chain.from_iterable(zip(hits, misses)), *hits[::-1], *hits[:5]]
    with stored(kind, layout, rows, [count // 3, count // 2]) as store:
        for searched in (hits, misses, mixed, hits[count // 2 :], hits[:1], misses[:1]):
            check(store.find(table_of(layout.keys, searched)), layout, searched, rows)
        for asked_key in (*hits[:20], *hits[-20:], *misses[:20]):
            found = store.find_plain(asked_key)
            assert found == ([rows[asked_key]] if asked_key in rows else []) if kind == "arrow" else found is None


@each_kind
def test_keys_in_chunks_and_slices_are_found_like_contiguous_ones(kind: str) -> None:
    layout = layout_of("STRING", "INT")
    rows: dict[Row, Row] = {(f"key {number:04}",): (number,) for number in range(300)}
    searched: list[Row] = [(f"key {number:04}",) for number in range(250, 350)]
    table = table_of(layout.keys, searched)
    pieces = pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7, 90), table.slice(97)])
    assert pieces.column(0).num_chunks > 2
    with stored(kind, layout, rows) as store:
        check(store.find(pieces), layout, searched, rows)
        check(store.find(table.slice(20, 40)), layout, searched[20:60], rows)


@each_kind
@pytest.mark.parametrize("key", ["FLOAT", "DOUBLE"])
def test_zeros_are_equal_keys_and_so_are_nans_while_values_keep_their_bits(kind: str, key: str) -> None:
    layout = layout_of(key, "DOUBLE")
    kind_of_key = to_arrow(layout.keys[0].type)
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000F00], np.uint64).view(np.float64)
    stored_nan = pa.array(nans[1:2]).cast(kind_of_key)
    for first in (0.0, -0.0):
        keys = pa.chunked_array([pa.array([first, 1.5], kind_of_key), stored_nan])
        rows = pa.table({"k0": keys, "v0": [-0.0, 1.0, nans[2]]})
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "store"
            format_of(kind).write(path, layout, [rows])
            store = format_of(kind).open(path, layout)
            searched = pa.chunked_array([pa.array([0.0, -0.0, 2.5], kind_of_key), pa.array(nans).cast(kind_of_key)])
            found = store.find(pa.table({"k0": searched}))
            assert found.probes.tolist() == [0, 1, 3, 4, 5]
            bits = found.rows["v0"].to_numpy().view(np.uint64).tolist()
            assert bits == [1 << 63, 1 << 63, *[int(nans.view(np.uint64)[2])] * 3]
            assert store.find_plain((0.0,)) is None
            store.close()


@each_kind
def test_a_store_without_references_is_closed_and_frees_its_memory(kind: str, tmp_path: Path) -> None:
    layout, form = layout_of("INT", "STRING"), format_of(kind)
    rows = table_of((*layout.keys, *layout.values), [(number, f"value {number}") for number in range(100)])
    form.write(tmp_path / "store", layout, [rows])
    before = len(os.listdir("/dev/fd"))
    store = form.open(tmp_path / "store", layout)
    assert len(store.find(rows.select(["k0"])).rows) == 100
    assert len(os.listdir("/dev/fd")) == before + 1 + (kind.startswith(("arrow", "hash")))  # A mapped file has one more.
    del store
    assert len(os.listdir("/dev/fd")) == before
    assert kind == "arrow" or form.cache.bytes == 0  # type: ignore[attr-defined]


@each_kind
def test_threads_may_search_one_store(kind: str) -> None:
    layout = layout_of("INT", "STRING")
    rows: dict[Row, Row] = {(number,): (f"value {number}" * 9,) for number in range(0, 6_000, 2)}
    batches = [[(number * step % 7_000,) for number in range(200)] for step in range(1, 60)]
    with stored(kind, layout, rows) as store, ThreadPoolExecutor(4) as threads:
        answers = threads.map(lambda searched: store.find(table_of(layout.keys, searched)), batches)
        for searched, found in zip(batches, answers, strict=True):
            check(found, layout, searched, rows)

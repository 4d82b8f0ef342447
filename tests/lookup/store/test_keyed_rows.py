"""Rows found by key are those of a dict, for keys of every type, repeated ones, NULLs, and many record batches."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store import arrow_segment, key_index
from lakelsm.lookup.store.arrow_segment import Segment, SegmentRows, SegmentWriter, hashes_path
from lakelsm.lookup.store.key_index import KeyIndex, write_index
from lakelsm.lookup.store.keyed_rows import KeyedRows
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter
from lakelsm.types import DataField, parse_type
from tests.lookup.store.keyed_tables import VALUES, column_of, expected_rows, fields_of, keys_table

_VALUE = DataField(9, "v", parse_type("BIGINT"))


def _keyed(directory: Path, fields: tuple[DataField, ...], parts: list[pa.Table]) -> KeyedRows:
    """A segment for each part, and an index of all of them."""
    columns = (*fields, _VALUE)
    paths = [directory / f"segment-{number}" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        with SegmentWriter(path, columns, [fields]) as writer:
            for start in range(0, len(part), 7):
                writer.write(part.slice(start, 7))
            writer.finish()
    rows = SegmentRows(columns, [Segment.open(path) for path in paths])
    sources = [(StoreFile(hashes_path(path, 0)), first) for path, first in zip(paths, rows.first_rows, strict=True)]
    with StoreFileWriter(directory / "index") as file:
        file.finish(write_index(file, sources, threads=2))
    index = StoreFile(directory / "index")
    return KeyedRows(rows, KeyIndex(index, index.facts), fields)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[str], list[list[tuple[Any, ...]]], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    key = st.tuples(*(VALUES[each] for each in types))
    stored_key = key | st.tuples(*(VALUES[each] | st.none() for each in types))
    pool = draw(st.lists(stored_key, min_size=1, max_size=30))
    parts = draw(st.lists(st.lists(st.sampled_from(pool), max_size=40), min_size=1, max_size=3))
    known = [key for key in pool if None not in key]
    searched = draw(st.lists(key | st.sampled_from(known) if known else key, max_size=30))
    return types, parts, searched


@settings(deadline=None)
@given(_cases(), st.sampled_from([1, 5, 1000]), st.booleans())
def test_found_rows_are_those_of_a_dict(case: Any, chunk_rows: int, parted: bool) -> None:
    types, parts, searched = case
    fields = fields_of(types)
    numbers = iter(range(10**6))
    values = [pa.array([next(numbers) for _ in part], pa.int64()) for part in parts]
    tables = [keys_table(fields, part).append_column("v", value) for part, value in zip(parts, values, strict=True)]
    keys = keys_table(fields, searched)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
        patch.setattr(arrow_segment, "CHUNK_ROWS", chunk_rows)
        if parted:
            patch.setattr(key_index, "_PART_ENTRIES", 2)
        keyed = _keyed(Path(directory), fields, tables)
        expected = expected_rows(pa.concat_tables(tables), keys)
        probes, rows = keyed.row_indexes(keys)
        assert list(zip(probes.tolist(), rows.tolist(), strict=True)) == expected
        for at, one in enumerate(keys.to_pylist()):
            wanted = [row for probe, row in expected if probe == at]
            key = tuple(one.values())
            assert keyed.rows_of(key) == (None if keyed.hash_of(key) is None else wanted)
            assert [keyed.rows.row(row, ["v"]) for row in wanted] == [(row,) for row in wanted]


def test_keys_of_one_hash_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = fields_of(["BIGINT", "STRING"])
    table = pa.table({"k0": [1, 1, 2, 2], "k1": ["a", "b", "a", "b"], "v": [10, 11, 12, 13]})
    for module in ("key_index.hashes_of", "keyed_rows.hashes_of"):
        monkeypatch.setattr(f"lakelsm.lookup.store.{module}", lambda rows, _: np.full(len(rows), 7, np.uint32))
    monkeypatch.setattr("lakelsm.format.row.single_hash.SingleHash.__call__", lambda *_: 7)
    keyed = _keyed(tmp_path, fields, [table])
    probes, rows = keyed.row_indexes(pa.table({"k0": [2, 1, 3], "k1": ["a", "b", "a"]}))
    assert probes.tolist() == [0, 1] and rows.tolist() == [2, 1]
    assert keyed.rows_of((2, "b")) == [3] and keyed.rows_of((3, "b")) == []


def test_a_key_of_very_many_rows_is_found_with_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_PART_ENTRIES", 1000)
    fields = fields_of(["INT"])
    numbers = [5] * 5000 + list(range(100, 3000)) + [5] * 3000
    table = pa.table({"k0": pa.array(numbers, pa.int32()), "v": list(range(len(numbers)))})
    keyed = _keyed(tmp_path, fields, [table.slice(0, 4000), table.slice(4000)])
    of_five = [row for row, number in enumerate(numbers) if number == 5]
    probes, rows = keyed.row_indexes(pa.table({"k0": pa.array([4, 100, 5, 99], pa.int32())}))
    assert probes.tolist() == [1] + [2] * len(of_five) and rows.tolist() == [5000, *of_five]
    assert keyed.rows_of((5,)) == of_five and keyed.rows_of((99,)) == []


def test_an_index_of_other_rows_is_refused(tmp_path: Path) -> None:
    fields = fields_of(["INT"])
    table = pa.table({"k0": column_of(fields[0], [1, 2]), "v": [1, 2]})
    keyed = _keyed(tmp_path, fields, [table])
    with pytest.raises(CorruptStoreError, match="index of 2 rows instead of 4"):
        KeyedRows(SegmentRows((*fields, _VALUE), keyed.rows.segments * 2), keyed.index, fields)

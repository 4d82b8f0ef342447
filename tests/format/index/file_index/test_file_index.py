"""Queries of a file's indexes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.file_index.fast_hash import fast_hashes
from lakelsm.format.index.file_index.file_index import FileIndex
from lakelsm.format.index.file_index.file_index_container import FileIndexContainer
from lakelsm.format.index.file_index.index_builder import FileIndexBuilder
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER, ColumnIndex
from lakelsm.types import parse_columns
from tests.format.index.file_index.java_container import FIELDS, JAVA, rows_in_memory

_A, _B = parse_columns("a INT, b STRING")
_BLOOM = [ColumnIndex(BLOOM_FILTER, name, items=100, fpp=0.001) for name in ("a", "b")]
_BITMAPS = [ColumnIndex(BITMAP, name, version=2, block_bytes=1 << 14) for name in ("a", "b")]


def _index(a: list[int | None], b: list[str | None], *indexes: ColumnIndex) -> FileIndex:
    builder = FileIndexBuilder([(index, _A.type if index.column == "a" else _B.type) for index in indexes])
    builder.add(pa.table({"a": pa.array(a, pa.int32()), "b": pa.array(b, pa.string())}))
    return FileIndex(builder.encode(), len(a), "Index i of data file d")


def _with(index: FileIndex, *values: int) -> list[int] | None:
    wanted = pa.array(values, pa.int32())
    rows = index.rows_with(_A, wanted, fast_hashes(wanted))
    return None if rows is None else list(rows)


def test_a_bloom_filter_excludes_files_and_bitmaps_return_rows() -> None:
    rows: tuple[list[int | None], list[str | None]] = [1, 2, None, 2], ["x"] * 4
    bloom, bitmaps, both = (_index(*rows, *kinds) for kinds in (_BLOOM, _BITMAPS, [*_BLOOM, *_BITMAPS]))
    assert [_with(bloom, 2), _with(bloom, 7), _with(bloom, 7, 1)] == [None, [], None]
    for index in (bitmaps, both):
        assert [_with(index, 2), _with(index, 7), _with(index, 7, 1)] == [[1, 3], [], [0]]
        two = pa.array([2], pa.int32())
        assert list(index.rows_without(_A, two) or ()) == [0]
        assert [list(index.null_rows(_A, null) or ()) for null in (True, False)] == [[2], [0, 1, 3]]
    assert bloom.rows_without(_A, pa.array([2], pa.int32())) is None
    assert bloom.null_rows(_A, True) is None


def test_columns_without_an_index_and_indexes_of_unknown_types_exclude_nothing() -> None:
    index = FileIndex(FileIndexContainer({"a": {"bsi": b"?", "range-bitmap": b""}}).encode(), 3, "x")
    wanted = pa.array([1], pa.int32())
    for column in (_A, _B):
        assert index.rows_with(column, wanted, fast_hashes(wanted)) is None
        assert index.rows_without(column, wanted) is None
    assert index.may_hold_keys({"a": wanted})


def test_values_that_java_wrote_are_found_and_others_are_not() -> None:
    index, rows = FileIndex(JAVA, 5, "x"), rows_in_memory()
    for name, field in FIELDS.items():
        column = rows.column(name).chunk(0)
        if "bitmap" in index._bodies.get(name, {}):
            assert 0 in (index.rows_with(field, column.slice(0, 1), None) or ())
            assert list(index.null_rows(field, True) or ()) == [3]


def test_bitmaps_of_another_number_of_rows_are_refused() -> None:
    builder = FileIndexBuilder([(_BITMAPS[0], _A.type)])
    builder.add(pa.table({"a": pa.array([1, 2], pa.int32())}))
    with pytest.raises(CorruptTableError, match=r"^Index i of data file d has bitmaps of 2 rows, but .* says 3"):
        FileIndex(builder.encode(), 3, "Index i of data file d").null_rows(_A, True)


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.text("ab", max_size=2)), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(-50, 50), st.text("ab", max_size=2)), max_size=40),
)
def test_a_key_of_the_file_is_always_found(held: list[tuple[int, str]], others: list[tuple[int, str]]) -> None:
    index = _index(*map(list, zip(*held)), *_BLOOM)
    a, b = zip(*[*others, held[0]])
    assert index.may_hold_keys({"a": pa.array(a, pa.int32()), "b": pa.array(b, pa.string())})


def test_keys_are_checked_by_all_their_columns_and_block_by_block() -> None:
    index = _index([1, 2], ["x", "y"], *_BLOOM)
    keys = {"a": pa.array([1] * 3000, pa.int32()), "b": pa.array(["nothing"] * 3000)}
    assert not index.may_hold_keys(keys)
    assert index.may_hold_keys({**keys, "b": pa.array(["nothing"] * 2999 + ["x"])})
    assert index.may_hold_keys({"b": pa.array(["y"])})
    assert not index.may_hold_keys({"a": pa.array([], pa.int32())})

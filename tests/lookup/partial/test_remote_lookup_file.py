"""Lookup files beside data files: their names, when one serves, its answers, and its damage."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import CorruptTableError
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.partial.remote_lookup_file import PersistedValues, RemoteLookupFile, ValueProcessor
from lakelsm.lookup.store.lookup_store import BlockCache, StoreFormat, StoreLayout
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.lookup.store.sort_store import CompactedValues, SortStoreFormat
from lakelsm.merge.merge_unit import RunFile
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, SYSTEM_FIELDS, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import DataField, parse_columns, parse_type
from tests.compact.local_table import LocalTable
from tests.lookup.full.table_histories import CASES, KEYS, Case, History
from tests.lookup.partial.beside_data_files import (
    FORM,
    named_by_manifests,
    values_of,
    write_lookup_file,
    write_lookup_files,
)

FILE = "data-7f-0.parquet"
NAME = f"{FILE}.1234.value.v1.lookup"
SCHEMA = create_schema("id BIGINT, name STRING, n INT", ["id"])
POSITION_FIELD = DataField(9, POSITION, parse_type("BIGINT"))


def layout_of(schema: TableSchema, *values: str) -> StoreLayout:
    return StoreLayout((schema.field("id"),), (*map(schema.field, values), *SYSTEM_FIELDS))


def test_a_name_has_size_processor_and_version() -> None:
    found = RemoteLookupFile.among(FILE, [f"{FILE}.index", NAME])
    assert found == RemoteLookupFile(NAME, bytes=1234, processor=ValueProcessor.VALUE)
    positioned = RemoteLookupFile.among("x", ["x.9.position-and-value.v1.lookup"])
    assert positioned is not None and positioned.processor is ValueProcessor.VALUE_AND_POSITION


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["data-7f-0.parquet.index"],
        [".lookup"],
        ["f.parquet.lookup"],
        ["f.parquet.v1.lookup"],
        ["f.parquet.value.v1.lookup"],
        ["f.parquet.1.1234.value.v1.lookup"],
        ["g.parquet.1234.value.v1.lookup"],
        ["f.parquet.../12.value.v1.lookup"],
        ["../f.parquet.1234.value.v1.lookup"],
        ["f.parquet.1234.value.v2.lookup"],
        ["f.parquet.1234.bytes.v1.lookup"],
        ["f.parquet.-1.value.v1.lookup"],
        ["f.parquet.x.value.v1.lookup"],
    ],
    ids=str,
)
def test_other_names_are_ignored(names: list[str]) -> None:
    assert RemoteLookupFile.among("f.parquet", names) is None


def served(
    schema: TableSchema = SCHEMA,
    written: TableSchema = SCHEMA,
    processor: str = "value",
    layout: StoreLayout | None = None,
) -> bool:
    file = RemoteLookupFile.among("f", [f"f.1.{processor}.v1.lookup"])
    assert file is not None
    return file.serves(layout or layout_of(schema, "name"), written, schema)


def test_a_file_serves_layouts_whose_columns_it_has() -> None:
    assert served()
    assert served(processor="position-and-value")
    positioned = StoreLayout((SCHEMA.field("id"),), (SCHEMA.field("n"), *SYSTEM_FIELDS, POSITION_FIELD))
    assert served(processor="position-and-value", layout=positioned)
    assert not served(processor="value", layout=positioned)
    assert not served(processor="position")
    assert not served(processor="empty")


def test_a_file_serves_only_if_the_data_file_has_the_present_columns() -> None:
    assert not served(written=create_schema("id BIGINT, name STRING", ["id"]))
    assert not served(written=create_schema("id BIGINT, title STRING, n INT", ["id"]))
    assert not served(written=create_schema("id BIGINT, name STRING, n BIGINT", ["id"]))
    floats = create_schema("id DOUBLE, name STRING, n INT", ["id"])
    assert not served(schema=floats, written=floats)
    variants = create_schema("id BIGINT, name STRING, n VARIANT", ["id"])
    assert not served(schema=variants, written=variants)


class _Beside:
    """A table of one data file, sorted by key, and what a partial cache finds in it."""

    def __init__(self, root: Path, columns: str = "id INT NOT NULL, v STRING, n INT", **options: str) -> None:
        self.table = LocalTable(root / "t", columns, **{"lookup__local_file_type": "sort", **options})
        self.table.write(*((at, f"v{at}", at * 3) for at in range(300)))
        self.table.compact()
        self.directory = CacheDirectory.shared(root / "cache")

    @property
    def file(self) -> RunFile:
        (file,) = LiveBuckets.of(LookupSpec(self.table.store, ("id",), ("v",)), self.table.latest).files
        return file

    @property
    def copy(self) -> Path:
        (name,) = self.directory.names()
        return self.directory.file(name)

    @contextmanager
    def lookup(self, format: StoreFormat | None = None) -> Iterator[PartialCache]:
        with named_by_manifests():
            cache = PartialCache.open(LookupSpec(self.table.store, ("id",), ("v",)), self.directory, format=format)
            yield cache
            cache.close()

    def found(self) -> list[str]:
        with self.lookup() as cache:
            assert cache.find_key((7,)) == [("v7",)]
            return _values(cache, [299, 300, 3])


def _values(cache: PartialCache, ids: list[int]) -> list[str]:
    found: list[str] = cache.find(pa.table({"id": pa.array(ids, pa.int32())})).rows["v"].to_pylist()
    return found


_RIGHT = ["v299", "v3"]


def test_a_lookup_file_answers_and_its_data_file_is_not_read(tmp_path: Path) -> None:
    beside = _Beside(tmp_path)
    made = write_lookup_file(beside.table.store, beside.file)
    Path(beside.file.path).unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert beside.found() == _RIGHT
        assert beside.copy.read_bytes() == made.read_bytes()
        made.write_bytes(b"")
        assert beside.found() == _RIGHT  # The files of the directory, as other processes open them.


@pytest.mark.parametrize("kind", ["arrow", "hash"])
def test_only_tables_with_sort_stores_use_lookup_files(kind: str, tmp_path: Path) -> None:
    beside = _Beside(tmp_path, lookup__local_file_type=kind)
    made = write_lookup_file(beside.table.store, beside.file)
    made.write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert beside.found() == _RIGHT


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("of_copy", [False, True])
@pytest.mark.parametrize("damage", [_cut, _longer, _flipped, _emptied])
def test_a_damaged_lookup_file_or_copy_is_replaced_from_the_data_file_with_a_warning(
    damage: Callable[[Path], None], of_copy: bool, tmp_path: Path
) -> None:
    beside = _Beside(tmp_path)
    made = write_lookup_file(beside.table.store, beside.file)
    if of_copy:
        beside.found()
    damage(beside.copy if of_copy else made)
    with pytest.warns(RuntimeWarning, match=f"data file {beside.file.path} is built again"):
        assert beside.found() == _RIGHT
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert beside.found() == _RIGHT


def test_a_copy_damaged_while_open_is_replaced_from_the_data_file(tmp_path: Path) -> None:
    beside = _Beside(tmp_path)
    write_lookup_file(beside.table.store, beside.file)
    with beside.lookup(SortStoreFormat(FORM, BlockCache(0))) as cache:
        assert _values(cache, [3]) == ["v3"]
        data = beside.copy.read_bytes()
        beside.copy.write_bytes(bytes(len(data)))
        with pytest.warns(RuntimeWarning, match="is built again"):
            assert _values(cache, [299, 300, 3]) == _RIGHT


def test_without_a_lookup_file_the_data_file_is_used(tmp_path: Path) -> None:
    beside = _Beside(tmp_path)
    made = write_lookup_file(beside.table.store, beside.file)
    with beside.lookup() as cache, warnings.catch_warnings():
        warnings.simplefilter("error")
        made.unlink()
        assert _values(cache, [299, 300, 3]) == _RIGHT


def test_with_an_unknown_compression_the_data_file_is_used(tmp_path: Path) -> None:
    beside = _Beside(tmp_path)
    made = write_lookup_file(beside.table.store, beside.file)
    reader = SortFileReader(made, BlockCache(0))
    code = int(reader._sizes[0])
    reader.close()
    data = bytearray(made.read_bytes())
    data[code] = 3
    data[code + 1 : code + 5] = zlib.crc32(data[: code + 1]).to_bytes(4, "little")
    made.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="cannot read the lookup file.*compression code is 3"):
        assert beside.found() == _RIGHT


def _rows(first: int = 0, step: int = 1, value: str = "w", count: int = 300) -> list[tuple[Any, ...]]:
    return [(first + at * step, f"{value}{at}", at * 3) for at in range(count)]


@pytest.mark.parametrize(
    "rows",
    [_rows(), _rows(first=1), [*_rows(count=299), (300, "w", 1)], _rows(count=298)],
    ids=["same keys", "other keys", "another last key", "fewer"],
)
def test_a_valid_file_of_other_rows_is_reported(rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    beside = _Beside(tmp_path)
    other = LocalTable(tmp_path / "other", "id INT NOT NULL, v STRING, n INT")
    other.write((500, "x", 1))
    other.overwrite(*rows)
    other.compact()
    (file,) = LiveBuckets.of(LookupSpec(other.store, ("id",), ("v",)), other.latest).files
    foreign = write_lookup_file(other.store, file)
    size = foreign.stat().st_size
    foreign.rename(f"{beside.file.path}.{size}.value.v1.lookup")
    with pytest.warns(RuntimeWarning, match="built again"):
        assert beside.found() == _RIGHT


def test_a_file_with_other_row_indexes_is_reported(tmp_path: Path) -> None:
    beside = _Beside(tmp_path, deletion_vectors__enabled="true")
    write_lookup_file(beside.table.store, beside.file, ValueProcessor.VALUE_AND_POSITION, first_position=1)
    with pytest.warns(RuntimeWarning, match="another row index"):
        assert beside.found() == _RIGHT


@pytest.mark.parametrize("processor", ValueProcessor)
def test_with_masked_rows_only_a_file_with_values_and_positions_answers(
    processor: ValueProcessor, tmp_path: Path
) -> None:
    beside = _Beside(tmp_path, deletion_vectors__enabled="true")
    made = write_lookup_file(beside.table.store, beside.file, processor)
    beside.table.delete((3, None, None))
    beside.table.compact(full=False)
    assert beside.found() == ["v299"]
    copied = made.read_bytes() in [beside.directory.file(name).read_bytes() for name in beside.directory.names()]
    assert copied == (processor is ValueProcessor.VALUE_AND_POSITION)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lookups_with_lookup_files_return_the_rows_of_a_read_after_each_step(case: Case, tmp_path: Path) -> None:
    processor = ValueProcessor.VALUE_AND_POSITION if "vectors" in case.name else ValueProcessor.VALUE
    options = {**case.options, "lookup.local-file-type": "sort", "cache-page-size": "128 b"}
    history = History(Case(case.name, options, case.partitioned), tmp_path / "t", 3)
    directory = CacheDirectory.shared(tmp_path / "cache")
    keys = pa.table({"k": pa.array([at // 2 for at in range(KEYS)], pa.int32()), "t": ["a", "b"] * (KEYS // 2)})
    with named_by_manifests(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            history.step()
            history.table = Table.for_path(history.table._store().paths.root)
            store = history.table._store()
            write_lookup_files(store, processor)
            cache = PartialCache.open(LookupSpec(store, ("k", "t"), ("k", "t", "v", "n")), directory)
            found = cache.find(keys).rows
            rows = history.table.to_arrow().select(found.column_names)
            assert found.to_pylist() == rows.sort_by([("k", "ascending"), ("t", "ascending")]).to_pylist()
            cache.close()
        copies = sum(name.endswith(".lookup") for name in directory.names())
    assert copies == len(directory.names()) > 0


FIELDS = parse_columns("id INT, v STRING")
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "v": ["a", None],
        POSITION: pa.array([0, 300], pa.int64()),
        SEQUENCE_NUMBER: pa.array([7, -1], pa.int64()),
        VALUE_KIND: pa.array([0, 3], pa.int8()),
    }
)
POSITION_0, POSITION_300 = "0000000000000000", "2c01000000000000"
ROW_1, ROW_2 = "0000 01000000 01 61", "0002 02000000"
SEQUENCES = ("0700000000000000", "ffffffffffffffff")


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (ValueProcessor.VALUE, [f"{ROW_1} {SEQUENCES[0]} 00", f"{ROW_2} {SEQUENCES[1]} 03"]),
        (
            ValueProcessor.VALUE_AND_POSITION,
            [f"{ROW_1} {POSITION_0} {SEQUENCES[0]} 00", f"{ROW_2} {POSITION_300} {SEQUENCES[1]} 03"],
        ),
    ],
)
def test_values_of_the_bytes_of_the_page_are_read(processor: ValueProcessor, expected: list[str]) -> None:
    form = PersistedValues(processor, FIELDS)
    values = pa.array([bytes.fromhex(text) for text in expected])
    assert form.decode(RowBytes.of(values)).equals(ROWS.select(list(form.columns)))
    assert values_of(ROWS, processor, FIELDS).equals(values)


@pytest.mark.parametrize("processor", [ValueProcessor.POSITION, ValueProcessor.EMPTY])
def test_some_processors_store_no_rows(processor: ValueProcessor) -> None:
    assert PersistedValues(processor, FIELDS).columns == ()


@pytest.mark.parametrize(
    ("processor", "value", "problem"),
    [
        (ValueProcessor.VALUE, "0000", "shorter than a sequence number"),
        (ValueProcessor.VALUE_AND_POSITION, "00" * 16, "shorter than a sequence number"),
        (ValueProcessor.VALUE, f"{ROW_1} {SEQUENCES[0]} 04", "an unknown row kind"),
        (ValueProcessor.VALUE, f"{ROW_1} 00 {SEQUENCES[0]} 00", "after its last field"),
    ],
)
def test_values_of_another_form_are_refused(processor: ValueProcessor, value: str, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        PersistedValues(processor, FIELDS).decode(RowBytes.of(pa.array([bytes.fromhex(value)])))


def test_values_of_lakelsms_own_stores_are_compacted_rows_of_the_layout() -> None:
    form = CompactedValues(FIELDS)
    assert [value.hex() for value in form.encode(ROWS).to_pylist()] == [
        text.replace(" ", "") for text in (ROW_1, ROW_2)
    ]
    assert form.decode(RowBytes.of(form.encode(ROWS))).equals(ROWS.select(["id", "v"]))

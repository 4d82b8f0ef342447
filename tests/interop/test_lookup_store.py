"""Lookup files of Java and lakelsm are read by both, and their rows have the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm import Table
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.data_file.file_check import ExpectedFile
from lakelsm.format.row.compacted_row import decode_compacted, encode_compacted, require_compacted_type
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.lookup.partial.remote_lookup_file import RemoteLookupFile
from lakelsm.lookup.store.lookup_store import BlockCache, StoreLayout
from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.lookup.store.sort_store import CompactedValues, SortStore, SortStoreFormat
from lakelsm.lookup.store.sort_writer import SortFileWriter
from lakelsm.schema.system_columns import SYSTEM_FIELDS
from lakelsm.types import DataField, DataType, parse_columns
from tests.interop.peers import JavaPaimon, LookupForm
from tests.interop.samples import all_types_columns, all_types_rows, rows_of
from tests.interop.value_form import unordered_of_arrow
from tests.table_files import live_entries

FORMS: list[LookupForm] = [(300, "none", None), (300, "zstd", 0.05), (4096, "lz4", 0.01), (65536, "none", 0.05)]
KEYS, VALUES = "region STRING, id BIGINT", "name STRING, price DECIMAL(20, 2), at TIMESTAMP(6), on_sale BOOLEAN"
ALIGNED = ("id BIGINT", "price DOUBLE, n INT")


def layout_of(keys: str, values: str) -> StoreLayout:
    parsed = parse_columns(f"{keys}, {values}")
    fields = tuple(DataField(number, field.name, field.type) for number, field in enumerate(parsed))
    return StoreLayout(fields[: keys.count(",") + 1], fields[keys.count(",") + 1 :])


def unaligned_rows(count: int) -> tuple[StoreLayout, pa.Table]:
    """Return rows of different sizes, in key order, with NULLs among the values."""
    numbers = range(count)
    values = {
        "region": ["e" * (number * 3 // count) + "x" for number in numbers],
        "id": [number * 2 for number in numbers],
        "name": [None if number % 7 == 0 else "n" * (number % 40) for number in numbers],
        "price": [None if number % 11 == 0 else number for number in numbers],
        "at": [number * 999 for number in numbers],
        "on_sale": [number % 2 == 0 for number in numbers],
    }
    rows = rows_of(f"{KEYS}, {VALUES}", values)
    return layout_of(KEYS, VALUES), rows.sort_by([("region", "ascending"), ("id", "ascending")])


def aligned_rows(count: int) -> tuple[StoreLayout, pa.Table]:
    values = {"id": [n * 2 for n in range(count)], "price": [n / 3 for n in range(count)], "n": list(range(count))}
    return layout_of(*ALIGNED), rows_of(", ".join(ALIGNED), values)


def with_misses(layout: StoreLayout, rows: pa.Table) -> pa.Table:
    """Return all keys of the rows, and as many missing keys."""
    keys = rows.select([field.name for field in layout.keys])
    odd = pa.array([number + 1 for number in keys["id"].to_pylist()], pa.int64())
    return pa.concat_tables([keys, keys.set_column(keys.schema.get_field_index("id"), "id", odd)])


def own_form(form: LookupForm) -> BlockForm:
    page_size, compression, fpp = form
    return BlockForm(page_size, compression=BlockCompression[compression.upper()], bloom_fpp=fpp)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("make", [aligned_rows, unaligned_rows])
def test_lookup_files_are_read_by_the_other_side(
    java: JavaPaimon, tmp_path: Path, make: Callable[[int], tuple[StoreLayout, pa.Table]], form: LookupForm
) -> None:
    layout, rows = make(300)
    asked = with_misses(layout, rows)
    values = unordered_of_arrow(rows.select([field.name for field in layout.values]), layout.values)
    own = SortStoreFormat(own_form(form), BlockCache(1 << 20))

    own.write(tmp_path / "ours", layout, [rows])
    assert java.read_lookup_file(tmp_path / "ours", layout, asked, form) == [*values, *[None] * len(rows)]

    java.write_lookup_file(tmp_path / "javas", layout, rows, form)
    store = SortStore(SortFileReader(tmp_path / "javas", own.cache), layout, CompactedValues(layout.values))
    found = store.find(asked)
    assert found.probes.tolist() == list(range(len(rows)))
    assert unordered_of_arrow(found.rows, layout.values) == values
    store.close()


@pytest.mark.parametrize("fpp", [None, 0.05, 0.3])
@pytest.mark.parametrize("make", [aligned_rows, unaligned_rows])
def test_files_without_compression_have_javas_bytes(
    java: JavaPaimon, tmp_path: Path, make: Callable[[int], tuple[StoreLayout, pa.Table]], fpp: float | None
) -> None:
    layout, rows = make(300)
    form = (1000, "none", fpp)
    java.write_lookup_file(tmp_path / "javas", layout, rows, form)
    with (tmp_path / "ours").open("wb") as file:
        writer = SortFileWriter(file, own_form(form))
        writer.put(*(encoded(rows, fields) for fields in (layout.keys, layout.values)))
        writer.finish()
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "javas").read_bytes()


def test_rows_of_every_type_have_javas_bytes(java: JavaPaimon) -> None:
    rows = all_types_rows()
    fields = tuple(field for field in parse_columns(all_types_columns()) if has_form(field.type))
    assert len(fields) > 25
    rows = rows.select([field.name for field in fields])
    expected = java.compacted_rows(rows, fields)
    assert encoded(rows, fields).to_pylist() == expected
    found = decode_compacted(RowBytes.of(pa.array(expected)), [field.type for field in fields])
    table = pa.table(found, names=rows.column_names)
    assert unordered_of_arrow(table, fields) == unordered_of_arrow(rows, fields)


def has_form(data_type: DataType) -> bool:
    try:
        require_compacted_type("c", data_type)
    except UnsupportedFeatureError:
        return False
    return True


def encoded(rows: pa.Table, fields: tuple[DataField, ...]) -> pa.Array:
    columns = [rows.column(field.name) for field in fields]
    return encode_compacted(columns, [field.type for field in fields]).combine_chunks()


@pytest.mark.parametrize(
    ("options", "processor"),
    [
        ({"changelog-producer": "lookup"}, "value"),
        ({"changelog-producer": "lookup", "deletion-vectors.enabled": "true"}, "position-and-value"),
        ({"deletion-vectors.enabled": "true"}, "position"),
        ({"merge-engine": "first-row", "changelog-producer": "lookup"}, "empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lookup_files_beside_data_files_of_java_are_used(
    java: JavaPaimon, tmp_path: Path, options: dict[str, str], processor: str
) -> None:
    path = tmp_path / "db.db" / "t"
    java.create(
        path,
        "id BIGINT NOT NULL, name STRING, price DECIMAL(20, 2)",
        ["id"],
        options={"bucket": "1", "lookup.remote-file.enabled": "true", "cache-page-size": "1 kb", **options},
    )
    columns = "id BIGINT, name STRING, price DECIMAL(20, 2)"
    numbers = range(200)
    values = {"id": list(numbers), "name": [f"name {n}" for n in numbers], "price": [Decimal(n) / 4 for n in numbers]}
    java.write(path, rows_of(columns, values))
    java.write(path, rows_of(columns, {name: some[50:100] for name, some in values.items()}))

    table = Table.for_path(str(path))
    entries = [entry for entry in live_entries(table) if entry.file.level > 0]
    found = [RemoteLookupFile.among(entry.file.file_name, entry.file.extra_files) for entry in entries]
    assert found and all(file is not None and file.processor.value == processor for file in found)
    schema = table.schema
    layout = StoreLayout((schema.field("id"),), (schema.field("name"), schema.field("price"), *SYSTEM_FIELDS))
    asked = pa.table({"id": pa.array([-1, *numbers, 1000])})
    for entry, file in zip(entries, found):
        assert file is not None
        assert file.serves(layout, schema, schema) == ("value" in processor)
        if "value" not in processor:
            continue
        local = path / "bucket-0" / file.name
        reader = SortFileReader(local, BlockCache(1 << 20))
        store = file.store(reader, layout, schema, ExpectedFile.of(entry.file, entry.partition))
        rows = store.find(asked)
        expected = pq.read_table(path / "bucket-0" / entry.file.file_name, columns=[f.name for f in layout.values])
        keys = pq.read_table(path / "bucket-0" / entry.file.file_name, columns=["id"])["id"].to_pylist()
        assert [probe - 1 for probe in rows.probes.tolist()] == keys
        assert rows.rows.cast(expected.schema).equals(expected)
        store.close()

    options = {"lookup.local-file-type": "sort"}
    lookup = table.lookup(cache="partial", options=options, directory=tmp_path / "cache")
    looked_up = lookup.get_many(asked, "inner")
    lookup.close()
    assert looked_up.to_pylist() == table.to_arrow().sort_by("id").to_pylist()
    copies = [copy.read_bytes() for copy in (tmp_path / "cache").rglob("*.lookup")]
    assert bool(copies) == ("value" in processor)
    assert {*copies} <= {file.read_bytes() for file in path.rglob("*.lookup")}

"""The ends of files and row groups, the metadata of each file, and the files of an aborted writer."""

from __future__ import annotations

import hashlib
import io
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.data_file.int96_timestamps import INT96
from lakelsm.format.data_file.key_value_file import FileLayout, key_types
from lakelsm.format.data_file.rolling_writer import RollingWriter, encoding_options
from lakelsm.format.file_names import FileNames
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.format.row.binary_row import decode_row
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from tests.examples import examples
from tests.format.data_file.key_value_rows import INT_SCHEMA, SCHEMA, int_rows, read, write_one
from tests.merge.run_files import IO, Row, layout_of, rows_table, write_files


def layout_with(options: dict[str, str], max_group_bytes: int | None = None) -> FileLayout:
    return FileLayout.of(INT_SCHEMA, TableOptions.parse(options), max_group_bytes)


def written(directory: Path, layout: FileLayout, sizes: list[int]) -> list[DataFileMeta]:
    """Write batches of ``sizes`` rows. Return the metadata of the files."""
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    return write_files(directory, layout, [rows_table(INT_SCHEMA, int_rows(*batch)) for batch in zip(starts, sizes)])


def group_rows(directory: Path, meta: DataFileMeta) -> list[int]:
    footer = pq.ParquetFile(directory / meta.file_name).metadata
    return [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]


@examples(25)
@given(sizes=st.lists(st.integers(0, 40), max_size=6), limit=st.integers(1, 50), group=st.sampled_from(["1 b", "1 mb"]))
def test_a_file_of_a_write_ends_at_target_file_row_num(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, group: str
) -> None:
    layout = layout_with({"target-file-row-num": str(limit), "file.block-size": group})
    counts = [meta.row_count for meta in written(tmp_path_factory.mktemp("rows"), layout, sizes)]
    full, rest = divmod(sum(sizes), limit)
    assert counts == [limit] * full + [rest] * (rest > 0)


def test_the_size_ends_a_file_before_its_rows_do(tmp_path: Path) -> None:
    layout = layout_with({"target-file-row-num": "900", "target-file-size": "1 b", "file.block-size": "1 b"})
    assert [meta.row_count for meta in written(tmp_path, layout, [1000])] == [256, 256, 256, 232]


def test_compactions_and_changelogs_end_files_only_by_size(tmp_path: Path) -> None:
    options = TableOptions.parse({"target-file-row-num": "10"})
    layout = FileLayout.of(INT_SCHEMA, options)
    for each in (layout.for_compaction(), layout.for_changelog(options)):
        assert [meta.row_count for meta in written(tmp_path, each, [50])] == [50]


def test_block_size_ends_row_groups_of_about_its_size(tmp_path: Path) -> None:
    (usual,) = written(tmp_path, layout_with({}), [5_000])
    assert group_rows(tmp_path, usual) == [5_000]
    (meta,) = written(tmp_path, layout_with({"file.block-size": "64 kb"}), [100] * 50)
    *full, _ = group_rows(tmp_path, meta)
    row = rows_table(INT_SCHEMA, int_rows(0, 100)).nbytes / 100
    assert len(full) > 5
    assert all(65_536 <= count * row < 65_536 + 100 * row for count in full)


def test_a_block_size_above_the_default_applies_unless_memory_is_smaller() -> None:
    assert layout_with({"target-file-size": "1 gb"}).row_group_bytes == 64 << 20
    wide = {"target-file-size": "1 gb", "file.block-size": "128 mb"}
    assert layout_with(wide).row_group_bytes == 128 << 20
    assert layout_with(wide, 32 << 20).row_group_bytes == 32 << 20


def test_no_column_has_a_disabled_dictionary(tmp_path: Path) -> None:
    for text, some in (("true", True), ("false", False)):
        (meta,) = written(tmp_path, layout_with({"parquet.enable.dictionary": text}), [50])
        group = pq.ParquetFile(tmp_path / meta.file_name).metadata.row_group(0)
        assert any(group.column(at).has_dictionary_page for at in range(group.num_columns)) is some


def test_the_metadata_counts_rows_and_deletes_and_has_the_key_range(tmp_path: Path) -> None:
    keys = [Decimal(n) for n in (-5, -1, 0, 3, 9)]
    rows: list[Row] = [
        (number, kind, {"k1": f"k{at}", "k2": key, "it": at})
        for at, (key, number, kind) in enumerate(zip(keys, [40, 12, 77, 13, 50], [0, 3, 2, 1, 3]))
    ]
    path, meta = write_one(tmp_path, rows)
    assert (meta.row_count, meta.delete_row_count) == (5, 3)
    assert (meta.min_sequence_number, meta.max_sequence_number) == (12, 77)
    assert decode_row(meta.min_key, key_types(SCHEMA)) == (Decimal("-5.00"), "k0")
    assert decode_row(meta.max_key, key_types(SCHEMA)) == (Decimal("9.00"), "k4")
    assert meta.file_size == path.stat().st_size
    assert (meta.level, meta.file_source, meta.schema_id) == (0, 0, 0)
    lows = decode_row(meta.key_stats.min_values, key_types(SCHEMA))
    highs = decode_row(meta.key_stats.max_values, key_types(SCHEMA))
    assert (lows, highs) == ((Decimal("-5.00"), "k0"), (Decimal("9.00"), "k4"))


def test_value_statistics_follow_the_options(tmp_path: Path) -> None:
    options = {"bucket": "1", "fields.w.stats-mode": "none", "fields.v.stats-mode": "full"}
    schema = create_schema("k INT, v STRING, w INT", ["k"], (), options)
    _, meta = write_one(tmp_path, [(0, 0, {"k": 1, "v": "b"}), (1, 0, {"k": 4, "v": None})], schema)
    assert meta.value_stats_cols == ("k", "v")
    types = [schema.field(name).type for name in ("k", "v")]
    assert decode_row(meta.value_stats.min_values, types) == (1, "b")
    assert decode_row(meta.value_stats.max_values, types) == (4, "b")
    assert meta.value_stats.null_counts == (0, 1)


def test_files_end_at_the_target_size_with_keys_in_order(tmp_path: Path) -> None:
    layout = layout_of(INT_SCHEMA, target_file_size=3_000, row_group_bytes=4_000)
    batches = [rows_table(INT_SCHEMA, int_rows(at, 50)) for at in range(0, 1000, 50)]
    metas = write_files(tmp_path, layout, batches)
    assert len(metas) > 3
    assert sum(meta.row_count for meta in metas) == 1000
    assert sum(meta.delete_row_count or 0 for meta in metas) == 100
    ranges = [(decode_row(m.min_key, key_types(INT_SCHEMA)), decode_row(m.max_key, key_types(INT_SCHEMA))) for m in metas]
    assert all(low <= high for low, high in ranges)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    assert [row["k"] for meta in metas for row in read(tmp_path / meta.file_name, INT_SCHEMA).to_pylist()] == list(
        range(1000)
    )
    assert len({meta.file_name for meta in metas}) == len(metas)
    assert all(meta.file_size >= 3_000 for meta in metas[:-1])


def test_a_small_target_file_size_applies_to_rows_of_one_batch(tmp_path: Path) -> None:
    schema = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1", "target-file-size": "32 kb"})
    rows = [(k, 0, {"k": k, "v": hashlib.sha256(bytes([k % 256, k // 256])).hexdigest()}) for k in range(10_000)]
    metas = write_files(tmp_path, layout_of(schema), [rows_table(schema, rows)])
    assert len(metas) > 5
    assert all(32 << 10 <= meta.file_size < 128 << 10 for meta in metas[:-1])
    assert sum(meta.row_count for meta in metas) == 10_000


def test_a_writer_without_rows_makes_no_file(tmp_path: Path) -> None:
    writer = RollingWriter(
        IO.filesystem(), str(tmp_path / "bucket"), FileNames("u"), layout_of(INT_SCHEMA), level=0, file_source=0
    )
    writer.write(rows_table(INT_SCHEMA, []))
    assert writer.close() == []
    assert not (tmp_path / "bucket").exists()


def test_an_aborted_writer_leaves_no_files(tmp_path: Path) -> None:
    layout = layout_of(INT_SCHEMA, target_file_size=2_000, row_group_bytes=2_000)
    writer = RollingWriter(IO.filesystem(), str(tmp_path), FileNames("u"), layout, level=0, file_source=0)
    for at in range(0, 300, 50):
        writer.write(rows_table(INT_SCHEMA, int_rows(at, 50)))
    assert list(tmp_path.iterdir())
    writer.abort()
    assert list(tmp_path.iterdir()) == []


ENCODED = pa.schema(
    [
        ("k", pa.int64()),
        ("ts", pa.timestamp("us")),
        ("s", pa.string()),
        ("a", pa.list_(pa.field("element", pa.int32()))),
        ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ("r", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
    ]
)
ENCODED_ROWS = [
    {"k": 1, "ts": 5, "s": "a", "a": [1, None], "m": [("p", [1])], "r": {"x": 1, "y": {"z": "q"}}},
    {"k": 2, "ts": 6, "s": "a", "a": None, "m": None, "r": None},
]


def encodings(ascending: list[str]) -> dict[str, set[str]]:
    sink = io.BytesIO()
    table = pa.Table.from_pylist(ENCODED_ROWS, schema=ENCODED)
    with pq.ParquetWriter(sink, ENCODED, **encoding_options(ENCODED, ascending)) as writer:
        writer.write_table(table)
    read = pq.ParquetFile(sink)
    assert read.read().to_pylist() == table.to_pylist()
    group = read.metadata.row_group(0)
    return {group.column(at).path_in_schema: set(group.column(at).encodings) for at in range(group.num_columns)}


def test_ascending_integers_have_no_dictionary_and_every_other_column_has_one() -> None:
    found = encodings(["k", "ts", "s"])
    assert "RLE_DICTIONARY" not in found["k"] | found["ts"]
    assert not any(kind.startswith("DELTA") for kinds in found.values() for kind in kinds)
    others = {path: kinds for path, kinds in found.items() if path not in ("k", "ts")}
    assert len(others) == 6
    assert all("RLE_DICTIONARY" in kinds for kinds in others.values())


def test_decimals_have_a_dictionary_up_to_18_digits_and_none_above(tmp_path: Path) -> None:
    digits = (1, 9, 10, 18, 19, 38)
    names = [f"d{precision}" for precision in digits]
    columns = [pa.array([Decimal(7), Decimal(-7), None, Decimal(7)], pa.decimal128(precision, 0)) for precision in digits]
    lists = pa.array([[Decimal(7)]] * 4, pa.list_(pa.field("element", pa.decimal128(38, 0))))
    table = pa.table([*columns, lists], names=[*names, "a"])
    path = tmp_path / "decimals.parquet"
    with pq.ParquetWriter(
        path, table.schema, store_decimal_as_integer=True, **encoding_options(table.schema, [])
    ) as writer:
        writer.write_table(table)
    group = pq.ParquetFile(path).metadata.row_group(0)
    found = {group.column(at).path_in_schema: group.column(at).has_dictionary_page for at in range(group.num_columns)}
    assert found == {**{f"d{precision}": precision <= 18 for precision in digits}, "a.list.element": False}


def test_int96_columns_have_a_dictionary_and_no_statistics() -> None:
    schema = pa.schema([("k", INT96), ("a", pa.list_(INT96)), ("b", pa.list_(pa.int64()))])
    options = encoding_options(schema, ["k"])
    assert options["use_dictionary"] == ["k", "a.list.element", "b.list.element"]
    assert options["write_statistics"] == ["b.list.element"]


INDEXED = {
    "file-index.bloom-filter.columns": "k",
    "file-index.bloom-filter.k.items": "10",
    "file-index.bitmap.columns": "v",
}


def test_each_file_has_its_indexes_in_its_entry_or_in_a_separate_file(tmp_path: Path) -> None:
    for threshold in ("2 kb", "50 b"):
        layout = layout_with({**INDEXED, "target-file-row-num": "4", "file-index.in-manifest-threshold": threshold})
        directory = tmp_path / threshold
        metas = written(directory, layout, [3, 4])
        assert [meta.row_count for meta in metas] == [4, 3]
        for meta, first in zip(metas, (0, 4)):
            assert (meta.embedded_index is None, meta.extra_files) == (
                (False, ()) if threshold == "2 kb" else (True, (f"{meta.file_name}.index",))
            )
            location = FileIndexLocation.of(meta, str(directory))
            assert location is not None
            index = location.read(IO.filesystem())
            keys = pa.array([first, first + 1], pa.int32())
            assert index.may_hold_keys({"k": keys.slice(1)})
            (value,) = [field for field in INT_SCHEMA.fields if field.name == "v"]
            stored = pq.read_table(directory / meta.file_name).column("v").combine_chunks()
            assert list(index.rows_with(value, stored.slice(1, 1), None) or ()) == [1]


def test_files_of_indexes_are_made_durable_and_an_aborted_writer_leaves_none(tmp_path: Path) -> None:
    layout = layout_with({**INDEXED, "target-file-row-num": "4", "file-index.in-manifest-threshold": "0 b"})
    flushed: list[str] = []
    for aborted in (False, True):
        writer = RollingWriter(
            IO.filesystem(),
            str(tmp_path / str(aborted)),
            FileNames("u"),
            layout,
            level=0,
            file_source=0,
            make_durable=lambda _, names: flushed.extend(names),
        )
        writer.write(rows_table(INT_SCHEMA, int_rows(0, 9)))
        metas = [] if aborted else writer.close()
        names = sorted(path.name for path in (tmp_path / str(aborted)).iterdir())
        assert any(name.endswith(".index") for name in names)
        if aborted:
            writer.abort()
            assert list((tmp_path / "True").iterdir()) == []
        else:
            assert sorted(flushed) == names == sorted(n for meta in metas for n in (meta.file_name, *meta.extra_files))


def test_changelog_files_and_columns_of_maps_keys_have_no_index() -> None:
    options = TableOptions.parse({**INDEXED, "file-index.bitmap.columns": "v,v[a]"})
    layout = FileLayout.of(INT_SCHEMA, options)
    assert [index.column for index in layout.file_indexes] == ["k", "v"]
    assert layout.for_compaction().file_indexes == layout.file_indexes
    assert layout.for_changelog(options).new_index() is None

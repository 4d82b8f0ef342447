"""Where files and row groups end, and what the options say about it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from tests.examples import examples
from tests.merge.run_files import Row, rows_table, write_files

SCHEMA = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1"})


def layout_of(options: dict[str, str], most_group_bytes: int | None = None) -> FileLayout:
    return FileLayout.of(SCHEMA, TableOptions.parse(options), most_group_bytes)


def rows(first: int, count: int) -> list[Row]:
    return [(k, 0, {"k": k, "v": f"{k:0100d}"}) for k in range(first, first + count)]


def written(directory: Path, layout: FileLayout, sizes: list[int]) -> list[DataFileMeta]:
    """The files of batches of so many rows."""
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    return write_files(directory, layout, [rows_table(SCHEMA, rows(*batch)) for batch in zip(starts, sizes)])


def group_rows(directory: Path, meta: DataFileMeta) -> list[int]:
    footer = pq.ParquetFile(directory / meta.file_name).metadata
    return [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]


@examples(25)
@given(sizes=st.lists(st.integers(0, 40), max_size=6), limit=st.integers(1, 50), group=st.sampled_from(["1 b", "1 mb"]))
def test_a_file_of_a_write_ends_at_target_file_row_num(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, group: str
) -> None:
    layout = layout_of({"target-file-row-num": str(limit), "file.block-size": group})
    counts = [meta.row_count for meta in written(tmp_path_factory.mktemp("rows"), layout, sizes)]
    full, rest = divmod(sum(sizes), limit)
    assert counts == [limit] * full + [rest] * (rest > 0)


def test_the_size_ends_a_file_before_its_rows_do(tmp_path: Path) -> None:
    layout = layout_of({"target-file-row-num": "900", "target-file-size": "1 b", "file.block-size": "1 b"})
    assert [meta.row_count for meta in written(tmp_path, layout, [1000])] == [256, 256, 256, 232]


def test_compactions_and_changelogs_end_files_by_size_alone(tmp_path: Path) -> None:
    options = TableOptions.parse({"target-file-row-num": "10"})
    layout = FileLayout.of(SCHEMA, options)
    for each in (layout.for_compaction(), layout.for_changelog(options)):
        assert [meta.row_count for meta in written(tmp_path, each, [50])] == [50]


def test_block_size_ends_row_groups_of_about_its_size(tmp_path: Path) -> None:
    (usual,) = written(tmp_path, layout_of({}), [5_000])
    assert group_rows(tmp_path, usual) == [5_000]
    (meta,) = written(tmp_path, layout_of({"file.block-size": "64 kb"}), [100] * 50)
    *full, _ = group_rows(tmp_path, meta)
    row = rows_table(SCHEMA, rows(0, 100)).nbytes / 100
    assert len(full) > 5
    assert all(65_536 <= count * row < 65_536 + 100 * row for count in full)


def test_a_block_size_above_the_default_holds_unless_the_memory_is_less() -> None:
    assert layout_of({"target-file-size": "1 gb"}).row_group_bytes == 64 << 20
    wide = {"target-file-size": "1 gb", "file.block-size": "128 mb"}
    assert layout_of(wide).row_group_bytes == 128 << 20
    assert layout_of(wide, 32 << 20).row_group_bytes == 32 << 20


def test_a_switched_off_dictionary_is_in_no_column(tmp_path: Path) -> None:
    for text, some in (("true", True), ("false", False)):
        (meta,) = written(tmp_path, layout_of({"parquet.enable.dictionary": text}), [50])
        group = pq.ParquetFile(tmp_path / meta.file_name).metadata.row_group(0)
        assert any(group.column(at).has_dictionary_page for at in range(group.num_columns)) is some

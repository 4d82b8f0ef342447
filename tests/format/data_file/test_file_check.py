from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.file_check import ExpectedFile, FileCheck
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.binary_row import EMPTY_ROW, encode_row
from lakelsm.frames.scan_frame import check_files
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema_changes import AddColumn, RenameColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import AtomicType
from tests.compact.local_table import LocalTable, Row


def run_files(table: LocalTable) -> list[RunFile]:
    entries = sorted(table.live(), key=lambda entry: (entry.partition, entry.file.min_sequence_number))
    make = MergeUnits(table.store, entries)
    return [make.file_of(entry) for entry in entries]


def of_another_writer(file: RunFile) -> RunFile:
    """Return the same file as a manifest without checksums of footers names it."""
    assert file.expected is not None
    return replace(file, expected=replace(file.expected, footer_checksum=None))


def refusal(table: LocalTable, file: RunFile) -> str:
    """Return the error of the check, which is the same on the driver and in a task."""
    store = table.store
    return refusal_by(store, schemas_of(store), file)


def schemas_of(store: TableStore) -> dict[int, TableSchema]:
    return {number: store.schemas.get(number) for number in store.schemas.ids()}


def refusal_by(store: TableStore, schemas: dict[int, TableSchema], file: RunFile) -> str:
    file_io, schema = store.file_io, store.schema
    with pytest.raises(CorruptTableError) as caught:
        check_files(file_io, schemas, [file])
    assert str(caught.value).startswith(f"Data file {file.path}")
    reader = RunReader(file_io, schema, schemas=schemas, columns=schema.field_names, memory_bytes=1 << 20)
    with pytest.raises(CorruptTableError) as in_task:
        list(reader.open_runs(MergeUnit(((file,),)))[0])
    assert str(in_task.value) == str(caught.value)
    return str(caught.value)


def of_one_file(folder: Path, columns: str = "id INT NOT NULL, v STRING", **options: str) -> tuple[LocalTable, RunFile]:
    """Return a table of five rows in one file, and the file."""
    table = LocalTable(folder / "t", columns, **options)
    table.write(*rows(0, 5))
    (file,) = run_files(table)
    return table, file


def rows(first: int, count: int, value: str = "v") -> list[Row]:
    return [(number, value) for number in range(first, first + count)]


def test_pages_are_written_with_checksums_and_a_flipped_bit_is_found(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", file__compression="none")
    table.write(*rows(0, 500))
    table.write(*rows(0, 500))
    file = run_files(table)[0]
    data = bytearray(Path(file.path).read_bytes())
    at = pq.read_metadata(file.path).row_group(0).column(1).data_page_offset + 200
    data[at] ^= 1
    Path(file.path).write_bytes(data)
    with pytest.raises(CorruptTableError, match=f"{file.path}.*(checksum|CRC)"):
        table.compact()
    assert table.latest.id == 2


def test_a_flipped_byte_of_a_footer_is_found_before_anything_decodes_it(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write(*rows(0, 50))
    (file,) = run_files(table)
    sound = Path(file.path).read_bytes()
    length, store = int.from_bytes(sound[-8:-4], "little"), table.store
    schemas = schemas_of(store)
    for at in range(len(sound) - 8 - length, len(sound) - 4):
        damaged = bytearray(sound)
        damaged[at] ^= 1 << at % 8
        Path(file.path).write_bytes(damaged)
        assert "footer" in refusal_by(store, schemas, file)


def test_files_keep_the_checksums_of_their_footers(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", manifest__merge_min_count="2")
    for first in range(4):
        table.write(*rows(first * 10, 9))
    known = {entry.file.footer_checksum for entry in table.live()}
    assert len(known) == 4 and None not in known
    table.compact()
    assert None not in {entry.file.footer_checksum for entry in table.live()}


@pytest.mark.parametrize("damage", ["cut", "extended", "empty"])
def test_a_file_of_another_size_is_refused(tmp_path: Path, damage: str) -> None:
    table, file = of_one_file(tmp_path)
    data = Path(file.path).read_bytes()
    Path(file.path).write_bytes({"cut": data[:-1], "extended": data + b"x", "empty": b""}[damage])
    assert "bytes instead of" in refusal(table, file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    table, file = of_one_file(tmp_path)
    Path(file.path).unlink()
    assert "does not exist" in refusal(table, file)


def test_an_older_file_of_the_same_size_is_refused(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", file__compression="none")
    table.write(*rows(0, 5, "a"))
    table.write(*rows(0, 5, "b"))
    old, new = run_files(table)
    assert old.file_size == new.file_size
    shutil.copy(old.path, new.path)
    assert "sequence numbers 0 to 4, but its manifest entry says 5 to 9" in refusal(table, of_another_writer(new))
    assert "footer" in refusal(table, new)


def test_the_file_of_another_bucket_with_the_same_numbers_is_refused(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="2", file__compression="none")
    table.write(*rows(0, 40))
    by_rows: dict[int, list[ManifestEntry]] = {}
    for entry in table.live():
        by_rows.setdefault(entry.bucket, []).append(entry)
    one, two = (str(table.path_of(by_rows[bucket][0])) for bucket in (0, 1))
    shutil.copy(one, two)
    (file,) = (file for file in run_files(table) if file.path == two)
    assert "bytes instead of" in refusal(table, of_another_writer(file))


def test_the_file_of_another_partition_is_refused(tmp_path: Path) -> None:
    columns = "dt STRING NOT NULL, id INT NOT NULL"
    table = LocalTable(tmp_path / "t", columns, ("dt", "id"), ("dt",), file__compression="none")
    table.write(*(("a", number) for number in range(9)))
    table.overwrite(*(("b", number) for number in range(9)), partitions=lambda partition: b"b" in partition)
    one, two = run_files(table)
    shutil.copy(one.path, two.path)
    said = refusal(table, of_another_writer(two))
    assert "dt from b'a'" in said or "sequence numbers" in said


def test_a_file_without_a_column_of_its_schema_is_refused(tmp_path: Path) -> None:
    table, file = of_one_file(tmp_path, "id INT NOT NULL, payload STRING")
    data = Path(file.path).read_bytes()
    Path(file.path).write_bytes(data.replace(b"payload", b"paxload"))
    assert pq.read_metadata(file.path).schema.names[-1] == "paxload"
    assert "no column 'payload'" in refusal(table, of_another_writer(file))


def test_older_files_are_accepted_after_schema_changes(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write(*rows(0, 5))
    table.alter(RenameColumn("v", "w"), AddColumn("x", AtomicType("INT")))
    table.write((9, "w", 1))
    store = table.store
    check_files(store.file_io, {number: store.schemas.get(number) for number in (0, 1)}, run_files(table))


def test_a_file_with_a_column_outside_its_schema_is_refused(tmp_path: Path) -> None:
    table, file = of_one_file(tmp_path, "id INT NOT NULL, payload STRING")
    schema = table.root / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace("payload", "paxload"))
    assert "no column 'paxload'" in refusal(table, file)
    document = json.loads(schema.read_text())
    document["fields"].pop()
    schema.write_text(json.dumps(document))
    assert "has a column 'payload', but schema-0 of its manifest entry has none" in refusal(table, file)


def test_nested_columns_and_names_with_dots_are_accepted(tmp_path: Path) -> None:
    columns = "id INT NOT NULL, `a.b` ROW<x INT, v ARRAY<INT>>, r ROW<id INT>, `r.id` STRING, m MAP<STRING, INT>, v INT"
    table = LocalTable(tmp_path / "t", columns)
    table.write((1, {"x": 1, "v": [2]}, {"id": 3}, "c", [("k", 1)], 5))
    store = table.store
    check_files(store.file_io, {0: store.schema}, run_files(table))


def test_a_null_bound_is_not_compared() -> None:
    schema = create_schema("id INT, v STRING", ["id"], (), {"primary-key.nullable": "true"}, None, 0)
    low, high = (encode_row([value], [AtomicType("INT")]) for value in (None, 1))
    (check,) = FileCheck.of(
        [
            ExpectedFile(
                file_size=100,
                row_count=2,
                min_key=low,
                max_key=high,
                min_sequence_number=0,
                max_sequence_number=1,
                partition=EMPTY_ROW,
            )
        ],
        schema,
    )
    assert list(check.ranges) == []


def test_a_page_header_that_ends_its_column_early_is_reported(tmp_path: Path) -> None:
    table, file = of_one_file(tmp_path)
    data = Path(file.path).read_bytes()
    schemas, seen = {0: table.store.schema}, set()
    reader = RunReader(
        table.store.file_io, table.store.schema, schemas=schemas, columns=("id", "v"), memory_bytes=1 << 20
    )
    first = pq.read_metadata(file.path).row_group(0).column(4)
    for at in range(first.dictionary_page_offset or first.data_page_offset, first.data_page_offset + 30):
        for value in (0, 1, 2, 121):
            Path(file.path).write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            with contextlib.suppress(CorruptTableError):
                seen.add(sum(map(len, list(reader.open_runs(MergeUnit(((file,),)))[0]))))
    assert seen == {5}


def test_a_column_of_another_parquet_type_is_refused_before_pyarrow_reads_it(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, payload BIGINT")
    table.write(*((number, number) for number in range(5)))
    (file,) = run_files(table)
    data = Path(file.path).read_bytes()
    at = data.index(b"\x07payload") - 5
    assert data[at : at + 2] == b"\x15\x04"  # The type, INT64.
    Path(file.path).write_bytes(data[: at + 1] + b"\x06" + data[at + 2 :])  # INT96.
    assert pq.read_metadata(file.path).schema.column(4).physical_type == "INT96"
    assert "another Parquet type for 'payload'" in refusal(table, of_another_writer(file))

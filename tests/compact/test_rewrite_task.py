"""The rewrite task of a compaction."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lakelsm.compact.rewrite_task import RewriteTask
from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import FileKind, ManifestEntry, decode_entries
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.rewrite_units import RewriteUnit
from tests.compact.local_table import LocalTable, Row


def task_of(table: LocalTable) -> RewriteTask:
    store = table.store
    schemas = {number: store.schemas.get(number) for number in store.schemas.ids()}
    return RewriteTask(
        reader=RunReader(
            store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=1 << 20
        ),
        layout=FileLayout.of(store.schema, store.options, 1 << 16),
        spec=MergeSpec.of(store.schema, store.options),
        names=AttemptNames.new(SYSTEM.new_uuid),
    )


def unit_of(table: LocalTable, *, drop_delete: bool = True, sections: int = 1) -> RewriteUnit:
    """Return a unit of all files of the table, one run each, oldest first, in ``sections`` of equal size."""
    entries = sorted(table.live(), key=lambda entry: entry.file.min_sequence_number)
    runs = [
        (
            RunFile(
                str(table.path_of(e)), schema_id=e.file.schema_id, row_count=e.file.row_count, file_size=e.file.file_size
            ),
        )
        for e in entries
    ]
    size = len(runs) // sections
    units = [MergeUnit(tuple(runs[at : at + size])) for at in range(0, len(runs), size)]
    entry, directory = entries[0], table.path_of(entries[0]).parent
    return RewriteUnit(
        sections=tuple(units),
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=1,
        directory=str(directory),
        output_level=4,
        drop_delete=drop_delete,
    )


def run(table: LocalTable, unit: RewriteUnit) -> list[ManifestEntry]:
    task = pickle.loads(pickle.dumps(task_of(table)))
    (batch,) = task(pickle.loads(pickle.dumps(unit)))
    return decode_entries(batch.column("entries")[0].as_py())


def stored_rows(table: LocalTable, entry: ManifestEntry) -> list[Row]:
    return [tuple(row.values()) for row in table.stored(entry).select(["_VALUE_KIND", "id", "v"]).to_pylist()]


def three_runs(root: Path) -> LocalTable:
    table = LocalTable(root / "t")
    table.write((1, "a"), (2, "a"), (3, "a"))
    table.write((2, "b"))
    table.delete((3, None))
    return table


def test_the_message_describes_the_new_file_on_disk(tmp_path: Path) -> None:
    table = three_runs(tmp_path)
    (entry,) = run(table, unit_of(table))
    path = table.path_of(entry)
    assert (entry.kind, entry.bucket, entry.total_buckets, entry.file.level) == (FileKind.ADD, 0, 1, 4)
    assert (entry.file.file_size, entry.file.row_count) == (path.stat().st_size, 2)
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 3)
    assert stored_rows(table, entry) == [(0, 1, "a"), (0, 2, "b")]


def test_a_delete_is_written_if_lower_levels_may_have_an_older_row(tmp_path: Path) -> None:
    table = three_runs(tmp_path)
    (entry,) = run(table, unit_of(table, drop_delete=False))
    assert stored_rows(table, entry) == [(0, 1, "a"), (0, 2, "b"), (3, 3, None)]
    assert (entry.file.delete_row_count, entry.file.max_sequence_number) == (1, 4)


def test_nothing_is_written_if_only_deletes_are_left(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.delete((1, None))
    before = table.data_files()
    assert run(table, unit_of(table)) == []
    assert table.data_files() == before


def test_sections_in_key_order_share_a_file(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    for first in (0, 0, 100, 100):
        table.write(*((number, str(first)) for number in range(first, first + 10)))
    (entry,) = run(table, unit_of(table, sections=2))
    assert (entry.file.row_count, entry.file.min_sequence_number) == (20, 10)


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    for first in (0, 0, 100, 100):
        table.write(*((number, str(first)) for number in range(first, first + 10)))
    unit = unit_of(table, sections=2)
    missing = Path(unit.sections[1].runs[1][0].path)
    missing.unlink()
    before = table.data_files()
    with pytest.raises(CorruptTableError, match=missing.name):
        run(table, unit)
    assert table.data_files() == before


def test_two_attempts_of_a_task_write_different_files(tmp_path: Path) -> None:
    table = three_runs(tmp_path)
    (first,), (second,) = run(table, unit_of(table)), run(table, unit_of(table))
    assert first.file.file_name != second.file.file_name


def test_more_runs_than_one_merge_takes_give_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = LocalTable(tmp_path / "t")
    for number in range(11):
        table.write((number, f"own-{number}"), (100, f"shared-{number}"))
    table.delete((3, None))
    monkeypatch.setattr("lakelsm.compact.rewrite_task._FAN_IN", 3)
    before = table.data_files()
    (batch,) = task_of(table)(unit_of(table))
    (entry,) = decode_entries(batch.column("entries")[0].as_py())
    expected = [(0, number, f"own-{number}") for number in range(11) if number != 3]
    assert stored_rows(table, entry) == [*expected, (0, 100, "shared-10")]
    assert len(table.data_files()) == len(before) + 1

"""The canonical order of a snapshot's files depends on the manifests alone."""

from __future__ import annotations

from pathlib import Path

from lakelsm.options import ChangelogProducer
from lakelsm.stream.feed_part import FileChanges, LoadedRows
from lakelsm.stream.snapshot_files import changed_files, loaded_files, overwritten_files
from tests.stream.stream_reader import put, table_of


def test_the_levels_that_a_changelog_is_based_on_are_loaded(tmp_path: Path) -> None:
    levels = {}
    for producer in ("none", "lookup", "full-compaction"):
        table = table_of(tmp_path / producer, producer)
        put(table, *(("+I", key, "a") for key in range(4)))
        table.compact(True)
        put(table, ("+I", 1, "b"))
        store = table._store()
        snapshot = store.snapshots.latest()
        assert snapshot is not None
        found = loaded_files(store, snapshot)
        levels[producer] = [group.files for group in found.groups]
        assert found.count == sum(levels[producer]) == found.positions[-1]
    assert levels == {"none": [2], "lookup": [1], "full-compaction": [1]}


def test_files_of_changes_are_in_the_order_of_their_sequence_numbers(tmp_path: Path) -> None:
    table = table_of(tmp_path, bucket="2", target_file_size="1 kb", page_size="1 kb")
    put(table, *(("+I", key, "x" * 50) for key in range(20_000)))
    store = table._store()
    snapshot = store.snapshots.get(1)
    groups = changed_files(store, snapshot, ChangelogProducer.NONE).groups
    assert [group.bucket for group in groups] == sorted(group.bucket for group in groups)
    assert sum(group.rows for group in groups) == 20_000 and len(groups) > 2
    (unit,) = groups[0].make()
    assert isinstance(unit, FileChanges)
    (loaded,) = loaded_files(store, snapshot).groups[0].make()
    assert isinstance(loaded, LoadedRows)


def test_an_overwrite_is_the_difference_of_two_states(tmp_path: Path) -> None:
    table = table_of(tmp_path, bucket="2")
    put(table, *(("+I", key, "a") for key in range(9)))
    table.overwrite([{"k": 1, "v": "b"}])
    store = table._store()
    groups = overwritten_files(store, store.snapshots.get(1), store.snapshots.get(2)).groups
    assert [group.bucket[1] for group in groups] == [0, 1]
    assert sum(group.rows for group in groups) == 10

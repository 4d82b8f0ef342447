"""Candidates that a state needs are kept: live data files at any level, and metadata files by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.maintain.deletion.deletion_candidates import DeletionCandidates, ReferenceFilter, file_key
from tests.commit.commit_table import ReadingFileIO
from tests.maintain.expiry.expiry_table import ExpiryTable


def test_live_files_are_needed_and_deleted_ones_are_not(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    kept, moved, deleted, later = table.new(), table.new(), table.new(), table.new()
    table.append(kept, moved, deleted)
    table.compact(table.moved(moved))
    state = table.compact(table.rewritten(deleted))
    table.append(later)
    entries = (kept, moved, deleted, later)
    found = DeletionCandidates(data={file_key(entry): entry for entry in entries})
    assert ReferenceFilter(table.store, found).keep_state(state) == 2
    assert set(found.data) == {file_key(deleted), file_key(later)}


def test_only_files_that_the_state_may_contain_are_looked_up(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    one, other = table.new(), table.new()
    state = table.append(one, other)
    found = DeletionCandidates(data={file_key(entry): entry for entry in (one, other)})
    ReferenceFilter(table.store, found).keep_state(state, lambda key: key == file_key(one))
    assert set(found.data) == {file_key(other)}


def test_metadata_files_that_a_state_names_are_needed(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    state = table.append(table.new())
    manifests = table.metadata_names()
    found = DeletionCandidates(
        lists=dict.fromkeys([state.base_manifest_list, state.delta_manifest_list, "other"], 1),
        manifests=dict.fromkeys(manifests, 1),
        statistics={"stat": 0},
    )
    ReferenceFilter(table.store, found).keep_state(state)
    assert (set(found.lists), set(found.statistics)) == ({"other"}, {"stat"})
    assert set(found.manifests) == {state.base_manifest_list, state.delta_manifest_list}


def test_a_manifest_that_many_states_share_is_read_once(tmp_path: Path) -> None:
    file_io = ReadingFileIO()
    table = ExpiryTable(tmp_path / "t", file_io=file_io)
    deleted = table.new()
    states = [table.append(table.new()) for _ in range(5)]
    needed = ReferenceFilter(table.store, DeletionCandidates(data={file_key(deleted): deleted}))
    file_io.reads.clear()
    for state in states:
        needed.keep_state(state)
    manifests = [name for name in file_io.reads if name.startswith("manifest-") and "-list-" not in name]
    assert len(manifests) == len(set(manifests)) == 5


def test_an_unreadable_state_is_an_error_and_not_a_state_without_files(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    deleted = table.new()
    state = table.append(deleted)
    table.file_io.delete(table.paths.manifest(state.delta_manifest_list))
    with pytest.raises(CorruptTableError, match=state.delta_manifest_list):
        ReferenceFilter(table.store, DeletionCandidates(data={file_key(deleted): deleted})).keep_state(state)


def test_a_data_file_is_deleted_with_its_extra_files(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    entry = table.new("b", 1)
    entry.file.extra_files = (f"{entry.file.file_name}.index",)
    name = f"{table.paths.root}/dt=b/bucket-1/{entry.file.file_name}"
    found = DeletionCandidates(data={file_key(entry): entry}, manifests={"m": 5}, lists={"l": 2})
    directory = table.store.paths.manifest_dir
    assert found.paths(table.store) == ([name, f"{name}.index"], [f"{directory}/m"], [f"{directory}/l"])
    assert (found.metadata, found.bytes) == (2, 1007)

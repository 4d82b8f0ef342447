"""The names in states: manifest lists and manifests, which must exist or may be missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.maintain.orphans.reference_tasks import (
    ManifestToRead,
    ReadManifests,
    ReadStates,
    RetainedState,
    retained_states,
)
from lakelsm.snapshots.branch_store import RetainedBranch
from tests.compact.local_table import LocalTable


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path / "t", changelog_producer="input")
    made.write((1, "a"))
    return made


def references(table: LocalTable, state: RetainedState) -> list[dict[str, object]]:
    store = table.store
    return [row for batch in ReadStates(store.file_io, store.paths)([state]) for row in batch.to_pylist()]


def names(rows: list[dict[str, object]], **values: object) -> set[object]:
    return {row["name"] for row in rows if all(row[key] == value for key, value in values.items())}


def manifests(rows: list[dict[str, object]]) -> list[ManifestToRead]:
    keys = ("name", "entries", "size", "checksum", "required")
    return [ManifestToRead(**{key: row[key] for key in keys}) for row in rows if row["entries"] is not None]  # type: ignore[arg-type]


def test_a_snapshot_names_lists_these_name_manifests_and_these_name_files(table: LocalTable) -> None:
    rows = references(table, RetainedState(table.latest))
    assert set(table.latest.metadata_files) <= names(rows, missing=False)
    store, found = table.store, manifests(rows)
    assert len(found) == 2 and all(each.required and each.entries == 1 for each in found)
    files = [row for batch in ReadManifests(store.file_io, store.paths)(found) for row in batch.to_pylist()]
    assert names(files, missing=False) == table.data_files()


def delete_lists(table: LocalTable, *lists: str | None) -> None:
    for name in lists:
        (table.root / "manifest" / str(name)).unlink()


CHANGELOG, BASE, DELTA = "changelog_manifest_list", "base_manifest_list", "delta_manifest_list"


@pytest.mark.parametrize(
    ("state", "lost", "missing"),
    [
        (RetainedState, BASE, True),
        (RetainedState, CHANGELOG, True),
        (lambda snapshot: RetainedState(snapshot, tagged=True), CHANGELOG, False),
        (lambda snapshot: RetainedState(snapshot, tagged=True), DELTA, True),
        (lambda snapshot: RetainedState(snapshot, changelog_alone=True), CHANGELOG, True),
        (lambda snapshot: RetainedState(snapshot, changelog_alone=True), DELTA, False),
        (
            lambda snapshot: RetainedState(replace(snapshot, changelog_manifest_list=None), changelog_alone=True),
            DELTA,
            False,
        ),
    ],
)
def test_a_missing_list_is_reported_if_the_state_needs_it(
    table: LocalTable, state: type[RetainedState], lost: str, missing: bool
) -> None:
    kept, name = state(table.latest), getattr(table.latest, lost)
    delete_lists(table, name)
    assert names(references(table, kept), missing=True) == ({name} if missing else set())


def test_a_long_lived_changelog_names_its_changelog_list_or_without_one_its_delta(table: LocalTable) -> None:
    snapshot = table.latest
    assert snapshot.delta_manifest_list not in names(references(table, RetainedState(snapshot, changelog_alone=True)))
    without = replace(snapshot, changelog_manifest_list=None)
    assert {snapshot.delta_manifest_list, snapshot.base_manifest_list} <= names(
        references(table, RetainedState(without, changelog_alone=True))
    )


def test_a_damaged_file_is_an_error_and_not_a_missing_file(table: LocalTable) -> None:
    store, rows = table.store, references(table, RetainedState(table.latest))
    path = table.root / "manifest" / manifests(rows)[0].name
    path.write_bytes(b"damage")
    with pytest.raises(CorruptTableError, match="manifest-"):
        list(ReadManifests(store.file_io, store.paths)(manifests(rows)))
    path.unlink()
    for required in (True, False):
        lost = replace(manifests(rows)[0], required=required)
        found = [row for batch in ReadManifests(store.file_io, store.paths)([lost]) for row in batch.to_pylist()]
        assert [row["missing"] for row in found] == [True] * required
    (table.root / "manifest" / table.latest.delta_manifest_list).write_bytes(b"damage")
    with pytest.raises(CorruptTableError, match="manifest-list"):
        references(table, RetainedState(table.latest))


def test_index_files_and_statistics_of_a_snapshot_are_named(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="-1")
    table.write((1, "a"))
    snapshot = replace(table.latest, statistics="stat-1")
    rows = references(table, RetainedState(snapshot))
    assert {"stat-1", snapshot.index_manifest, *(path.name for path in (table.root / "index").iterdir())} <= names(rows)
    delete_lists(table, snapshot.index_manifest)
    assert names(references(table, RetainedState(snapshot)), missing=True) == {snapshot.index_manifest}
    assert not names(references(table, RetainedState(snapshot, changelog_alone=True)), missing=True)


def test_equal_states_of_several_branches_are_listed_once(table: LocalTable) -> None:
    paths, snapshot = table.store.paths, table.latest
    other: Snapshot = replace(snapshot, id=7, base_manifest_list="manifest-list-x")
    branches = [
        RetainedBranch(paths=paths, snapshots=[snapshot], tags={"a": Tag(other), "b": Tag(other)}, changelogs=[other]),
        RetainedBranch(paths=paths.of_branch("x"), snapshots=[snapshot], tags={}, changelogs=[]),
    ]
    assert retained_states(branches) == [
        RetainedState(snapshot), RetainedState(other, tagged=True), RetainedState(other, changelog_alone=True)
    ]

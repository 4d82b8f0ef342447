"""Deleted tags and rollbacks: all files that no retained state needs are deleted, and no other file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm import Table
from lakelsm.errors import CommitConflictError, CorruptTableError
from lakelsm.maintain.deletion.deletion_candidates import ReferenceFilter
from lakelsm.snapshots.branch_store import BranchStore, RetainedBranch
from tests.maintain.versioned_table import rows, values, versioned_table


def files(table: Table) -> set[str]:
    """Return the data, manifest, index and statistics files on disk."""
    root = Path(table._store().paths.root)
    found = [path for pattern in ("bucket-*/*", "manifest/*", "index/*", "statistics/*") for path in root.glob(pattern)]
    return {path.name for path in found}


def compacted(table: Table) -> None:
    table.compact(full=True, engine="local")


def test_files_that_only_a_tag_kept_are_deleted_with_it(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 3)
    table.tags.create("q", 3)
    compacted(table)
    kept = files(table)
    table.maintenance.expire_snapshots(retain_last=1)
    assert values(table.at(tag="q")) == ["v1", "v2", "v3"]
    named = files(table)
    assert table.tags.delete("q", dry_run=True).files == table_free(table, tmp_path)
    done = table.tags.delete("q")
    assert done.files == len(named - files(table)) > 3 and done.bytes > 0 and done.failures == ()
    assert values(table) == ["v1", "v2", "v3"] and len(files(table)) < len(kept)
    nothing_is_left_over(table)


def table_free(table: Table, root: Path) -> int:
    """Return the number of files that the deletion of tag q deletes, tested on a copy."""
    copy = root.parent / f"{root.name}-copy"
    shutil.copytree(root, copy)
    path = str(copy / Path(table._store().paths.root).relative_to(root))
    return Table.for_path(path).tags.delete("q").files


def nothing_is_left_over(table: Table) -> None:
    """Assert that orphan removal would find no file."""
    found = table.maintenance.remove_orphans(older_than=0, force=True, dry_run=True, engine="local")
    assert found.files == 0, found


@pytest.mark.parametrize("keeper", ["a snapshot", "another tag", "a branch"])
def test_files_that_another_state_needs_are_kept(tmp_path: Path, keeper: str) -> None:
    table = versioned_table(tmp_path, 3)
    table.tags.create("q", 3)
    if keeper == "another tag":
        table.tags.create("other", 3)
    if keeper == "a branch":
        table.branches.create("b", tag="q")
    compacted(table)
    if keeper != "a snapshot":
        table.maintenance.expire_snapshots(retain_last=1)
    before = files(table)
    done = table.tags.delete("q")
    assert done.files == 0 and files(table) == before
    if keeper == "a snapshot":
        assert values(table.at(snapshot=3)) == ["v1", "v2", "v3"]
    elif keeper == "another tag":
        assert values(table.at(tag="other")) == ["v1", "v2", "v3"]
    else:
        assert values(table.branches.open("b")) == ["v1", "v2", "v3"]


def test_a_tag_that_outlived_a_rollback_leaves_the_files_of_all_snapshots(tmp_path: Path) -> None:
    """The tag is based on a snapshot that is neither the oldest nor the newest one."""
    table = versioned_table(tmp_path, 4)
    table.tags.create("q", 4)
    content = Path(table._store().paths.tag("q")).read_bytes()
    table.rollback(3)
    Path(table._store().paths.tag("q")).write_bytes(content)
    compacted(table)
    table.write(rows((9, "v9")))
    table.tags.delete("q")
    assert values(table.at(snapshot=3)) == ["v1", "v2", "v3"] and table.maintenance.check().ok


def test_an_unreadable_state_stops_the_call_before_the_tag_is_deleted(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 3)
    table.tags.create("q", 3)
    compacted(table)
    table.tags.create("broken")
    table.maintenance.expire_snapshots(retain_last=1)
    Path(table._store().paths.tag("broken")).write_text("{")
    before = files(table)
    with pytest.raises(CorruptTableError, match="tag-broken"):
        table.tags.delete("q")
    assert files(table) == before and Path(table._store().paths.tag("q")).exists()


@pytest.mark.parametrize("act", ["delete_tag", "replace_tag", "expire_tags", "rollback", "fast_forward"])
def test_an_unreadable_manifest_list_stops_the_call_before_any_deletion(tmp_path: Path, act: str) -> None:
    table = versioned_table(tmp_path, 3)
    table.tags.create("q", 3, time_retained=1000)
    table.tags.create("kept", 2)
    table.branches.create("b", tag="kept")
    table.branches.open("b").write(rows((9, "b")))
    compacted(table)
    table.maintenance.expire_snapshots(retain_last=1)
    table.write(rows((4, "v4")))
    store = table._store()
    kept = store.on_branch("b").snapshots.get(3) if act == "fast_forward" else store.tags.get("kept").snapshot
    Path(store.paths.manifest(kept.base_manifest_list)).write_bytes(b"Obj")
    root = Path(store.paths.root)
    before = {path for path in root.rglob("*") if "service" not in path.parts}
    calls = {
        "delete_tag": lambda: table.tags.delete("q"),
        "replace_tag": lambda: table.tags.replace("q"),
        "expire_tags": lambda: table.tags.expire("2999-01-01 00:00:00"),
        "rollback": lambda: table.rollback(4),
        "fast_forward": lambda: table.branches.fast_forward("b"),
    }
    if act == "expire_tags":
        store.file_io.write(store.paths.tag("stays"), store.tags.get("kept").to_json().encode())
    with pytest.raises(CorruptTableError, match=kept.base_manifest_list):
        calls[act]()
    assert {path for path in root.rglob("*") if "service" not in path.parts} - before <= {root / "tag" / "tag-stays"}
    assert before <= set(root.rglob("*")) and values(table) == ["v1", "v2", "v3", "v4"]


def test_a_damaged_tag_can_be_deleted_and_its_files_become_orphans(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 3)
    table.tags.create("q", 3)
    compacted(table)
    table.maintenance.expire_snapshots(retain_last=1)
    Path(table._store().paths.tag("q")).write_text("{")
    before = files(table)
    with pytest.raises(CorruptTableError, match="tag-q"):
        table.tags.list()
    assert table.tags.delete("q").tags == ("q",) and table.tags.list() == [] and files(table) == before
    assert table.maintenance.remove_orphans(older_than=0, force=True, engine="local").files > 0
    assert values(table) == ["v1", "v2", "v3"]


def test_a_rollback_deletes_the_files_of_later_snapshots(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 3, **{"changelog-producer": "input"})
    before = files(table)
    compacted(table)
    table.write(rows((4, "v4")))
    table.delete("id = 1", engine="local")
    later = files(table) - before
    planned = table.rollback(3, dry_run=True)
    assert planned.files == len(later) and files(table) == before | later
    assert table.rollback(3).files == len(later)
    assert files(table) == before and values(table) == ["v1", "v2", "v3"]
    nothing_is_left_over(table)


def test_a_rollback_keeps_files_that_a_branch_needs(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 2, **{"changelog-producer": "input"})
    compacted(table)
    table.write(rows((3, "v3")))
    table.tags.create("three")
    table.branches.create("b", tag="three")
    table.rollback(1)
    assert values(table) == ["v1"] and table.tags.list() == []
    branch = table.branches.open("b")
    assert values(branch) == ["v1", "v2", "v3"]
    assert branch.changelog_reader(3, mode="changelog").read_all().num_rows == 1
    nothing_is_left_over(table)


@pytest.mark.parametrize("act", ["rollback", "expiry"])
def test_files_that_a_branch_with_the_same_history_needs_are_kept(tmp_path: Path, act: str) -> None:
    table = versioned_table(tmp_path, 1)
    table.tags.create("one")
    table.branches.create("b", tag="one")
    branch = table.branches.open("b")
    for number in (2, 3):
        branch.write(rows((number, f"v{number}")))
        compacted(branch)
    table.branches.fast_forward("b")
    assert values(table) == ["v1", "v2", "v3"]
    if act == "rollback":
        table.rollback(1)
    else:
        table.tags.delete("one")
        table.maintenance.expire_snapshots(retain_last=1)
    newest = branch._store().snapshots.latest_id() or 0
    assert [len(values(branch.at(snapshot=number))) for number in range(1, newest + 1)] == [1, 2, 2, 3, 3]


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "compact", "overwrite", "tag", "delete_tag", "expire", "rollback", "branch"]),
        st.integers(0, 5),
    ),
    max_size=14,
)


@settings(max_examples=25)
@given(steps=STEPS)
def test_in_any_history_retained_states_can_be_read_and_no_other_file_stays(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    table = versioned_table(tmp_path_factory.mktemp("h"), 1, **{"changelog-producer": "input"})
    states = {1: values(table)}
    tags: dict[str, list[str]] = {}
    branches: dict[str, list[str]] = {}
    for at, (step, number) in enumerate(steps):
        ids = list(table._store().snapshots.ids())
        chosen = ids[number % len(ids)]
        if step == "write":
            table.write(rows((number, f"w{at}")))
        elif step == "compact":
            compacted(table)
        elif step == "overwrite":
            table.overwrite(rows((number, f"o{at}")))
        elif step == "tag":
            table.tags.create(f"t{at}", chosen)
            tags[f"t{at}"] = states[chosen]
        elif step == "delete_tag" and tags:
            name = sorted(tags)[number % len(tags)]
            del tags[name]
            table.tags.delete(name)
        elif step == "expire":
            table.maintenance.expire_snapshots(retain_last=1 + number)
        elif step == "branch" and tags:
            name = sorted(tags)[number % len(tags)]
            table.branches.create(f"b{at}", tag=name)
            branches[f"b{at}"] = tags[name]
        elif step == "rollback":
            names = sorted(tags)
            point = names[number % len(names)] if names and number % 2 else chosen
            table.rollback(point)
            tags = {name: kept for name, kept in tags.items() if name in {tag.name for tag in table.tags.list()}}
        newest = table._store().snapshots.latest_id() or 0
        states = {**states, newest: values(table)}
        for known in table._store().snapshots.ids():
            assert values(table.at(snapshot=known)) == states[known], step
        for name, kept in tags.items():
            assert values(table.at(tag=name)) == kept, step
        for name, kept in branches.items():
            assert values(table.branches.open(name)) == kept, step
    nothing_is_left_over(table)


@pytest.mark.parametrize("what", ["a tag is deleted", "a rollback"])
def test_a_long_lived_changelog_without_changes_has_no_delta_and_is_no_damage(
    tmp_path: Path, what: str
) -> None:
    kept = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "3", "changelog.num-retained.max": "20"}
    table = versioned_table(tmp_path, 6, **{"changelog-producer": "lookup", "changelog.num-retained.min": "9", **kept})
    compacted(table)
    for number in (7, 8):
        table.write(rows((number, f"v{number}")))
        table.tags.create(f"t{number}")
        compacted(table)
    table.maintenance.expire_snapshots(retain_last=2)
    assert len(table._store().changelogs.ids()) > 5
    if what == "a rollback":
        table.rollback("t7")
        assert table.to_arrow(fresh=True).num_rows == 7
    else:
        compacted(table)
        table.maintenance.expire_snapshots(retain_last=1)
        table.tags.delete("t7")
        table.tags.delete("t8")
        assert table.to_arrow().num_rows == 8
    assert table.maintenance.check(data="full", engine="local").findings == ()
    nothing_is_left_over(table)


def act_concurrently(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run ``act`` once, after the retained states were read."""
    read, acts = BranchStore.retained, [act]

    def retained(store: BranchStore) -> Sequence[RetainedBranch]:
        found = read(store)
        if acts:
            acts.pop()()
        return found

    monkeypatch.setattr(BranchStore, "retained", retained)


@pytest.mark.parametrize("act", ["delete", "replace"])
def test_a_state_that_is_deleted_concurrently_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    table = versioned_table(tmp_path, 6)
    table.tags.create("q", 2)
    table.tags.create("other", 3)
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    act_concurrently(monkeypatch, lambda: table.tags.delete("other"))
    getattr(table.tags, act)("q")
    assert values(table) == ["v1", "v2", "v3", "v4", "v5", "v6"]
    assert [tag.snapshot_id for tag in table.tags.list()] == ([] if act == "delete" else [6])
    nothing_is_left_over(table)


@pytest.mark.parametrize("act", ["delete_tag", "rollback"])
def test_if_states_are_deleted_at_every_attempt_no_file_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    table = versioned_table(tmp_path, 4)
    table.tags.create("q", 2)
    table.maintenance.expire_snapshots(retain_last=2, older_than="0 s")
    before = files(table)
    monkeypatch.setattr("lakelsm.maintain.deletion.removed_states.are_retained", lambda store, retained: False)
    monkeypatch.setattr(ReferenceFilter, "keep_state", missing)
    with pytest.raises(CommitConflictError, match="other processes expired or deleted states"):
        table.tags.delete("q") if act == "delete_tag" else table.rollback(3)
    monkeypatch.undo()
    assert (files(table), values(table.at(tag="q"))) == (before, ["v1", "v2"])
    table.tags.delete("q")
    nothing_is_left_over(table)


def missing(*_: object) -> int:
    raise CorruptTableError("a manifest list is missing")

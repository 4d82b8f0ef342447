"""The files that expire with snapshots, and the files that each kind of retained state keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.maintain.expiry import expired_files
from lakelsm.maintain.versions.branches import create_branch
from tests.commit.commit_table import ReadingFileIO
from tests.maintain.expiry.expiry_table import ExpiryTable


def test_an_upgraded_file_is_kept_and_a_rewritten_file_expires(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    moved, rewritten = table.new(), table.new("b")
    table.append(moved, rewritten)
    table.compact(table.moved(moved))
    table.compact(table.rewritten(rewritten))
    done = table.expire_to(1)
    assert (done.snapshots, done.data_files, done.failures) == (2, 1, ())
    assert f"dt=a/bucket-0/{moved.file.file_name}" in table.on_disk()
    assert f"dt=b/bucket-0/{rewritten.file.file_name}" not in table.on_disk()
    assert table.missing() == set()


@pytest.mark.parametrize("keeper", ["tag", "branch"])
def test_tags_and_branches_keep_files_and_are_reported(tmp_path: Path, keeper: str) -> None:
    table = ExpiryTable(tmp_path / "t")
    entry = table.new()
    table.append(entry)
    table.tag("q3")
    if keeper == "branch":
        create_branch(table.store, "audit", "q3")
        table.file_io.delete(table.paths.tag("q3"))
        table.file_io.delete(table.paths.of_branch("audit").tag("q3"))
    table.compact(table.rewritten(entry))
    done = table.expire_to(1)
    assert (done.snapshots, done.data_files) == (1, 0)
    assert done.held_by == ("tag q3" if keeper == "tag" else "branch audit",)
    assert done.protected_files > 0
    assert table.missing() == set()


def test_an_unreadable_tag_stops_expiry_before_any_deletion(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    entry = table.new()
    table.append(entry)
    table.tag("q3")
    table.compact(table.rewritten(entry))
    there = table.on_disk()
    table.file_io.write(table.paths.tag("q3"), b"{")
    with pytest.raises(CorruptTableError, match="tag-q3"):
        table.expire_to(1)
    assert (table.on_disk(), list(table.snapshots.ids())) == (there, [1, 2])
    table.file_io.delete(table.paths.tag("q3"))
    assert table.expire_to(1).data_files == 1


def test_no_manifests_of_old_tags_are_read_if_all_files_are_younger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expiry reads only the manifest lists of the tags before the nearest one."""
    monkeypatch.setattr(expired_files, "_YOUNGER", 0)
    file_io = ReadingFileIO()
    table = ExpiryTable(tmp_path / "t", {"manifest.merge-min-count": "1000"}, file_io=file_io)
    for number in range(5):
        table.append(table.new())
        table.tag(f"t{number}")
    fresh = table.new()
    table.append(fresh)
    table.compact(table.rewritten(fresh))
    table.expire_to(2)
    file_io.reads.clear()
    assert table.expire_to(1).data_files == 1
    old = {meta for meta in file_io.reads if meta.startswith("manifest-") and "-list-" not in meta}
    assert len(old) <= 5 + 2, "the nearest tag's manifests, and the deltas"


def test_a_tag_of_a_rolled_back_history_does_not_hide_an_older_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed rollback left a tag in which the file is already deleted; an older tag has the file."""
    monkeypatch.setattr(expired_files, "_YOUNGER", 0)
    table = ExpiryTable(tmp_path / "t")
    entry = table.new()
    table.append(entry)
    table.tag("right")
    table.append(table.new("b"))
    table.compact(table.rewritten(entry))
    table.tag("stale")
    table.expire(3)
    table.snapshots.write_latest_hint(table.snapshots.get(2))
    table.append(table.new("b"))
    table.append(table.new("b"))
    table.expire_to(1)
    table.compact(table.rewritten(entry))
    table.expire_to(1)
    assert f"dt=a/bucket-0/{entry.file.file_name}" in table.on_disk()
    assert table.of_state(table.store.tags.get("right").snapshot) <= table.on_disk()


@pytest.mark.parametrize("kept_snapshots", [20, 60])
def test_the_reads_of_an_expiry_depend_on_the_expired_snapshots_not_on_the_retained_states(
    tmp_path: Path, kept_snapshots: int
) -> None:
    """Of each retained snapshot, expiry reads the snapshot file, and of the first one also lists and manifests. Of each
    tag and branch, it reads their own files and the manifest lists of one state."""
    file_io = ReadingFileIO()
    table = ExpiryTable(tmp_path / "t", file_io=file_io)
    expired, tags, branches = 10, 10, 5
    for _ in range(expired // 2):
        fresh = table.new()
        table.append(fresh)
        table.compact(table.rewritten(fresh))
    for _ in range(kept_snapshots):
        table.append(table.new())
    last = kept_snapshots + expired
    for number in range(tags):
        table.tag(f"t{number}", table.snapshots.get(last - number))
    for number in range(branches):
        create_branch(table.store, f"b{number}", tag=f"t{number}")
    file_io.reads.clear()
    assert table.expire_to(kept_snapshots).snapshots == expired
    lists = [name for name in file_io.reads if name.startswith("manifest-list-")]
    manifests = [name for name in file_io.reads if name.startswith("manifest-") and name not in lists]
    snapshots = [name for name in file_io.reads if name.startswith("snapshot-")]
    assert len(lists) <= 4 * expired + 4 * branches
    assert len(manifests) <= 2 * expired + 20
    assert len(snapshots) <= kept_snapshots + 5 * expired + 6 * branches

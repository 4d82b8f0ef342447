"""The merge of manifests: which manifests are merged when, and that the live files stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.commit.manifest_merge import (
    MergePolicy,
    cancel,
    merge_manifests,
    needs_full_merge,
    plan_minor_merge,
)
from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import (
    EMPTY_STATS,
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    summarize,
)
from lakelsm.snapshots.manifest_scan import read_manifest_metas
from tests.commit.commit_table import STRING, CommitTable, add, delete, file, upgrade

POLICY = MergePolicy(target_size=100, min_count=3, full_threshold=1000)


def meta(name: str, size: int, deleted: int = 0) -> ManifestFileMeta:
    return ManifestFileMeta(
        name, size, num_added_files=1, num_deleted_files=deleted, partition_stats=EMPTY_STATS, schema_id=0
    )


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([10, 10], [[10], [10]]),
        ([10, 10, 10], [[10, 10, 10]]),
        ([100, 10, 10], [[100], [10], [10]]),
        ([200, 10, 10, 10], [[200], [10, 10, 10]]),
        ([60, 50, 10], [[60], [50], [10]]),
        ([40, 40, 40, 1], [[40, 40, 40], [1]]),
        ([90, 5, 5, 5], [[90], [5, 5, 5]]),
        ([90, 30, 5, 5, 5], [[90], [30], [5, 5, 5]]),
        ([12, 5, 5, 5], [[12, 5, 5, 5]]),
        ([150, 160, 170], [[150], [160], [170]]),
    ],
)
def test_minor_groups_close_at_the_target_and_leave_large_manifests_alone(
    sizes: list[int], groups: list[list[int]]
) -> None:
    plan = plan_minor_merge([meta(str(i), size) for i, size in enumerate(sizes)], POLICY)
    assert [[member.file_size for member in group] for group in plan] == groups


@given(st.lists(st.integers(1, 250), max_size=40))
def test_a_minor_plan_keeps_all_manifests_in_order_and_ends(sizes: list[int]) -> None:
    metas = [meta(str(i), size) for i, size in enumerate(sizes)]
    plan = plan_minor_merge(metas, POLICY)
    assert [member for group in plan for member in group] == metas
    waiting = [group[0] for group in plan if len(group) == 1 and group[0].file_size < POLICY.target_size]
    # Small manifests that stay are few: below the minimum count, or each larger than all later ones.
    assert len(waiting) <= POLICY.min_count + 8 + len(sizes) // 2


def test_a_full_merge_is_due_when_what_must_change_reaches_the_threshold() -> None:
    assert not needs_full_merge([meta("a", 5000), meta("b", 99), meta("c", 900)], POLICY)
    assert needs_full_merge([meta("a", 901, deleted=1), meta("b", 99)], POLICY)
    assert not needs_full_merge([meta("a", 900, deleted=1), meta("b", 99)], POLICY)


def test_cancelling_drops_pairs_keeps_foreign_deletes_and_refuses_doubles() -> None:
    a, b, foreign = add(file("a")), add(file("b")), delete(add(file("old")))
    assert cancel([a, b, delete(a), foreign]) == [b, foreign]
    assert cancel(upgrade(a, 5)) == upgrade(a, 5)
    assert cancel([a, *upgrade(a, 5)]) == upgrade(a, 5)[1:]
    with pytest.raises(CorruptTableError, match="a twice"):
        cancel([a, b, a])


class Store:
    """Manifests in memory."""

    def __init__(self) -> None:
        self.files: dict[str, list[ManifestEntry]] = {}
        self.reads: list[str] = []

    def write(self, entries: Sequence[ManifestEntry]) -> list[ManifestFileMeta]:
        if not entries:
            return []
        name = f"m{len(self.files)}"
        self.files[name] = list(entries)
        return [summarize(name, 10 * len(entries), entries, [STRING])]

    def read(self, manifest: ManifestFileMeta) -> list[ManifestEntry]:
        self.reads.append(manifest.file_name)
        return list(self.files[manifest.file_name])

    def live(self, metas: Sequence[ManifestFileMeta]) -> set[str]:
        entries = [entry for manifest in metas for entry in self.files[manifest.file_name]]
        deleted = {entry.identity for entry in entries if entry.kind == FileKind.DELETE}
        return {repr(e.identity) for e in entries if e.kind == FileKind.ADD and e.identity not in deleted}


def test_a_full_merge_applies_deletes_and_leaves_untouched_full_manifests_unread() -> None:
    store = Store()
    old = [add(file(f"o{i}"), dt="old") for i in range(12)]
    hit = [add(file(f"h{i}"), dt="hit") for i in range(12)]
    other_bucket = [add(file(f"b{i}"), dt="hit", bucket=1) for i in range(12)]
    metas = [m for part in (old, hit, other_bucket) for m in store.write(part)]
    metas += store.write([delete(hit[0]), add(file("n"), dt="new")])
    policy = MergePolicy(target_size=100, min_count=30, full_threshold=20)
    merged = merge_manifests(metas, policy, store.read, store.write, [STRING])
    assert store.live(merged) == store.live(metas)
    assert [m.file_name for m in merged] == ["m0", "m2", "m4"]
    assert store.reads == ["m3", "m1"]
    assert all(m.num_deleted_files == 0 for m in merged)


def test_a_full_manifest_of_the_partition_without_a_deleted_file_is_kept() -> None:
    store = Store()
    kept, hit = ([add(file(f"{name}{i}")) for i in range(12)] for name in "kh")
    metas = [*store.write(kept), *store.write(hit), *store.write([delete(hit[3])])]
    policy = MergePolicy(target_size=100, min_count=30, full_threshold=10)
    merged = merge_manifests(metas, policy, store.read, store.write, [STRING])
    assert [m.file_name for m in merged] == ["m0", "m3"]
    assert store.live(merged) == store.live(metas)


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8),
    st.integers(1, 6),
    st.sampled_from([1, 60, 10_000]),
)
def test_a_merge_never_changes_the_live_files(commits: list[list[int]], min_count: int, threshold: int) -> None:
    store = Store()
    metas: list[ManifestFileMeta] = []
    alive: dict[int, ManifestEntry] = {}
    for number, files in enumerate(commits):
        delta: list[ManifestEntry] = []
        for slot in dict.fromkeys(files):
            if slot in alive:
                delta.append(delete(alive.pop(slot)))
            else:
                alive[slot] = add(file(f"f{slot}-{number}"), dt=str(slot % 3), bucket=slot % 2)
                delta.append(alive[slot])
        metas += store.write(delta)
        policy = MergePolicy(target_size=50, min_count=min_count, full_threshold=threshold)
        metas = merge_manifests(metas, policy, store.read, store.write, [STRING])
        assert store.live(metas) == {repr(entry.identity) for entry in alive.values()}


def test_many_commits_keep_the_number_of_manifests_small(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, {"manifest.merge-min-count": "5", "manifest.full-compaction-threshold-size": "12 kb"})
    expected = set()
    previous = None
    for number in range(40):
        entry = add(file(f"f{number}", seq=(number, number), keys=(number, number)))
        table.append(entry)
        expected.add(f"f{number}@0")
        if number % 3 == 2 and previous is not None:
            table.compact(upgrade(previous, 5))
            expected = (expected - {f"{previous.file.file_name}@0"}) | {f"{previous.file.file_name}@5"}
        previous = entry
    assert table.live_names() == expected
    latest = table.snapshots.latest()
    assert latest is not None
    assert len(read_manifest_metas(table.file_io, table.paths, latest)) < 15
    assert table.metadata_names() == table.named_metadata()

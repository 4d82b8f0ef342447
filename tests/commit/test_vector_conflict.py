"""Deletion vectors under concurrent commits: every pair of operations in both orders, and the index after them."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.conflict import ConflictKind
from lakelsm.commit.vector_conflict import check_vectors, live_levels, vectors_of_live_files
from lakelsm.errors import (
    CommitConflictError,
    RowsChangedError,
    SequenceConflictError,
    VectorsChangedError,
)
from lakelsm.format.index.index_manifest import IndexManifestEntry, encode_index_manifest
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.manifest_scan import read_index_entries
from tests.commit.commit_table import (
    CommitTable,
    add,
    delete,
    file,
    hash_index,
    interfering,
    partition,
    upgrade,
    vector_index,
)

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE

#: The target files of operations, by their position relative to the target of the first operation.
TARGETS = {
    "same file": add(file("same", level=4, keys=(1, 4))),
    "other file": add(file("other", level=4, keys=(5, 9))),
    "other bucket": add(file("bucket", level=4), bucket=1),
    "other partition": add(file("partition", level=4), dt="b"),
}
BASE_MASK = "masked before"


@dataclass
class MaskedTable:
    """A table in which each of TARGETS has a vector. ``contents``: the masks by index file and data file."""

    table: CommitTable
    contents: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def begin(self) -> None:
        """Commit files on level 0, compact them with vectors, and commit two more level-0 files for each target."""
        level0 = [add(file(f"l0 of {name}"), dt=_dt(entry), bucket=entry.bucket) for name, entry in TARGETS.items()]
        self.table.append(*level0)
        adds = [
            self.index_file({"same": BASE_MASK, "other": BASE_MASK}, TARGETS["same file"]),
            self.index_file({"bucket": BASE_MASK}, TARGETS["other bucket"]),
            self.index_file({"partition": BASE_MASK}, TARGETS["other partition"]),
        ]
        self.table.compact([*map(delete, level0), *TARGETS.values()], index_adds=adds)
        self.table.append(*(_level0(target, number) for target in TARGETS.values() for number in range(2)))

    def index_file(self, masks: dict[str, str], target: ManifestEntry, *, after: int | None = None) -> IndexManifestEntry:
        """Make an index file of the target's bucket: its masks as of a snapshot, and more masks."""
        before = self.masks_of(after, target)
        merged = {
            name: before.get(name, frozenset()) | ({masks[name]} if name in masks else set())
            for name in {*before, *masks}
        }
        name = f"index-{next(self.numbers)}"
        self.contents[name] = merged
        return vector_index(name, *sorted(merged), dt=_dt(target), bucket=target.bucket)

    def masks_of(self, snapshot_id: int | None, target: ManifestEntry) -> dict[str, frozenset[str]]:
        if snapshot_id is None:
            return {}
        found: dict[str, frozenset[str]] = {}
        for entry in read_index_entries(self.table.file_io, self.table.paths, self.table.snapshots.get(snapshot_id)):
            if (entry.partition, entry.bucket) == (target.partition, target.bucket):
                for item in entry.file.dv_ranges or ():
                    assert item.data_file_name not in found, "two vectors of one file"
                    found[item.data_file_name] = self.contents[entry.file.file_name][item.data_file_name]
        return found

    def check(self) -> dict[str, frozenset[str]]:
        """Return all masks by file, after a check that the index names only files above level 0."""
        masks = {}
        for target in TARGETS.values():
            masks.update(self.masks_of(self.table.snapshots.latest_id(), target))
        levels = {entry.file.file_name: entry.file.level for entry in self.table.live()}
        assert all(levels.get(name, 0) > 0 for name in masks)
        return masks


#: The commit of an operation: kind and message.
Work = tuple[CommitKind, CommitMessage]
#: Makes the commit of an operation from the table, the target, the number of its level-0 file, and the base snapshot.
Operation = Callable[[MaskedTable, ManifestEntry, int, int], Work]


def _dt(target: ManifestEntry) -> str:
    return "b" if target.partition == partition("b") else "a"


def _level0(target: ManifestEntry, number: int) -> ManifestEntry:
    """The level-0 file that the first or second operation on a target compacts."""
    first = 10 + 10 * number
    meta = file(f"{target.file.file_name}-{number}", seq=(first, first + 9), keys=_keys(target))
    return add(meta, dt=_dt(target), bucket=target.bucket)


def _keys(target: ManifestEntry) -> tuple[int, int]:
    return {"same": (1, 4), "other": (5, 9)}.get(target.file.file_name, (1, 9))


def _new(target: ManifestEntry, number: int, level: int = 0) -> ManifestEntry:
    meta = file(f"new-{number}-{target.file.file_name}", level=level, keys=_keys(target), seq=(30, 39))
    return add(meta, dt=_dt(target), bucket=target.bucket)


def append(table: MaskedTable, target: ManifestEntry, number: int, base: int) -> Work:
    return APPEND, CommitMessage([_new(target, number)], base_snapshot_id=base)


def delete_rows(table: MaskedTable, target: ManifestEntry, number: int, base: int) -> Work:
    return APPEND, CommitMessage([_new(target, number)], base_snapshot_id=base, rows_as_of=base)


def mask(table: MaskedTable, target: ManifestEntry, number: int, base: int) -> Work:
    """A compaction of a level-0 file that masks rows of the target; its output is on another level."""
    adds = [table.index_file({target.file.file_name: f"masked by {number}"}, target, after=base)]
    written = _new(target, number, level=2 + number)
    return COMPACT, CommitMessage([delete(_level0(target, number)), written], base_snapshot_id=base, index_adds=adds)


def rewrite(table: MaskedTable, target: ManifestEntry, number: int, base: int) -> Work:
    """A compaction of the target alone, without its masked rows."""
    return COMPACT, CommitMessage([delete(target), _new(target, number, level=4)], base_snapshot_id=base)


def move(table: MaskedTable, target: ManifestEntry, number: int, base: int) -> Work:
    return COMPACT, CommitMessage(upgrade(target, 5), base_snapshot_id=base)


def overwrite(table: MaskedTable, target: ManifestEntry, number: int, base: int) -> Work:
    wanted = target.partition
    return OVERWRITE, CommitMessage([_new(target, number, level=5)], overwrite_partitions=lambda dt: dt == wanted)


OK, VECTORS, MISSING = None, VectorsChangedError, CommitConflictError
SEQUENCE, ROWS = SequenceConflictError, RowsChangedError
_OPERATIONS = (append, delete_rows, mask, rewrite, move, overwrite)

#: The error of the second operation after the first: on the same file, another file of the bucket, another bucket,
#: another partition. All other pairs succeed.
CONFLICTS: dict[tuple[Operation, Operation], tuple[type[Exception] | None, ...]] = {
    (append, append): (SEQUENCE, SEQUENCE, OK, OK),
    (append, delete_rows): (SEQUENCE, SEQUENCE, OK, OK),
    (delete_rows, append): (SEQUENCE, SEQUENCE, OK, OK),
    (delete_rows, delete_rows): (SEQUENCE, SEQUENCE, OK, OK),
    (mask, mask): (VECTORS, VECTORS, OK, OK),
    (mask, rewrite): (VECTORS, VECTORS, OK, OK),
    (rewrite, mask): (VECTORS, VECTORS, OK, OK),
    (rewrite, rewrite): (MISSING, OK, OK, OK),
    (rewrite, move): (MISSING, OK, OK, OK),
    (move, rewrite): (MISSING, OK, OK, OK),
    (move, move): (MISSING, OK, OK, OK),
    (overwrite, append): (SEQUENCE, SEQUENCE, OK, OK),
    (overwrite, delete_rows): (SEQUENCE, SEQUENCE, ROWS, OK),
    (overwrite, mask): (MISSING, MISSING, MISSING, OK),
    (overwrite, rewrite): (MISSING, MISSING, MISSING, OK),
    (overwrite, move): (MISSING, MISSING, MISSING, OK),
}
PAIRS = {pair: CONFLICTS.get(pair, (OK, OK, OK, OK)) for pair in itertools.product(_OPERATIONS, repeat=2)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> MaskedTable:
    found = MaskedTable(CommitTable(tmp_path_factory.mktemp("masked") / "t"))
    found.begin()
    return found


@pytest.fixture
def masked(template: MaskedTable, tmp_path: Path) -> MaskedTable:
    shutil.copytree(template.table.root, tmp_path / "t")
    table = CommitTable(tmp_path / "t", time=template.table.time)
    return MaskedTable(table, dict(template.contents), itertools.count(100))


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda operation: operation.__name__)
def test_a_pair_of_operations(masked: MaskedTable, first: Operation, second: Operation, where: str) -> None:
    table, same, target = masked.table, TARGETS["same file"], TARGETS[where]
    expected = PAIRS[first, second][list(TARGETS).index(where)]
    base = table.snapshots.latest_id() or 0
    works = [first(masked, same, 0, base), second(masked, target, 1, base)]
    done = [(first, same, 0)]
    table.committer().commit(*works[0], "one")
    if expected is None:
        table.committer().commit(*works[1], "two")
        done.append((second, target, 1))
    else:
        with pytest.raises(CommitConflictError) as caught:
            table.committer().commit(*works[1], "two")
        assert type(caught.value) is expected
    masks = masked.check()
    for operation, at, number in done:
        if operation is mask and at.file.file_name in {name.split("@")[0] for name in table.live_names()}:
            assert f"masked by {number}" in masks[at.file.file_name]
    untouched = {entry.file.file_name for entry in table.live()} & {entry.file.file_name for entry in TARGETS.values()}
    assert untouched == {name for name, found in masks.items() if BASE_MASK in found}


def test_two_compactions_that_race_for_one_snapshot_lose_no_masked_row(masked: MaskedTable) -> None:
    table, target = masked.table, TARGETS["same file"]
    base = table.snapshots.latest_id() or 0
    rival = mask(masked, target, 0, base)
    step = interfering(lambda: table.committer().commit(*rival, "rival"), at="index-manifest-written")
    with pytest.raises(VectorsChangedError, match=r"bucket 0 of partition dt=a: .* of other, same \(") as caught:
        table.committer(step).commit(*mask(masked, target, 1, base), "late")
    assert caught.value.files == ("other", "same") and caught.value.kind.value == "retry"
    assert table.metadata_names() == table.named_metadata()
    table.committer().commit(*mask(masked, target, 1, table.snapshots.latest_id() or 0), "late")
    assert masked.check()["same"] == {BASE_MASK, "masked by 0", "masked by 1"}


def test_an_append_with_vectors_is_checked_like_a_compaction(masked: MaskedTable) -> None:
    table, target = masked.table, TARGETS["same file"]
    base = table.snapshots.latest_id() or 0
    late = CommitMessage([], base_snapshot_id=base, index_adds=[masked.index_file({"same": "x"}, target, after=base)])
    table.committer().commit(*mask(masked, target, 0, base), "first")
    with pytest.raises(VectorsChangedError):
        table.committer().commit(APPEND, late, "late")
    now = table.snapshots.latest_id() or 0
    again = CommitMessage([], base_snapshot_id=now, index_adds=[masked.index_file({"same": "x"}, target, after=now)])
    outcome = table.committer().commit(APPEND, again, "late")
    assert outcome.snapshot is not None and outcome.snapshot.commit_kind is OVERWRITE
    assert masked.check()["same"] == {BASE_MASK, "masked by 0", "x"}


def test_vectors_of_an_expired_snapshot_are_not_compared(masked: MaskedTable) -> None:
    table, target = masked.table, TARGETS["same file"]
    base = table.snapshots.latest_id() or 0
    works = [mask(masked, target, 0, base), rewrite(masked, target, 0, base)]
    table.append(add(file("later", seq=(90, 99)), dt="b"))
    table.expire(*range(1, base + 1))
    for work in works:
        with pytest.raises(CommitConflictError, match=r"bucket 0 .* has expired") as caught:
            table.committer().commit(*work, "late")
        assert type(caught.value) is CommitConflictError
    bare = [delete(_level0(target, 1)), _new(target, 1, level=2)]
    table.committer().commit(COMPACT, CommitMessage(bare, base_snapshot_id=base), "of files without vectors")


def test_a_snapshot_that_was_rolled_back_counts_as_expired(masked: MaskedTable) -> None:
    table, target = masked.table, TARGETS["same file"]
    base = table.snapshots.latest_id() or 0
    work = rewrite(masked, target, 0, base + 5)
    with pytest.raises(CommitConflictError, match="has expired"):
        table.committer().commit(*work, "late")


def test_a_compaction_without_a_base_conflicts_with_any_vector(masked: MaskedTable) -> None:
    delta = [delete(TARGETS["same file"]), _new(TARGETS["same file"], 0, level=4)]
    with pytest.raises(VectorsChangedError):
        masked.table.compact(delta)


def test_the_vector_of_a_deleted_file_leaves_the_index_manifest(masked: MaskedTable) -> None:
    table = masked.table
    base = table.snapshots.latest_id() or 0
    before = {entry.bucket: entry for entry in _vectors_of(table, "a")}
    table.committer().commit(*rewrite(masked, TARGETS["same file"], 0, base), "c")
    after = {entry.bucket: entry for entry in _vectors_of(table, "a")}
    assert after[1] == before[1]
    kept, old = after[0].file, before[0].file
    assert (kept.file_name, kept.file_size, kept.row_count) == (old.file_name, old.file_size, 1)
    assert kept.dv_ranges == tuple(item for item in old.dv_ranges or () if item.data_file_name == "other")
    table.committer().commit(*rewrite(masked, TARGETS["other file"], 1, base), "c")
    assert [entry.bucket for entry in _vectors_of(table, "a")] == [1], "no index file without vectors"


def test_vectors_of_missing_files_are_dropped_at_the_next_change_of_the_bucket(masked: MaskedTable) -> None:
    table, target = masked.table, TARGETS["other bucket"]
    base = table.snapshots.latest_id() or 0
    index = read_index_entries(table.file_io, table.paths, table.snapshots.get(base))
    outdated = vector_index("outdated", "bucket", "long deleted", bucket=1)
    files = [outdated if entry.bucket == 1 else entry for entry in index]
    name = "index-manifest-of-another-writer"
    table.file_io.write(table.paths.manifest(name), encode_index_manifest(files))
    table.rewrite(base, index_manifest=name)
    table.committer().commit(*append(masked, target, 0, base), "u")
    assert outdated in _vectors_of(table, "a")
    table.committer().commit(*move(masked, target, 0, base), "c")
    assert [item.data_file_name for entry in _vectors_of(table, "a") for item in entry.file.dv_ranges or ()] == [
        "other",
        "same",
        "bucket",
    ]


def _vectors_of(table: CommitTable, dt: str) -> list[IndexManifestEntry]:
    latest = table.snapshots.latest()
    assert latest is not None
    index = read_index_entries(table.file_io, table.paths, latest)
    return [entry for entry in index if entry.partition == partition(dt)]


A, B, LOW = add(file("a", level=5)), add(file("b", level=5)), add(file("low"))
AT_A, AT_BOTH = vector_index("i", "a"), vector_index("i", "a", "b")
REWRITTEN = vector_index("j", "a")

RULES: list[tuple[str, list[ManifestEntry], list[IndexManifestEntry], list[IndexManifestEntry], set[ConflictKind]]] = [
    ("the same vectors", [delete(A)], [AT_A], [AT_A], set()),
    ("no vectors", [delete(A)], [], [], set()),
    ("a vector appeared", [delete(A)], [], [AT_A], {ConflictKind.VECTORS_CHANGED}),
    ("a vector disappeared", [delete(A)], [AT_A], [], {ConflictKind.VECTORS_CHANGED}),
    ("a vector is in another index file", [delete(A)], [AT_A], [REWRITTEN], {ConflictKind.VECTORS_CHANGED}),
    ("another file's vector left the same index file", [delete(A)], [AT_BOTH], [AT_A], set()),
    ("another file's vector changed", [delete(B)], [AT_A], [REWRITTEN], set()),
    ("a file that moves", upgrade(LOW, 5), [AT_A], [REWRITTEN], set()),
    ("a file of another bucket", [delete(A)], [], [vector_index("i", "a", bucket=1)], set()),
    ("a file of another partition", [delete(A)], [], [vector_index("i", "a", dt="b")], set()),
    ("key hashes are not vectors", [delete(A)], [hash_index("h")], [hash_index("g")], set()),
]


@pytest.mark.parametrize(("delta", "base", "now", "expected"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_vectors_of_files_that_are_rewritten(
    delta: list[ManifestEntry], base: list[IndexManifestEntry], now: list[IndexManifestEntry], expected: set[ConflictKind]
) -> None:
    found = check_vectors(delta, [], [], [A, B, LOW], base_index=base, index_now=now)
    assert {conflict.kind for conflict in found} == expected


def test_an_expired_base_is_a_conflict_for_deleted_files_with_vectors_and_for_new_vectors() -> None:
    def kinds(delta: list[ManifestEntry], *adds: IndexManifestEntry) -> list[ConflictKind]:
        return [found.kind for found in check_vectors(delta, adds, [], [A, B], base_index=None, index_now=[AT_A])]

    assert kinds([delete(A)]) == kinds([delete(B)], AT_A) == [ConflictKind.BASE_EXPIRED]
    assert kinds([delete(B)]) == kinds(upgrade(A, 6)) == []


INVALID = [
    ("a file on level 0", [], [vector_index("i", "low")], "level 0: low", ConflictKind.INVALID_VECTOR),
    ("a file twice", [], [vector_index("i", "a", "a")], "two vectors: a", ConflictKind.INVALID_VECTOR),
    ("two files of a bucket", [], [AT_A, vector_index("j", "b")], "two index files: i, j", ConflictKind.INVALID_VECTOR),
    ("a file that is deleted", [delete(A)], [AT_A], "deletes their data files: a", ConflictKind.INVALID_VECTOR),
    ("a file that is missing", [], [vector_index("i", "c")], "no longer in the table: c", ConflictKind.VECTORS_CHANGED),
    ("a file that moves up", upgrade(LOW, 5), [vector_index("i", "low")], None, None),
    ("a file that is new", [add(file("n", level=4))], [vector_index("i", "n", "a")], None, None),
]


@pytest.mark.parametrize(("delta", "adds", "text", "kind"), [r[1:] for r in INVALID], ids=[r[0] for r in INVALID])
def test_vectors_name_live_files_above_level_0_once(
    delta: list[ManifestEntry], adds: list[IndexManifestEntry], text: str | None, kind: ConflictKind | None
) -> None:
    found = check_vectors(delta, adds, [], [A, B, LOW], base_index=[], index_now=[])
    assert [conflict.kind for conflict in found] == ([kind] if kind else [])
    assert text is None or found[0].message.endswith(text)


def test_conflicts_that_remapping_resolves_come_last() -> None:
    adds = [vector_index("i", "c", "low")]
    found = check_vectors([delete(A)], adds, [], [A, LOW], base_index=[], index_now=[AT_A])
    assert [conflict.kind.name for conflict in found] == ["INVALID_VECTOR", "VECTORS_CHANGED", "VECTORS_CHANGED"]


def test_an_overwrite_masks_rows_of_its_own_files_only(masked: MaskedTable) -> None:
    table, target = masked.table, TARGETS["same file"]
    new = _new(target, 0, level=5)
    for name, message in {"same": "deletes their data files", "never": "no longer in the table"}.items():
        with pytest.raises(CommitConflictError, match=message):
            table.overwrite(new, partitions=["a"], index_adds=[vector_index("i", name)])
    own = vector_index("i", new.file.file_name)
    table.overwrite(new, partitions=["a"], index_adds=[own])
    assert _vectors_of(table, "a") == [own] and len(_vectors_of(table, "b")) == 1


def test_vectors_of_buckets_with_unknown_files_stay() -> None:
    index = [AT_BOTH, vector_index("k", "a", bucket=1), hash_index("h")]
    assert vectors_of_live_files(index, live_levels([A, B], [])) == index
    assert vectors_of_live_files(index, live_levels([A], [])) == [AT_A_OF_BOTH, *index[1:]]
    assert vectors_of_live_files(index, live_levels([A], [delete(A)])) == index[1:]


AT_A_OF_BOTH = IndexManifestEntry(
    AT_BOTH.kind,
    AT_BOTH.partition,
    AT_BOTH.bucket,
    replace(AT_BOTH.file, dv_ranges=(AT_BOTH.file.dv_ranges or ())[:1], row_count=1),
)

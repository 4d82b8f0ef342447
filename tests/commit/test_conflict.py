"""Every conflict and every non-conflict of conflict.py, a row each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakelsm.commit.conflict import Conflict, ConflictKind, Intervening, check_append, check_changes, check_rows_read
from lakelsm.errors import BucketAssignConflictError, CommitConflictError, RowsChangedError, SequenceConflictError
from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.merge.key_order import rank_keys
from tests.commit.commit_table import INT, add, delete, file, hash_index, upgrade

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def ranks(keys: Sequence[bytes]) -> Sequence[int]:
    result: list[int] = rank_keys(keys, [INT]).tolist()
    return result


A = add(file("a", keys=(1, 5), seq=(0, 9)))
B = add(file("b", keys=(3, 8), seq=(10, 19)))
TOP = add(file("top", level=5, keys=(1, 5)))
OTHER_BUCKET = add(file("other", level=5, keys=(1, 9)), bucket=1)
OTHER_DT = add(file("dt", level=5, keys=(1, 9)), dt="b")

CHANGES: list[tuple[str, CommitKind, list[ManifestEntry], list[ManifestEntry], set[ConflictKind]]] = [
    ("an append to an empty table", APPEND, [], [A], set()),
    ("appends to one bucket", APPEND, [A], [B], set()),
    ("a compaction of live files", COMPACT, [A, B], [delete(A), delete(B), TOP], set()),
    ("a compaction while newer level-0 files came", COMPACT, [A, B], [delete(A), TOP], set()),
    ("an upgrade", COMPACT, [A], upgrade(A, 5), set()),
    (
        "an upgrade above a file with keys apart",
        COMPACT,
        [A, add(file("z", level=5, keys=(6, 9)))],
        upgrade(A, 5),
        set(),
    ),
    (
        "a rewrite of the top level in place",
        COMPACT,
        [TOP, A],
        [delete(TOP), delete(A), add(file("n", level=5, keys=(1, 9)))],
        set(),
    ),
    ("equal key ranges on different levels", COMPACT, [TOP, A], upgrade(A, 4), set()),
    ("equal key ranges in another bucket", COMPACT, [OTHER_BUCKET, A], upgrade(A, 5), set()),
    ("equal key ranges in another partition", COMPACT, [OTHER_DT, A], upgrade(A, 5), set()),
    ("an overwrite of everything", OVERWRITE, [A, TOP], [delete(A), delete(TOP), B], set()),
    ("an overwrite with another bucket count", OVERWRITE, [A], [delete(A), add(total=4)], set()),
    ("a delta that adds a file and takes it back", COMPACT, [], [A, delete(A)], set()),
    ("dynamic buckets have no count to keep", APPEND, [add(total=-1)], [add(total=-1), add(total=2)], set()),
    ("overlaps that were there before", COMPACT, [TOP, add(file("t2", level=5)), A], upgrade(A, 4), set()),
    ("a rewrite under the newest schema", COMPACT, [A], [delete(A), add(file(level=5, schema_id=1))], set()),
    (
        "an upgrade of an older file beside a rewrite",
        COMPACT,
        [A, add(file("n", keys=(6, 9), schema_id=1))],
        [*upgrade(A, 4), delete(add(file("n", keys=(6, 9), schema_id=1))), add(file(level=5, schema_id=1))],
        set(),
    ),
    ("a file that exists", APPEND, [A], [A], {ConflictKind.DUPLICATE_FILE}),
    ("a file twice in the delta", APPEND, [], [A, A], {ConflictKind.DUPLICATE_FILE}),
    (
        "a file that was deleted in the same delta",
        COMPACT,
        [A],
        [delete(A), A],
        {ConflictKind.DUPLICATE_FILE},
    ),
    ("a compaction whose input is gone", COMPACT, [B], [delete(A), TOP], {ConflictKind.MISSING_FILE}),
    ("a compaction of an empty table", COMPACT, [], [delete(A), TOP], {ConflictKind.MISSING_FILE}),
    (
        "a compaction whose input was upgraded",
        COMPACT,
        [upgrade(A, 5)[1]],
        [delete(A), B],
        {ConflictKind.MISSING_FILE},
    ),
    ("one input deleted twice", COMPACT, [A], [delete(A), delete(A), TOP], {ConflictKind.MISSING_FILE}),
    (
        "an input in another bucket",
        COMPACT,
        [A],
        [delete(add(A.file, bucket=1))],
        {ConflictKind.MISSING_FILE},
    ),
    (
        "another bucket count in the partition",
        COMPACT,
        [add(total=2)],
        [add(total=4)],
        {ConflictKind.BUCKET_COUNT},
    ),
    (
        "two bucket counts in a first delta",
        APPEND,
        [],
        [add(total=2), add(total=4)],
        {ConflictKind.BUCKET_COUNT},
    ),
    ("bucket counts differ between partitions", APPEND, [], [add(total=2), add(total=4, dt="b")], set()),
    ("two compactions to the top overlap", COMPACT, [TOP, B], upgrade(B, 5), {ConflictKind.LEVEL_OVERLAP}),
    (
        "two compactions to the top share one key",
        COMPACT,
        [TOP, add(file("c", keys=(5, 9)))],
        upgrade(add(file("c", keys=(5, 9))), 5),
        {ConflictKind.LEVEL_OVERLAP},
    ),
    (
        "new files overlap each other",
        COMPACT,
        [A],
        [delete(A), add(file("x", level=5, keys=(1, 4))), add(file("y", level=5, keys=(2, 3)))],
        {ConflictKind.LEVEL_OVERLAP},
    ),
    (
        "an overwrite's own files overlap",
        OVERWRITE,
        [],
        [add(file("x", level=5, keys=(1, 4))), add(file("y", level=5, keys=(4, 5)))],
        {ConflictKind.LEVEL_OVERLAP},
    ),
    (
        "a rewrite under an older schema than an input's",
        COMPACT,
        [add(file("n", schema_id=1))],
        [delete(add(file("n", schema_id=1))), add(file(level=5, schema_id=0))],
        {ConflictKind.OLDER_SCHEMA},
    ),
]


@pytest.mark.parametrize(
    ("kind", "base", "delta", "expected"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_changes(
    kind: CommitKind, base: list[ManifestEntry], delta: list[ManifestEntry], expected: set[ConflictKind]
) -> None:
    assert {conflict.kind for conflict in check_changes(kind, base, delta, ranks)} == expected


NEW = add(file("new", seq=(10, 19)))
DYNAMIC = add(file("dyn", seq=(10, 19)), total=-1)
H1, H2 = hash_index("index-1"), hash_index("index-2")


def since(kind: CommitKind, *entries: ManifestEntry) -> list[Intervening]:
    return [Intervening(5, kind, "them", entries)]


AppendCase = tuple[
    str,
    list[ManifestEntry],
    list[IndexManifestEntry],
    list[Intervening],
    "list[IndexManifestEntry] | None",
    list[IndexManifestEntry],
    set[ConflictKind],
]
BUSY = since(APPEND, add(file(seq=(0, 0)), dt="z"))
APPENDS: list[AppendCase] = [
    ("nothing since", [NEW], [], [], [], [], set()),
    ("an append below our numbers", [NEW], [], since(APPEND, add(file(seq=(5, 9)))), [], [], set()),
    (
        "an append to another bucket",
        [NEW],
        [],
        since(APPEND, add(file(seq=(10, 19)), bucket=1)),
        [],
        [],
        set(),
    ),
    (
        "an append to another partition",
        [NEW],
        [],
        since(APPEND, add(file(seq=(10, 19)), dt="b")),
        [],
        [],
        set(),
    ),
    (
        "NULL and '' are two partitions",
        [add(NEW.file, dt=None)],
        [],
        since(APPEND, add(file(seq=(10, 19)), dt="")),
        [],
        [],
        set(),
    ),
    ("a compaction of higher numbers", [NEW], [], since(COMPACT, add(file(seq=(0, 99)))), [], [], set()),
    ("an overwrite that removed our bucket", [NEW], [], since(OVERWRITE, delete(A)), [], [], set()),
    ("an upgrade inside an overwrite", [NEW], [], since(OVERWRITE, *upgrade(B, 5)), [], [], set()),
    (
        "an append that touches our first number",
        [NEW],
        [],
        since(APPEND, add(file(seq=(8, 10)))),
        [],
        [],
        {ConflictKind.SEQUENCE},
    ),
    (
        "an append with the same numbers",
        [NEW],
        [],
        since(APPEND, add(file(seq=(10, 19)))),
        [],
        [],
        {ConflictKind.SEQUENCE},
    ),
    (
        "an append above our numbers",
        [NEW],
        [],
        since(APPEND, add(file(seq=(50, 60)))),
        [],
        [],
        {ConflictKind.SEQUENCE},
    ),
    (
        "an overwrite that wrote the same numbers",
        [NEW],
        [],
        since(OVERWRITE, delete(A), add(file(seq=(10, 11), level=5))),
        [],
        [],
        {ConflictKind.SEQUENCE},
    ),
    (
        "a rescaled partition",
        [NEW],
        [],
        since(OVERWRITE, delete(A), add(file(seq=(0, 1)), total=4, bucket=3)),
        [],
        [],
        {ConflictKind.BUCKET_COUNT},
    ),
    ("an assigner of another partition", [DYNAMIC], [H1], BUSY, [], [hash_index("i", dt="z")], set()),
    ("an unchanged index", [DYNAMIC], [H2], BUSY, [H1], [H1], set()),
    ("new keys of others while we had none", [DYNAMIC], [], BUSY, [H1], [H2], set()),
    ("another assigner of our bucket", [DYNAMIC], [H1], BUSY, [], [H2], {ConflictKind.BUCKET_ASSIGNMENT}),
    (
        "another assigner of another bucket",
        [DYNAMIC],
        [H1],
        BUSY,
        [H1],
        [H1, hash_index("i", bucket=1)],
        {ConflictKind.BUCKET_ASSIGNMENT},
    ),
    ("an index that is gone", [DYNAMIC], [], BUSY, [H1], [], {ConflictKind.BUCKET_ASSIGNMENT}),
    (
        "an overwrite under dynamic buckets",
        [DYNAMIC],
        [],
        since(OVERWRITE, delete(add(A.file, total=-1))),
        [H1],
        [H1],
        {ConflictKind.BUCKET_ASSIGNMENT},
    ),
    ("an expired index of the base", [DYNAMIC], [H1], BUSY, None, [H1], {ConflictKind.BUCKET_ASSIGNMENT}),
    ("an expired index under fixed buckets", [NEW], [], BUSY, None, [], set()),
]


@pytest.mark.parametrize(
    ("delta", "adds", "between", "before", "now", "expected"),
    [c[1:] for c in APPENDS],
    ids=[c[0] for c in APPENDS],
)
def test_append(
    delta: list[ManifestEntry],
    adds: list[IndexManifestEntry],
    between: list[Intervening],
    before: list[IndexManifestEntry] | None,
    now: list[IndexManifestEntry],
    expected: set[ConflictKind],
) -> None:
    assert {conflict.kind for conflict in check_append(delta, adds, between, before, now)} == expected


READ = add(file("read", keys=(3, 5)))
ROWS_READ: list[tuple[str, list[Intervening], bool]] = [
    ("nothing since", [], False),
    ("an append of the same keys", since(APPEND, add(file(keys=(3, 5)))), True),
    ("an append that touches the first key", since(APPEND, add(file(keys=(1, 3)))), True),
    ("an append that touches the last key", since(APPEND, add(file(keys=(5, 9)))), True),
    ("an append around the keys", since(APPEND, add(file(keys=(1, 9)))), True),
    ("an append between the keys", since(APPEND, add(file(keys=(4, 4)))), True),
    ("an append below the keys", since(APPEND, add(file(keys=(1, 2)))), False),
    ("an append above the keys", since(APPEND, add(file(keys=(6, 9)))), False),
    ("files apart, the second of which meets the keys", since(APPEND, *map(add, (file(keys=(6, 9)), file()))), True),
    ("an append to another bucket", since(APPEND, add(file(keys=(3, 5)), bucket=1)), False),
    ("an append to another partition", since(APPEND, add(file(keys=(3, 5)), dt="b")), False),
    ("an append to dynamic buckets", since(APPEND, add(file(keys=(3, 5)), total=-1)), True),
    ("an overwrite that wrote the keys", since(OVERWRITE, add(file(keys=(3, 5), level=5))), True),
    ("an overwrite that removed the keys", since(OVERWRITE, delete(A)), True),
    ("an overwrite that removed other keys", since(OVERWRITE, delete(add(file(keys=(7, 9))))), False),
    ("an upgrade inside an overwrite", since(OVERWRITE, *upgrade(A, 5)), False),
    ("a compaction", since(COMPACT, delete(A), add(file(keys=(1, 9), level=5))), False),
    ("a second snapshot since", [*since(COMPACT, delete(A)), *since(APPEND, add(file(keys=(5, 5))))], True),
]


@pytest.mark.parametrize(("between", "conflicts"), [c[1:] for c in ROWS_READ], ids=[c[0] for c in ROWS_READ])
def test_rows_that_were_read(between: list[Intervening], conflicts: bool) -> None:
    found = check_rows_read([add(file(keys=(20, 30))), READ], between, ranks)
    assert {conflict.kind for conflict in found} == ({ConflictKind.ROWS_CHANGED} if conflicts else set())


def test_the_message_names_partition_bucket_level_and_files() -> None:
    conflict = check_changes(COMPACT, [TOP, B], upgrade(B, 5), ranks, lambda stored: "dt=a")[0]
    assert conflict.files == ("top", "b")
    for part in ("top", "b", "level 5", "bucket 0", "dt=a"):
        assert part in conflict.message


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (ConflictKind.SEQUENCE, SequenceConflictError),
        (ConflictKind.BUCKET_ASSIGNMENT, BucketAssignConflictError),
        (ConflictKind.ROWS_CHANGED, RowsChangedError),
        (ConflictKind.MISSING_FILE, CommitConflictError),
        (ConflictKind.BASE_EXPIRED, CommitConflictError),
    ],
)
def test_the_error_says_what_to_redo(kind: ConflictKind, error: type[CommitConflictError]) -> None:
    raised = Conflict(kind, "why").error("Table t")
    assert type(raised) is error
    assert "Table t: why" in str(raised)


def test_many_missing_files_are_counted_and_not_all_listed() -> None:
    deletes = [delete(add(file(f"f{i}"))) for i in range(30)]
    conflict = check_changes(COMPACT, [], deletes, ranks)[0]
    assert len(conflict.files) == 30
    assert "and 20 more" in conflict.message

"""Each conflict and each non-conflict of conflict.py, one row each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakelsm.commit.conflict import Conflict, ConflictKind, check_changes
from lakelsm.errors import BucketAssignConflictError, CommitConflictError, RowsChangedError, SequenceConflictError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.merge.key_order import rank_keys
from tests.commit.commit_table import INT, add, delete, file, upgrade

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def ranks(keys: Sequence[bytes]) -> Sequence[int]:
    result: list[int] = rank_keys(keys, [INT]).tolist()
    return result


A = add(file("a", keys=(1, 5), seq=(0, 9)))
B = add(file("b", keys=(3, 8), seq=(10, 19)))
TOP = add(file("top", level=5, keys=(1, 5)))
OTHER_BUCKET = add(file("other", level=5, keys=(1, 9)), bucket=1)
OTHER_DT = add(file("dt", level=5, keys=(1, 9)), dt="b")

KIND = ConflictKind
NEWER, SMALL = add(file("n", keys=(6, 9), schema_id=1)), add(file("x", level=5, keys=(1, 4)))
BESIDE = add(file("c", keys=(5, 9)))

#: The case, kind of commit, live files, delta, and expected conflict (None: no conflict).
CHANGES: list[tuple[str, CommitKind, list[ManifestEntry], list[ManifestEntry], ConflictKind | None]] = [
    ("an append to an empty table", APPEND, [], [A], None),
    ("appends to one bucket", APPEND, [A], [B], None),
    ("a compaction of live files", COMPACT, [A, B], [delete(A), delete(B), TOP], None),
    ("a compaction while newer level-0 files came", COMPACT, [A, B], [delete(A), TOP], None),
    ("an upgrade", COMPACT, [A], upgrade(A, 5), None),
    ("an upgrade above a file with keys apart", COMPACT, [A, add(file("z", level=5, keys=(6, 9)))], upgrade(A, 5), None),
    ("a rewrite of the top level in place", COMPACT, [TOP, A], [delete(TOP), delete(A), add(file("n", level=5))], None),
    ("equal key ranges on different levels", COMPACT, [TOP, A], upgrade(A, 4), None),
    ("equal key ranges in another bucket", COMPACT, [OTHER_BUCKET, A], upgrade(A, 5), None),
    ("equal key ranges in another partition", COMPACT, [OTHER_DT, A], upgrade(A, 5), None),
    ("an overwrite of everything", OVERWRITE, [A, TOP], [delete(A), delete(TOP), B], None),
    ("an overwrite with another bucket count", OVERWRITE, [A], [delete(A), add(total=4)], None),
    ("a delta that adds a file and takes it back", COMPACT, [], [A, delete(A)], None),
    ("dynamic buckets have no count to keep", APPEND, [add(total=-1)], [add(total=-1), add(total=2)], None),
    ("overlaps that were there before", COMPACT, [TOP, add(file("t2", level=5)), A], upgrade(A, 4), None),
    ("a rewrite under the newest schema", COMPACT, [A], [delete(A), add(file(level=5, schema_id=1))], None),
    (
        "an upgrade of an older file beside a rewrite",
        COMPACT,
        [A, NEWER],
        [*upgrade(A, 4), delete(NEWER), add(file(level=5, schema_id=1))],
        None,
    ),
    ("bucket counts differ between partitions", APPEND, [], [add(total=2), add(total=4, dt="b")], None),
    ("a file that exists", APPEND, [A], [A], KIND.DUPLICATE_FILE),
    ("a file twice in the delta", APPEND, [], [A, A], KIND.DUPLICATE_FILE),
    ("a file that was deleted in the same delta", COMPACT, [A], [delete(A), A], KIND.DUPLICATE_FILE),
    ("a compaction with a missing input", COMPACT, [B], [delete(A), TOP], KIND.MISSING_FILE),
    ("a compaction of an empty table", COMPACT, [], [delete(A), TOP], KIND.MISSING_FILE),
    ("a compaction whose input was upgraded", COMPACT, [upgrade(A, 5)[1]], [delete(A), B], KIND.MISSING_FILE),
    ("one input deleted twice", COMPACT, [A], [delete(A), delete(A), TOP], KIND.MISSING_FILE),
    ("an input in another bucket", COMPACT, [A], [delete(add(A.file, bucket=1))], KIND.MISSING_FILE),
    ("another bucket count in the partition", COMPACT, [add(total=2)], [add(total=4)], KIND.BUCKET_COUNT),
    ("two bucket counts in a first delta", APPEND, [], [add(total=2), add(total=4)], KIND.BUCKET_COUNT),
    ("two compactions to the top overlap", COMPACT, [TOP, B], upgrade(B, 5), KIND.LEVEL_OVERLAP),
    ("two compactions to the top share one key", COMPACT, [TOP, BESIDE], upgrade(BESIDE, 5), KIND.LEVEL_OVERLAP),
    (
        "new files overlap each other",
        COMPACT,
        [A],
        [delete(A), SMALL, add(file("y", level=5, keys=(2, 3)))],
        KIND.LEVEL_OVERLAP,
    ),
    ("files of an overwrite overlap", OVERWRITE, [], [SMALL, add(file("y", level=5, keys=(4, 5)))], KIND.LEVEL_OVERLAP),
    (
        "a rewrite under an older schema than an input's",
        COMPACT,
        [NEWER],
        [delete(NEWER), add(file(level=5, schema_id=0))],
        KIND.OLDER_SCHEMA,
    ),
]


@pytest.mark.parametrize(("kind", "base", "delta", "conflict"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_changes(
    kind: CommitKind, base: list[ManifestEntry], delta: list[ManifestEntry], conflict: ConflictKind | None
) -> None:
    assert {found.kind for found in check_changes(kind, base, delta, ranks)} == ({conflict} if conflict else set())


def test_the_message_names_partition_bucket_level_and_files() -> None:
    conflict = check_changes(COMPACT, [TOP, B], upgrade(B, 5), ranks)[0]
    assert conflict.files == ("top", "b")
    assert str(conflict.error("t", partition_name=lambda stored: "dt=a")).startswith(
        "Table t, bucket 0 of partition dt=a: files on level 5 would overlap: top and b. Nothing"
    )


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
    raised = Conflict(kind, "why").error("t")
    assert type(raised) is error
    assert "Table t: why" in str(raised)


def test_many_missing_files_are_counted_and_not_all_listed() -> None:
    deletes = [delete(add(file(f"f{i}"))) for i in range(30)]
    conflict = check_changes(COMPACT, [], deletes, ranks)[0]
    assert len(conflict.files) == 30
    assert "and 20 more" in conflict.message

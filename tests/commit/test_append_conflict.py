"""Every conflict and every non-conflict of append_conflict.py, a row each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakelsm.commit.append_conflict import Intervening, check_append, check_rows_read
from lakelsm.commit.conflict import ConflictKind
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

"""Each conflict and each non-conflict of append_conflict.py, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from lakelsm.commit.append_conflict import InterveningSnapshot, check_append, check_rows_read
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


def since(kind: CommitKind, *entries: ManifestEntry) -> list[InterveningSnapshot]:
    return [InterveningSnapshot(5, kind, "them", entries)]


@dataclass(frozen=True)
class Append:
    """A case: an append, the commits since its base, and the expected conflict (None: no conflict)."""

    what: str
    delta: list[ManifestEntry]
    between: list[InterveningSnapshot]
    conflict: ConflictKind | None = None
    adds: Sequence[IndexManifestEntry] = ()
    before: Sequence[IndexManifestEntry] | None = ()
    now: Sequence[IndexManifestEntry] = ()


SEQUENCE, ASSIGNMENT = ConflictKind.SEQUENCE, ConflictKind.BUCKET_ASSIGNMENT
OTHER_INDEX = [H1, hash_index("i", bucket=1)]
BUSY = since(APPEND, add(file(seq=(0, 0)), dt="z"))
RESCALED = since(OVERWRITE, delete(A), add(file(seq=(0, 1)), total=4, bucket=3))
REPLACED = since(OVERWRITE, delete(add(A.file, total=-1)))
APPENDS = [
    Append("nothing since", [NEW], []),
    Append("an append below our numbers", [NEW], since(APPEND, add(file(seq=(5, 9))))),
    Append("an append to another bucket", [NEW], since(APPEND, add(file(seq=(10, 19)), bucket=1))),
    Append("an append to another partition", [NEW], since(APPEND, add(file(seq=(10, 19)), dt="b"))),
    Append("NULL and '' are two partitions", [add(NEW.file, dt=None)], since(APPEND, add(file(seq=(10, 19)), dt=""))),
    Append("a compaction of higher numbers", [NEW], since(COMPACT, add(file(seq=(0, 99))))),
    Append("an overwrite that removed our bucket", [NEW], since(OVERWRITE, delete(A))),
    Append("an upgrade inside an overwrite", [NEW], since(OVERWRITE, *upgrade(B, 5))),
    Append("an append that touches our first number", [NEW], since(APPEND, add(file(seq=(8, 10)))), SEQUENCE),
    Append("an append with the same numbers", [NEW], since(APPEND, add(file(seq=(10, 19)))), SEQUENCE),
    Append("an append above our numbers", [NEW], since(APPEND, add(file(seq=(50, 60)))), SEQUENCE),
    Append(
        "an overwrite that wrote the same numbers",
        [NEW],
        since(OVERWRITE, delete(A), add(file(seq=(10, 11), level=5))),
        SEQUENCE,
    ),
    Append("a rescaled partition", [NEW], RESCALED, ConflictKind.BUCKET_COUNT),
    Append("an assigner of another partition", [DYNAMIC], BUSY, adds=[H1], now=[hash_index("i", dt="z")]),
    Append("an unchanged index", [DYNAMIC], BUSY, adds=[H2], before=[H1], now=[H1]),
    Append("new keys of others while we had none", [DYNAMIC], BUSY, before=[H1], now=[H2]),
    Append("another assigner of our bucket", [DYNAMIC], BUSY, ASSIGNMENT, adds=[H1], now=[H2]),
    Append("another assigner of another bucket", [DYNAMIC], BUSY, ASSIGNMENT, adds=[H1], before=[H1], now=OTHER_INDEX),
    Append("a missing index", [DYNAMIC], BUSY, ASSIGNMENT, before=[H1]),
    Append("an overwrite under dynamic buckets", [DYNAMIC], REPLACED, ASSIGNMENT, before=[H1], now=[H1]),
    Append("an expired index of the base", [DYNAMIC], BUSY, ASSIGNMENT, adds=[H1], before=None, now=[H1]),
    Append("an expired index under fixed buckets", [NEW], BUSY, before=None),
]


@pytest.mark.parametrize("case", APPENDS, ids=lambda case: case.what)
def test_append(case: Append) -> None:
    found = check_append(case.delta, case.adds, case.between, case.before, case.now)
    assert {conflict.kind for conflict in found} == ({case.conflict} if case.conflict else set())


READ = add(file("read", keys=(3, 5)))
ROWS_READ: list[tuple[str, list[InterveningSnapshot], bool]] = [
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
def test_rows_that_were_read(between: list[InterveningSnapshot], conflicts: bool) -> None:
    found = check_rows_read([add(file(keys=(20, 30))), READ], between, ranks)
    assert {conflict.kind for conflict in found} == ({ConflictKind.ROWS_CHANGED} if conflicts else set())

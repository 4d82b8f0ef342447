"""full-compaction.delta-commits."""

from __future__ import annotations

from lakelsm.lsm.compact_trigger import CommitFact, commits_since_full_compaction, full_compaction_due

APPEND = CommitFact(adds_rows=True)
COMPACT = CommitFact(adds_rows=False)
FULL = CommitFact(adds_rows=False, full_compaction=True)


def test_commits_are_counted_back_to_the_last_full_compaction() -> None:
    assert commits_since_full_compaction([APPEND, COMPACT, APPEND, FULL, APPEND]) == 2
    assert commits_since_full_compaction([]) == 0


def test_a_full_compaction_is_due_after_so_many_commits() -> None:
    assert not full_compaction_due(3, [APPEND, APPEND, FULL, APPEND])
    assert full_compaction_due(3, [APPEND, APPEND, APPEND, FULL])


def test_one_asks_after_every_commit_and_unset_never() -> None:
    assert full_compaction_due(1, [APPEND])
    assert full_compaction_due(0, [APPEND, FULL])
    assert not full_compaction_due(None, [APPEND] * 100)

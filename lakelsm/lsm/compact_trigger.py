"""When `full-compaction.delta-commits` asks for a full compaction, from the history of commits alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommitFact:
    """One snapshot of the history: whether it added new rows, and whether it left all it touched fully
    compacted.

    `adds_rows` is true for APPEND and OVERWRITE snapshots. `full_compaction` is true for a COMPACT snapshot
    known to have compacted in full; where that is not known (a snapshot of another engine) say False: the
    only consequence is a full compaction that comes earlier than it must.
    """

    adds_rows: bool
    full_compaction: bool = False


def commits_since_full_compaction(history: Iterable[CommitFact]) -> int:
    """Row-adding commits since the last full compaction. `history` comes newest first and may be cut by
    expiry.
    """
    count = 0
    for commit in history:
        if commit.full_compaction:
            break
        count += commit.adds_rows
    return count


def full_compaction_due(delta_commits: int | None, history: Iterable[CommitFact]) -> bool:
    """Whether a full compaction must follow now, the commit just made being the first of `history`.

    `delta_commits` is the option's value; None (not set) never asks. 1 or less asks after every commit.
    """
    if delta_commits is None:
        return False
    return commits_since_full_compaction(history) >= max(1, delta_commits)

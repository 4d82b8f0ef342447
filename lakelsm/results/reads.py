"""Results of counts and lookups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakelsm.results.result import Result


@dataclass(frozen=True, kw_only=True, repr=False)
class CountResult(Result):
    """The number of ``rows`` of a snapshot that match a condition; ``int(result)`` returns it.

    ``how`` is 'metadata' if manifests and deletion vectors were enough, else 'files': then ``files_opened`` data files
    were read. ``snapshot_id`` is None for a table without snapshots.
    """

    snapshot_id: int | None
    rows: int
    how: str
    files_opened: int = 0

    def __int__(self) -> int:
        return self.rows


@dataclass(frozen=True, kw_only=True, repr=False)
class Staleness(Result):
    """The age of the answers of a lookup.

    ``snapshot_id`` is the snapshot that answers (None: the table had none), committed at ``committed_at`` (UTC),
    ``age_seconds`` ago. ``newest_snapshot_id`` is the newest snapshot of the table, ``snapshots_behind`` the difference
    of the two ids: 0 if the answers are up to date, negative after a rollback. ``seconds_since_look`` is the time since
    a lookup or a refresh looked for a newer snapshot. ``cache`` is 'full', 'partial' or 'remote'.
    """

    table: str
    cache: str
    snapshot_id: int | None
    committed_at: datetime | None
    age_seconds: float | None
    newest_snapshot_id: int | None
    snapshots_behind: int
    seconds_since_look: float


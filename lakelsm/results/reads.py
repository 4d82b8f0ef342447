"""What counts and lookups return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakelsm.results.result import Result


@dataclass(frozen=True, kw_only=True, repr=False)
class CountResult(Result):
    """How many ``rows`` a snapshot has that match (``int(result)`` is the number), and how that was found.

    ``how`` is 'metadata' if manifests and deletion vectors were enough, else 'files', of which
    ``files_opened`` are the data files. ``snapshot_id`` is None for a table without any.
    """

    snapshot_id: int | None
    rows: int
    how: str
    files_opened: int = 0

    def __int__(self) -> int:
        return self.rows


@dataclass(frozen=True, kw_only=True, repr=False)
class Staleness(Result):
    """How fresh the answers of a lookup are.

    ``snapshot_id`` is the snapshot that answers (None: the table had none), committed at ``committed_at`` (UTC),
    ``age_seconds`` ago. ``newest_snapshot_id`` is the table's newest now, ``snapshots_behind`` how many lie between the
    two: 0 where the answers are the newest, negative where the table was rolled back. ``seconds_since_look``: since a
    lookup or a refresh looked for a newer one. ``cache`` is 'full', 'partial' or 'remote'.
    """

    table: str
    cache: str
    snapshot_id: int | None
    committed_at: datetime | None
    age_seconds: float | None
    newest_snapshot_id: int | None
    snapshots_behind: int
    seconds_since_look: float


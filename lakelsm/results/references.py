"""Results of calls on tags, branches, consumers and names in a Spark session, and of a rollback."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lakelsm.results.result import OperationResult, Result


@dataclass(frozen=True, kw_only=True, repr=False)
class TagInfo(Result):
    """A tag and its snapshot. ``rows`` counts rows of the snapshot's files, with older versions of rows.

    ``created_at`` (the writer's wall clock, without a zone) and ``time_retained`` are None for a tag that never
    expires.
    """

    name: str
    snapshot_id: int
    schema_id: int
    rows: int
    committed_at: datetime
    created_at: datetime | None = None
    time_retained: timedelta | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class TagDeletionResult(OperationResult):
    """The result of a deletion of tags; with ``dry_run``, of one that would run.

    ``tags`` are the names of deleted tags, ``files`` and ``bytes`` (from metadata) the files that only they needed: no
    snapshot, other tag, branch or long-lived changelog. ``failures`` names files that could not be deleted; orphan
    removal deletes them. ``older_than`` is the bound of an expiry in UTC, None without one.
    """

    table: str
    dry_run: bool = False
    older_than: datetime | None = None
    tags: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    failures: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """True if a tag was deleted."""
        return bool(self.tags)


@dataclass(frozen=True, kw_only=True, repr=False)
class BranchInfo(Result):
    """A branch other than main. ``schema_id`` and ``snapshot_id`` are its newest (None: it has no snapshot).

    ``created`` (UTC) and ``schema_id`` are None after an interrupted creation or deletion: delete such a branch.
    """

    name: str
    created: datetime | None = None
    schema_id: int | None = None
    snapshot_id: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class FastForwardResult(OperationResult):
    """The result of a fast-forward of the main branch; with ``dry_run``, of one that would run.

    Counts snapshots, and names tags, that were added from the branch, and those of the main branch that were removed.
    """

    table: str
    branch: str
    snapshot_id: int
    dry_run: bool = False
    snapshots_added: int = 0
    snapshots_removed: int = 0
    tags_added: tuple[str, ...] = ()
    tags_removed: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """True if the main branch differed from the branch."""
        return bool(self.snapshots_added or self.snapshots_removed or self.tags_added or self.tags_removed)


@dataclass(frozen=True, kw_only=True, repr=False)
class RollbackResult(OperationResult):
    """The result of a rollback; with ``dry_run``, of one that would run.

    The newest snapshot is now ``snapshot_id``; ``restored`` is True if it had expired and was restored from a tag.
    ``snapshots``, ``tags`` and ``changelogs`` (ids of long-lived ones) are those of later snapshots, which are deleted.
    ``consumers`` were beyond the snapshot, and now read the one after it next. ``files`` and ``bytes`` (from metadata)
    count files that no snapshot, tag, branch or long-lived changelog needs any more. ``failures`` names files that
    could not be deleted; orphan removal deletes them. ``timestamp`` is the requested time in UTC (None: an id or a tag
    was).
    """

    table: str
    snapshot_id: int
    dry_run: bool = False
    timestamp: datetime | None = None
    restored: bool = False
    snapshots: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    changelogs: tuple[int, ...] = ()
    consumers: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    failures: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """True if the table was at another state."""
        return bool(self.snapshots or self.tags or self.changelogs or self.restored or self.consumers)


@dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerInfo(Result):
    """A consumer, and its progress: it reads ``next_snapshot_id`` next, recorded at ``recorded_at`` (UTC).

    ``lag_snapshots`` counts the snapshots that it has not read, ``lag_seconds`` is the age of the oldest of them that
    is retained; both are 0 for a consumer that is up to date.
    """

    name: str
    next_snapshot_id: int
    recorded_at: datetime | None = None
    lag_snapshots: int = 0
    lag_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerExpiryResult(OperationResult):
    """The result of an expiry of consumers; with ``dry_run``, of one that would run.

    ``consumers`` are the names of deleted consumers. ``older_than`` is the bound in UTC.
    """

    table: str
    dry_run: bool = False
    older_than: datetime
    consumers: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """True if a consumer was deleted."""
        return bool(self.consumers)


@dataclass(frozen=True, kw_only=True, repr=False)
class RegistrationResult(Result):
    """The result of a registration of tables in a Spark session.

    ``names`` are their names in `spark.sql`, ``dropped`` the names that no table has any more. ``skipped`` has each table
    without a name, with the reason.
    """

    names: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

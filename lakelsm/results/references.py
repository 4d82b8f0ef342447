"""What calls on tags, branches and consumers return, and a rollback."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lakelsm.results.result import OperationResult, Result


@dataclass(frozen=True, kw_only=True, repr=False)
class TagInfo(Result):
    """A tag: the snapshot that it names, with its schema, rows (of its files, older versions included) and commit time.

    ``created_at`` (the writer's wall clock, without a zone) and ``time_retained`` are None for a tag that never expires.
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
    """What a deletion of tags did, or with ``dry_run`` would do.

    ``tags`` are the names of the deleted ones, ``files`` and ``bytes`` (from metadata) what no snapshot, other
    tag, branch or long-lived changelog needs without them. ``failures`` names files that could not be deleted; orphan
    removal deletes them. ``older_than`` is the bound in UTC of an expiry that has one.
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
        """Whether a tag was deleted."""
        return bool(self.tags)


@dataclass(frozen=True, kw_only=True, repr=False)
class BranchInfo(Result):
    """A branch beside the main one. ``schema_id`` and ``snapshot_id`` are its newest (None: it has no snapshot).

    ``created`` (UTC) and ``schema_id`` are None after an interrupted creation or deletion: delete it.
    """

    name: str
    created: datetime | None = None
    schema_id: int | None = None
    snapshot_id: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class FastForwardResult(OperationResult):
    """What a fast-forward of the main branch did, or with ``dry_run`` would do.

    Snapshots and tags are copied from the branch, and those of the main branch's own are deleted.
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
        """Whether the main branch was another one."""
        return bool(self.snapshots_added or self.snapshots_removed or self.tags_added or self.tags_removed)


@dataclass(frozen=True, kw_only=True, repr=False)
class RollbackResult(OperationResult):
    """What a rollback did, or with ``dry_run`` would do.

    The table is at ``snapshot_id``, which was ``restored`` from a tag where it had expired. ``snapshots``, ``tags`` and
    ``changelogs`` (long-lived ones, by their ids) are those that went, all of later snapshots; ``consumers`` now read the
    snapshot after it next, because they were beyond. ``files`` and ``bytes`` (from metadata) are what no snapshot,
    tag, branch or long-lived changelog needs any more. ``failures`` names files that could not be deleted; orphan removal
    deletes them. ``timestamp`` is the time in UTC that the snapshot was chosen by (None: by its id or a tag).
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
        """Whether the table was at another state."""
        return bool(self.snapshots or self.tags or self.changelogs or self.restored or self.consumers)


@dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerInfo(Result):
    """A consumer: ``next_snapshot_id`` is what it reads next, ``recorded_at`` (UTC) when that was recorded.

    ``lag_snapshots`` is how many snapshots it has not read, ``lag_seconds`` the age of the oldest of them that is
    retained; both are 0 where it is up to date.
    """

    name: str
    next_snapshot_id: int
    recorded_at: datetime | None = None
    lag_snapshots: int = 0
    lag_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerExpiryResult(OperationResult):
    """What an expiry of consumers did, or with ``dry_run`` would do: ``consumers`` are the names of those that went.

    ``older_than`` is the bound in UTC.
    """

    table: str
    dry_run: bool = False
    older_than: datetime
    consumers: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a consumer was deleted."""
        return bool(self.consumers)

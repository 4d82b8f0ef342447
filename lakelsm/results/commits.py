"""What writes and compactions return."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from lakelsm.results.failure import Failure, error_values
from lakelsm.results.result import OperationResult

if TYPE_CHECKING:
    from lakelsm.schema_changes import SchemaChange


class CompactionStatus(str, Enum):
    """How a compaction ended. It is its text: ``status == "done"``. Schedulers read the texts: do not change.

    ``CONFLICT``: some of the work lost to another commit and was discarded (nothing of the other's is lost).
    ``FAILED``: an error ended it; what it had committed before stays. ``DEADLINE``: stopped between commits; run it
    again for the rest. ``PLANNED``: a dry run.
    """

    DONE = "done"
    NOTHING = "nothing"
    CONFLICT = "conflict"
    FAILED = "failed"
    DEADLINE = "deadline"
    PLANNED = "planned"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, kw_only=True, repr=False)
class CompactionResult(OperationResult):
    """What a compaction did. Counts are files, rows and bytes; ``seconds`` is wall time.

    ``rows_masked``: rows of files that deletion vectors newly mask. ``rows_remapped``: those of them that were
    found again by key in other files, because another commit had changed vectors or files while this one worked.

    ``error`` is why the status is 'failed' or 'conflict' (None for every other status). ``conflicts`` are all commits
    that were lost, with the commit and the files that each lost to. ``after_commit_failures`` are steps after a commit
    that failed, which changes nothing of the commit.
    """

    table: str
    status: CompactionStatus
    snapshot_ids: tuple[int, ...] = ()
    buckets: int = 0
    files_rewritten: int = 0
    files_upgraded: int = 0
    files_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    rows_read: int = 0
    rows_written: int = 0
    seconds: float = 0.0
    changelog_rows: int = 0
    rows_masked: int = 0
    rows_remapped: int = 0
    error: Failure | None = None
    conflicts: tuple[Failure, ...] = ()
    after_commit_failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        if (self.error is not None) is not (self.status in (CompactionStatus.CONFLICT, CompactionStatus.FAILED)):
            raise ValueError(f"a compaction has an error if it is 'conflict' or 'failed', and only then: {self}")

    @property
    def changed(self) -> bool:
        """Whether there was anything to compact."""
        return self.status is not CompactionStatus.NOTHING

    @property
    def outcome(self) -> str:
        """The text of the status."""
        return str(self.status)

    def as_dict(self) -> dict[str, object]:
        """The result as plain values. ``error`` becomes its text, with ``error_class``, ``error_kind`` and ``remedy``."""
        return {**super().as_dict(), **error_values(self.error)}


@dataclass(frozen=True, kw_only=True, repr=False)
class CommitResult(OperationResult):
    """What a write did. ``snapshot_id`` is None when it changed nothing.

    ``already_committed``: the same commit user had committed this batch id before, so nothing was written again.
    ``rows`` (one a key), ``files`` and ``bytes`` are those of the new files. ``compaction`` is the automatic compaction's
    result, if any; its status is 'failed' where it raised an error. ``after_commit_failures`` are other steps after the
    commit that failed. Neither changes that the write is committed.
    ``ignored_rows``: how many rows of kind -U and -D of the batch had no effect: the table's options drop them, or its
    merge engine retracts nothing with them (docs/api.md). A warning reports those of kind -D.
    ``matched_rows``: how many rows a delete or an update found and wrote; None for other operations, and if the
    batch had been committed before.
    ``schema_changes``: what ``merge_schema`` changed before the write, as `AddColumn` and `UpdateColumnType`; `as_dict`
    has their texts. ``changed`` is True for such a change alone too: a frame without rows may add columns.
    """

    snapshot_id: int | None
    already_committed: bool = False
    files: int = 0
    rows: int = 0
    bytes: int = 0
    ignored_rows: int = 0
    compaction: CompactionResult | None = None
    matched_rows: int | None = None
    after_commit_failures: tuple[Failure, ...] = ()
    schema_changes: tuple[SchemaChange, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a snapshot or a schema was published."""
        return self.snapshot_id is not None or bool(self.schema_changes)

    def as_dict(self) -> dict[str, object]:
        """The result as plain values."""
        return {**super().as_dict(), "schema_changes": tuple(map(str, self.schema_changes))}

    @property
    def outcome(self) -> str:
        """'done', 'nothing', or 'already committed'."""
        return "already committed" if self.already_committed else super().outcome

"""Results of writes and compactions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from lakelsm.results.failure import Failure, error_values
from lakelsm.results.result import OperationResult

if TYPE_CHECKING:
    from lakelsm.schema_changes import SchemaChange


class CompactionStatus(str, Enum):
    """The status of a compaction, which is also its text: ``status == "done"``. Schedulers read the texts: do not change.

    ``CONFLICT``: some of the work conflicted with another commit and was discarded; the other commit is not affected.
    ``FAILED``: an error ended the run; its earlier commits remain. ``DEADLINE``: stopped between commits; run it again
    for the rest. ``PLANNED``: a dry run.
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
    """The result of a compaction. Counts are files, rows and bytes; ``seconds`` is wall time.

    ``rows_masked``: rows of files that deletion vectors newly mask. ``rows_remapped``: those of them that were located
    again by key in other files, because another commit changed vectors or files during the compaction.

    ``error`` is the reason of the status 'failed' or 'conflict', and None for every other status. ``conflicts`` lists
    all lost commits, each with the commit and the files that it conflicted with. ``after_commit_failures`` are steps
    that failed after a commit; the commit remains valid.
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
            raise ValueError(f"error must be set exactly if status is 'conflict' or 'failed': {self}")

    @property
    def changed(self) -> bool:
        """True unless there was nothing to compact."""
        return self.status is not CompactionStatus.NOTHING

    @property
    def outcome(self) -> str:
        """The text of the status."""
        return str(self.status)

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values, the error as ``error``, ``error_class``, ``error_kind`` and ``remedy``."""
        return {**super().as_dict(), **error_values(self.error)}


@dataclass(frozen=True, kw_only=True, repr=False)
class CommitResult(OperationResult):
    """The result of a write, overwrite, delete, update or merge. ``snapshot_id`` is None if it changed no row.

    ``already_committed``: the commit user committed this batch id before, so nothing is written again. ``rows`` (one
    for each key), ``files`` and ``bytes`` count the new files. ``compaction`` is the result of the automatic
    compaction, if one ran; its status is 'failed' if it raised an error. ``after_commit_failures`` are other steps that
    failed after the commit. The commit remains valid in both cases. ``ignored_rows`` counts rows of kind -U and -D
    without effect: the options of the table drop them, or its merge engine cannot retract (docs/api.md). A warning
    reports those of kind -D. ``matched_rows`` counts the rows that a delete or an update found and wrote; it is None
    for other operations, and for a batch that was committed before. ``updated_rows``, ``deleted_rows`` and
    ``inserted_rows`` count what a merge wrote, and are None for other operations. ``schema_changes`` are the
    `AddColumn` and `UpdateColumnType` of ``merge_schema``; `as_dict` has their texts. ``changed`` is also True for
    schema changes alone: a frame without rows may add columns.
    """

    snapshot_id: int | None
    already_committed: bool = False
    files: int = 0
    rows: int = 0
    bytes: int = 0
    ignored_rows: int = 0
    compaction: CompactionResult | None = None
    matched_rows: int | None = None
    updated_rows: int | None = None
    deleted_rows: int | None = None
    inserted_rows: int | None = None
    after_commit_failures: tuple[Failure, ...] = ()
    schema_changes: tuple[SchemaChange, ...] = ()

    @property
    def changed(self) -> bool:
        """True if a snapshot or a schema was published."""
        return self.snapshot_id is not None or bool(self.schema_changes)

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values, with schema changes as texts."""
        return {**super().as_dict(), "schema_changes": tuple(map(str, self.schema_changes))}

    @property
    def outcome(self) -> str:
        """'done', 'nothing', or 'already committed'."""
        return "already committed" if self.already_committed else super().outcome

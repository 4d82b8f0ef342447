"""The results of operations: frozen values with ``as_dict()`` for reports."""

from lakelsm.results.commits import CommitResult, CompactionResult, CompactionStatus
from lakelsm.results.failure import Failure
from lakelsm.results.maintenance import (
    AnalyzeResult,
    CheckFinding,
    CheckResult,
    ExpiryResult,
    OrphanResult,
    PartitionDropResult,
    PartitionExpiryResult,
    UpkeepResult,
    UpkeepStep,
)
from lakelsm.results.reads import CountResult, Staleness
from lakelsm.results.references import (
    BranchInfo,
    ConsumerExpiryResult,
    ConsumerInfo,
    FastForwardResult,
    RegistrationResult,
    RollbackResult,
    TagDeletionResult,
    TagInfo,
)
from lakelsm.results.result import Result
from lakelsm.results.status import BucketStatus, FileTotals, PlannedCompaction, TableStatus, UpkeepStatus

__all__ = [
    "AnalyzeResult",
    "BranchInfo",
    "BucketStatus",
    "CheckFinding",
    "CheckResult",
    "CommitResult",
    "CompactionResult",
    "CompactionStatus",
    "ConsumerExpiryResult",
    "ConsumerInfo",
    "CountResult",
    "ExpiryResult",
    "Failure",
    "FastForwardResult",
    "FileTotals",
    "OrphanResult",
    "PartitionDropResult",
    "PartitionExpiryResult",
    "PlannedCompaction",
    "RegistrationResult",
    "Result",
    "RollbackResult",
    "Staleness",
    "TableStatus",
    "TagDeletionResult",
    "TagInfo",
    "UpkeepResult",
    "UpkeepStatus",
    "UpkeepStep",
]

"""lakelsm: LSM primary-key tables in Apache Paimon's format, as one engine in Python on Spark and in this process.

See docs/api.md.
"""

from typing import TYPE_CHECKING

from lakelsm.errors import (
    BatchHistoryExpiredError,
    BucketAssignConflictError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptStoreError,
    CorruptTableError,
    ErrorKind,
    InvalidInputError,
    LakelsmError,
    LookupServiceError,
    LookupServiceSetupError,
    OutOfMemoryError,
    RowsChangedError,
    SequenceConflictError,
    SnapshotNotFoundError,
    SparkUnavailableError,
    StorageError,
    StorageUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VectorsChangedError,
)
from lakelsm.options import TableOptions
from lakelsm.results import (
    AnalyzeResult,
    BranchInfo,
    BucketStatus,
    CheckFinding,
    CheckResult,
    CommitResult,
    CompactionResult,
    CompactionStatus,
    ConsumerExpiryResult,
    ConsumerInfo,
    CountResult,
    ExpiryResult,
    Failure,
    FastForwardResult,
    MaintenanceRun,
    OrphanResult,
    PartitionDropResult,
    PartitionExpiryResult,
    PartitionInfo,
    PlannedCompaction,
    RollbackResult,
    Staleness,
    TableStatus,
    TagDeletionResult,
    TagInfo,
    UpkeepStatus,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from lakelsm.types import DataField, DataType
from lakelsm.version import VERSION as __version__

if TYPE_CHECKING:
    from lakelsm.catalog import Catalog
    from lakelsm.lookup.lookup import Lookup
    from lakelsm.plan.read_plan import ReadPlan
    from lakelsm.table import Table

__all__ = [
    "AddColumn",
    "AnalyzeResult",
    "BatchHistoryExpiredError",
    "BranchInfo",
    "BucketAssignConflictError",
    "BucketStatus",
    "Catalog",
    "CheckFinding",
    "CheckResult",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CommitResult",
    "CompactionResult",
    "CompactionStatus",
    "ConsumerExpiryResult",
    "ConsumerInfo",
    "CorruptStoreError",
    "CorruptTableError",
    "CountResult",
    "DataField",
    "DataType",
    "DropColumn",
    "ErrorKind",
    "ExpiryResult",
    "Failure",
    "FastForwardResult",
    "InvalidInputError",
    "LakelsmError",
    "Lookup",
    "LookupServiceError",
    "LookupServiceSetupError",
    "MaintenanceRun",
    "MoveColumn",
    "OrphanResult",
    "OutOfMemoryError",
    "PartitionDropResult",
    "PartitionExpiryResult",
    "PartitionInfo",
    "PlannedCompaction",
    "ReadPlan",
    "RemoveOption",
    "RenameColumn",
    "RollbackResult",
    "RowsChangedError",
    "SchemaChange",
    "SequenceConflictError",
    "SetOption",
    "SnapshotNotFoundError",
    "SparkUnavailableError",
    "Staleness",
    "StorageError",
    "StorageUnavailableError",
    "Table",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TableOptions",
    "TableSchema",
    "TableStatus",
    "TagDeletionResult",
    "TagInfo",
    "UnsupportedFeatureError",
    "UpdateColumnComment",
    "UpdateColumnNullability",
    "UpdateColumnType",
    "UpdateComment",
    "UpkeepStatus",
    "VectorsChangedError",
    "__version__",
]

if not TYPE_CHECKING:  # A type checker knows these four from above, and no other names.

    def __getattr__(name: str) -> object:
        """What knows all operations is loaded when it is asked for: a task, which imports the package too, runs one."""
        if name == "Catalog":
            from lakelsm.catalog import Catalog as found
        elif name == "Lookup":
            from lakelsm.lookup.lookup import Lookup as found
        elif name == "ReadPlan":
            from lakelsm.plan.read_plan import ReadPlan as found
        elif name == "Table":
            from lakelsm.table import Table as found
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

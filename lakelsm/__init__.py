"""lakelsm: LSM primary-key tables in Apache Paimon's format, as a Spark-native engine in Python. See docs/api.md."""

from lakelsm.catalog import Catalog
from lakelsm.errors import (
    BatchHistoryExpiredError,
    BucketAssignConflictError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    ErrorKind,
    InvalidInputError,
    LakelsmError,
    RowsChangedError,
    SequenceConflictError,
    SnapshotNotFoundError,
    SparkUnavailableError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VectorsChangedError,
)
from lakelsm.options import TableOptions
from lakelsm.plan.read_plan import ReadPlan
from lakelsm.results import CommitResult, CompactionResult, CompactionStatus, CountResult
from lakelsm.schema.changes import (
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
from lakelsm.schema.table_schema import TableSchema
from lakelsm.table import Table
from lakelsm.types import DataField, DataType
from lakelsm.version import VERSION as __version__

__all__ = [
    "AddColumn",
    "BatchHistoryExpiredError",
    "BucketAssignConflictError",
    "Catalog",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CommitResult",
    "CompactionResult",
    "CompactionStatus",
    "CorruptTableError",
    "CountResult",
    "DataField",
    "DataType",
    "DropColumn",
    "ErrorKind",
    "InvalidInputError",
    "LakelsmError",
    "MoveColumn",
    "ReadPlan",
    "RemoveOption",
    "RenameColumn",
    "RowsChangedError",
    "SchemaChange",
    "SequenceConflictError",
    "SetOption",
    "SnapshotNotFoundError",
    "SparkUnavailableError",
    "StorageError",
    "Table",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TableOptions",
    "TableSchema",
    "UnsupportedFeatureError",
    "UpdateColumnComment",
    "UpdateColumnNullability",
    "UpdateColumnType",
    "UpdateComment",
    "VectorsChangedError",
    "__version__",
]
